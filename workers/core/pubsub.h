/* What a client of the pub/sub dialect publishes and subscribes to, in order, each acked once it is in effect: acks wait
   for those before them, and those of what is published until it is written to other workers that listen. A connection
   that has much on its way to other workers is not heard until that is acked, and so is one that published to an owner of
   old when the ring changes: what it publishes next must not overtake that. skywalker/wire/pubsub.py has the messages. */
#ifndef SKYWALKER_PUBSUB_H
#define SKYWALKER_PUBSUB_H

#include "core.h"

/* Something that is to be acked, behind all that was asked before. */
struct due {
    u64 published;  /* a handle of what is published, 0 if that was in effect at once */
    u32 size;       /* bytes of that, until it is acked */
    bool is_change; /* of a subscription */
    bool is_done;
};

/* A message that is written behind an ack: a client may read nothing else as long as it waits for that. */
struct late {
    u64 place;          /* of that ack */
    u32 delivery;       /* whose value it is, if somebody waits to know what becomes of that */
    struct blob *words;
};

struct publisher {
    u64 asked, said; /* how much is to be acked, and how much of that is, since it was opened */
    u32 acks;        /* that are to be said for what was handed out in this turn */
    struct due *dues; /* what was asked last and is not acked, `count` from `first` on, in a ring */
    u32 first, count, room;
    u64 in_flight;   /* bytes of that */
    u32 changes;     /* of subscriptions, in that */
    bool is_gated;   /* nothing is published until all is acked: the ring has changed, or an owner is behind */
    bool is_over;    /* nothing more is heard: it is through once all is acked */
    struct late *late; /* in the order in which they are to be written */
    u32 late_first, late_count, late_room;
    u64 late_bytes;
};

/* Bytes of the message that these begin with; 0 if it is not all there. */
u32 pubsub_size(const u8 *data, u32 size);
/* Whether what it says next has to wait for acks. */
bool pubsub_must_wait(const struct core *core, const struct connection *connection, u8 code);
void pubsub_obey(struct core *core, struct connection *connection, const u8 *data, u32 size, bool rests, bool goes_on);
/* Its client says nothing more. */
void pubsub_hung_up(struct core *core, struct connection *connection);
/* Words of a value for a subscriber, until others are made; NULL if there are none. */
const struct told *pubsub_words(struct core *core, const struct row *subscriber, u32 send);
/* Have its connection told, by a delivery if somebody is to know what becomes of that. */
void pubsub_tell(struct core *core, struct connection *connection, const struct told *words, u32 send, u32 delivery);
void pubsub_acknowledge(struct core *core, struct connection *connection);
void pubsub_forget(struct core *core, struct connection *connection);

#endif
