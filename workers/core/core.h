/* The core of a worker: its connections, the calls on them from arrival to answer, its links to other workers, and the
   turns in which all of that happens. This is the map of what it holds. Each .c file has one part of what is done; to
   read them in this order follows a call on its way:

     turn             a turn: who is ready, what is due, and what is written at the end of it, in which order
     input frames     what a connection says, one frame after another, each taken apart where it was read
     calls held       the life of a call, of which LIFE is the table; what a client holds, and what is left when it goes.
                      Steps that other parts take are in life.h
     table            the junction: who meets whom. table.h has the row, which nearly everything here is
     output           what is still to be written to a connection, where values stand in it, and what a write earns
     ways ring        where a call goes: to the table, or to the worker that owns its topic
     moving           a connection goes to the sibling that owns what it asks for
     link message     another worker, and what is said to it
     outbound         what we ask of it: calls of our clients that wait there
     inbound          what it asks of us: calls of its clients that wait here
     publish pubsub   what waits for nobody; and the dialect in which all of that is acked in order
     told             the words that many subscribers are told
     timers           when rows are due
     hand             what is just being handed out, for others to read should this worker die
     journal rights   what is recorded of each call; whose a connection is, and what that may
     base pool hash   memory, numbers, tables; store has values that wait, segment those that do not; kernel is the machine
                      that all of it runs on

   Who refers to whom. Rows, spots, connections and links are items of pools and go by numbers. They never move, and a
   number is used again once its item is freed. So whatever may be told late has a handle, which is the number with a
   generation above it, and finds nothing once the item is gone: lists of a turn, the kernel's events, Python, and other
   workers for our calls. Only subscriptions and interests Python knows by their numbers, as none ends before it says so.
   A function after which a row may be gone says so; whoever needs it then looks for its handle.

   Who frees what. A row that is DONE goes as soon as nobody has anything of it (call_free_if_done()). A connection or a
   link that is closed goes at the end of the turn in which no row names it any more (forget_all() in turn.c), and a
   connection that was to come from a sibling not before that has said its last of it (stop_moving() in moving.c). A value
   stays where it was read until the turn ends; that of a send which has to wait is copied before (row_own()).

   What is rare is done by who owns the core, which is Python, through `owner`: other methods, the words of errors, what
   follows from limits, who may come in. A good call touches none of it, except that it is told the topics of some. `machine`
   is the kernel, or a simulated one.

   A mistake in here ends the process, as far as it is seen: by DIE() and MUST(), and by assertions, which a release has
   none of. The others go on as after any death of a worker. What the owner raises it is told again at the end of the turn,
   or of whatever it has called; until then it is asked nothing, and nobody sees what is done (_failing.pxi). */
#ifndef SKYWALKER_CORE_H
#define SKYWALKER_CORE_H

#include "frames.h"
#include "rights.h"
#include "ring.h"
#include "segment.h"
#include "table.h"
#include "timers.h"
#include "told.h"

#include <sys/types.h>

/* States and events of a call's life, as tests/lives.py has them in words. */
enum state { ARRIVED, HERE, FORWARDED, PARKED, ENDING, GIVEN, DONE, STATES };
enum event { KEPT, SENT_ON, RETURNED, NO_ROOM, GIVEN_UP, GAVE, CLOSED, EVENTS };

/* Outcomes, as skywalker/journal/record.py has them. */
enum outcome { NO_OUTCOME, MET, PROMPT, TIMED_OUT, CANCELLED, GONE, BUSY, DRAINING, ERROR, UNKNOWN_OUTCOME, OUTCOMES };

/* Why a call is answered with an error, or a connection ends. */
enum refusal {
    NO_REFUSAL, TOO_MANY_CALLS, TOO_MANY_BYTES, WAS_CANCELLED, VALUE_TOO_LARGE, SILENT_LISTENER, DRAINS, ACCOUNT_IS_FULL,
    REPLY_TOO_LARGE, LOST_LISTENER, SILENT_OWNER, LOST_OWNER, MESH_IS_FULL, OWNER_IS_FULL
};
enum close {
    BY_PEER, CANNOT_READ, CANNOT_WRITE, BROKEN, UNREAD, BY_OWNER, LAST_WORDS_SAID, SLOW_SUBSCRIBER, SILENT, BECAME_LINK,
    MOVED, LOST_ON_ITS_WAY
};

enum method { M_SEND, M_RECV, M_TAKE, M_CANCEL, M_MESSAGE, M_WILL, METHODS };

/* The doors, as skywalker/journal/record.py has them. */
enum door { NO_DOOR, JUNCTION_DOOR, PUBSUB_DOOR };

/* Where the owner of a call's topic is, as skywalker/journal/record.py has it. */
enum route { ROUTE_HERE, ROUTE_SIBLING, ROUTE_NODE };

/* What is to become of a frame that somebody looked at first: it is done as any other, or was dealt with, or has to wait,
   with all behind it. */
