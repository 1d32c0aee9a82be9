/* What all of the core shares: integers of stated width, memory that is there or ends the process, a keyed hash.

   What does not hold ends the worker with a line that says where: an assertion, which is left out of a release (NDEBUG),
   and what MUST() hold or DIE()s there as well. Nothing here knows Python. */
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
/* An assertion of a release as well: who counts references wrongly would write to what is another's by now. */
#define MUST(what) ((what) ? (void)0 : DIE("this does not hold: " #what))

/* What keeps a promise. Where assertions are checked each can be switched off, to see that a test notices. */
enum safeguard {
    A_VALUE_IS_WRITTEN_FIRST,  /* before its sender is told `true` */
    A_VALUE_IS_ASKED_BACK,     /* at the deadline of its sender */
    A_LAST_WORD_IS_NEEDED,     /* or it is not known what became of a call */
    WHO_RETURNS_HAS_ITS_PLACE, /* in the line that it left */
    PUBLISHERS_WAIT,           /* while their topics move */
    AN_ACK_COMES_LAST,         /* behind what it is for */
    A_LOST_CALL_GOES_ELSEWHERE,
    A_HAND_IS_WRITTEN_DOWN,    /* where it outlives this worker */
    A_TAKER_TELLS_HOME,        /* and not only the owner */
    THE_DEAD_ARE_HEARD_FIRST,  /* before others are told what is known of them */
    DOUBT_STAYS,
    WHAT_IS_GIVEN_STAYS,       /* when its connection moves */
    ALL_IS_WRITTEN_FIRST,      /* before a connection is another worker's */
    SAFEGUARDS
};
/* Switch off those whose bits are set, and none else; false where that is not possible. */
bool safeguards_without(u32 mask);
#ifdef NDEBUG
#define KEPT(WHAT) true
#else
extern u32 safeguards_off;
#define KEPT(WHAT) (!(safeguards_off & 1u << (WHAT)))
#endif

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

static inline u64 word_at(const u8 *data) {
    u64 word;
    memcpy(&word, data, 8);
    return word;
}

static inline u32 half_word_at(const u8 *data) {
    u32 half;
    memcpy(&half, data, 4);
    return half;
}

static inline u64 folded(u64 one, u64 other) {
    unsigned __int128 product = (unsigned __int128)one * other;
    return (u64)product ^ (u64)(product >> 64);
}

/* Multiplied and folded, as foldhash does: quick for short names. Who does not know the key cannot choose what collides,
   and no hash is ever told to anybody. */
static inline u64 hash_bytes(const struct key *key, const u8 *data, size_t size) {
    u64 first = key->first ^ size, second = key->second;
    if (size > 16) {
        const u8 *last = data + size - 16;
        for (; data < last; data += 16) first = folded(first ^ word_at(data), second ^ word_at(data + 8));
        data = last;
        size = 16;
    }
    if (size >= 8) return folded(first ^ word_at(data), second ^ word_at(data + size - 8));
    u64 word = 0; /* which has every byte; `first` has the size */
    if (size >= 4)
        word = (u64)half_word_at(data) << 32 | half_word_at(data + size - 4);
    else if (size)
        word = (u64)data[0] << 16 | (u64)data[size / 2] << 8 | data[size - 1];
    return folded(first ^ word, second);
}

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
/* Take the first so many away. */
static inline void words_skip(struct words *words, u32 count) {
    words->size -= count;
    memmove(words->items, words->items + count, words->size * sizeof *words->items);
}
void words_free(struct words *words);

#endif
