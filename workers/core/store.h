/* Values that outlive the turn in which they were read: in pools by size, so that the memory of many that go at once is
   given back bit by bit. The C library would do so in one go, and that takes longer than a turn may. */
#ifndef SKYWALKER_STORE_H
#define SKYWALKER_STORE_H

#include "pool.h"

#define SHELVES 10u

struct store {
    struct pool shelves[SHELVES];
};

void store_open(struct store *store);
void store_close(struct store *store);
/* A copy of so many bytes; give it back, with that size. */
u8 *store_copy(struct store *store, const u8 *data, u32 size);
void store_give(struct store *store, u8 *copy, u32 size);
/* Whether there is memory of copies that are gone; give so many bytes of it back, or a little more. */
bool store_has_spare(const struct store *store);
void store_trim(struct store *store, u32 bytes);
bool store_is_empty(const struct store *store);

#endif
