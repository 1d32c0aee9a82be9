/* What all of the core shares: integers of stated width, memory that is there or ends the process, a keyed hash.

   An assertion that fails, and memory that is not there, end the worker with a line that says where. Assertions are
   left out of a release (NDEBUG). Nothing here knows Python. */
#ifndef SKYWALKER_BASE_H
#define SKYWALKER_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Say where, and abort. */
_Noreturn void die(const char *file, int line, const char *what);
#define DIE(what) die(__FILE__, __LINE__, what)

/* Memory of so many bytes, which is to be freed; realloc() of the same kind. */
void *memory(size_t size);
void *memory_again(void *old, size_t size);

/* Bytes that several may refer to: freed with the last reference. */
struct blob {
    u32 references;
    u32 size;
    u8 data[];
};

struct blob *blob_new(const u8 *data, u32 size);
static inline struct blob *blob_ref(struct blob *blob) {
    blob->references++;
    return blob;
}
void blob_drop(struct blob *blob); /* of NULL nothing */

/* A key that nobody outside knows, so that nobody can choose what collides. */
struct key {
    u64 first, second;
};

/* SipHash-1-3, which Python's own dicts use. */
u64 hash_bytes(const struct key *key, const u8 *data, size_t size);

/* A growing array of 64-bit words, for lists of one turn. */
struct words {
    u64 *items;
    u32 size, room;
};

void words_grow(struct words *words);
static inline void words_add(struct words *words, u64 item) {
    if (UNLIKELY(words->size == words->room)) words_grow(words);
    words->items[words->size++] = item;
}
void words_free(struct words *words);

#endif
