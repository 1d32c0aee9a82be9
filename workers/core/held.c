/* What a client holds besides the calls of it that wait: what it is to acknowledge, and subscriptions; and what becomes of
   all that when it goes. */
#define _GNU_SOURCE /* qsort_r() */
#include "life.h"
#include "link.h"

/* What is held of those that wait, and how much may be. */

u32 call_cost(const struct core *core, const struct row *row) {
    u32 size = WAITING_CALL_BYTES + spot_at(&core->table, row->topic)->size;
    if (row_sends(row)) size += row->size;
    if (row->kind == TAKE) size += spot_at(&core->table, row->group)->size;
    if (row->extra) {
        const struct extra *extra = extra_at(&core->table, row->extra);
        return size + (extra->timed_out ? extra->timed_out->size : 3);
    }
    return size + 3;
}

enum refusal call_admit(struct core *core, const struct connection *caller, const struct row *row) {
    if (caller->waiting.count + caller->unacked.count >= core->limits.max_calls) return TOO_MANY_CALLS;
    if (UNLIKELY(caller->account) && account_is_full(&core->accounts, caller->account)) return ACCOUNT_IS_FULL;
    u64 held = core->bytes_held + call_cost(core, row);
    if (held > core->limits.waiting_bytes) return TOO_MANY_BYTES;
    if (held > core->most_bytes_held) core->most_bytes_held = held;
    return NO_REFUSAL;
}

/* All others who listen were given it by now: a value that was too long for this listener; or one that an interest
   missed. */
void call_passed_over(struct core *core, u64 handle) {
    u32 listener = row_find(&core->table, handle);
    if (listener && row_at(&core->table, listener)->kind == INTEREST) {
        core->owner.lagged(core->owner.its, listener);
        return;
    }
    if (!listener || !row_at(&core->table, listener)->peer) return;
    struct row *row = row_at(&core->table, listener);
    struct row *send = row_at(&core->table, row->peer);
    u32 most = caller_of(core, row)->max_reply - row->id_size - REPLY_BYTES;
    struct extra *extra = row_extra(&core->table, send);
    if (extra->too_long < most) extra->too_long = most;
    call_lost(core, listener);
    call_listens_again(core, listener);
}

struct words calls_in(const struct core *core, const struct hash *hash) {
    struct words found = {0};
    for (u32 at = 0; at < hash->base + hash->split; at++)
        for (u32 number = hash->chains[at]; number; number = row_at(&core->table, number)->id_next)
            words_add(&found, row_handle(number, row_at(&core->table, number)));
    return found;
}

u32 call_subscribe(struct core *core, struct connection *caller, const u8 *id, u32 id_size, const u8 *topic,
                   u32 topic_size, enum refusal *why) {
    struct table *table = &core->table;
    u32 number;
    u64 held = core->bytes_held + WAITING_CALL_BYTES + topic_size;
    bool has_arrived = caller->fd < 0; /* it had room where it comes from */
    *why = has_arrived                                                            ? NO_REFUSAL
           : caller->subscriptions >= core->limits.max_calls                      ? TOO_MANY_CALLS
           : caller->account && account_is_full(&core->accounts, caller->account) ? ACCOUNT_IS_FULL
           : held > core->limits.waiting_bytes                                    ? TOO_MANY_BYTES
                                                                                  : NO_REFUSAL;
    if (*why) return 0;
    if (held > core->most_bytes_held) core->most_bytes_held = held;
    core->bytes_held = held;
    core->figures.cells[core->figures.waiting + SUBSCRIBER]++;
    account_counts(core, caller, 1);
    caller->subscriptions++;
    struct row *row = row_new(table, &number, SUBSCRIBER, spot_take(table, 0, topic, topic_size), 0, core->now);
    row->audience = 1;
    row->caller = caller->number;
    row->state = HERE;
    caller->rows++;
    row_set_id(table, row, id, id_size);
    return number;
}

void call_unsubscribe(struct core *core, u32 subscription) {
    struct row *row = row_at(&core->table, subscription);
    struct connection *caller = caller_of(core, row);
    if (row->state == DONE) return;
    row->state = DONE;
    core->bytes_held -= WAITING_CALL_BYTES + spot_at(&core->table, row->topic)->size;
    core->figures.cells[core->figures.waiting + SUBSCRIBER]--;
    account_counts(core, caller, -1);
    caller->subscriptions--;
}

void call_end_subscription(struct core *core, u32 subscription) {
    call_unsubscribe(core, subscription);
    junction_unsubscribe(&core->table, subscription);
    struct connection *caller = caller_of(core, row_at(&core->table, subscription));
    call_free(core, subscription);
    if (caller->flags & MOVES) move_goes_on(core, caller);
}

static int by_arrival(const void *one, const void *other, void *its) {
    const struct core *core = its;
    u32 first = row_at(&core->table, (u32) * (const u64 *)one)->arrival;
    i64 distance = (i64)(int32_t)(first - row_at(&core->table, (u32) * (const u64 *)other)->arrival);
    return distance < 0 ? -1 : distance > 0;
}