enum verdict { GOES_ON, IS_DONE, HAS_TO_WAIT };

static_assert(MAX_TOPIC < 1u << NAME_BITS, "a spot has the length of its name");

/* What bounds a turn, so that it ends before somebody waits for long; of links link.c has it. */
#define MAX_EVENTS 128          /* descriptors that are ready */
#define READ_BYTES (64u * 1024) /* of a connection, and so many of one that took more than its share last: */
#define DEAR_BYTES (8u * 1024)
#define FRAMES_PER_TURN 64u     /* of a connection, but not of one of pub/sub */
#define SHARE_S 0.00025         /* of a connection; and where many are told what it says, so much for each write of that: */
#define WRITE_S 0.000005        /* about what the kernel takes for one */
#define SHARED_PER_TURN (64u * 1024 * 1024) /* bytes that many are told, which the kernel copies in some 20 ms */
#define LONG_S 0.0005           /* after which who said much is heard in the next turn */
#define WRITE_BYTES (256u * 1024) /* to a connection that was choked */
#define EXPIRED_PER_TURN 2048u  /* timers that are due */
#define ENDED_PER_TURN 1024u    /* calls that end with their connections; other ends wait then */
#define END_IN_CALLS 100u       /* calls that cost as much as the end of a connection by itself */
#define FORGOTTEN_PER_TURN 2048u /* topics that nobody is at any more */
#define TRIMMED_PER_TURN (2u * 1024 * 1024) /* bytes of each pool, which takes the kernel a quarter of a millisecond */

#define MAX_AT_ONCE (1024u * 1024) /* more than its buffer that a subscriber may be given before it can be written to */
#define DROPPED_READS 128u /* of a connection that is closed: more than a kernel has room for, usually */
#define BATCH_BYTES (32u * 1024) /* of messages, after which a packet to a sibling is full */
#define REPLY_BYTES 8u          /* of a reply with a value, besides that and the id */
#define WAITING_CALL_BYTES 512u /* counted for a waiting call */
#define GRACE_S 0.03
#define LINGER_S 2.0
#define ASK_S 0.001  /* between two questions for the processor's time */
#define LATELY_S 5.0 /* twice as long at most is `of late` */

enum { READABLE = 1, WRITABLE = 4, FAILED = 8 | 16, HUNG_UP = 0x2000 }; /* as epoll has them */

struct ready {
    u64 what;
    u32 mask;
};

/* What the core asks of the machine it runs on. The real one is the kernel; a simulation has another. */
struct machine {
    void *its;
    double (*clock)(void *its);
    double (*spent)(void *its); /* seconds of a processor that this thread has had */
    /* As recv(2) and send(2), which never wait; below 0 it is -errno. A descriptor that comes with what is read is closed. */
    ssize_t (*recv)(void *its, int fd, void *data, size_t size);
    ssize_t (*send)(void *its, int fd, const void *data, size_t size);
    /* The same of a sibling's packets: a descriptor comes with one, or -1; and goes with one, and stays here as well. */
    ssize_t (*recv_passed)(void *its, int fd, void *data, size_t size, int *passed);
    ssize_t (*send_passing)(void *its, int fd, const void *data, size_t size, int passed);
    /* Keep room for one that will come so, which takes it; false if there is none. And need that no more. */
    bool (*reserve)(void *its);
    void (*release)(void *its);
    void (*shut)(void *its, int fd);
    void (*close)(void *its, int fd);
    /* As epoll_ctl and epoll_wait; `what` comes back with the events. A wait below 0 has no end. */
    void (*watch)(void *its, int fd, u32 mask, u64 what, bool is_new);
    void (*forget)(void *its, int fd);
    int (*wait)(void *its, struct ready *ready, int most, double seconds);
};

/* When what was put off is done at the end of a turn, before what comes after: what was found in the middle of something
   else, connections with values, other connections, links to siblings, links to other nodes, what follows once all that is
   written, and connections that go to siblings. */
enum place { AT_LATER, AT_VALUES, AT_REPLIES, AT_BATCHES, AT_DISTANT, AT_ACKS, AT_MOVES, PLACES };
struct message;

/* What the core asks of who owns it, which is Python; who owns a topic is another one. All of these may call the functions
   of this header. */
