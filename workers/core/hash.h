/* A table by hash whose chains run through the items themselves. It grows and shrinks by one chain at a time (linear
   hashing), so that no single call pays for all items. Of items with one hash the last that was added is found first. */
#ifndef SKYWALKER_HASH_H
#define SKYWALKER_HASH_H

#include "base.h"

/* How the items of one table are looked at: their hash, and where they hold the number of the next of their chain. */
struct hash_kind {
    u32 (*hash)(const void *owner, u32 item);
    u32 *(*next)(const void *owner, u32 item);
};

struct hash {
    u32 *chains; /* numbers of the first items; NULL while nothing ever was in it */
    u32 count;   /* items */
    u32 base;    /* a power of two, from HASH_LEAST on */
    u32 split;   /* chains below this one are split in two already: there are base + split */
    u32 room;    /* for chains */
};

#define HASH_LEAST 4u

static inline u32 *hash_chain(const struct hash *hash, u32 of) {
    u32 at = of & (hash->base - 1);
    if (at < hash->split) at = of & (2 * hash->base - 1);
    return hash->chains + at;
}

/* First item of the chain in which an item with this hash is, 0 if it is empty. */
static inline u32 hash_first(const struct hash *hash, u32 of) { return hash->count ? *hash_chain(hash, of) : 0; }

void hash_add(struct hash *hash, const struct hash_kind *kind, const void *owner, u32 item);
void hash_remove(struct hash *hash, const struct hash_kind *kind, const void *owner, u32 item);
void hash_free(struct hash *hash);

#endif
