/* Who owns a topic: skywalker/ring.py, with owners by number. */
#ifndef SKYWALKER_RING_H
#define SKYWALKER_RING_H

#include "base.h"

/* Owners who share the arc of a token: so many, from the first on. */
struct share {
    u32 first, count;
};

struct ring {
    i64 *tokens;          /* sorted */
    struct share *shares; /* of each, in `owners` */
    u32 *owners;
    u32 count;   /* of the tokens; 0 of a ring that has no other owner than this worker */
    u16 version; /* counts the rings that were followed; never 0 then */
};

/* Follow another ring, whose tokens are sorted and differ. Without any, all is owned here. */
void ring_follow(struct ring *ring, const i64 *tokens, const struct share *shares, u32 count, const u32 *owners, u32 owner_count);
void ring_free(struct ring *ring);

/* The first half of MurmurHash3 x64 128, seed 0. */
i64 token_of(const u8 *topic, size_t size);

/* Who holds the biggest token less than this one; with none less, the biggest of all. Of those who share its arc, each
   has a slice of every 2^32 tokens. */
u32 ring_owner(const struct ring *ring, i64 token);

#endif
