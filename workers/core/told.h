/* What subscribers are told. The words of a message are made once for all who are told the same, and stay until the turn
   ends. Those of one wording follow one another, so that several messages are one piece to who is told all of them, and
   which sends are in effect once it is written is kept once for all. What is in frames has the subscription's id, and
   those that end alike have one wording. */
#ifndef SKYWALKER_TOLD_H
#define SKYWALKER_TOLD_H

#include "segment.h"

#define FRAMED_APART 8u
enum wording { PLAIN, TYPED, FRAMED, WORDINGS = FRAMED + FRAMED_APART };

/* Words for the value of a send, which is confirmed by each who is written them, unless it is 0. */
struct message_told {
    u32 confirms, size;
};

struct told {
    struct segment *segment;
    u64 send;             /* whose value the last words have; 0 where there are none in this turn */
    struct message_told last;
    const u8 *words, *id; /* these, and where among them is what the subscription is called */
    u32 id_size;
    u32 count, room;
    struct message_told *messages; /* all of this turn */
};

/* Place for words of so many bytes for the value of a send, which have that id in there somewhere. */
u8 *told_place(struct told *told, u64 send, u32 confirms, u32 size, u32 id_at, u32 id_size);
/* The turn has ended. */
void told_forget(struct told *told);
void told_free(struct told *told);

/* Whether the last are for that value; and by that id. */
static inline bool told_has(const struct told *told, u64 send, u32 confirms) {
    return told->send == send && told->last.confirms == confirms;
}
static inline bool told_names(const struct told *told, const u8 *id, u32 id_size) {
    return told->id_size == id_size && !memcmp(told->id, id, id_size);
}

#endif
