/* The junction over flat tables: rows for calls, and the spots where they wait.

   What skywalker/junction.py says holds here word for word: a send goes to all who listen, a listener takes the oldest
   send, lines are in the order in which calls came, an offer has one outcome. Two things differ, and none of them shows:
   rows are freed by who made them, and who is given a value (judges.give) asks nothing of the table meanwhile. */
#ifndef SKYWALKER_TABLE_H
#define SKYWALKER_TABLE_H

#include "base.h"
#include "hash.h"
#include "pool.h"
#include "rights.h"
#include "store.h"

/* Kinds of rows. The first three are methods of the journal, and kinds of the figures, in their order. Those from IN_SEND
   on have a link as their caller. */
enum kind {
    SEND, RECV, TAKE,          /* calls of our clients */
    SUBSCRIBER,                /* a subscription of one */
    PUBLICATION,               /* what one published */
    DELIVERY,                  /* to a subscriber, the value of a send whose sender waits, if it may be asked back */
    ALARM,                     /* no call: something is due */
    WILL,
    IN_SEND, IN_RECV, IN_TAKE, /* calls of another worker's clients on topics of ours */
    IN_DELIVERY,               /* to its subscribers, as DELIVERY */
    IN_PUBLICATION,            /* what one of its clients published */
    INTEREST,                  /* all who subscribe to a topic there, as one subscriber */
    OFFER,                     /* the value of a send that meets there, for one client of ours */
    PASSING,                   /* the value of one, or what was published there, for all who subscribe here */
    KINDS
};
#define SENDING_KINDS \
    (1u << SEND | 1u << PUBLICATION | 1u << WILL | 1u << IN_SEND | 1u << IN_PUBLICATION | 1u << OFFER | 1u << PASSING)
#define TAKING_KINDS (1u << TAKE | 1u << IN_TAKE)

enum row_flag {
    ANSWERED = 1,   /* of a send: its caller knows the outcome */
    ABANDONED = 2,  /* of a send: its time is over, nobody may have it any more to whom it is not being written */
    WAITED = 4,     /* its caller kept track of it, at any time */
    OWNS = 8,       /* its value is its own copy; else that stays where it was read, until the turn ends */
    REMEMBERED = 16, /* of a listener: it must be asked for the value it was given, should nobody have it any more */
    STANDS = 32,    /* in a line, or of a subscriber that it subscribes */
    UNACKED = 64,   /* of a listener: its client has the value, and is to say so */
    ORPHANED = REMEMBERED, /* the same bit, of a publication: its connection is gone */
    TAKEN_BACK = ABANDONED, /* the same bit, of a listener: it is not written the value that it was given */
    AFAR = 128,     /* of a subscriber: what it is given meets elsewhere, and comes over a link */
    NAMED = AFAR    /* the same bit, of a RECV that is carried: it has the name of its topic, and no spot */
};

#define ID_INSIDE 12u   /* bytes of an id that need no extra */
#define NAME_INSIDE 18u /* of a name that need no memory of their own */

/* One call, 96 bytes. What else a rare one has is in an extra. */
struct row {
    /* Its neighbours in its line; of a listener that has a value, those that have the same; also where it is parked. */
    u32 next, previous;
    union {
        u32 peer;        /* of a listener whose value it was given; of a send the first of the listeners that have it */
        u32 carrier;     /* of one that is carried, which has no peer: the link to where it waits */
    };
    u32 arrival;         /* orders calls of one `since`; a distance, so it may run over */
    double since;        /* when it came, in seconds */
    union {
        double deadline; /* when its timer is due, if it has one: of a call only at its home, not of an IN_SEND, say */
        u64 home;        /* of an offer: the life of the sender's worker, if it is told directly; 0 if not */
    };
    union {
        struct {
            u32 timer_next, timer_previous; /* its neighbours in its bucket */
        };
        u64 sent_as;     /* of an offer: the number of the send there */
        u64 place;       /* of a publication: among all that its connection is to have acked, 0 for none */
    };
    u32 bucket;          /* where its timer is; 0 is nowhere */
    u32 caller;          /* its connection, or link */
    u32 generation;      /* differs from that of the row that was here before; 0 of none */
    union {
        u32 id_next; /* in the chain by id of that connection */
        u32 delays;  /* of what is published: links that it was said to, and to which it is not yet written */
    };
    union {
        struct {
            union {
                const u8 *value; /* of a send */
                struct {
                    union {
                        u32 group;    /* of a taker: a spot */
                        u32 is_typed; /* of a subscriber of pub/sub: it is told hints and flags */
                    };
                    u32 audience; /* of a subscriber: for how many it is */
                };
            };
            u32 size;   /* of the value, or of the one that a listener was given */
            u32 offers; /* of a send: listeners that have the value, and neither confirmed nor lost it */
            u32 topic;  /* a spot */
            u32 extra;  /* 0 for none */
        };
        struct {
            u8 name[NAME_INSIDE], name_size; /* of one that is NAMED: its topic's, in place of all these but the extra */
        };
    };
    u8 kind;
    u8 state : 3;        /* of a call's life; of an ALARM what is due */
    u8 route : 2;        /* an enum route, by which it last went */
    u8 is_carried : 1;   /* it waits at another worker, or for that one to be there */
    /* Of a send that is carried: it was given to who tells its owner alone. Of a DELIVERY: it is not even to be written yet. */
    u8 is_out : 1;
    /* Of an IN_SEND: whoever has its value has told its worker; of a SEND whose connection moves: us. Of an INTEREST: it
       was not given a value, and its worker is told that it has missed some. */
    u8 is_told : 1;
    u8 flags, id_size;
    u8 id[ID_INSIDE];
};

