#include "base.h"

#include <stdio.h>

_Noreturn void die(const char *file, int line, const char *what) {
    fprintf(stderr, "the core has failed at %s:%d: %s\n", file, line, what);
    fflush(stderr);
    abort();
}

void *memory(size_t size) {
    void *found = malloc(size);
    if (found == NULL) DIE("there is no memory left");
    return found;
}

void *memory_again(void *old, size_t size) {
    void *found = realloc(old, size);
    if (found == NULL) DIE("there is no memory left");
    return found;
}

struct blob *blob_new(const u8 *data, u32 size) {
    struct blob *blob = memory(sizeof *blob + size);
    blob->references = 1;
    blob->size = size;
    if (size) memcpy(blob->data, data, size);
    return blob;
}

void blob_drop(struct blob *blob) {
    if (blob != NULL && !--blob->references) free(blob);
}

void words_grow(struct words *words) {
    words->room = words->room ? 2 * words->room : 64;
    words->items = memory_again(words->items, words->room * sizeof *words->items);
}

void words_free(struct words *words) {
    free(words->items);
    *words = (struct words){0};
}

static inline u64 rotated(u64 word, int bits) { return word << bits | word >> (64 - bits); }

#define ROUND()                                                \
    do {                                                       \
        a += b, c += d, b = rotated(b, 13), d = rotated(d, 16); \
        b ^= a, d ^= c, a = rotated(a, 32);                    \
        c += b, a += d, b = rotated(b, 17), d = rotated(d, 21); \
        b ^= c, d ^= a, c = rotated(c, 32);                    \
    } while (0)

u64 hash_bytes(const struct key *key, const u8 *data, size_t size) {
    u64 a = key->first ^ 0x736f6d6570736575, b = key->second ^ 0x646f72616e646f6d;
    u64 c = key->first ^ 0x6c7967656e657261, d = key->second ^ 0x7465646279746573;
    u64 word, last = (u64)size << 56;
    const u8 *end = data + (size & ~(size_t)7);
    for (; data < end; data += 8) {
        memcpy(&word, data, 8);
        d ^= word;
        ROUND();
        a ^= word;
    }
    word = 0;
    memcpy(&word, data, size & 7);
    last |= word;
    d ^= last;
    ROUND();
    a ^= last;
    c ^= 0xff;
    ROUND();
    ROUND();
    ROUND();
    return a ^ b ^ c ^ d;
}
