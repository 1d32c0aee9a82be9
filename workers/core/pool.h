/* Items of one size by number, in chunks that stay where they are: an item never moves, and chunks that hold none are given
   back to the system bit by bit. Number 0 is no item, nor is any other that is the first of a chunk. */
#ifndef SKYWALKER_POOL_H
#define SKYWALKER_POOL_H

#include "base.h"

#define CHUNK_SHIFT 10
#define CHUNK_ITEMS (1u << CHUNK_SHIFT)

/* It stands where its first item would be, so that it is a whole number of pages. */
struct chunk {
    u32 number;
    u32 used;           /* items that are out */
    u32 fresh;          /* items that never were: those from here on */
    u32 free;           /* first of those that came back, by their place + 1; each holds the next */
    u32 next, previous; /* chunks with room, by number + 1; or the next that is empty */
    bool has_room;
};

struct pool {
    u32 item_size;
    u32 tag;               /* place of eight bytes of an item that are read also when nobody has it, as the first are */
    u32 chunk_count;       /* places for chunks, some of which may be empty */
    u32 chunks_held;       /* that are not */
    u32 with_room;         /* the first chunk that has, by number + 1 */
    u32 empty;             /* the first chunk that is to be given back, by number + 1 */
    u32 used;              /* items that are out */
    struct chunk **chunks; /* NULL where there is none */
};

void pool_open(struct pool *pool, u32 item_size, u32 tag);
void pool_close(struct pool *pool);

/* Number of an item that nobody has; its bytes are what the last one left. */
u32 pool_take(struct pool *pool);
void pool_give(struct pool *pool, u32 number);
/* The next number from `number` on, beyond it, that an item has or has had; 0 if there is none. From 0 on it is the first. */
u32 pool_next(const struct pool *pool, u32 number);
/* Give empty chunks back, of so many bytes or a little more. */
void pool_trim(struct pool *pool, u32 bytes);

/* Whether there may be an item of this number: its memory is there. */
static inline bool pool_has(const struct pool *pool, u32 number) {
    u32 at = number >> CHUNK_SHIFT;
    return number & (CHUNK_ITEMS - 1) && at < pool->chunk_count && pool->chunks[at] != NULL;
}

/* The item of this number. `item_size` is the pool's, said again so that the compiler knows it. */
static inline void *pool_item(const struct pool *pool, u32 number, u32 item_size) {
    assert(pool_has(pool, number) && item_size == pool->item_size);
    return (u8 *)pool->chunks[number >> CHUNK_SHIFT] + (size_t)(number & (CHUNK_ITEMS - 1)) * item_size;
}

#endif