struct extra {
    struct blob *id;           /* a longer one */
    union {
        struct blob *timed_out; /* what its caller calls it when the time is over; NULL for the current dialect's word */
        struct blob *form;      /* of what is published: in which form */
    };
    struct blob *cancelled_by; /* id of the call that cancelled it */
    u32 too_long;              /* bytes of a value that somebody could have taken, who could not take this one */
    u32 doubt;                 /* why nobody will know what became of it: 0 for not so */
};

/* Calls of one kind by the time they came: a ring linked through the rows, so that any can leave at once. */
struct line {
    u32 first;    /* before it in the ring stands the last */
    u32 returned; /* who last came back to its place: those lost with it follow it here */
    u32 size;
};

#define NAME_BITS 13 /* of the length of a name */

/* Where calls wait: a topic, or a group of one. 64 bytes and its name, if that is longer than NAME_INSIDE. */
struct spot {
    u32 hash;
    u16 owner, ring;  /* of a topic: who owned it, in the ring of this version; 0 if nobody asked */
    u32 next;         /* in its chain */
    u32 references;   /* rows, and of a topic its groups */
    struct line line; /* of senders or of listeners, never both; of a group, of its takers */
    union {
        struct {
            u32 groups;      /* first of those with takers: a ring in the order in which they came to have some */
            u32 takers;      /* in all of them */
            u32 subscribers; /* first of a ring */
            u32 audience;    /* how many they are for */
        };
        struct {
            u32 topic;                      /* of a group */
            u32 next_group, previous_group; /* in that ring */
        } of;
        struct {
            u32 next, previous; /* of a topic without references: spots to forget, the oldest first */
        } idle;
    };
    u16 size : NAME_BITS; /* of the name */
    bool is_group : 1;
    bool in_ring : 1;  /* of a group: it is one of those with takers */
    bool is_named : 1; /* of a topic: the journal knows it */
    u8 name[NAME_INSIDE]; /* or where it is */
};

struct table;

/* Who decides what becomes of calls. */
struct judges {
    /* Take the value of `send` towards the caller of `listener`, or refuse it; see Call.give() of junction.py. It does
       row_given(), unless the listener is a subscriber, and may not meet, withdraw or free anybody. */
    bool (*give)(struct table *table, u32 listener, u32 send);
    void (*met)(struct table *table, u32 send);
    void (*missed)(struct table *table, u32 send);
};

struct table {
    struct pool rows, extras, spots;
    struct store values; /* of sends that have to wait */
    struct hash names;
    struct key key;
    const struct judges *judges;
    void *its; /* the judges' */
    struct grants grants; /* who may do what at which spots */
    u32 generation, arrivals;
    u32 topic_count; /* those that somebody is at */
    u32 idle_first, idle_last, idle_count;
    u32 borrowed; /* sends whose value is still where it was read */
};

/* Topics that nobody is at and that are kept nevertheless, because the next call may name them. Where there are more, as
   when many calls end at once, they are forgotten bit by bit: that takes as long as to end the calls. So are all where few
   spots are left of very many: they would keep the memory of those. */
#define MAX_IDLE 4096u
#define FEW 8u /* of so many places for spots one is taken */

void table_open(struct table *table, const struct key *key, const struct judges *judges);
void table_close(struct table *table);