static int by_age(const void *one, const void *other, void *its) {
    const struct core *core = its;
    const struct row *first = row_at(&core->table, (u32) * (const u64 *)one);
    const struct row *second = row_at(&core->table, (u32) * (const u64 *)other);
    if (first->is_carried != second->is_carried) return first->is_carried ? 1 : -1;
    if (first->since != second->since) return first->since < second->since ? -1 : 1;
    return by_arrival(one, other, its);
}

static void sort(const struct core *core, struct words *calls, int (*order)(const void *, const void *, void *)) {
    if (calls->size > 1) qsort_r(calls->items, calls->size, sizeof *calls->items, order, (void *)(uintptr_t)core);
}

void calls_by_arrival(const struct core *core, struct words *calls) { sort(core, calls, by_arrival); }
void calls_by_age(const struct core *core, struct words *calls) { sort(core, calls, by_age); }

static u32 unacked_size(const struct row *row) { return row->size + row->id_size + REPLY_BYTES + 2; }

static void remove_unacked(struct core *core, struct connection *connection, u32 listener) {
    struct row *row = row_at(&core->table, listener);
    u32 next = row->timer_next, previous = row->timer_previous;
    *(next ? &row_at(&core->table, next)->timer_previous : &connection->unacked_last) = previous;
    *(previous ? &row_at(&core->table, previous)->timer_next : &connection->unacked_first) = next;
    row->timer_next = row->timer_previous = 0;
    row->flags &= (u8)~UNACKED;
    if (connection->unacked.count) hash_remove(&connection->unacked, &CALLS_BY_ID, core, listener); /* else it ends */
    connection->unacked_bytes -= unacked_size(row);
}

static void prefetch_around(const struct core *core, u64 handle) {
    u32 number = row_find(&core->table, handle);
    if (!number) return;
    const struct row *row = row_at(&core->table, number);
    __builtin_prefetch((const u8 *)row + 64);
    if (row->topic && !(row->flags & NAMED)) __builtin_prefetch(spot_at(&core->table, row->topic));
    if (row->flags & OWNS) __builtin_prefetch(row->value - 16); /* what its place has before it */
    if (row->timer_next) __builtin_prefetch(&row_at(&core->table, row->timer_next)->timer_previous);
    if (row->timer_previous) __builtin_prefetch(&row_at(&core->table, row->timer_previous)->timer_next);
}

void calls_forget(struct core *core, struct connection *connection) {
    struct words calls = calls_in(core, &connection->waiting), wills = {0};
    hash_free(&connection->waiting);
    if (core->linked.size) calls_by_age(core, &calls); /* what others hear of it is in an order that means something */
    for (u32 at = 0; at < calls.size; at++) {
        /* They may be many, and lie anywhere: have their memory come meanwhile. */
        if (at + 16 < calls.size) __builtin_prefetch(row_at(&core->table, (u32)calls.items[at + 16]));
        if (at + 8 < calls.size) prefetch_around(core, calls.items[at + 8]);
        u32 number = row_find(&core->table, calls.items[at]);
        if (!number || !call_is_kept(row_at(&core->table, number))) continue;
        call_withdraw(core, number);
        call_close(core, number, row_at(&core->table, number), GONE);
        if (row_at(&core->table, number)->kind == WILL) {
            words_add(&wills, number);
            continue;
        }
        call_abandon(core, number);
        call_free_if_done(core, number);
    }
    core->ended += END_IN_CALLS + calls.size + connection->unacked.count;
    words_free(&calls);
    calls_by_arrival(core, &wills);
    for (u32 at = 0; at < wills.size; at++) {
        call_testify(core, (u32)wills.items[at]);
        call_free(core, (u32)wills.items[at]);
    }
    words_free(&wills);
    /* Their client may have the values, and nobody will say so. */
    for (u32 each = connection->unacked_first; each; each = row_at(&core->table, each)->timer_next)
        call_doubt(core, row_at(&core->table, each)->peer, LOST_LISTENER);
    hash_free(&connection->unacked); /* those of one id would be looked for among each other */
    while (connection->unacked_first) {
        u32 listener = connection->unacked_first;
        remove_unacked(core, connection, listener);
        call_drop(core, listener, GONE);
    }
}

void calls_fail(struct core *core, struct connection *connection, enum refusal why) {
    if (connection->flags & MOVES) return; /* they may be another worker's already */
    input_exhaust(core, connection);
    struct words calls = calls_in(core, &connection->waiting);
    calls_by_arrival(core, &calls);
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        if (number && call_is_kept(row_at(&core->table, number))) call_leave(core, number, why);
    }
    words_free(&calls);
}

void calls_unpark_all(struct core *core, struct connection *connection) {
    struct words parked = {0};
    while (connection->parked) {
        u32 listener = connection->parked;
        struct row *row = row_at(&core->table, listener);
        call_unpark(core, listener, row);
        words_add(&parked, row_handle(listener, row));
    }
    for (u32 at = 0; at < parked.size; at++) {
        u32 listener = row_find(&core->table, parked.items[at]);
        if (listener) call_listens_again(core, listener);
    }
    words_free(&parked);
}

