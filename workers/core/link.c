/* The links of a worker, as descriptors: what comes in, what goes out, one write a turn, and how they end. A
   link ends with either worker: what the owner of a topic held for the other is gone then, as its clients are, and what
   waited at the owner is issued again. */
#include "life.h"
#include "link.h"

#include <errno.h>
#include <math.h>

#define READS_PER_TURN 16u
#define BYTES_PER_TURN (64u * 1024) /* after which others are heard: some thousand words of calls that have ended */
#define READS_TO_CATCH_UP 512u /* batches that a sibling's socket holds at most, if each is small */
#define MAX_PACKET_BYTES (176u * 1024)
#define MAX_MESSAGE (MAX_FRAME + MAX_TOPIC + 1024u)
#define PATIENCE 4u /* how many times mesh_bytes may wait for a node that asks and does not read */
#define SMALL_BYTES (64u * 1024)
#define UNSAID_S 0.005 /* for what can wait, and */
#define UNSAID_BYTES (4u * 1024) /* of it */

u32 link_open(struct core *core, int fd, u64 life, u32 flags) {
    u32 number = pool_take(&core->links);
    struct link *link = link_at(core, number);
    memset(link, 0, sizeof *link);
    link->number = number;
    link->generation = core_next_generation(core);
    link->fd = fd;
    link->life = life;
    link->flags = flags & LINK_ABROAD ? flags : flags | LINK_BOTH_WAYS;
    link->used_at = link->heard_at = core->now;
    link->grace_s = GRACE_S;
    link->caught_up_at = -1.0;
    link->passed = -1;
    if (flags & LINK_ABSENT) return number;
    link->mask = READABLE;
    words_add(&core->linked, number);
    core_watch_link(core, number, fd, READABLE, true);
    return number;
}

struct link *link_by_life(const struct core *core, u64 life) {
    for (u32 at = core->linked.size; life && at--;) { /* the latest, should there be several */
        struct link *link = link_at(core, (u32)core->linked.items[at]);
        if (link->life == life) return link;
    }
    return NULL;
}

void link_dropped(struct core *core, struct link *link) {
    MUST(link->rows);
    if (!--link->rows && link->flags & LINK_CLOSED) words_add(&core->over, link->number);
}

void link_free(struct core *core, u32 number, struct row *row) {
    struct link *link = link_of(core, row);
    if (row->kind == OFFER || row->kind == PASSING) {
        rows_remove(&core->table, &link->offered, number, row);
        if (row->kind == PASSING && word_at(row->id) >> 56 == NUMBER_OF_OWNER >> 56)
            hash_remove(&link->passing, &CALLS_BY_ID, core, number);
    }
    row_free(&core->table, number);
    link_dropped(core, link);
}

/* Writing. */

/* Have what is unwritten be written in this turn. */
static void be_due(struct core *core, struct link *link) {
    if (link->flags & LINK_IS_DUE) return;
    link->flags |= LINK_IS_DUE;
    words_add(link->flags & LINK_ABROAD ? &core->distant : &core->batches, link->number);
}

static void waits_no_more(struct core *core, struct link *link) {
    if (!(link->flags & LINK_UNSAID)) return;
    link->flags &= ~(u32)LINK_UNSAID;
    core->unsaid--;
}

/* Something is said that is written with what is said next, or after a while. */
static void waits(struct core *core, struct link *link) {
    if (link->flags & (LINK_IS_DUE | LINK_UNSAID)) return;
    link->flags |= LINK_UNSAID;
    core->unsaid++;
    if (!core->unsaid_until) core->unsaid_until = alarm_set_for(core, 0, 0, ALARM_UNSAID, core->now + UNSAID_S);
}

void links_hurry(struct core *core) {
    for (u32 at = 0; at < core->linked.size; at++) {
        struct link *link = link_at(core, (u32)core->linked.items[at]);
        if (link->flags & LINK_UNSAID) be_due(core, link);
    }
}

