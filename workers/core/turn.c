/* The turns of a core: what is ready or due is dealt with, then all that it brought about is written, one write for each
   connection: first values, which earn their senders a `true`, then replies; then what is said to other workers, first to
   siblings, who so know what goes to other nodes. Acks of what was handed out come last, once that is written: a worker
   that is killed in between has acknowledged nothing that others then miss. */
#include "life.h"
#include "link.h"
#include "pubsub.h"

#define ACCEPTED 0xFFFFFFFFu /* generation of what is no connection, in the kernel's events */
#define LINKED 0xFFFFFFFEu   /* and of links */

void core_open(struct core *core, const struct machine *machine, const struct owner *owner, const struct key *key) {
    static_assert(STATES <= 8 && ALARM_OF_OWNER < 8, "a row has three bits for them");
    memset(core, 0, sizeof *core);
    core->machine = *machine;
    core->owner = *owner;
    table_open(&core->table, key, &JUDGES);
    timers_open(&core->timers, &core->table, key->first);
    pool_open(&core->connections, sizeof(struct connection), offsetof(struct connection, number));
    pool_open(&core->links, sizeof(struct link), offsetof(struct link, number));
    core->drawing = DRAWING;
    core->limits.behind_bytes = BEHIND_BYTES;
    core->now = core->began = machine->clock(machine->its);
}

static void forget_dead(struct core *core) {
    for (u32 at = 0; at < core->dead.size; at++) {
        u32 number = (u32)core->dead.items[at];
        struct connection *connection = connection_at(core, number);
        blob_drop(connection->timed_out);
        connection->generation = 0;
        pool_give(&core->connections, number);
    }
    core->dead.size = 0;
}

/* Links that are closed and that nothing refers to. */
static void forget_over(struct core *core) {
    for (u32 at = 0; at < core->over.size; at++) {
        u32 number = (u32)core->over.items[at], place = 0;
        struct link *link = link_at(core, number);
        assert(!link->rows && !link->forwarded && !link->offered && !link->calls.count && !link->passing.count);
        if (!link->last_is_borrowed) free((void *)(uintptr_t)link->last);
        free(link->out);
        words_free(&link->packets);
        words_free(&link->delayed);
        hash_free(&link->calls);
        hash_free(&link->passing);
        while (place < core->linked.size && core->linked.items[place] != number) place++;
        if (place < core->linked.size) {
            core->linked.size--;
            memmove(core->linked.items + place, core->linked.items + place + 1,
                    (core->linked.size - place) * sizeof *core->linked.items);
        }
        link->generation = 0;
        pool_give(&core->links, number);
    }
    core->over.size = 0;
}

/* What was read in this turn, and what was said to many. */
static void forget_words(struct core *core) {
    assert(!core->table.borrowed && "no value is left where it was read");
    segments_empty(&core->segment);
    core->shared_bytes = 0;
    for (u32 at = 0; at < WORDINGS; at++) told_forget(core->told + at);
}

static void drop_alarms(struct core *core) {
    for (u32 number = 0; (number = pool_next(&core->table.rows, number));) {
        const struct row *row = row_at(&core->table, number);
        u32 alarm = number;
        if (row->generation && row->kind == ALARM && row->state == ALARM_OF_OWNER) alarm_off(core, &alarm);
    }
}

static void forget_all(struct core *core);

/* What waits elsewhere comes back, and goes nowhere any more. */
static void end_links(struct core *core) {
    u32 ways = core->way_count;
    core->way_count = 0;
    for (u32 at = 0; at < ways; at++)
        if (core->ways[at].absent) outbound_release(core, link_at(core, core->ways[at].absent), false);
    for (u32 at = 0; at < core->linked.size; at++) {
        struct link *link = link_at(core, (u32)core->linked.items[at]);
        if (link->flags & LINK_CLOSED && !link->rows) continue;
        link->rows++; /* so that it stays for as long as this takes */
        link_close(core, link, "this worker ends");
        outbound_release(core, link, false);
        link_dropped(core, link);
    }
}

