#include "hash.h"

/* Items of a chain as soon as which there is one chain more; and of four chains, before there is one fewer. */
#define MOST_PER_CHAIN 1u
#define LEAST_PER_FOUR 1u

static void open_first(struct hash *hash) {
    hash->base = HASH_LEAST;
    hash->split = 0;
    hash->room = HASH_LEAST;
    hash->chains = memory(HASH_LEAST * sizeof *hash->chains);
    memset(hash->chains, 0, HASH_LEAST * sizeof *hash->chains);
}

static void split_one(struct hash *hash, const struct hash_kind *kind, const void *owner) {
    u32 chains = hash->base + hash->split;
    if (chains == hash->room) {
        hash->room *= 2;
        hash->chains = memory_again(hash->chains, hash->room * sizeof *hash->chains);
    }
    u32 item = hash->chains[hash->split];
    u32 *stays = hash->chains + hash->split, *goes = hash->chains + chains;
    while (item) {
        u32 *next = kind->next(owner, item);
        u32 **end = kind->hash(owner, item) & hash->base ? &goes : &stays;
        **end = item;
        *end = next;
        item = *next;
    }
    *stays = *goes = 0;
    if (++hash->split == hash->base) {
        hash->base *= 2;
        hash->split = 0;
    }
}

static void join_one(struct hash *hash, const struct hash_kind *kind, const void *owner) {
    if (!hash->split) {
        hash->base /= 2;
        hash->split = hash->base;
    }
    hash->split--;
    u32 *end = hash->chains + hash->split;
    while (*end) end = kind->next(owner, *end);
    *end = hash->chains[hash->base + hash->split];
    if (hash->room > 4 * (hash->base + hash->split) && hash->room > HASH_LEAST) {
        hash->room /= 2;
        hash->chains = memory_again(hash->chains, hash->room * sizeof *hash->chains);
    }
}

void hash_add(struct hash *hash, const struct hash_kind *kind, const void *owner, u32 item) {
    if (UNLIKELY(hash->chains == NULL)) open_first(hash);
    u32 *chain = hash_chain(hash, kind->hash(owner, item));
    *kind->next(owner, item) = *chain;
    *chain = item;
    if (++hash->count > MOST_PER_CHAIN * (hash->base + hash->split)) split_one(hash, kind, owner);
}

void hash_remove(struct hash *hash, const struct hash_kind *kind, const void *owner, u32 item) {
    u32 *at = hash_chain(hash, kind->hash(owner, item));
    while (*at != item) {
        assert(*at && "it is in the table");
        at = kind->next(owner, *at);
    }
    *at = *kind->next(owner, item);
    hash->count--;
    u32 chains = hash->base + hash->split;
    if (chains > HASH_LEAST && 4 * hash->count < LEAST_PER_FOUR * chains) join_one(hash, kind, owner);
}

void hash_free(struct hash *hash) {
    free(hash->chains);
    *hash = (struct hash){0};
}
