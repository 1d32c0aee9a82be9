/* The links to other workers: of this node, siblings, and of other nodes. What the two ends say to each other is what
   workers/mesh/messages.py has; to another node in those very frames, to a sibling flat, as message.c has both. */
#ifndef SKYWALKER_LINK_H
#define SKYWALKER_LINK_H

#include "core.h"

/* Kinds of messages, as workers/mesh/messages.py has them. */
enum said {
    SAY_SEND = 1, SAY_LISTEN, SAY_WITHDRAW, SAY_TOOK, SAY_LOST, SAY_PUBLISH, SAY_SUBSCRIBE, SAY_CENSUS,
    SAY_GIVE, SAY_ALSO, SAY_MET, SAY_WITHDRAWN, SAY_BUSY, SAY_COUNTED, SAY_RECALL, SAY_OFFER, SAY_SUBSCRIBED,
    SAY_LAGGED, SAY_SETTLED, SAY_PARTING, SAY_RETIRED, SAY_LONG, SAY_REFUSED, SAY_VISIT, SAY_TAKEN = 26,
    SAY_DOUBT, SAY_OUT, SAY_INQUIRE, SAY_UNACKED, SAY_MOVE, SAY_MOVED, SAY_REST, SAY_ARRIVE, SAY_RELAY,
    SAY_SPLIT, SAY_CUT, SAYINGS
};

/* One of them, whichever way it is written. What its kind does not have is 0. */
struct message {
    enum said kind;
    bool yes;          /* WITHDRAW: that is final; UNACKED: it is so; MOVE and MOVED: of no connection, only whether it is awake;
                          REST: it was given a value; ARRIVE: its descriptor comes with it */
    bool can_wait;     /* nobody waits for it, so that it goes with what is said next, or after a while: see was_taken() */
    u32 limit;         /* LONG, REFUSED */
    u64 number;        /* of a call, in the form of the hands; 0 is nil */
    u64 life;          /* of a worker, in the same form; 0 is nil. GIVE, OFFER: of the one whose client's value it is */
    u64 sent_as;       /* by which number that waits here, in the same form */
    double since;
    const u8 *topic;   /* NULL where it has none; so of the others */
    const u8 *value;   /* or a group, a count, or what is asked or answered */
    const u8 *form;    /* of what is published; MOVE, REST: as moving.c has it */
    u32 topic_size, value_size, form_size;
};

#define BEHIND_BYTES (512u * 1024) /* unsent to a worker that is far behind */
#define STUCK_S 1.0 /* for a worker to take what is published; if it is far behind then it gets no more, and closes the
                       connections that so miss something */

/* Of what was published with a form: a hint and flags, and the payload behind them if it is compressed. */
#define FORM_BYTES 2u
#define COMPRESSED 1u

/* Numbers and lives as workers/stats/hands.py has them in a cell: in the highest byte the first of the nine that they
   are in MessagePack, less its highest bit; seven bytes of which the rest is. */
#define NUMBER_OF_HOME ((u64)0x4F << 56)  /* a call's number is its home's, and so is a life */
#define NUMBER_OF_OWNER ((u64)0x53 << 56) /* or it was given by the owner of the topic */
#define NUMBER_BITS 26
#define GENERATION_BITS 30

enum link_flag {
    LINK_ABROAD = 1,    /* the other end is on another node: it has another clock, and may be another program */
    LINK_CLOSED = 2,
    LINK_PAUSED = 4,    /* nothing is read for now */
    LINK_HEARS = 8,     /* what was read is being heard */
    LINK_ABSENT = 16,   /* it is none, but where calls wait for an owner that cannot be asked now */
    LINK_ASKS_US = 32,  /* what the other end asks comes over it */
    LINK_PARTS = 64,    /* the other end has said that it goes, as is planned */
    LINK_RETIRED = 128, /* the other end hands out nothing more */
    LINK_BEHIND = 256,  /* a sibling that does not take all that is said */
    LINK_SECURE = 512,  /* its owner reads, writes and closes it */
    LINK_HAS_ENDED = 1024, /* that has said its last already, though nothing more will tell of that */
    LINK_FINISHES = 2048,  /* nothing more is said to it, but what is unwritten */
    LINK_HAS_SHUT = 4096,  /* and that is written */
    LINK_STUCK = 8192,     /* nothing has left us for STUCK_S, nor since: nothing waits for it */
    LINK_IS_DUE = 16384,   /* what is unwritten is to be, in this turn or once the other end takes more */
    LINK_UNSAID = 32768,   /* something is unwritten, and nothing of it is due */
    LINK_BOTH_WAYS = 65536 /* either asks over it: always siblings, and nodes where both know of that */
};