struct owner {
    void *its;
    /* Whether a frame may be done now, of one who is VETTED, or of anybody while the core is opening. */
    enum verdict (*vet)(void *its, u64 connection, const u8 *body, u32 size);
    /* A frame that is none of the hot calls, or not a good one. */
    void (*unusual)(void *its, u64 connection, const u8 *body, u32 size);
    /* A call ends with an error, which is to be pushed: with numbers that it tells. */
    void (*failed)(void *its, u64 connection, enum method method, const u8 *id, u32 id_size, const struct blob *timed_out,
                   enum refusal why, u32 size, u32 limit);
    /* Half a frame is there: the first thing that is said and no array, or whatever it is of one who is VETTED. */
    void (*half_begun)(void *its, u64 connection, const u8 *half, u32 size, bool is_first);
    /* Half a frame has waited too long for its rest. */
    void (*half_is_old)(void *its, u64 connection);
    /* It may be closed: it has called, knows no errors, and nothing that it asked waits, while the core drains; or it is a
       publisher that said its last, and all is acked, or that goes on while this worker leaves. */
    void (*is_through)(void *its, u64 connection);
    /* Of one that is SECURE, read and write: as those of the machine do, but what was read stays the owner's, and may be
       more than was asked for; of what is written, `begun` bytes at the beginning are to be written again, as they are. */
    ssize_t (*receive)(void *its, u64 connection, u32 most, const u8 **data);
    ssize_t (*transmit)(void *its, u64 connection, const u8 *data, u32 size, u32 *begun);
    void (*shut)(void *its, u64 connection);
    /* It is closed. Of one that is SECURE, or BECAME_LINK, the descriptor is left to the owner; one that MOVED took it along. */
    void (*closed)(void *its, u64 connection, enum close why, int error);
    /* What a sibling has to know to have a connection in place of that one, which stays until this is called again; false
       if it is to stay here. Then, there: make that connection, by core_connect(-1), or return 0, as where a descriptor has
       no room; its descriptor is there. */
    bool (*may_move)(void *its, u64 connection, const u8 **facts, u32 *size);
    u64 (*arriving)(void *its, u64 link, const u8 *facts, u32 size, u32 calls, bool has_room);
    void (*arrived)(void *its, u64 connection);
    /* The sibling has said whether it takes one that may move. */
    void (*may_go)(void *its, u64 connection, bool goes);
    /* A descriptor that is no connection's is ready. */
    void (*ready)(void *its, u32 what, u32 mask);
    /* The time of an alarm has come, which is there no more. */
    void (*rang)(void *its, u64 alarm);
    /* Its own part of a turn: in how many seconds it goes on in any case, below 0 if it does not; have it go on. */
    double (*rests)(void *its, double now);
    void (*go_on)(void *its);
    /* A call on this topic was answered, and its turn to be told has come: how many are not to be told of next? */
    u32 (*sampled)(void *its, const u8 *topic, u32 size);
    /* A topic is on record by this token for the first time, since there is a spot of it. */
    void (*named)(void *its, i64 token, const u8 *topic, u32 size);
    /* The page has so many records: it has just one, and is to be handed over in a while, or is full, and is now. */
    void (*recorded)(void *its, u32 records);
    /* The other end of a link has said what is none of the core's business: who subscribes, counts, settles or visits. */
    void (*said)(void *its, u64 link, const struct message *message);
    /* While this worker opens, a link has said more than what it subscribes to, and is paused. */
    void (*early)(void *its, u64 link);
    /* Of a link that is SECURE what those above are of a connection. */
    ssize_t (*link_receive)(void *its, u64 link, u32 most, const u8 **data);
    ssize_t (*link_transmit)(void *its, u64 link, const u8 *data, u32 size, u32 *begun);
    void (*link_shut)(void *its, u64 link);
    /* Publications have waited too long for a link that is behind: its interests are to leave, these go on then. */
    void (*stuck)(void *its, u64 link);
    /* A link has ended: what was done for its other end is given up; then what is asked of it; and that was all. Of one
       that is SECURE the descriptor is left to the owner. */
    void (*link_ended)(void *its, u64 link, const char *why);
    void (*link_over)(void *its, u64 link);
    /* A sibling is dead, with sends of ours: see what the others know of them, then outbound_release(). */
    void (*ask_all)(void *its, u64 link);
    /* What a dead worker was just handing out, five words each as hands.py has them; false if that is not known. */
    bool (*handed)(void *its, u64 life, struct words *entries);
    /* Something waits for an owner that cannot be asked now. */
    void (*wanted)(void *its, u32 owner);
    /* Values for an interest were dropped, since its link is too far behind. */
    void (*lagged)(void *its, u32 interest);
    /* What this worker itself was asked by core_answer() is known. */
    void (*answered)(void *its, u64 token);
    /* Where assertions are checked: it is at that point of workers/engine/points.py. */
    void (*reached)(void *its, const char *point);
};

struct limits {
    u32 max_calls, output_bytes, max_plain_reply, subscriber_buffer, mesh_bytes;
    u32 max_moves; /* in a second; 0 for none ever */
    u32 behind_bytes; /* queued for a worker, besides what the kernel holds for it, that is far behind then */
    u64 waiting_bytes;
    double half_frame_s, unread_output_s, idle_probe_s;
};

/* Where the figures of workers/stats/metrics.py stand in `cells`. */
struct figures {
    i64 *cells;
    u32 calls, routed, wait, hand_off, waiting, received, sent, turn, longest_turn;
    u32 buckets, outcomes;
};

/* Count a time in the histogram that begins at this cell: its buckets, each twice as wide as the one before, and behind
   them the sum. Returns it, in us. */