u8 *link_room(struct core *core, struct link *link, u32 size, bool can_wait) {
    if (can_wait && link_unsent(link) < UNSAID_BYTES)
        waits(core, link);
    else
        be_due(core, link);
    u64 wanted = (u64)link->out_size + size;
    if (UNLIKELY(wanted > link->out_room)) {
        if (wanted > UINT32_MAX / 2) DIE("another worker is to be written more than 2 GiB");
        u32 room = link->out_room ? link->out_room : 256;
        while (room < wanted) room *= 2;
        link->out = memory_again(link->out, room);
        link->out_room = room;
    }
    u8 *place = link->out + link->out_size;
    if (!(link->flags & LINK_ABROAD) && link->out_size - link->sealed >= BATCH_BYTES) {
        words_add(&link->packets, link->out_size);
        link->sealed = link->out_size;
    }
    link->out_size = (u32)wanted;
    return place;
}

void link_pass(struct link *link, int fd) {
    words_add(&link->packets, (u64)(fd + 1) << 32 | link->out_size);
    link->sealed = link->out_size;
}

static void falls_behind(struct core *core, struct link *link, bool is_behind) {
    if (is_behind == !!(link->flags & LINK_BEHIND)) return;
    link->flags ^= LINK_BEHIND;
    core->behind = is_behind ? core->behind + 1 : core->behind - 1;
}

/* The descriptor that is to go with a packet; -1 for none. */
static int passed_with(u64 packet) { return (int)(packet >> 32) - 1; }

static void nothing_unsent(struct core *core, struct link *link) {
    for (u32 at = 0; at < link->packets.size; at++)
        if (passed_with(link->packets.items[at]) >= 0)
            core->machine.close(core->machine.its, passed_with(link->packets.items[at]));
    link->out_size = link->written = link->sealed = link->packets.size = 0;
    if (link->out_room <= SMALL_BYTES) return;
    free(link->out);
    link->out = NULL;
    link->out_room = 0;
}

/* Take what is written off the buffer, once that is most of it. */
static void compact(struct link *link) {
    u32 gone = link->written;
    if (gone < WRITE_BYTES || gone < link->out_size / 2) return;
    memmove(link->out, link->out + gone, link->out_size - gone);
    link->out_size -= gone;
    link->written = 0;
    if (link->flags & LINK_ABROAD) return;
    link->sealed -= gone;
    for (u32 at = 0; at < link->packets.size; at++) link->packets.items[at] -= gone;
}

static void takes(struct link *link, u32 size) {
    link->written += size;
    link->taken += size;
    if (link->fd >= 0) link->flags &= ~(u32)LINK_STUCK;
}

void link_note_read(struct link *link, u64 bytes) {
    assert(link->fd < 0 && link->read <= bytes && bytes <= link->taken);
    if (bytes > link->read) link->flags &= ~(u32)LINK_STUCK;
    link->read = bytes;
}

/* What the kernel takes of what is unsent; false if the other end is dead. */
static bool send_stream(struct core *core, struct link *link) {
    const u8 *data = link->out + link->written;
    u32 begun; /* nothing is ever taken out of what is unsent */
    ssize_t sent = link->flags & LINK_SECURE
                       ? core->owner.link_transmit(core->owner.its, link_handle(link), data, link_unsent(link), &begun)
                       : core->machine.send(core->machine.its, link->fd, data, link_unsent(link));
    if (sent > 0) takes(link, (u32)sent);
    return sent >= 0 || sent == -EAGAIN || sent == -EWOULDBLOCK;
}

static bool send_packets(struct core *core, struct link *link) {
    u32 done = 0;
    ssize_t sent = 0;
    while (done < link->packets.size) {
        u32 end = (u32)link->packets.items[done];
        int passed = passed_with(link->packets.items[done]);
        const u8 *data = link->out + link->written;
        if (LIKELY(passed < 0))
            sent = core->machine.send(core->machine.its, link->fd, data, end - link->written);
        else
            sent = core->machine.send_passing(core->machine.its, link->fd, data, end - link->written, passed);
        if (sent < 0) break;
        takes(link, end - link->written);
        if (passed >= 0) core->machine.close(core->machine.its, passed);
        done++;
    }
    link->packets.size -= done;
    memmove(link->packets.items, link->packets.items + done, link->packets.size * sizeof *link->packets.items);
    return sent >= 0 || sent == -EAGAIN || sent == -EWOULDBLOCK;
}