void core_close(struct core *core) {
    struct connection *connection;
    for (u32 number = 0; (connection = connection_next(core, &number));)
        core_close_connection(core, connection, BY_OWNER, 0);
    end_links(core);
    drop_alarms(core); /* who is told of the end of a link may set some */
    alarm_off(core, &core->unsaid_until);
    forget_all(core);
    free(core->segment);
    for (u32 at = 0; at < WORDINGS; at++) told_free(core->told + at);
    while (core->spare_count) free(core->spares[--core->spare_count]);
    struct words *lists[] = {&core->values,  &core->replies, &core->acks,   &core->later,   &core->resting,
                             &core->dead,    &core->going,   &core->marks,  &core->attended, &core->batches,
                             &core->distant, &core->gathered, &core->heard,   &core->linked, &core->over,    &core->drawn};
    for (u32 at = 0; at < sizeof lists / sizeof *lists; at++) words_free(lists[at]);
    pool_close(&core->connections);
    pool_close(&core->links);
    free(core->ways);
    table_close(&core->table);
    accounts_free(&core->accounts);
    ring_free(&core->ring);
    timers_close(&core->timers);
}

void core_drop(struct core *core) {
    for (u32 number = 0; (number = pool_next(&core->table.rows, number));) {
        const struct row *row = row_at(&core->table, number);
        if (!row->generation) continue;
        if (row->kind == SUBSCRIBER)
            call_end_subscription(core, number);
        else if (row->kind == INTEREST)
            inbound_interest_end(core, number);
    }
    core_close(core);
}

/* Connections. */

u32 core_next_generation(struct core *core) {
    core->generation = core->generation + 1 < LINKED ? core->generation + 1 : 1; /* what is above has another meaning */
    return core->generation;
}

u64 core_connect(struct core *core, int fd, enum door door) {
    u32 number = pool_take(&core->connections);
    struct connection *connection = connection_at(core, number);
    memset(connection, 0, sizeof *connection);
    connection->number = number;
    connection->generation = core_next_generation(core);
    connection->fd = fd;
    connection->door = (u8)door;
    if (door == PUBSUB_DOOR) {
        connection->publisher = memory(sizeof *connection->publisher);
        *connection->publisher = (struct publisher){0};
    }
    connection->max_reply = core->limits.max_plain_reply;
    connection->mask = READABLE | HUNG_UP;
    if (fd >= 0) core->machine.watch(core->machine.its, fd, connection->mask, connection_handle(connection), true);
    return connection_handle(connection);
}

static u32 wanted(const struct connection *connection) {
    if (connection->flags & CHOKED) return WRITABLE;
    return connection->flags & (PAUSES | UNHEARD | MOVES) ? 0 : READABLE | HUNG_UP;
}

void core_arrived(struct core *core, struct connection *connection, int fd) {
    connection->fd = fd;
    connection->mask = wanted(connection);
    core->machine.watch(core->machine.its, fd, connection->mask, connection_handle(connection), true);
}

void core_watch(struct core *core, int fd, u32 what, u32 mask, bool is_new) {
    core->machine.watch(core->machine.its, fd, mask, (u64)ACCEPTED << 32 | what, is_new);
}

void core_forget(struct core *core, int fd) { core->machine.forget(core->machine.its, fd); }

void core_watch_link(struct core *core, u32 link, int fd, u32 mask, bool is_new) {
    if (fd >= 0) core->machine.watch(core->machine.its, fd, mask, (u64)LINKED << 32 | link, is_new);
}

void core_mask(struct core *core, struct connection *connection) {
    u32 mask = wanted(connection);
    if (mask == connection->mask || connection->flags & IS_CLOSED || connection->fd < 0) return;
    connection->mask = mask;
    core->machine.watch(core->machine.its, connection->fd, mask, connection_handle(connection), false);
}

/* Nothing is expected from it or owed to it any more: what it was being given is others'. */
static void forget(struct core *core, struct connection *connection) {
    connection->parked = 0;
    if (connection->flags & MOVES || (connection->flags & ARRIVES && connection->flags & IS_CLOSED))
        move_lose(core, connection);
    calls_forget(core, connection);
    pubsub_forget(core, connection);
    alarm_off(core, &connection->half);
    alarm_off(core, &connection->pause);
    alarm_off(core, &connection->silence);
    free(connection->tail);
    connection->tail = NULL;
    connection->tail_size = 0;
    connection->flags &= ~(u32)(RESTS | IS_PUT_OFF | PAUSES | IS_EARLY);
    core_mask(core, connection); /* what still comes is read, or the close would destroy the last words */
}

void core_finish(struct core *core, struct connection *connection) {
    connection->flags |= LEAVES;
    forget(core, connection);
    words_add(&core->replies, connection_handle(connection)); /* also if there are no last words */
}