static inline i64 figures_took(const struct figures *figures, u32 histogram, double seconds) {
    i64 us = seconds > 0.0 ? (i64)(seconds * 1e6) : 0;
    u32 bucket = us ? 64 - (u32)__builtin_clzll((u64)us) : 0;
    figures->cells[histogram + (bucket < figures->buckets ? bucket : figures->buckets - 1)]++;
    figures->cells[histogram + figures->buckets] += us;
    return us;
}

/* How long turns were of late, by the processor's time that they took. */
struct pace {
    double asked_at, spent; /* when that was last asked for, and what it was */
    double since;           /* when the time began in which `longest` was; `before` that it was this */
    i64 longest, before;    /* us */
};

/* Whose value stands where in the output: a listener that has it; or the send itself, of a subscriber who is written to
   before anybody may ask for it back (mark_delivers()). */
struct mark {
    u32 listener, begin, end;
};

#define KNOWN_TOKENS 1024u /* a power of two */

/* Records of calls, into one page after the other: skywalker/journal/record.py says what is in one. */
struct journal {
    u8 *page; /* NULL where there is no journal */
    u32 used, room; /* of records */
    u32 every;      /* calls of which one is recorded, on average */
    u32 gap, dice;
    /* Tokens that were needed last, by the last bits of their spots' numbers. */
    struct {
        u32 spot;
        i64 token;
    } known[KNOWN_TOKENS];
};

enum connection_flag {
    LEAVES = 1,        /* it only has its last words written */
    IS_CLOSED = 2,
    CHOKED = 4,        /* it does not take all that is written */
    RESTS = 8,         /* it goes on in the next turn */
    IS_DEAR = 16,      /* what it said last took more than its share of a turn */
    KNOWS_ERRORS = 32,
    ACKS = 64,
    HAS_SHUT = 128,
    HAS_CALLED = 256,
    IS_PUT_OFF = 512,  /* it goes on as soon as it is not choked any more */
    IS_LATER = 1024,   /* it is one of `later` */
    WAS_FLOODED = 2048, /* it was not given all that it should, as a subscriber */
    VETTED = 4096,      /* its owner looks at all that it says first */
    PAUSES = 8192,      /* it goes on when its alarm says so, or its owner, and is not read before */
    SECURE = 16384,     /* its owner reads and writes it */
    HAS_ENDED = 32768,  /* it has said its last already, though nothing more will tell of that */
    IS_EARLY = 65536,   /* it pauses with what it asked last undone */
    UNHEARD = 131072,    /* it has said its last, and that was heard */
    IS_DRAWN = 262144,   /* it is one of `drawn` */
    MOVES = 524288,      /* it is about to go to a sibling, and is not read any more */
    ARRIVES = 1048576,   /* it is about to come from one, and has no descriptor yet */
    LINGERS = 2097152    /* it is drawn to one, and may go there once it has been written to */
};

/* What a value for a subscriber touches comes first, and is in one line of the processor's cache: there may be many. */
struct connection {
    u32 number, generation;
    u32 flags;
    u32 out_size; /* bytes that it was told, of which those that are shared are the last, */
    u32 written;  /* and those that are written the first */
    u32 shared_size;
    u32 mark_count;
    u32 unmarked; /* of the messages of `told`, those that confirm a send. It has no marks then */
    const u8 *shared;        /* what is in no buffer: words that others are told as well */
    const struct told *told; /* in which that is, */
    struct publisher *publisher; /* of one that speaks pub/sub, until it leaves */
    u32 told_first; /* from this message on */
    int fd;
    u8 *out;
    u32 out_room;
    u32 counted; /* bytes of `out` that count as held, while it is choked */
    struct mark *marks; /* values in `out`, in their order */
    u32 mark_room;
    u32 mask, max_reply;
    u32 tail_size;
    u8 *tail; /* the beginning of what the peer still has to say */
    struct hash waiting, unacked; /* by id */
    u32 wills, subscriptions;     /* how many of those that wait are wills; subscriptions that count */
    u32 account;                  /* whose it is; 0 where that does not matter */
    u32 begun;                    /* bytes of what is unwritten that are on their way, of one that is SECURE */
    u32 unacked_bytes;
    u32 unacked_first, unacked_last; /* in the order in which they were given, linked as timers are: they have none */
    u32 rows;         /* that refer to it; while it ARRIVES also the last word about that, which is to come */
    u32 went_on;      /* in which turn it last did */
    u32 parked;       /* first of the listeners that a value came for while there was no room */
    u32 half, unread, pause, silence; /* alarms */
    u8 door;
    double heard; /* when it last said something that was done */
    struct blob *timed_out; /* what its calls named last */
    /* How many more of its calls went over one link than elsewhere, of how many, and since when there are some. */
    u32 pulled_to, pull, pulled_of;
    double pulled_since;
    double rests_until; /* it does not move before */
    u32 moved;          /* how often it has */
    u32 moves_by;       /* the link that it goes or comes by */
    u64 there;          /* its handle at the other end, 0 as long as that is not known */
} __attribute__((aligned(64)));