static void write_out(struct core *core, struct link *link) {
    if (!(link->flags & LINK_ABROAD) && link->out_size > link->sealed) {
        words_add(&link->packets, link->out_size);
        link->sealed = link->out_size;
    }
    bool lives = !link_unsent(link) || (link->flags & LINK_ABROAD ? send_stream(core, link) : send_packets(core, link));
    /* If the other end is dead, what it said before is still to be read, and then its end. */
    if (!lives || !link_unsent(link))
        nothing_unsent(core, link);
    else
        compact(link);
    if (!(link->flags & LINK_ABROAD)) falls_behind(core, link, link_unsent(link) != 0);
}

/* A close would have the kernel destroy, once more comes in, what was just written. */
static void shut(struct core *core, struct link *link) {
    link->flags |= LINK_HAS_SHUT;
    if (link->flags & LINK_SECURE)
        core->owner.link_shut(core->owner.its, link_handle(link));
    else
        core->machine.shut(core->machine.its, link->fd);
}

static void wait_for(struct core *core, struct link *link) {
    u32 mask = (link->flags & LINK_PAUSED ? 0u : READABLE) | (link_unsent(link) ? WRITABLE : 0u);
    if (mask == link->mask) return;
    link->mask = mask;
    core_watch_link(core, link->number, link->fd, mask, false);
}

void link_flush(struct core *core, struct link *link) {
    if (link->flags & LINK_CLOSED) return;
    waits_no_more(core, link);
    write_out(core, link);
    if (!link_unsent(link)) link->flags &= ~(u32)LINK_IS_DUE;
    assert(core_reached(core, "a batch is written"));
    if ((link->flags & (LINK_FINISHES | LINK_HAS_SHUT)) == LINK_FINISHES && !link_unsent(link)) shut(core, link);
    wait_for(core, link);
    inbound_flushed(core, link);
}

void link_finish(struct core *core, struct link *link) {
    if (link->flags & (LINK_CLOSED | LINK_FINISHES)) return;
    inbound_doubt_undecided(core, link);
    message_tell(core, link, SAY_PARTING, 0);
    link->flags |= LINK_FINISHES;
    link_flush(core, link);
}

double link_last_used(const struct link *link) {
    return link->rows || link_unsent(link) || link->tail_size ? INFINITY : link->used_at;
}

void link_pause(struct core *core, struct link *link) {
    link->flags |= LINK_PAUSED;
    wait_for(core, link);
}

void link_attend_later(struct core *core, const struct link *link) {
    words_add(&core->later, (u64)link->number | LATER_LINK);
}

void link_go_on(struct core *core, struct link *link) {
    if (link->flags & LINK_CLOSED) return;
    link->flags &= ~(u32)LINK_PAUSED;
    wait_for(core, link);
    link_attend_later(core, link);
}

/* Reading. */

static void keep(struct link *link, const u8 *data, u32 size) {
    assert(link->tail == NULL);
    if (!size) return;
    link->tail = memory(size);
    memcpy(link->tail, data, size);
    link->tail_size = size;
}

void link_begin(struct core *core, struct link *link, const u8 *unwritten, u32 size, const u8 *heard, u32 heard_size) {
    if (size) memcpy(link_room(core, link, size, false), unwritten, size);
    if (!heard_size) return;
    keep(link, heard, heard_size);
    link->is_unheard = true;
    link_attend_later(core, link);
}

static bool answer(struct core *core, struct link *link, const struct message *message) {
    core_answer(core, message->life, link->number, message->number, 0);
    return true;
}