/* Take what has come and is not to be heard: the kernel would reset a connection that is closed with that unread, and drop
   what was written to it. */
static void drop_input(struct core *core, const struct connection *connection) {
    for (u32 left = DROPPED_READS; left; left--) {
        ssize_t got = core->machine.recv(core->machine.its, connection->fd, input_room(core, READ_BYTES), READ_BYTES);
        if (got <= 0) return;
        core->figures.cells[core->figures.received + connection->door] += got;
    }
}

void core_close_connection(struct core *core, struct connection *connection, enum close why, int error) {
    if (connection->flags & IS_CLOSED) return;
    connection->flags |= IS_CLOSED;
    connection->rows++; /* so that it stays for as long as this takes */
    if (connection->fd >= 0) core->machine.forget(core->machine.its, connection->fd);
    bool is_ours = connection->fd >= 0 && !(connection->flags & SECURE) && why != BECAME_LINK && why != MOVED;
    if (is_ours) {
        if (why != BY_PEER) drop_input(core, connection);
        core->machine.close(core->machine.its, connection->fd);
    }
    if (connection->flags & CHOKED) core->choked--;
    alarm_off(core, &connection->unread);
    struct words unwritten = {0};
    output_spell_out(connection);
    for (u32 at = 0; at < connection->mark_count; at++) words_add(&unwritten, connection->marks[at].listener);
    output_free(core, connection);
    forget(core, connection);
    for (u32 at = 0; at < unwritten.size; at++) {
        u32 listener = (u32)unwritten.items[at];
        if (mark_delivers(core, listener))
            call_lose(core, listener);
        else
            call_drop(core, listener, GONE);
    }
    words_free(&unwritten);
    if (!--connection->rows) words_add(&core->dead, connection->number);
    core->owner.closed(core->owner.its, connection_handle(connection), why, error);
}

void core_detach(struct core *core, struct connection *connection) {
    assert(!connection->mark_count && !connection_in_flight(connection) && "it asks nothing, and is given nothing");
    core_close_connection(core, connection, BECAME_LINK, 0);
}

/* Alarms: rows that are no calls. */

u32 alarm_set_for(struct core *core, u32 caller, u32 alarm, u8 what, double at) {
    struct row *row;
    if (alarm) {
        row = row_at(&core->table, alarm);
        timers_remove(&core->timers, alarm);
    } else {
        row = row_new(&core->table, &alarm, ALARM, 0, 0, core->now);
        row->caller = caller;
    }
    row->state = what;
    row->deadline = at;
    timers_add(&core->timers, alarm);
    return alarm;
}

u32 alarm_set(struct core *core, const struct connection *connection, u32 alarm, u8 what, double at) {
    return alarm_set_for(core, connection->number, alarm, what, at);
}

void alarm_off(struct core *core, u32 *alarm) {
    if (!*alarm) return;
    timers_remove(&core->timers, *alarm);
    row_free(&core->table, *alarm);
    *alarm = 0;
}

void core_probe(struct core *core, struct connection *connection) {
    if (!connection->silence)
        connection->silence =
            alarm_set(core, connection, 0, ALARM_SILENCE, core->now + core->limits.idle_probe_s);
}

/* It says nothing. If it waits for something it is asked whether it lives, and closed if it does not answer. */
static void probe(struct core *core, struct connection *connection) {
    static const u8 PING[] = "\0\x08\x92\xa5:ping\xc0";
    double period = core->limits.idle_probe_s, silence = core->now - connection->heard, at;
    if (connection->flags & (MOVES | ARRIVES)) {
        at = core->now + period;
    } else if (silence < period) {
        at = connection->heard + period;
    } else if (connection->waiting.count == connection->wills) { /* it waits for nothing by these */
        at = core->now + period;
    } else if (silence < 2 * period) {
        output_push(core, connection, PING, sizeof PING - 1);
        at = connection->heard + 2 * period;
    } else {
        core_close_connection(core, connection, SILENT, 0);
        return;
    }
    connection->silence = alarm_set(core, connection, 0, ALARM_SILENCE, at);
}

u64 core_set_alarm(struct core *core, double at) {
    u32 number;
    struct row *row = row_new(&core->table, &number, ALARM, 0, 0, core->now);
    row->state = ALARM_OF_OWNER;
    row->deadline = at;
    timers_add(&core->timers, number);
    return row_handle(number, row);
}