#define SPARES 64u

/* Where calls on the topics of one owner go, and the link that is none: each is 0 of one that nobody has asked for yet,
   and the first of this worker itself. */
struct way {
    u32 now, absent;
};

/* Where this worker is in its life, a bit each. */
enum standing {
    OPENING = 1,  /* clients are not heard yet */
    REFUSING = 2, /* new calls are refused, those who know no errors go once nothing waits for them */
    REPLACED = 4, /* a successor owns what this worker owned */
    LEAVING = 8   /* calls meet nobody here, and whatever those call who know no errors is dropped: they call elsewhere */
};

/* What this worker is just handing out, where that outlives it: the cells of workers/stats/hands.py, in their order. */
struct hand {
    i64 *cells; /* NULL for nowhere */
    u32 room, count;
    bool has_it; /* who is told of just now: that the kernel has the value */
};

/* When a connection is drawn to a sibling: if two thirds of so many calls go there, or of those for so long, at least so
   many more than elsewhere; and for how long it then stays, which doubles with each move. */
struct drawing {
    u32 calls, least;
    double seconds, rest_s;
};
extern const struct drawing DRAWING;

struct core {
    struct table table;
    struct timers timers;
    struct pool connections, links;
    struct machine machine;
    struct owner owner;
    struct limits limits;
    struct figures figures;
    struct pace pace;
    struct ring ring;
    struct accounts accounts;
    struct journal journal;
    u32 standing;   /* flags of enum standing */
    bool gathers;   /* clients are heard from now on; what other workers ask waits for all of them to be heard before */
    u32 choked;     /* connections that are */
    u32 orphans;    /* publications that are not in effect, of connections that are gone */
    u32 left;       /* bytes that follow the frame which is being done */
    u32 here;       /* as which owner the ring has this worker */
    u32 generation; /* of connections and links */
    u32 gap;        /* calls that are not told of */
    u32 turn;       /* counts them */
    u32 ended;      /* calls that ended in this one as their connections did */
    bool is_inside; /* it is on, and what was read in it is still needed */
    double now, began, served_at; /* when a connection or link was last ready */
    struct segment *segment; /* what was read in this turn, where values stay until it ends */
    struct told told[WORDINGS];
    u64 shared_bytes; /* that connections were told of these in this turn */
    u8 *spares[SPARES]; /* output buffers of OUT_BYTES */
    u32 spare_count;
    u64 calls_held, bytes_held, most_bytes_held;
    /* What is to be done before the turn ends: connections, and calls, by their handles. */
    struct words values, replies, acks, later, resting, dead;
    struct words attended; /* room for what is put off while `later` is gone through */
    struct words batches, distant; /* links to siblings, and to other nodes, that have something to say */
    struct words drawn;  /* connections that may go to a sibling, or go on with that */
    u32 moving;          /* how many are on their way, here or away */
    u32 moves_made;      /* in the second that began then */
    double moves_since;
    struct drawing drawing;
    struct words linked; /* the links that there are */
    struct words heard; /* links whose last value is borrowed */
    struct words gathered; /* calls of other workers, by their handles */
    struct words over;  /* links that are closed, and that no row refers to */
    u32 unsaid, unsaid_until; /* siblings to whom something is unsaid that can wait, and the alarm until which it does */
    struct way *ways;   /* by owner */
    u32 way_count;
    u32 behind;         /* siblings that do not take all that is said */
    u64 life;           /* of this worker, as others know it */
    struct hand hand;
    struct words going; /* those of `resting` who go on now */
    struct words marks; /* of the connection that is being written */
};

static inline struct connection *connection_at(const struct core *core, u32 number) {
    return pool_item(&core->connections, number, sizeof(struct connection));
}
static inline u64 connection_handle(const struct connection *connection) {
    return (u64)connection->generation << 32 | connection->number;
}
/* The connection of this handle, NULL if it is closed. */
static inline struct connection *connection_find(const struct core *core, u64 handle) {
    u32 number = (u32)handle;
    if (!pool_has(&core->connections, number)) return NULL;
    struct connection *connection = connection_at(core, number);
    return connection->generation == handle >> 32 && !(connection->flags & IS_CLOSED) ? connection : NULL;
}
/* The next one that is open, from *number on and beyond it, where it is; NULL if there is none. From 0 on it is the first. */
static inline struct connection *connection_next(const struct core *core, u32 *number) {
    while ((*number = pool_next(&core->connections, *number))) {
        struct connection *connection = connection_at(core, *number);
        if (connection->generation && !(connection->flags & IS_CLOSED)) return connection;
    }
    return NULL;
}
/* Somebody is at a point where the order of two things matters. Returns true, for an assertion. */
static inline bool core_reached(const struct core *core, const char *point) {
    core->owner.reached(core->owner.its, point);
    return true;
}
static inline struct core *core_of(struct table *table) {
    return (struct core *)(void *)((u8 *)table - offsetof(struct core, table));
}
static inline struct connection *caller_of(const struct core *core, const struct row *row) {
    return connection_at(core, row->caller);
}
/* Whether who a mark names is a send, which a subscriber has. */
static inline bool mark_delivers(const struct core *core, u32 listener) {
    return row_at(&core->table, listener)->kind == SEND;
}
static inline const u8 *row_id(const struct core *core, const struct row *row) {
    return row->id_size > ID_INSIDE ? extra_at(&core->table, row->extra)->id->data : row->id;
}
static inline bool row_has_id(const struct core *core, const struct row *row, const u8 *id, u32 size) {
    return row->id_size == size && !memcmp(row_id(core, row), id, size);
}