struct link {
    u32 number, generation;
    u32 flags;
    int fd;         /* -1 of one that its owner has pass over others: it says by link_attend_later() what has come */
    u32 mask;
    u64 via;        /* the handle of the link that it passes over then; 0 of none */
    u64 life;       /* of the other end, if it is a sibling */
    double grace_s; /* in which its last word on a call should be here */
    u32 owner;      /* by which number the ring has it, if it owns anything */
    u32 rows;       /* that refer to it */
    u8 *tail;       /* what was read and not heard: the beginning of a message, or what comes once it is not paused */
    u32 tail_size;
    bool is_unheard; /* it is what comes once it is not paused */
    u32 last_size;  /* what it gave last, which ALSO means: that is borrowed until the turn ends */
    const u8 *last;
    bool last_is_borrowed;
    u8 *out;
    u32 out_size, out_room, written;
    u32 sealed;     /* bytes of `out` that are in packets */
    struct words packets; /* ends of the packets in it that are not written; above, 1 + the descriptor to pass with one */
    int passed;     /* the descriptor that came with what is being heard, or is not yet; -1 for none */
    u32 coming;     /* connections whose descriptors are to come, and have room reserved */
    struct hash calls;    /* of the other worker's clients, here, by their numbers */
    struct hash passing;  /* what it offers to all who subscribe here, by its numbers */
    u32 parked;     /* first of those that a value came for while there was no room */
    u32 publishing; /* how much of what it has published is not in effect yet */
    u32 forwarded;  /* first of our clients' that wait there */
    u32 offered;    /* first of what it offers to our clients */
    u64 taken;      /* bytes that the kernel has taken, or what has it pass over others */
    u64 read;       /* of these, that the other end has: of one that passes over others */
    struct words delayed; /* what is published, by handles, each with how many are to have left us, and waits for that */
    u32 stuck;      /* an alarm: until then */
    u64 giving;     /* whose value was said last since it was written to, by its handle */
    u64 home, sent_as; /* whose that value is which it gave last */
    u64 heir;       /* a link that is paused until this one is retired */
    double caught_up_at;
    double used_at; /* when something was said or heard last */
    double heard_at; /* when something was heard last */
    double knocked_at; /* when it was last asked whether it is awake */
};

static inline struct link *link_at(const struct core *core, u32 number) {
    return pool_item(&core->links, number, sizeof(struct link));
}
static inline u64 link_handle(const struct link *link) { return (u64)link->generation << 32 | link->number; }
/* The link of this handle, also if it is closed; NULL once nothing is left of it. */
static inline struct link *link_find(const struct core *core, u64 handle) {
    u32 number = (u32)handle;
    if (!pool_has(&core->links, number)) return NULL;
    struct link *link = link_at(core, number);
    return link->generation == handle >> 32 ? link : NULL;
}
static inline struct link *link_of(const struct core *core, const struct row *row) { return link_at(core, row->caller); }
static inline struct link *carrier_of(const struct core *core, const struct row *row) {
    return link_at(core, row->carrier);
}
static inline u32 link_unsent(const struct link *link) { return link->out_size - link->written; }
/* Bytes that get there though we die. What passes over others may still be in our memory, unwritten to who relays it. */
static inline u64 link_left(const struct link *link) { return link->fd < 0 ? link->read : link->taken; }
static inline bool link_is_congested(const struct core *core, const struct link *link) {
    return link_unsent(link) > core->limits.mesh_bytes;
}
/* The number by which other workers know a row of ours. */
u64 number_of(u64 by, u32 number, const struct row *row);
/* The row of that number; 0 if it is none of ours, or gone. */
u32 number_find(const struct core *core, u64 number);

/* message.c */
void message_say(struct core *core, struct link *link, const struct message *message);
/* Take the next one of `size` bytes from *at on; what it has is borrowed. Nothing (0), one (1), or none that makes sense. */
int message_hear(const struct link *link, const u8 *data, u32 size, u32 *at, struct message *message);
static inline void message_tell(struct core *core, struct link *link, enum said kind, u64 number) {
    const struct message message = {.kind = kind, .number = number};
    message_say(core, link, &message);
}

