#include "pool.h"

#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define ALLOW(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define FORBID(at, size) ((void)0)
#define ALLOW(at, size) ((void)0)
#endif

#define TAG_BYTES 8u

static size_t chunk_size(const struct pool *pool) {
    return (size_t)CHUNK_ITEMS * pool->item_size;
}

void pool_open(struct pool *pool, u32 item_size, u32 tag) {
    assert(item_size >= sizeof(struct chunk) && tag + TAG_BYTES <= item_size);
    *pool = (struct pool){.item_size = item_size, .tag = tag};
}

void pool_close(struct pool *pool) {
    for (u32 at = 0; at < pool->chunk_count; at++)
        if (pool->chunks[at] != NULL) {
            ALLOW(pool->chunks[at], chunk_size(pool));
            munmap(pool->chunks[at], chunk_size(pool));
        }
    free(pool->chunks);
    *pool = (struct pool){.item_size = pool->item_size, .tag = pool->tag};
}

static void list_with_room(struct pool *pool, struct chunk *chunk) {
    chunk->has_room = true;
    chunk->previous = 0;
    chunk->next = pool->with_room;
    if (chunk->next) pool->chunks[chunk->next - 1]->previous = chunk->number + 1;
    pool->with_room = chunk->number + 1;
}

static void unlist(struct pool *pool, struct chunk *chunk) {
    chunk->has_room = false;
    if (chunk->next) pool->chunks[chunk->next - 1]->previous = chunk->previous;
    if (chunk->previous)
        pool->chunks[chunk->previous - 1]->next = chunk->next;
    else
        pool->with_room = chunk->next;
}

static struct chunk *more(struct pool *pool) {
    u32 at = 0;
    while (at < pool->chunk_count && pool->chunks[at] != NULL) at++;
    if (at == pool->chunk_count) {
        u32 count = pool->chunk_count ? 2 * pool->chunk_count : 8;
        if (count > UINT32_MAX / CHUNK_ITEMS) DIE("there are no more numbers");
        pool->chunks = memory_again(pool->chunks, count * sizeof *pool->chunks);
        memset(pool->chunks + pool->chunk_count, 0, (count - pool->chunk_count) * sizeof *pool->chunks);
        pool->chunk_count = count;
    }
    /* Pages of it that nobody has touched take no memory. */
    struct chunk *chunk = mmap(NULL, chunk_size(pool), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) DIE("there is no memory left");
    chunk->number = at;
    chunk->fresh = 1;
    pool->chunks[at] = chunk;
    pool->chunks_held++;
    list_with_room(pool, chunk);
    return chunk;
}

static u32 *next_free(const struct pool *pool, struct chunk *chunk, u32 place) {
    return (u32 *)(void *)((u8 *)chunk + (size_t)place * pool->item_size);
}

static struct chunk *pop_empty(struct pool *pool) {
    struct chunk *chunk = pool->chunks[pool->empty - 1];
    pool->empty = chunk->next;
    return chunk;
}

u32 pool_take(struct pool *pool) {
    if (UNLIKELY(!pool->with_room) && pool->empty) list_with_room(pool, pop_empty(pool));
    struct chunk *chunk = LIKELY(pool->with_room) ? pool->chunks[pool->with_room - 1] : more(pool);
    u32 place;
    if (chunk->free) {
        place = chunk->free - 1;
        chunk->free = *next_free(pool, chunk, place);
    } else {
        place = chunk->fresh++;
    }
    ALLOW(next_free(pool, chunk, place), pool->item_size);
    chunk->used++;
    pool->used++;
    if (UNLIKELY(!chunk->free && chunk->fresh == CHUNK_ITEMS)) unlist(pool, chunk);
    return chunk->number << CHUNK_SHIFT | place;
}

/* Whoever uses an item that nobody has is found where addresses are checked. */
static void forbid(const struct pool *pool, void *item) {
    u8 *bytes = item;
    FORBID(bytes + TAG_BYTES, pool->item_size - TAG_BYTES);
    ALLOW(bytes + pool->tag, TAG_BYTES);
    (void)pool, (void)bytes;
}

void pool_give(struct pool *pool, u32 number) {
    assert(pool_has(pool, number));
    struct chunk *chunk = pool->chunks[number >> CHUNK_SHIFT];
    u32 place = number & (CHUNK_ITEMS - 1);
    MUST(chunk->used && place < chunk->fresh);
    *next_free(pool, chunk, place) = chunk->free;
    chunk->free = place + 1;
    forbid(pool, next_free(pool, chunk, place));
    chunk->used--;
    pool->used--;
    if (UNLIKELY(!chunk->has_room)) list_with_room(pool, chunk);
    /* One that is empty is kept only where no other has room. */
    if (UNLIKELY(!chunk->used && (chunk->next || chunk->previous))) {
        unlist(pool, chunk);
        chunk->next = pool->empty;
        pool->empty = chunk->number + 1;
    }
}

u32 pool_next(const struct pool *pool, u32 number) {
    u32 place = (number & (CHUNK_ITEMS - 1)) + 1;
    for (u32 at = number >> CHUNK_SHIFT; at < pool->chunk_count; at++, place = 1) {
        const struct chunk *chunk = pool->chunks[at];
        if (chunk != NULL && place < chunk->fresh) return at << CHUNK_SHIFT | place;
    }
    return 0;
}

void pool_trim(struct pool *pool, u32 bytes) {
    for (size_t given = 0; given < bytes && pool->empty; given += chunk_size(pool)) {
        struct chunk *chunk = pop_empty(pool);
        pool->chunks[chunk->number] = NULL;
        pool->chunks_held--;
        ALLOW(chunk, chunk_size(pool));
        munmap(chunk, chunk_size(pool));
    }
}