static inline struct row *row_at(const struct table *table, u32 number) {
    return pool_item(&table->rows, number, sizeof(struct row));
}
static inline struct spot *spot_at(const struct table *table, u32 number) {
    return pool_item(&table->spots, number, sizeof(struct spot));
}
static inline struct extra *extra_at(const struct table *table, u32 number) {
    return pool_item(&table->extras, number, sizeof(struct extra));
}
static inline const u8 *spot_name(const struct spot *spot) {
    const u8 *outside;
    if (LIKELY(spot->size <= NAME_INSIDE)) return spot->name;
    memcpy(&outside, spot->name, sizeof outside);
    return outside;
}

/* A spot of that name, of a topic or of no other; made if there is none. It has one reference more. */
u32 spot_take(struct table *table, u32 topic, const u8 *name, u32 size);
/* The same without making one or referring to it: 0 if there is none. */
u32 spot_find(const struct table *table, u32 topic, const u8 *name, u32 size);
void spot_drop(struct table *table, u32 number);
void table_forget_idle(struct table *table, u32 most);
static inline bool table_has_idle(const struct table *table) {
    const struct pool *spots = &table->spots;
    return table->idle_count > (spots->used < spots->chunks_held / FEW * CHUNK_ITEMS ? 0 : MAX_IDLE);
}
/* One reference more to one that has some. */
static inline void spot_refer(const struct table *table, u32 number) { spot_at(table, number)->references++; }

/* Topics that somebody is at, so many at most; returns how many there are. */
u32 table_topics(const struct table *table, u32 *spots, u32 most);

/* A new row, whose references to `topic` and `group` it takes over. Its number is set; what is not said is 0. */
struct row *row_new(struct table *table, u32 *number, enum kind kind, u32 topic, u32 group, double since);
void row_free(struct table *table, u32 number);
struct extra *row_extra(struct table *table, struct row *row);
void row_set_id(struct table *table, struct row *row, const u8 *id, u32 size);

/* What stays valid, or tells that the row is gone. */
static inline u64 row_handle(u32 number, const struct row *row) { return (u64)row->generation << 32 | number; }
static inline u32 row_find(const struct table *table, u64 handle) {
    u32 number = (u32)handle;
    if (!pool_has(&table->rows, number)) return 0;
    return row_at(table, number)->generation == handle >> 32 ? number : 0;
}

/* A RECV that is carried has no place here: have it keep the name of its topic by itself, if that is short, so that it needs
   no spot; and have it refer to one again. */
void row_leave_spot(struct table *table, struct row *recv);
void row_take_spot(struct table *table, struct row *recv);

/* See that a send has its value as long as it is there. */
void row_own(struct table *table, struct row *send);
/* It needs its value no more. */
void row_empty(struct table *table, struct row *send);

/* A ring through next and previous, of which `first` is the first, 0 if it is empty: join it before `after`, which is the
   first to be the last; and leave it. */
void rows_add(struct table *table, u32 *first, u32 number, struct row *row, u32 after);
void rows_remove(struct table *table, u32 *first, u32 number, struct row *row);

/* `listener` has the value of `send`. */
void row_given(struct table *table, u32 listener, u32 send);
/* The outcome is known: forget it. Returns the send. */
u32 row_decided(struct table *table, u32 listener);

static inline bool row_sends(const struct row *row) { return SENDING_KINDS >> row->kind & 1; }
static inline bool row_takes(const struct row *row) { return TAKING_KINDS >> row->kind & 1; }
static inline bool row_is_foreign(const struct row *row) { return row->kind >= IN_SEND; }
/* In which form it was published; NULL for none. */
static inline const struct blob *row_form(const struct table *table, const struct row *send) {
    bool has_one = send->kind == PUBLICATION || send->kind == IN_PUBLICATION || send->kind == PASSING;
    return has_one && send->extra ? extra_at(table, send->extra)->form : NULL;
}
static inline bool row_is_answered(const struct row *row) { return row->flags & ANSWERED; }

bool junction_send(struct table *table, u32 send);
void junction_publish(struct table *table, u32 send);
bool junction_listen(struct table *table, u32 listener);
void junction_wait(struct table *table, u32 call);
bool junction_withdraw(struct table *table, u32 call);
void junction_confirm(struct table *table, u32 send);
void junction_lost(struct table *table, u32 send);
void junction_resume(struct table *table, u32 send);
void junction_subscribe(struct table *table, u32 subscriber);
/* Have it be given what comes over links, and nothing of what meets here. */
void junction_hear_afar(struct table *table, u32 subscriber);
void junction_unsubscribe(struct table *table, u32 subscriber);
void junction_resize(struct table *table, u32 subscriber, u32 audience);

#endif