bool link_hear(struct core *core, struct link *link, const struct message *message) {
    return message->kind <= SAY_CENSUS || message->kind == SAY_LONG || message->kind == SAY_UNACKED
               ? inbound_hear(core, link, message)
               : outbound_hear(core, link, message);
}

/* What is asked of one that goes. The other end asks somebody else, once it has heard of that and the link has ended. */
static bool is_asked_too_late(const struct link *link, const struct message *message) {
    if (!(link->flags & LINK_FINISHES)) return false;
    switch (message->kind) {
    case SAY_SEND: case SAY_LISTEN: case SAY_PUBLISH: case SAY_SUBSCRIBE: case SAY_CENSUS: case SAY_VISIT: case SAY_RELAY:
    case SAY_SPLIT:
        return true;
    default: return false;
    }
}

static bool hear_one(struct core *core, struct link *link, const struct message *message) {
    link->used_at = core->now;
    if (UNLIKELY(is_asked_too_late(link, message))) return true;
    if (link->flags & LINK_ABROAD && message->form_size > FORM_BYTES) { /* its value is compressed */
        core->owner.said(core->owner.its, link_handle(link), message);
        return true;
    }
    switch (message->kind) {
    case SAY_RETIRED:
        outbound_retired(core, link);
        if (link->flags & LINK_ABROAD) core->owner.said(core->owner.its, link_handle(link), message);
        return true;
    case SAY_SUBSCRIBE: case SAY_CENSUS: case SAY_SETTLED: case SAY_VISIT: case SAY_COUNTED: case SAY_SUBSCRIBED: case SAY_LAGGED:
    case SAY_RELAY:
        core->owner.said(core->owner.its, link_handle(link), message);
        return true;
    case SAY_SPLIT: case SAY_CUT:
        if (!(link->flags & LINK_ABROAD)) core->owner.said(core->owner.its, link_handle(link), message);
        return true;
    case SAY_INQUIRE: return link->flags & LINK_ABROAD || answer(core, link, message);
    case SAY_MOVE: case SAY_MOVED: case SAY_REST: case SAY_ARRIVE: return move_hear(core, link, message);
    default: return link_hear(core, link, message);
    }
}

/* Whether this is not to be heard while this worker opens: a call, or what is no subscription. */
static bool is_early(const struct core *core, const struct message *message) {
    return core->standing & OPENING && message->kind <= SAY_CENSUS && message->kind != SAY_SUBSCRIBE;
}

/* Hear what was read, and keep the rest: what is no whole message yet, or comes while it is paused. */
static bool hear(struct core *core, struct link *link, const u8 *data, u32 size) {
    struct message message;
    u32 at = 0;
    link->flags |= LINK_HEARS;
    while (!(link->flags & LINK_PAUSED)) {
        u32 begin = at;
        int found = message_hear(link, data, size, &at, &message);
        if (!found) break;
        if (found > 0 && UNLIKELY(is_early(core, &message))) {
            at = begin;
            link_pause(core, link);
            core->owner.early(core->owner.its, link_handle(link));
            break;
        }
        if (found < 0 || !hear_one(core, link, &message)) {
            link->flags &= ~(u32)LINK_HEARS;
            link_close(core, link, "the other end sent what makes no sense");
            return false;
        }
        if (core->later.size && !core->gathers) turn_attend(core); /* else the rest of this is one of those that come first */
        if (link->flags & LINK_CLOSED) break; /* its calls are issued again, and what they said is not heard twice */
    }
    link->flags &= ~(u32)LINK_HEARS;
    if (link->flags & LINK_CLOSED) return false;
    keep(link, data + at, size - at);
    return true;
}