void core_drop_alarm(struct core *core, u64 alarm) {
    u32 number = row_find(&core->table, alarm);
    alarm_off(core, &number);
}

static void ring_alarm(struct core *core, struct connection *connection, u8 what) {
    if (what == ALARM_PAUSE) {
        alarm_off(core, &connection->pause);
        input_resume(core, connection);
        return;
    }
    if (what == ALARM_SILENCE) {
        alarm_off(core, &connection->silence);
        probe(core, connection);
        return;
    }
    if (what == ALARM_HALF) {
        alarm_off(core, &connection->half);
        if (connection->flags & (CHOKED | RESTS | IS_PUT_OFF | MOVES)) /* it is us who do not read: the rest may be there */
            input_watch_tail(core, connection, true);
        else
            core->owner.half_is_old(core->owner.its, connection_handle(connection));
        return;
    }
    alarm_off(core, &connection->unread);
    if (what == ALARM_UNREAD)
        output_unread(core, connection);
    else
        core_close_connection(core, connection, LAST_WORDS_SAID, 0);
}

/* Turns. */

bool turn_is_long(const struct core *core) { return core->now - core->began >= LONG_S; }

void turn_attend(struct core *core) {
    struct words later = core->later;
    core->later = core->attended;
    core->attended = (struct words){0}; /* or it would be used twice, should this be called by one of them */
    for (u32 at = 0; at < later.size; at++) {
        u64 handle = later.items[at];
        if (handle == LATER_GATHERED) {
            inbound_gathered(core);
        } else if (handle >> 32 == 0) {
            link_attend(core, link_at(core, (u32)handle & ~LATER_LINK));
        } else if (handle & LATER_CONNECTION) {
            struct connection *connection = connection_find(core, handle & ~(u64)LATER_CONNECTION);
            if (connection == NULL) continue;
            connection->flags &= ~(u32)IS_LATER;
            input_attend(core, connection);
        } else {
            call_passed_over(core, handle);
        }
    }
    later.size = 0;
    if (core->attended.items == NULL)
        core->attended = later;
    else
        words_free(&later);
}

static void expire(struct core *core) {
    u32 number, left = EXPIRED_PER_TURN;
    timers_collect(&core->timers, core->now);
    while (left-- && (number = timers_next(&core->timers))) {
        const struct row *row = row_at(&core->table, number);
        if (row->kind != ALARM) {
            call_expired(core, number);
        } else if (row->state == ALARM_STUCK) {
            inbound_stuck(core, link_at(core, row->caller));
        } else if (row->state == ALARM_UNSAID) {
            alarm_off(core, &core->unsaid_until);
            links_hurry(core);
        } else if (row->state != ALARM_OF_OWNER) {
            ring_alarm(core, caller_of(core, row), row->state);
        } else {
            u64 alarm = row_handle(number, row);
            row_free(&core->table, number);
            core->owner.rang(core->owner.its, alarm);
        }
    }
}

static void go_on(struct core *core) {
    if (core->owner.rests(core->owner.its, core->now) == 0.0) core->owner.go_on(core->owner.its);
    struct words going = core->resting;
    core->resting = core->going;
    core->going = going;
    for (u32 at = 0; at < going.size; at++) {
        if (turn_is_long(core)) {
            /* First in the next turn. */
            for (; at < going.size; at++) words_add(&core->resting, going.items[at]);
            break;
        }
        struct connection *connection = connection_find(core, going.items[at]);
        if (connection != NULL) input_rested(core, connection);
        if (core->later.size) turn_attend(core);
    }
    core->going.size = 0;
}

/* Whether there was somebody to deal with it. */
static bool deal_with(struct core *core, const struct ready *ready) {
    if (ready->what >> 32 == ACCEPTED) {
        core->owner.ready(core->owner.its, (u32)ready->what, ready->mask);
        return true;
    }
    core->served_at = core->now;
    if (ready->what >> 32 == LINKED) {
        link_ready(core, link_at(core, (u32)ready->what), ready->mask);
        return true;
    }
    struct connection *connection = connection_find(core, ready->what);
    if (connection == NULL) return false; /* one that was dealt with before has closed it */
    if (connection->flags & CHOKED)
        output_drain(core, connection);
    else if (connection->went_on == core->turn)
        return true; /* that was its share */
    else if (!(connection->flags & (RESTS | IS_PUT_OFF | UNHEARD | MOVES)))
        input_read(core, connection);
    else if (ready->mask & FAILED)
        core_close_connection(core, connection, BROKEN, 0);
    return true;
}