void call_doubt(struct core *core, u32 send, enum refusal why) {
    struct row *row = row_at(&core->table, send);
    const struct message message = {.kind = SAY_DOUBT, .number = word_at(row->id)};
    if (!KEPT(DOUBT_STAYS)) return;
    if (row->kind == SEND || row->kind == IN_SEND) row_extra(&core->table, row)->doubt = why;
    if (row->kind == IN_SEND) message_say(core, link_of(core, row), &message);
    if (row->kind == OFFER) outbound_doubt(core, row);
}

/* A client of ours has the value, and is to acknowledge it, or has given it back: nobody else would tell its sender. */
void call_awaits_ack(struct core *core, u32 send, bool is_so) {
    const struct row *row = row_at(&core->table, send);
    if (!row_is_foreign(row)) return;
    struct link *link = link_of(core, row);
    const struct message message = {.kind = SAY_UNACKED, .number = word_at(row->id), .yes = is_so};
    if (row->kind == OFFER)
        message_say(core, link, &message);
    else if (row->kind == IN_SEND && is_so && !(link->flags & LINK_ABROAD))
        message_tell(core, link, SAY_OUT, word_at(row->id));
}

void call_unacked(struct core *core, struct connection *connection, u32 listener) {
    struct row *row = row_at(&core->table, listener);
    call_hold(core, row->peer);
    if (call_is_cancelled(core, row)) {
        call_drop(core, listener, connection->flags & (LEAVES | IS_CLOSED) ? GONE : CANCELLED);
        return;
    }
    row->flags |= REMEMBERED | UNACKED;
    row->timer_previous = connection->unacked_last;
    *(row->timer_previous ? &row_at(&core->table, row->timer_previous)->timer_next : &connection->unacked_first) = listener;
    connection->unacked_last = listener;
    hash_add(&connection->unacked, &CALLS_BY_ID, core, listener);
    connection->unacked_bytes += unacked_size(row);
    call_awaits_ack(core, row->peer, true);
}

/* Of the values given for calls with this id the first; 0 if none is unacknowledged. */
static u32 first_unacked(const struct core *core, const struct connection *connection, const u8 *id, u32 size) {
    u32 first = connection->unacked_first, found = 0;
    if (!first || row_has_id(core, row_at(&core->table, first), id, size)) return first;
    for (u32 each = call_find(core, &connection->unacked, id, size); each; each = row_at(&core->table, each)->id_next)
        if (row_has_id(core, row_at(&core->table, each), id, size)) found = each;
    return found;
}

bool call_acknowledged(struct core *core, struct connection *connection, const u8 *id, u32 size) {
    u32 listener = first_unacked(core, connection, id, size);
    if (!listener) return false;
    remove_unacked(core, connection, listener);
    call_delivered(core, listener);
    return true;
}

void call_acknowledged_elsewhere(struct core *core, struct connection *connection, u32 listener) {
    remove_unacked(core, connection, listener);
    call_become(core, listener, row_at(&core->table, listener), CLOSED);
    u32 offer = row_decided(&core->table, listener);
    call_free(core, listener);
    struct row *value = row_at(&core->table, offer);
    assert(value->kind == OFFER && value->offers == 1);
    outbound_leaves(core, value);
    value->offers = 0;
    value->flags |= ANSWERED;
    call_free_if_done(core, offer);
}

/* Whether a value for a call with this id is still to be written, the last of several: one to be acknowledged goes back once
   it is; and if it is taken back before, the call ends. */
static bool refuse_unwritten(struct core *core, const struct connection *connection, const u8 *id, u32 size) {
    for (u32 at = connection->mark_count; at--;) {
        struct row *row = row_at(&core->table, connection->marks[at].listener);
        bool is_call = row->kind == RECV || row->kind == TAKE;
        if (!is_call || !row_has_id(core, row, id, size) || call_is_cancelled(core, row)) continue;
        row_extra(&core->table, row)->cancelled_by = blob_new(id, size);
        return true;
    }
    return false;
}

/* The client does not want the value that it was given last for a call with this id. Whether it had it, and gives it back. */
static bool refuse_value(struct core *core, struct connection *connection, const u8 *id, u32 size) {
    if (refuse_unwritten(core, connection, id, size)) return false;
    u32 listener = call_find(core, &connection->unacked, id, size);
    if (!listener) return false;
    remove_unacked(core, connection, listener);
    call_awaits_ack(core, row_at(&core->table, listener)->peer, false);
    call_drop(core, listener, connection->flags & (LEAVES | IS_CLOSED) ? GONE : CANCELLED);
    return true;
}

void call_cancel(struct core *core, struct connection *connection, const u8 *by, u32 by_size, const u8 *id, u32 size) {
    static const u8 FALSE = 0xC2;
    u32 number = call_find(core, &connection->waiting, id, size);
    if (number && !call_is_cancelled(core, row_at(&core->table, number))) {
        call_give_up(core, number, by, by_size);
        return;
    }
    if (refuse_value(core, connection, id, size)) output_roomy(core, connection);
    output_reply(core, connection, M_CANCEL, by, by_size, &FALSE, 1);
}