/* Read behind the `tail` that is there; `data` is where all of it will be. */
static ssize_t receive(struct core *core, struct link *link, u32 tail, u8 **data) {
    u32 most = link->flags & LINK_ABROAD ? READ_BYTES : MAX_PACKET_BYTES;
    if (!(link->flags & LINK_SECURE)) {
        *data = input_room(core, tail + most);
        assert(link->passed < 0);
        /* To ask for a descriptor as well takes the kernel a third longer, and none comes that is wanted if nothing moves. */
        if (link->flags & LINK_ABROAD || !core->moving)
            return core->machine.recv(core->machine.its, link->fd, *data + tail, most);
        ssize_t got = core->machine.recv_passed(core->machine.its, link->fd, *data + tail, most, &link->passed);
        if (link->passed >= 0 && link->coming) link->coming--;
        return got;
    }
    const u8 *plain = NULL;
    if (link->flags & LINK_HAS_ENDED) return 0;
    ssize_t got = core->owner.link_receive(core->owner.its, link_handle(link), most, &plain);
    if (got <= 0) return got;
    assert(got <= (ssize_t)UINT32_MAX / 4);
    *data = input_room(core, tail + (u32)got);
    memcpy(*data + tail, plain, (size_t)got);
    return got;
}

/* What came with a descriptor is heard, and that is nobody's. */
static void nothing_passed(struct core *core, struct link *link) {
    if (link->passed >= 0) core->machine.close(core->machine.its, link->passed);
    link->passed = -1;
}

/* Take in one batch, of so many bytes more; false if there is none now, or never will be. */
static bool read_one(struct core *core, struct link *link, u64 *bytes) {
    if (link->flags & (LINK_CLOSED | LINK_PAUSED | LINK_HEARS | LINK_ABSENT)) return false;
    bool is_abroad = link->flags & LINK_ABROAD;
    u32 tail = link->tail_size;
    u64 patience = (u64)PATIENCE * core->limits.mesh_bytes;
    if (link->flags & LINK_ASKS_US && patience && link_unsent(link) > patience) {
        link_close(core, link, "the other end asks, and does not read the answers");
        return false;
    }
    bool is_unheard = link->is_unheard;
    u8 *data = is_unheard ? input_room(core, tail) : NULL;
    ssize_t got = is_unheard ? 0 : receive(core, link, tail, &data);
    if (got == -EAGAIN || got == -EWOULDBLOCK) return false;
    if (got == -ECONNRESET && !is_abroad) return true; /* it died with packets of ours unread; its own are still here */
    if (!is_unheard && got <= 0) {
        link_close(core, link, got ? "it cannot be read" : "the other end closed it");
        return false;
    }
    if (tail) memcpy(data, link->tail, tail);
    free(link->tail);
    link->tail = NULL;
    link->tail_size = 0;
    link->is_unheard = false;
    link->heard_at = core->now;
    input_use(core, tail + (u32)got);
    *bytes += (u32)got;
    if (!hear(core, link, data, tail + (u32)got)) return false;
    if (link->flags & LINK_PAUSED) link->is_unheard = link->tail_size != 0;
    if (!link->is_unheard) nothing_passed(core, link);
    if (link->tail_size <= MAX_MESSAGE || link->flags & LINK_PAUSED) return true;
    link_close(core, link, "the other end sent too long a message");
    return false;
}

static void read_some(struct core *core, struct link *link, u32 times, u64 most) {
    u64 bytes = 0;
    while (times-- && bytes < most && read_one(core, link, &bytes)) {}
    if (link->flags & LINK_HAS_ENDED) read_one(core, link, &bytes); /* nothing would tell of it */
}

static void read_all(struct core *core, struct link *link) {
    read_some(core, link, READS_TO_CATCH_UP, UINT64_MAX);
}

void link_attend(struct core *core, struct link *link) {
    if (link->fd < 0 && (link_unsent(link) || link->delayed.size)) link_flush(core, link);
    if (link->flags & LINK_HEARS)
        link_attend_later(core, link); /* in the order in which it was said: first the rest of this batch */
    else
        read_all(core, link); /* all of it, or a value would be handed out that is asked back */
}