/* calls.c and held.c: a new call from `caller`; what is not of its kind is 0. It meets somebody, or waits, or is answered. */
struct call {
    enum kind kind;
    u32 id_size, group_size, value_size;
    u32 topic; /* its spot, of which it takes over a reference */
    /* The group in canonical form; the value stays until the turn ends. ID_INSIDE bytes from `id` on can be read. */
    const u8 *id, *group, *value;
    double seconds;
    struct blob *timed_out; /* a reference, which the call takes over */
};
extern const u8 LIFE[STATES][EVENTS];
extern const struct judges JUDGES;
void call_issue(struct core *core, struct connection *caller, const struct call *call);
void call_expired(struct core *core, u32 number);
void call_passed_over(struct core *core, u64 handle);
/* One that was to end while somebody here was being given its value: all is written by now. */
void call_conclude(struct core *core, u64 handle);
/* A listener's client has the value it was given; or is gone, or does not want it. */
void call_delivered(struct core *core, u32 listener);
void call_lost(struct core *core, u32 listener);
/* It met nobody after all, and waits or asks again as when it came; it may be gone afterwards. */
void call_listens_again(struct core *core, u32 listener);
void call_drop(struct core *core, u32 listener, enum outcome outcome);
/* Its value is needed beyond this turn: have its caller keep track of it, or another worker's have a copy. */
void call_hold(struct core *core, u32 send);
void call_give_up(struct core *core, u32 number, const u8 *cancelled_by, u32 size);
/* End it where it waits, with an error or that its time is over; a send may only end later, or with nobody knowing. It may
   be gone afterwards. */
void call_leave(struct core *core, u32 number, enum refusal error);
/* A call that waits under this id, the latest of several; of `unacked` those that are to be acknowledged. */
u32 call_find(const struct core *core, const struct hash *hash, const u8 *id, u32 size);
void calls_forget(struct core *core, struct connection *connection);
void calls_unpark_all(struct core *core, struct connection *connection);
/* Answer all that waits with an error, once what was put off is done. */
void calls_fail(struct core *core, struct connection *connection, enum refusal why);
/* A new subscription of `caller`, which counts and does not stand yet: 0, and why not. Its owner ends it, also when the
   connection has ended: it counts no more, and later it is gone. */
u32 call_subscribe(struct core *core, struct connection *caller, const u8 *id, u32 id_size, const u8 *topic,
                   u32 topic_size, enum refusal *why);
void call_unsubscribe(struct core *core, u32 subscription);
void call_end_subscription(struct core *core, u32 subscription);
/* What a client cancels, whatever it is: a call that waits, or a value that it was given and does not want. */
void call_cancel(struct core *core, struct connection *connection, const u8 *by, u32 by_size, const u8 *id, u32 size);
void call_unacked(struct core *core, struct connection *connection, u32 listener);
bool call_acknowledged(struct core *core, struct connection *connection, const u8 *id, u32 size);
/* A value that a sibling has given is to be acknowledged there: that one has the call. */
void call_acknowledged_elsewhere(struct core *core, struct connection *connection, u32 listener);

/* publish.c: a value for all who listen now; `form` is what pub/sub has besides, hint and flags, and the payload if that
   is compressed. A reference to the topic is taken over. */
struct publication {
    u32 topic, size, form_size;
    const u8 *value, *form; /* which stay until the turn ends */
    u64 place;              /* among all that its connection is to have acked; 0 of none */
};
/* 0 if it is in effect; else its handle: publisher_done() is called with its place once it is. */
u64 call_publish(struct core *core, struct connection *caller, const struct publication *what);
/* The ring has changed: have those that wait elsewhere go where they belong. */
void publications_reroute(struct core *core);
/* Its connection is gone, and it goes on without. */
void publication_orphan(struct core *core, u64 handle);
/* A value that is published if the connection is lost before its time is over; why not, if it has no room. */
enum refusal call_will(struct core *core, struct connection *caller, const struct call *call);
void call_testify(struct core *core, u32 will);

