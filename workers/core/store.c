#include "store.h"

#define NUMBER_BYTES 4u /* before each copy, by which its shelf knows it */

/* What the items of a shelf hold, besides their number; what is larger is the C library's. */
static const u32 ROOM[SHELVES] = {28, 44, 60, 92, 124, 188, 252, 380, 508, 1020};

static struct pool *shelf_for(struct store *store, u32 size) {
    u32 at = 0;
    while (at < SHELVES && size > ROOM[at]) at++;
    return at < SHELVES ? store->shelves + at : NULL;
}

void store_open(struct store *store) {
    for (u32 at = 0; at < SHELVES; at++) pool_open(store->shelves + at, ROOM[at] + NUMBER_BYTES, 0);
}

void store_close(struct store *store) {
    for (u32 at = 0; at < SHELVES; at++) pool_close(store->shelves + at);
}

u8 *store_copy(struct store *store, const u8 *data, u32 size) {
    struct pool *shelf = shelf_for(store, size);
    u8 *copy;
    if (shelf) {
        u32 number = pool_take(shelf);
        copy = pool_item(shelf, number, shelf->item_size);
        memcpy(copy, &number, NUMBER_BYTES);
        copy += NUMBER_BYTES;
    } else {
        copy = memory(size);
    }
    memcpy(copy, data, size);
    return copy;
}

void store_give(struct store *store, u8 *copy, u32 size) {
    struct pool *shelf = shelf_for(store, size);
    u32 number;
    if (!shelf) {
        free(copy);
        return;
    }
    memcpy(&number, copy - NUMBER_BYTES, NUMBER_BYTES);
    assert(pool_item(shelf, number, shelf->item_size) == copy - NUMBER_BYTES && "it was taken with this size");
    pool_give(shelf, number);
}

bool store_has_spare(const struct store *store) {
    for (u32 at = 0; at < SHELVES; at++)
        if (store->shelves[at].empty) return true;
    return false;
}

void store_trim(struct store *store, u32 bytes) {
    for (u32 at = 0; at < SHELVES; at++)
        if (store->shelves[at].empty) {
            pool_trim(store->shelves + at, bytes);
            return;
        }
}

bool store_is_empty(const struct store *store) {
    for (u32 at = 0; at < SHELVES; at++)
        if (store->shelves[at].used) return false;
    return true;
}