/* Whether it has to do with an end for which there is no time in this turn. The kernel tells of it again. */
static bool may_end_later(const struct core *core, const struct ready *ready) {
    if (LIKELY(!core->ended) || !(ready->mask & (HUNG_UP | FAILED))) return false;
    const struct connection *connection = connection_find(core, ready->what);
    return connection != NULL && core->ended + END_IN_CALLS + connection->waiting.count + connection->unacked.count > ENDED_PER_TURN;
}

static bool flush_all(struct core *core, struct words *list) {
    u32 count = list->size;
    for (u32 at = 0; at < count; at++) {
        struct connection *connection = connection_find(core, list->items[at]);
        if (connection != NULL) output_flush(core, connection);
    }
    if (count) words_skip(list, count);
    return count;
}

/* A client that calls no more here goes, if nothing waits that it asked. */
static void see_whether_it_is_through(struct core *core, struct connection *connection) {
    u32 awaits = connection->waiting.count + connection->subscriptions + connection->mark_count + connection->out_size;
    bool is_plain = (connection->flags & (HAS_CALLED | KNOWS_ERRORS)) == HAS_CALLED;
    if (is_plain && !awaits && !(connection->flags & (RESTS | IS_PUT_OFF | CHOKED | LEAVES | MOVES | ARRIVES)))
        core->owner.is_through(core->owner.its, connection_handle(connection));
}

void core_drain(struct core *core) {
    const struct connection *connection;
    for (u32 number = 0; (connection = connection_next(core, &number));)
        words_add(&core->acks, connection_handle(connection) | LATER_CONNECTION);
}

void core_leave(struct core *core) {
    const struct connection *connection;
    for (u32 number = 0; (connection = connection_next(core, &number));) calls_ask_back(core, connection);
}

static bool write_links(struct core *core, struct words *list) {
    u32 count = list->size;
    for (u32 at = 0; at < count; at++) link_flush(core, link_at(core, (u32)list->items[at]));
    if (count) words_skip(list, count);
    return count;
}

/* Who handed something out goes on once that is written. */
static bool acknowledge_all(struct core *core) {
    u32 due = core->acks.size;
    assert(!due || core_reached(core, "an acknowledgement is due"));
    for (u32 at = 0; at < due; at++) {
        u64 handle = core->acks.items[at];
        if (handle != ACK_ANSWER && handle & LATER_CONNECTION) {
            struct connection *connection = connection_find(core, handle & ~(u64)LATER_CONNECTION);
            if (connection == NULL) continue;
            if (connection->door == PUBSUB_DOOR)
                pubsub_acknowledge(core, connection);
            else
                see_whether_it_is_through(core, connection);
            continue;
        }
        if (handle != ACK_ANSWER) {
            call_conclude(core, handle);
            continue;
        }
        u64 answer[4];
        memcpy(answer, core->acks.items + at + 1, sizeof answer);
        at += 4;
        if (answer[0]) outbound_settle_all(core, link_at(core, (u32)answer[0]));
        const struct message message = {.kind = SAY_COUNTED, .number = answer[2], .value = (const u8 *)"\xC0", .value_size = 1};
        if (answer[1])
            message_say(core, link_at(core, (u32)answer[1]), &message);
        else
            core->owner.answered(core->owner.its, answer[3]);
    }
    if (due) words_skip(&core->acks, due);
    return due;
}

void core_answer(struct core *core, u64 life, u32 link, u64 number, u64 token) {
    struct link *dead = KEPT(THE_DEAD_ARE_HEARD_FIRST) ? link_by_life(core, life) : NULL;
    if (dead != NULL) link_hear_the_last(core, dead);
    const u64 answer[] = {ACK_ANSWER, dead ? dead->number : 0, link, number, token};
    for (u32 at = 0; at < sizeof answer / sizeof *answer; at++) words_add(&core->acks, answer[at]);
}

/* Memory of what is gone, given back bit by bit. */
static bool has_spare(const struct core *core) {
    const struct table *table = &core->table;
    return table_has_idle(table) || table->rows.empty || table->spots.empty || table->extras.empty ||
           core->connections.empty || store_has_spare(&table->values);
}