/* pubsub.c: publish, and have it acked behind all that was asked before. */
void publisher_publish(struct core *core, struct connection *connection, struct publication *what);
/* A change of a subscription is to be acked: its place among all that is, for publisher_done(). */
u64 publisher_awaits(struct connection *connection);
void publisher_done(struct core *core, struct connection *connection, u64 place);
bool publisher_is_owed(const struct connection *connection);
/* Whether nothing is, nor held back. */
bool publisher_rests(const struct connection *connection);
/* Publish nothing more before all that was is acked: it may go another way, and overtake that. */
void publishers_hold_back(struct core *core);

/* rights.c */
void account_enter(struct core *core, struct connection *connection, u32 account);
static inline u32 connection_in_flight(const struct connection *connection) {
    return connection->waiting.count + connection->subscriptions;
}
/* `by` more calls of it wait, or fewer. */
static inline void account_counts(struct core *core, const struct connection *connection, i64 by) {
    if (UNLIKELY(connection->account)) account_at(&core->accounts, connection->account)->in_flight += (u64)by;
}

/* journal.c: record one of `every` calls from now on, into the page that is given; `dice` is random. */
void journal_begin(struct core *core, u32 every, u32 dice);
void journal_turn(struct core *core, u8 *page, u32 room);
void journal_record(struct core *core, const struct row *row, u32 method, enum outcome outcome);

/* output.c */
void output_push(struct core *core, struct connection *connection, const u8 *data, u32 size);
void output_reply(struct core *core, struct connection *connection, enum method method, const u8 *id, u32 id_size,
                  const u8 *result, u32 size);
/* Place for so many bytes at the end; for a value, whose mark is set once it is there. */
u8 *output_place(struct core *core, struct connection *connection, u32 size);
u8 *output_begin_value(struct core *core, struct connection *connection, u32 size);
void output_mark(struct connection *connection, u32 listener, u32 begin);
/* The last words of those, of which `listener` is to hear that they are written, unless it is 0. They are not copied unless
   something else comes behind. */
void output_share(struct core *core, struct connection *connection, const struct told *told, u32 listener);
/* Set marks for what is shared: not all in it is confirmed alike, or not all of it is written. */
void output_spell_out(struct connection *connection);
/* Copy what is shared: it is needed for longer, or in one piece with the rest. */
void output_own(struct core *core, struct connection *connection);
void output_value(struct core *core, struct connection *connection, u32 listener, u32 send);
/* A message with a value of `send` for a subscription; `listener` is to hear that it is written, unless it is 0: a
   delivery, or that send. */
void output_message(struct core *core, struct connection *connection, const struct row *subscriber, u32 send, u32 listener);
/* See that what was just written for a subscription is read; whether there is so much that no more may be added. */
void output_see_that_it_is_read(struct core *core, struct connection *connection);
bool output_is_flooded(struct core *core, struct connection *connection);
/* A value is wanted back; whether it is, or is left out when it would be written. What is to be written in this very turn
   stays, unless that `is_final`: its sender is told that nobody has it. */
bool output_take_back(struct core *core, struct connection *connection, u32 listener, bool is_final);
/* It had values that could not be taken back for a moment: if it is CHOKED now, those that were asked for are. */
void output_give_back(struct core *core, const struct connection *connection);
bool output_is_congested(const struct core *core, const struct connection *connection);
void output_flush(struct core *core, struct connection *connection);
/* Of one that is CHOKED: write more. */
void output_drain(struct core *core, struct connection *connection);
void output_unread(struct core *core, struct connection *connection);
void output_free(struct core *core, struct connection *connection);
/* There may be room again: end it if it only had that to be written, or go on with what waited for room. */
void output_roomy(struct core *core, struct connection *connection);

/* input.c */
void input_read(struct core *core, struct connection *connection);
/* Write now what has become much, close if its peer does not read as fast as it subscribes, go on if that was put off. */
void input_attend(struct core *core, struct connection *connection);
/* Its time has come: go on. */
void input_rested(struct core *core, struct connection *connection);
/* Stop after this frame, and go on in so many seconds; with 0 when input_resume() is called. */
void input_pause(struct core *core, struct connection *connection, double seconds);
void input_resume(struct core *core, struct connection *connection);
/* Do now all that it has said and that was put off. */
void input_exhaust(struct core *core, struct connection *connection);
/* What a dialect needs to do one after the other: whether one may be done, and whether that was enough for this turn;
   and what is kept, until there is more, or for the next turn. */
bool input_may_be_done(struct core *core, struct connection *connection, const u8 *body, u32 size);
bool input_has_had_its_share(struct core *core, struct connection *connection);
void input_keep(struct core *core, struct connection *connection, const u8 *data, u32 size, bool rests, bool fresh);
/* Bytes that stay until the turn ends, once they are used. */
u8 *input_room(struct core *core, u32 size);
void input_use(struct core *core, u32 size);
void input_watch_tail(struct core *core, struct connection *connection, bool fresh);