void link_ready(struct core *core, struct link *link, u32 mask) {
    if (link->flags & LINK_CLOSED) return;
    if (mask & WRITABLE) link_flush(core, link);
    if (mask & FAILED) {
        if (link->is_unheard && link->flags & LINK_PAUSED) {
            link_close(core, link, "the other end died before it was heard");
            return;
        }
        link->flags &= ~(u32)LINK_PAUSED; /* nothing but the end comes after what is there */
    }
    /* Batches may be small, and a value come in one of them, and the word to take it back in the next. */
    read_some(core, link, READS_PER_TURN, BYTES_PER_TURN);
}

void link_catch_up(struct core *core, struct link *link) {
    if (link->flags & LINK_CLOSED || link->caught_up_at == core->now) return;
    link->caught_up_at = core->now;
    struct link *via = link->via ? link_find(core, link->via) : NULL;
    if (via != NULL) link_catch_up(core, via);
    read_all(core, link);
}

void link_read_to_the_end(struct core *core, struct link *link) {
    u64 bytes = 0;
    while (read_one(core, link, &bytes)) {}
}

void link_hear_the_last(struct core *core, struct link *link) {
    if (link->is_unheard && !(link->flags & LINK_HEARS))
        link_close(core, link, "the other end died before it was heard");
    else
        link->flags &= ~(u32)LINK_PAUSED;
    link_read_to_the_end(core, link);
}

void link_keep_last(struct core *core) {
    for (u32 at = 0; at < core->heard.size; at++) {
        struct link *link = link_at(core, (u32)core->heard.items[at]);
        if (!link->last_is_borrowed) continue;
        link->last_is_borrowed = false;
        const u8 *borrowed = link->last;
        link->last = NULL;
        if (link->flags & LINK_CLOSED || !link->last_size) continue;
        u8 *own = memory(link->last_size);
        memcpy(own, borrowed, link->last_size);
        link->last = own;
    }
    core->heard.size = 0;
}

/* The end. */

/* A sibling is dead: find what it was just giving its clients of the sends here. */
static void read_hand(struct core *core, u64 life) {
    struct words entries = {0};
    bool is_known = core->owner.handed(core->owner.its, life, &entries);
    for (u32 at = 0; !is_known && at < core->linked.size; at++) {
        struct link *link = link_at(core, (u32)core->linked.items[at]);
        if (link->life) outbound_doubt_all(core, link);
    }
    for (u32 at = 0; at + 5 <= entries.size; at += 5) {
        const u64 *entry = entries.items + at;
        struct link *owner = entry[2] == core->life ? link_by_life(core, entry[0]) : NULL;
        if (owner == NULL) continue;
        if (entry[4])
            outbound_taken(core, owner, entry[3]);
        else
            outbound_doubted(core, owner, entry[3]);
    }
    words_free(&entries);
}

/* With something unread, a close would have the kernel destroy what was just written. */
static void drain(struct core *core, struct link *link) {
    u8 *data;
    u32 times = READS_TO_CATCH_UP;
    while (times-- && receive(core, link, 0, &data) > 0) {}
}

void link_close(struct core *core, struct link *link, const char *why) {
    if (link->flags & LINK_CLOSED) return;
    link->rows++; /* so that it stays for as long as this takes */
    link->flags = (link->flags | LINK_CLOSED) & ~(u32)LINK_PAUSED;
    if (link->fd >= 0) core->machine.forget(core->machine.its, link->fd);
    if (link->flags & LINK_ABROAD) drain(core, link);
    if (!(link->flags & LINK_SECURE)) core->machine.close(core->machine.its, link->fd);
    free(link->tail);
    link->tail = NULL;
    link->tail_size = 0;
    link->is_unheard = false;
    nothing_unsent(core, link);
    waits_no_more(core, link);
    nothing_passed(core, link);
    falls_behind(core, link, false);
    if (link->owner < core->way_count && core->ways[link->owner].now == link->number) core_lead(core, link->owner, 0);
    moves_end(core, link);
    inbound_close(core, link);
    if (link->life) read_hand(core, link->life);
    core->owner.link_ended(core->owner.its, link_handle(link), why);
    outbound_close(core, link);
    core->owner.link_over(core->owner.its, link_handle(link));
    link_dropped(core, link);
}