static void give_memory_back(struct core *core) {
    struct table *table = &core->table;
    table_forget_idle(table, FORGOTTEN_PER_TURN);
    pool_trim(&table->rows, TRIMMED_PER_TURN);
    pool_trim(&table->spots, TRIMMED_PER_TURN);
    pool_trim(&table->extras, TRIMMED_PER_TURN);
    pool_trim(&core->connections, TRIMMED_PER_TURN);
    store_trim(&table->values, TRIMMED_PER_TURN);
}

/* Nothing refers to what was read, or is gone. */
static void forget_all(struct core *core) {
    if (core->heard.size) link_keep_last(core);
    forget_dead(core);
    if (core->over.size) forget_over(core);
    if (has_spare(core)) give_memory_back(core);
    forget_words(core);
}

/* Do what was put off to a place; whether there was something. */
static bool attend(struct core *core, enum place place) {
    switch (place) {
    case AT_LATER:
        if (!core->later.size) return false;
        turn_attend(core);
        return true;
    case AT_VALUES:
        return flush_all(core, &core->values);
    case AT_REPLIES:
        return flush_all(core, &core->replies);
    case AT_BATCHES:
        if (UNLIKELY(core->unsaid && core->hand.count > core->hand.room / 2)) links_hurry(core);
        return write_links(core, &core->batches);
    case AT_DISTANT:
        return write_links(core, &core->distant);
    case AT_ACKS:
        return acknowledge_all(core);
    case AT_MOVES:
        if (!core->drawn.size || core->is_inside) return false; /* there may be one who is just being heard */
        moves_attend(core);
        return true;
    default:
        return false;
    }
}

void core_settle(struct core *core) {
    /* A write that fails, or makes room, may set off more to write, so what comes first is looked at again. */
    for (u32 at = 0; at < PLACES;)
        at = attend(core, at) ? 0 : at + 1;
    if (core->hand.count && !core->behind && !core->unsaid) hand_clear(core);
    if (!core->is_inside) forget_all(core);
}

void core_begin(struct core *core, double now) {
    core->turn++;
    core->ended = 0;
    core->now = core->began = now;
    expire(core);
}

double core_wait(struct core *core) {
    if (core->timers.due || core->resting.size || has_spare(core)) return 0.0;
    double now = core->machine.clock(core->machine.its);
    double wait = timers_wait(&core->timers, now), rests = core->owner.rests(core->owner.its, now);
    return rests < 0.0 || (wait >= 0.0 && wait < rests) ? wait : rests;
}

/* What it took of the processor is no more than what all took since that was last asked for, nor than its time. */
static void see_whether_it_is_the_longest(struct core *core, double now, i64 us) {
    struct pace *pace = &core->pace;
    double spent = core->machine.spent(core->machine.its);
    i64 own = (i64)((spent - pace->spent) * 1e6);
    if (own < us) us = own;
    pace->asked_at = now;
    pace->spent = spent;
    if (now - pace->since >= LATELY_S) {
        pace->before = pace->longest;
        pace->longest = 0;
        pace->since = now;
    }
    if (us > pace->longest) pace->longest = us;
    core->figures.cells[core->figures.longest_turn] = pace->longest > pace->before ? pace->longest : pace->before;
}

static void count_turn(struct core *core, double began) {
    double now = core->machine.clock(core->machine.its);
    i64 us = figures_took(&core->figures, core->figures.turn, now - began);
    if (now - core->pace.asked_at >= ASK_S) see_whether_it_is_the_longest(core, now, us);
}

int core_turn(struct core *core, double most) {
    struct ready ready[MAX_EVENTS];
    const struct machine *machine = &core->machine;
    double wait = most == 0.0 ? 0.0 : core_wait(core);
    if (wait < 0.0 || (most >= 0.0 && most < wait)) wait = most;
    int count = machine->wait(machine->its, ready, MAX_EVENTS, wait);
    double began = machine->clock(machine->its);
    core->is_inside = true;
    core_begin(core, began);
    go_on(core);
    for (int at = 0; at < count; at++) {
        if (may_end_later(core, ready + at)) continue;
        if (deal_with(core, ready + at) && UNLIKELY(core->later.size)) turn_attend(core);
    }
    core->is_inside = false;
    core_settle(core);
    count_turn(core, began);
    return count;
}
