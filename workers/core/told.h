/* What subscribers are told. The words of a message are made once for all who are told the same, and stay until the turn
   ends. Those of one wording follow one another, so that several messages are one piece to who is told all of them. What
   is in frames has the subscription's id, and those that end alike have one wording. */
#ifndef SKYWALKER_TOLD_H
#define SKYWALKER_TOLD_H

#include "segment.h"

#define FRAMED_APART 8u
enum wording { PLAIN, TYPED, FRAMED, WORDINGS = FRAMED + FRAMED_APART };

struct told {
    struct segment *segment;
    u64 send;             /* whose value the last words have; 0 where there are none in this turn */
    const u8 *words, *id; /* these, and where among them is what the subscription is called */
    u32 size, id_size;
};

/* Place for words of so many bytes for the value of a send, which have that id in there somewhere. */
u8 *told_place(struct told *told, u64 send, u32 size, u32 id_at, u32 id_size);
/* The turn has ended. */
void told_forget(struct told *told);

/* Whether the last are for that value, by that id. */
static inline bool told_is(const struct told *told, u64 send, const u8 *id, u32 id_size) {
    return told->send == send && told->id_size == id_size && !memcmp(told->id, id, id_size);
}

#endif