/* turn.c */
void core_open(struct core *core, const struct machine *machine, const struct owner *owner, const struct key *key);
void core_close(struct core *core);
/* Do so in place of an owner who is gone as well, with what it would have ended. */
void core_drop(struct core *core);
/* The generation of a new connection or link, which makes its handle differ from all others for long. */
u32 core_next_generation(struct core *core);
u64 core_connect(struct core *core, int fd, enum door door);
/* Have owner.ready() told of a descriptor that is no connection's, or change of what; and no more. */
void core_watch(struct core *core, int fd, u32 what, u32 mask, bool is_new);
void core_forget(struct core *core, int fd);
/* Have owner.rang() told once that time has come, on the machine's clock; and not. An alarm that is gone is none. */
u64 core_set_alarm(struct core *core, double at);
void core_drop_alarm(struct core *core, u64 alarm);
/* Seconds until there is a turn to do, whatever comes; below 0 if that depends on others. */
double core_wait(struct core *core);
/* Wait until something is ready or due, at most so many seconds, below 0 for as long as it takes, and have one turn.
   Returns how many were ready. */
int core_turn(struct core *core, double most);
/* The first and the last part of a turn by themselves: what is due ends; what all brought about is written. */
void core_begin(struct core *core, double now);
void core_settle(struct core *core);
void core_close_connection(struct core *core, struct connection *connection, enum close why, int error);
void core_finish(struct core *core, struct connection *connection);
void core_mask(struct core *core, struct connection *connection);
/* Give its descriptor away: it asks nothing, and is given nothing. */
void core_detach(struct core *core, struct connection *connection);
/* This worker is REFUSING: let go who is through. */
void core_drain(struct core *core);
/* It is LEAVING: learn what became of calls that wait at others. */
void core_leave(struct core *core);
/* Probe it from now on whenever it says nothing for long, and waits for something. */
void core_probe(struct core *core, struct connection *connection);
/* Set it, anew if it is set, for that time; returns it. */
u32 alarm_set(struct core *core, const struct connection *connection, u32 alarm, u8 what, double at);
u32 alarm_set_for(struct core *core, u32 caller, u32 alarm, u8 what, double at);
void alarm_off(struct core *core, u32 *alarm);
/* Have input_attend() called once the event that is being dealt with is done. */
void core_attend_later(struct core *core, struct connection *connection);
bool turn_is_long(const struct core *core);
/* Do now what was found in the middle of something else: `later` has calls, and connections and links, told by these bits. */
#define LATER_CONNECTION 0x80000000u
#define LATER_LINK 0x40000000u
#define LATER_GATHERED 0x20000000u /* calls that inbound_gather() has had wait */
/* In `acks`, before four words: a dead link, who asks by which number, and a token where it is us. */
#define ACK_ANSWER 0x80000000u
void turn_attend(struct core *core);
void core_watch_link(struct core *core, u32 link, int fd, u32 mask, bool is_new);
/* Answer what is known of a dead worker, once that is written: over a link by a number, or by owner.answered(). */
void core_answer(struct core *core, u64 life, u32 link, u64 number, u64 token);
enum { ALARM_HALF, ALARM_UNREAD, ALARM_LINGER, ALARM_PAUSE, ALARM_SILENCE, ALARM_STUCK, ALARM_UNSAID, ALARM_OF_OWNER };

/* ways.c */
/* The number of the link to the owner of a topic, or of that of a call; 0 is here. */
u32 topic_way(struct core *core, u32 topic);
u32 call_way(struct core *core, const struct row *row);
/* The link that is none, where calls wait for an owner; it is made when it is asked for first: there may be very many. */
u32 way_absent(struct core *core, u32 owner);
/* Have calls on topics of so many owners wait for these to be there, but for this worker itself. */
void core_ways(struct core *core, u32 count);
/* Have calls of an owner go over a link, and those that waited for there to be one; 0 for none. */
void core_lead(struct core *core, u32 owner, u32 link);
/* Look which of a connection's calls wait elsewhere than they should, and have them go there. */
void calls_reroute(struct core *core, struct connection *connection);
/* Ask back those that wait at other workers; whether there are some. */
void calls_ask_back(struct core *core, const struct connection *connection);
bool calls_are_elsewhere(const struct core *core, const struct connection *connection);

/* moving.c: a sibling's descriptor of a connection that arrives, in turn.c: have it be read and written. */
void core_arrived(struct core *core, struct connection *connection, int fd);
/* Deal with those that may go to a sibling, or go on with that. */
void moves_attend(struct core *core);
void move_goes_on(struct core *core, struct connection *connection);
/* It is closed, or has its last words written, on its way. */
void move_lose(struct core *core, struct connection *connection);

/* hand.c */
/* Write down that the value of a mark is about to be written; that the kernel has all from one on, of which those who
   gave them are told next; that all is said. */
void hand_add(struct core *core, const struct row *send);
void hand_taken(struct core *core, u32 since);
void hand_clear(struct core *core);

#endif