/* link.c: `fd` is that of a sibling's packets, or of a stream. */
u32 link_open(struct core *core, int fd, u64 life, u32 flags);
/* What is written before anything is said, and what was read from it already: that is heard first. */
void link_begin(struct core *core, struct link *link, const u8 *unwritten, u32 size, const u8 *heard, u32 heard_size);
/* Say nothing more, but that this is planned; the other end closes once it has heard all. */
void link_finish(struct core *core, struct link *link);
void link_ready(struct core *core, struct link *link, u32 mask);
void link_flush(struct core *core, struct link *link);
void link_attend(struct core *core, struct link *link);
/* Read and write one without a descriptor, once what is being dealt with is. */
void link_attend_later(struct core *core, const struct link *link);
/* So many bytes of all that were written to one without a descriptor the other end has read. */
void link_note_read(struct link *link, u64 bytes);
void link_close(struct core *core, struct link *link, const char *why);
/* When something was said over it last; INFINITY while something of either end waits, here or there. */
double link_last_used(const struct link *link);
void link_pause(struct core *core, struct link *link);
void link_go_on(struct core *core, struct link *link);
void link_catch_up(struct core *core, struct link *link);
void link_read_to_the_end(struct core *core, struct link *link);
void link_hear_the_last(struct core *core, struct link *link);
/* Hear what owner.said() was told, now that its value is not compressed any more; false if it makes no sense. */
bool link_hear(struct core *core, struct link *link, const struct message *message);
/* A row whose caller is a link is not needed any more. */
void link_free(struct core *core, u32 number, struct row *row);
void link_dropped(struct core *core, struct link *link); /* one of its rows */
u8 *link_room(struct core *core, struct link *link, u32 size, bool can_wait);
/* Have what can wait be written in this turn. */
void links_hurry(struct core *core);
/* Have a descriptor go with what was said last, and be closed here then. */
void link_pass(struct link *link, int fd);
void link_keep_last(struct core *core); /* of all that were heard in this turn */
struct link *link_by_life(const struct core *core, u64 life);

/* inbound.c: what the other end asks of us. */
bool inbound_hear(struct core *core, struct link *link, const struct message *message);
bool inbound_give(struct core *core, u32 listener, u32 send);
bool inbound_interest(struct core *core, u32 interest, u32 send);
void inbound_published(struct core *core, u32 publication);
void inbound_met(struct core *core, u32 send);
/* This worker opens, and is about to hear links that were paused: their calls come in the order of their age. */
void inbound_gather(struct core *core);
void inbound_gathered(struct core *core);
void inbound_missed(struct core *core, u32 send);
void inbound_flushed(struct core *core, struct link *link);
void inbound_stuck(struct core *core, struct link *link);
void inbound_close(struct core *core, struct link *link);
/* One of the other end's that was given a value has lost it. */
void inbound_lost(struct core *core, struct link *link, u64 number);
/* A row of the other end's is not its any more. */
void inbound_forget(struct core *core, u32 number, struct row *row);
bool inbound_is_decided(const struct core *core, const struct link *link);
void inbound_doubt_undecided(struct core *core, struct link *link);

/* Those who subscribe to a topic at the other end, as one subscriber, which does not stand yet; it is gone. */
u32 inbound_interest_new(struct core *core, struct link *link, const u8 *topic, u32 size);
void inbound_interest_end(struct core *core, u32 interest);

/* outbound.c: what we ask of it. */
void outbound_forward(struct core *core, struct link *link, u32 number);
void outbound_ask_back(struct core *core, u32 number);
bool outbound_withdraw(struct core *core, u32 number);
void outbound_unlink(struct core *core, u32 number, struct row *row);
bool outbound_hear(struct core *core, struct link *link, const struct message *message);
void outbound_met(struct core *core, u32 offer);
void outbound_missed(struct core *core, u32 offer);
/* Whether nothing of ours waits there, and every value that it gave has its outcome. */
bool outbound_is_idle(const struct core *core, const struct link *link);
void outbound_close(struct core *core, struct link *link);
/* What others know of our sends at a sibling that is dead is heard: have them go elsewhere, in doubt unless that `is_sure`. */
void outbound_release(struct core *core, struct link *link, bool is_sure);
/* Its end is dead: say of each value that it gave whose outcome is open what became of it, or that nobody knows. */
void outbound_settle_all(struct core *core, struct link *link);
void outbound_taken(struct core *core, struct link *link, u64 number);
void outbound_doubted(struct core *core, const struct link *link, u64 number);
/* A client that is gone may have the value of an offer. */
void outbound_doubt(struct core *core, const struct row *offer);
/* A client that has the value of an offer is another worker's from now on, which is its owner. */
void outbound_leaves(struct core *core, const struct row *offer);
void outbound_doubt_all(struct core *core, const struct link *link);
void outbound_retired(struct core *core, struct link *link);

/* moving.c: a new call went over a link. */
void move_pull(struct core *core, struct connection *connection, const struct link *link);
/* One went nowhere that the connection might go to. */
static inline void move_push(struct connection *connection) {
    if (LIKELY(!connection->pull)) return;
    connection->pull--;
    connection->pulled_of++;
}
/* Have it go over a link to a sibling at the end of the turn, if it can. */
void move_draw(struct core *core, struct connection *connection, const struct link *link);
bool move_hear(struct core *core, struct link *link, const struct message *message);
/* Whether the other end does not hang, as far as is known; if that is not, it is asked, and the connection looked at again. */
bool move_finds_awake(struct core *core, const struct connection *connection, struct link *link);
/* Somebody has the value of this send: whether that is to be done once it is known whose it is. */
bool move_keeps_in_mind(const struct core *core, struct row *send);
/* All that was on its way over a link that has ended is lost. */
void moves_end(struct core *core, struct link *link);

#endif
