/* The calls of connections, from arrival to answer. Each runs on its caller's clock, and only here, at the worker that has
   the caller's connection, whoever owns the topic: so a caller is answered in time even if the owner hangs, and its calls
   can be issued again if the owner dies.

   A send that may just be meeting somebody cannot end by our word alone, or its value might be taken although its sender
   is told that nobody came. It is ENDING then: its value is asked back from all who may have it, and their word, or its
   owner's, decides. That is waited for until its time is over, and GRACE_S more; then its sender is told that it may have
   been taken, and that nobody knows. tests/lives.py has in words what can become of it, which LIFE says. */
#include "life.h"
#include "link.h"

#define NO 255
/* Of calls at their home, by call_become(). Rows of other kinds have these states as well, and are assigned them. */
const u8 LIFE[STATES][EVENTS] = {
    /*             kept  sent on    returned no room parked given up given   closed */
    [ARRIVED] = {HERE, NO, NO, NO, NO, GIVEN, DONE},
    [HERE] = {NO, FORWARDED, NO, PARKED, ENDING, GIVEN, DONE},
    [FORWARDED] = {NO, FORWARDED, HERE, PARKED, ENDING, GIVEN, DONE},
    [PARKED] = {HERE, NO, NO, NO, NO, NO, DONE},
    [ENDING] = {NO, ENDING, ENDING, PARKED, NO, GIVEN, DONE},
    [GIVEN] = {HERE, NO, NO, NO, NO, NO, DONE},
    [DONE] = {NO, NO, NO, NO, NO, NO, NO},
};

/* Calls of a connection by id. */

static u32 id_hash(const void *owner, u32 item) {
    const struct core *core = owner;
    const struct row *row = row_at(&core->table, item);
    return (u32)hash_bytes(&core->table.key, row_id(core, row), row->id_size);
}
static u32 *id_next(const void *owner, u32 item) {
    return &row_at(&((const struct core *)owner)->table, item)->id_next;
}
const struct hash_kind CALLS_BY_ID = {id_hash, id_next};

u32 call_find(const struct core *core, const struct hash *hash, const u8 *id, u32 size) {
    u32 number = hash_first(hash, (u32)hash_bytes(&core->table.key, id, size));
    while (number) {
        const struct row *row = row_at(&core->table, number);
        if (row_has_id(core, row, id, size)) break;
        number = row->id_next;
    }
    return number;
}

static void keep(struct core *core, u32 number, struct row *row) {
    struct connection *caller = caller_of(core, row);
    row->flags |= WAITED;
    if (row_sends(row)) row_own(&core->table, row);
    if (row->kind == WILL) caller->wills++;
    account_counts(core, caller, 1);
    hash_add(&caller->waiting, &CALLS_BY_ID, core, number);
    core->calls_held++;
    core->bytes_held += call_cost(core, row);
    core->figures.cells[core->figures.waiting + call_waits_as(row)]++;
    timers_add(&core->timers, number);
}

static void release(struct core *core, u32 number, struct row *row) {
    struct connection *caller = caller_of(core, row);
    if (caller->waiting.count) hash_remove(&caller->waiting, &CALLS_BY_ID, core, number); /* else calls_forget() has */
    if (row->kind == WILL) caller->wills--;
    account_counts(core, caller, -1);
    core->calls_held--;
    core->bytes_held -= call_cost(core, row);
    core->figures.cells[core->figures.waiting + call_waits_as(row)]--;
    timers_remove(&core->timers, number);
}

void call_become(struct core *core, u32 number, struct row *row, enum event event) {
    u8 after = LIFE[row->state][event];
    if (UNLIKELY(after == NO)) DIE("a call goes no such way");
    bool was_kept = call_is_kept(row);
    row->state = after;
    if (was_kept && !call_is_kept(row))
        release(core, number, row);
    else if (!was_kept && call_is_kept(row))
        keep(core, number, row);
}

void call_postpone(struct core *core, u32 number, double seconds) {
    struct row *row = row_at(&core->table, number);
    timers_remove(&core->timers, number);
    row->deadline = core->now + seconds;
    timers_add(&core->timers, number);
}

/* Answers. */

void call_count(struct core *core, const struct row *row, enum outcome outcome) {
    const struct figures *figures = &core->figures;
    bool is_published = row->kind == PUBLICATION;
    u32 method = is_published ? 4u : row->kind + 1u, width = figures->buckets + 1;
    if (row->kind == DELIVERY || row->kind == WILL) return; /* the send is a call, and what a will publishes */
    assert(method <= 4 && (u32)outcome < figures->outcomes);
    figures->cells[figures->calls + method * figures->outcomes + outcome]++;
    figures->cells[figures->routed + row->route]++;
    if (outcome == MET)
        figures_took(figures, figures->wait + method * width, core->now - row->since);
    else if (outcome == PROMPT && !is_published) /* what is published waits for nobody to take it */
        figures_took(figures, figures->hand_off, core->now - row->since);
    if (LIKELY(core->gap)) {
        core->gap--;
    } else {
        const struct spot *topic = spot_at(&core->table, row->topic);
        core->gap = core->owner.sampled(core->owner.its, spot_name(topic), topic->size);
    }
    if (UNLIKELY(core->journal.page)) journal_record(core, row, method, outcome);
}

void call_close(struct core *core, u32 number, struct row *row, enum outcome outcome) {
    assert(!(row->flags & STANDS));
    call_become(core, number, row, CLOSED);
    call_count(core, row, outcome);
}

void call_free(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    if (UNLIKELY(row_is_foreign(row))) {
        link_free(core, number, row);
        return;
    }
    struct connection *caller = caller_of(core, row);
    row_free(&core->table, number);
    if (!--caller->rows && UNLIKELY(caller->flags & IS_CLOSED)) words_add(&core->dead, caller->number);
}

void call_free_if_done(struct core *core, u32 number) {
    const struct row *row = row_at(&core->table, number);
    if (row->state == DONE && !row->offers && !row->peer) call_free(core, number);
}

static void reply(struct core *core, const struct row *row, const u8 *result, u32 size) {
    output_reply(core, caller_of(core, row), call_method(row), row_id(core, row), row->id_size, result, size);
}

static void reply_to_cancel(struct core *core, const struct row *row, bool was_cancelled) {
    if (!row->extra) return;
    const struct blob *by = extra_at(&core->table, row->extra)->cancelled_by;
    if (by == NULL) return;
    u8 id[MAX_ID] = {0}, result = was_cancelled ? 0xC3 : 0xC2;
    memcpy(id, by->data, by->size);
    output_reply(core, caller_of(core, row), M_CANCEL, id, by->size, &result, 1);
}

bool call_is_cancelled(const struct core *core, const struct row *row) {
    return row->extra && extra_at(&core->table, row->extra)->cancelled_by != NULL;
}

/* Why it is not known whether somebody took the value of a send; NO_REFUSAL if it is. */
static enum refusal doubt_of(const struct core *core, const struct row *row) {
    return row->extra ? (enum refusal)extra_at(&core->table, row->extra)->doubt : NO_REFUSAL;
}

static void tell_failure(struct core *core, const struct row *row, enum refusal why, u32 size, u32 limit) {
    const struct connection *caller = caller_of(core, row);
    if (caller->flags & (LEAVES | IS_CLOSED)) return;
    const struct blob *timed_out = row->extra ? extra_at(&core->table, row->extra)->timed_out : NULL;
    core->owner.failed(core->owner.its, connection_handle(caller), call_method(row), row_id(core, row), row->id_size,
                       timed_out, why, size, limit);
}

void call_abandon(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    row->flags |= ANSWERED;
    if (!row_sends(row)) return;
    u64 handle = row_handle(number, row);
    row->offers++; /* so that it stays for as long as this takes */
    call_ask_back(core, number, true);
    assert(row_find(&core->table, handle));
    (void)handle; /* of no use where nothing is asserted */
    row->offers--;
    row_empty(&core->table, row);
}

/* End it with an error. */
static void end(struct core *core, u32 number, enum outcome outcome, enum refusal why, u32 size, u32 limit) {
    struct row *row = row_at(&core->table, number);
    call_close(core, number, row, outcome);
    call_abandon(core, number);
    tell_failure(core, row, why, size, limit);
    reply_to_cancel(core, row, outcome != UNKNOWN_OUTCOME);
}

/* End it with that its outcome is unknown, if that is in doubt; whether it is. */
static bool end_in_doubt(struct core *core, u32 number) {
    enum refusal doubt = doubt_of(core, row_at(&core->table, number));
    if (doubt) end(core, number, UNKNOWN_OUTCOME, doubt, 0, 0);
    return doubt;
}

void call_over(struct core *core, u32 number) {
    static const u8 TIMED_OUT_WORD[] = {0xD4, 0x54, 0x00};
    struct row *row = row_at(&core->table, number);
    if (end_in_doubt(core, number)) return;
    if (call_is_cancelled(core, row)) {
        end(core, number, CANCELLED, WAS_CANCELLED, 0, 0);
        return;
    }
    call_close(core, number, row, TIMED_OUT);
    call_abandon(core, number);
    const struct blob *word = row->extra ? extra_at(&core->table, row->extra)->timed_out : NULL;
    reply(core, row, word ? word->data : TIMED_OUT_WORD, word ? word->size : sizeof TIMED_OUT_WORD);
}

void call_fail(struct core *core, u32 number, enum refusal why, u32 size, u32 limit) {
    bool is_busy = why == TOO_MANY_CALLS || why == TOO_MANY_BYTES || why == ACCOUNT_IS_FULL || why == MESH_IS_FULL ||
                   why == OWNER_IS_FULL;
    if (end_in_doubt(core, number)) return;
    end(core, number, is_busy ? BUSY : why == DRAINS ? DRAINING : ERROR, why, size, limit);
}

/* Meeting and missing. */

void call_hold(struct core *core, u32 send) {
    struct row *row = row_at(&core->table, send);
    if (UNLIKELY(row_is_foreign(row))) {
        if (row->kind == IN_SEND && row->state != DONE) row_own(&core->table, row);
        return;
    }
    if (row->state != ARRIVED) return;
    if (!row_is_answered(row) && !(caller_of(core, row)->flags & (LEAVES | IS_CLOSED)))
        call_become(core, send, row, KEPT);
    else
        row_empty(&core->table, row); /* nobody else will be given it */
}

static void park(struct core *core, u32 listener) {
    struct row *row = row_at(&core->table, listener);
    struct connection *caller = caller_of(core, row);
    if (!call_is_kept(row)) {
        enum refusal why = call_admit(core, caller, row);
        if (why) {
            call_fail(core, listener, why, 0, 0);
            return;
        }
        call_become(core, listener, row, KEPT);
    }
    call_become(core, listener, row, NO_ROOM);
    rows_add(&core->table, &caller->parked, listener, row, caller->parked);
}

void call_unpark(struct core *core, u32 listener, struct row *row) {
    rows_remove(&core->table, &caller_of(core, row)->parked, listener, row);
}

static bool give(struct table *table, u32 listener, u32 send) {
    struct core *core = core_of(table);
    struct row *to = row_at(table, listener);
    const struct row *from = row_at(table, send);
    if (UNLIKELY(row_is_foreign(to)))
        return to->kind == INTEREST ? inbound_interest(core, listener, send) : inbound_give(core, listener, send);
    struct connection *caller = caller_of(core, to);
    if (to->kind == SUBSCRIBER) return call_give_to_subscriber(core, caller, listener, send);
    assert(!(caller->flags & (LEAVES | IS_CLOSED)) && "what leaves takes its calls with it");
    if (UNLIKELY(output_is_congested(core, caller))) {
        park(core, listener);
        return false;
    }
    row_given(table, listener, send);
    call_become(core, listener, to, GAVE);
    if (UNLIKELY(from->size + to->id_size + REPLY_BYTES > caller->max_reply))
        words_add(&core->later, row_handle(listener, to));
    else
        output_value(core, caller, listener, send);
    if (UNLIKELY(from->kind == IN_SEND)) to->flags |= REMEMBERED;
    return true;
}

static void met(struct table *table, u32 send) {
    static const u8 TRUE = 0xC3;
    struct core *core = core_of(table);
    struct row *row = row_at(table, send);
    if (UNLIKELY(row_is_foreign(row))) {
        if (row->kind == IN_SEND)
            inbound_met(core, send);
        else
            outbound_met(core, send);
        return;
    }
    call_close(core, send, row, row->flags & WAITED ? MET : PROMPT);
    row_empty(table, row);
    reply(core, row, &TRUE, 1);
    reply_to_cancel(core, row, false);
}

static void missed(struct table *table, u32 send) {
    struct core *core = core_of(table);
    struct row *row = row_at(table, send);
    if (UNLIKELY(row_is_foreign(row))) {
        if (row->kind == IN_SEND)
            inbound_missed(core, send);
        else
            outbound_missed(core, send);
        return;
    }
    u32 too_long = row->extra ? extra_at(table, row->extra)->too_long : 0;
    if (caller_of(core, row)->flags & (LEAVES | IS_CLOSED)) {
        call_abandon(core, send);
        row->state = DONE;
    } else if (row->state == ENDING) {
        call_over(core, send);
    } else if (too_long) {
        call_fail(core, send, VALUE_TOO_LARGE, row->size, too_long);
    } else {
        call_hold(core, send);
        u32 way = topic_way(core, row->topic);
        if (UNLIKELY(way))
            call_go(core, send, way);
        else
            junction_resume(table, send);
    }
}

const struct judges JUDGES = {give, met, missed};

void call_confirm(struct core *core, u32 send) {
    junction_confirm(&core->table, send);
    call_free_if_done(core, send);
}

void call_lose(struct core *core, u32 send) {
    u64 handle = row_handle(send, row_at(&core->table, send));
    junction_lost(&core->table, send);
    if (row_find(&core->table, handle)) call_free_if_done(core, send); /* it may have ended where it was to go next */
}

void call_delivered(struct core *core, u32 listener) {
    struct row *row = row_at(&core->table, listener);
    call_close(core, listener, row, row->flags & WAITED ? MET : PROMPT);
    u32 send = row_decided(&core->table, listener);
    call_free(core, listener);
    call_confirm(core, send);
}

void call_lost(struct core *core, u32 listener) { call_lose(core, row_decided(&core->table, listener)); }

void call_drop(struct core *core, u32 listener, enum outcome outcome) {
    call_close(core, listener, row_at(&core->table, listener), outcome);
    u32 send = row_decided(&core->table, listener);
    call_free(core, listener);
    call_lose(core, send);
}

void call_meet(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    struct table *table = &core->table;
    u32 way = topic_way(core, row->topic);
    if (UNLIKELY(way)) {
        call_go(core, number, way);
        return;
    }
    move_push(caller_of(core, row));
    if (row->kind == SEND ? junction_send(table, number) : junction_listen(table, number)) {
        call_free_if_done(core, number);
        return;
    }
    if (!call_is_kept(row)) {
        enum refusal why = NO_REFUSAL;
        if (row->deadline <= core->now)
            call_over(core, number);
        else if ((why = call_admit(core, caller_of(core, row), row)))
            call_fail(core, number, why, 0, 0);
        else
            call_become(core, number, row, KEPT);
        if (row->state == DONE) {
            call_free_if_done(core, number);
            return;
        }
    }
    junction_wait(table, number);
}

void call_listens_again(struct core *core, u32 listener) {
    struct row *row = row_at(&core->table, listener);
    assert(row->kind != SEND && !row->peer);
    if (row->kind == DELIVERY || caller_of(core, row)->flags & (LEAVES | IS_CLOSED)) {
        row->state = DONE;
        call_free(core, listener);
        return;
    }
    if (call_is_cancelled(core, row)) { /* when it had that value, of which its client was told */
        call_close(core, listener, row, CANCELLED);
        tell_failure(core, row, WAS_CANCELLED, 0, 0);
        call_free(core, listener);
        return;
    }
    call_become(core, listener, row, KEPT);
    if (!(caller_of(core, row)->flags & MOVES)) call_meet(core, listener); /* else it rests until that is over */
}

void call_issue(struct core *core, struct connection *caller, const struct call *call) {
    struct table *table = &core->table;
    bool knows_errors = caller->flags & KNOWS_ERRORS;
    if (UNLIKELY(core->standing & LEAVING) && !knows_errors) { /* it is about to be closed, and makes the call again elsewhere */
        spot_drop(table, call->topic);
        blob_drop(call->timed_out);
        return;
    }
    u32 number, group = call->kind == TAKE ? spot_take(table, call->topic, call->group, call->group_size) : 0;
    struct row *row = row_new(table, &number, call->kind, call->topic, group, core->now);
    row->deadline = core->now + call->seconds;
    row->caller = caller->number;
    caller->rows++;
    row->id_size = (u8)call->id_size;
    if (LIKELY(call->id_size <= ID_INSIDE))
        memcpy(row->id, call->id, ID_INSIDE); /* what follows an id is read as well, since that is quicker */
    else
        row_extra(table, row)->id = blob_new(call->id, call->id_size);
    if (call->timed_out) row_extra(table, row)->timed_out = call->timed_out;
    if (call->kind == SEND) {
        row->value = call->value;
        row->size = call->value_size;
        table->borrowed++;
    }
    /* A send is kept while it is open whether its value arrives, and nobody is asked whether there is room for that. */
    bool has_too_many = caller->waiting.count > core->limits.max_calls;
    bool is_refused = core->standing & REFUSING && knows_errors;
    if (UNLIKELY(has_too_many || is_refused)) {
        call_fail(core, number, is_refused ? DRAINS : TOO_MANY_CALLS, 0, 0);
        call_free_if_done(core, number);
        return;
    }
    call_meet(core, number);
}

/* The end of the time. */

static bool recall(struct core *core, u32 listener, bool is_final) {
    const struct row *row = row_at(&core->table, listener);
    if (UNLIKELY(row_is_foreign(row))) {
        message_tell(core, link_of(core, row), SAY_RECALL, word_at(row->id));
        return false;
    }
    return !(row->flags & UNACKED) && output_take_back(core, caller_of(core, row), listener, is_final);
}

bool call_ask_back(struct core *core, u32 number, bool is_final) {
    struct table *table = &core->table;
    struct row *row = row_at(table, number);
    u64 handle = row_handle(number, row);
    row->flags |= ABANDONED;
    bool is_back = true;
    if (row->peer && KEPT(A_VALUE_IS_ASKED_BACK)) {
        struct words asked = {0};
        u32 listener = row->peer;
        do {
            const struct row *each = row_at(table, listener);
            if (each->flags & REMEMBERED) words_add(&asked, row_handle(listener, each));
            listener = each->next;
        } while (listener != row->peer);
        for (u32 at = 0; at < asked.size; at++) {
            listener = row_find(table, asked.items[at]);
            if (listener && row_at(table, listener)->peer == number) is_back = recall(core, listener, is_final) && is_back;
        }
        words_free(&asked);
    }
    if (is_back && row_find(table, handle) && !row_is_answered(row)) missed(table, number);
    return is_back;
}

bool call_withdraw(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    if (UNLIKELY(row->is_carried)) return outbound_withdraw(core, number);
    if (junction_withdraw(&core->table, number) || row->kind == WILL) return true;
    if (row->state != PARKED) return false;
    call_unpark(core, number, row);
    return true;
}

void call_ends(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    double grace = GRACE_S;
    u64 handle = row_handle(number, row);
    if (row->is_carried && (row->kind == SEND || !call_is_cancelled(core, row))) {
        grace = carrier_of(core, row)->grace_s;
        call_become(core, number, row, GIVEN_UP);
        outbound_ask_back(core, number);
        if (!row_find(&core->table, handle) || !call_is_kept(row)) return;
    } else if (call_withdraw(core, number)) {
        call_over(core, number);
        call_free_if_done(core, number);
        return;
    } else {
        call_become(core, number, row, GIVEN_UP);
        words_add(&core->acks, handle);
    }
    double left = row->deadline - core->now;
    call_postpone(core, number, (left > 0.0 ? left : 0.0) + grace);
}

void call_give_up(struct core *core, u32 number, const u8 *cancelled_by, u32 size) {
    struct row *row = row_at(&core->table, number);
    row_extra(&core->table, row)->cancelled_by = blob_new(cancelled_by, size);
    if (row->state != ENDING || row->kind != SEND) call_ends(core, number); /* a send's last words are awaited already */
}

/* Whether somebody has the value of a send who is written to in this very turn, as far as is known. */
static bool is_being_written(const struct core *core, const struct row *send) {
    u32 remembered = 0, listener = send->peer;
    while (listener) {
        const struct row *each = row_at(&core->table, listener);
        remembered += (each->flags & REMEMBERED) != 0;
        listener = each->next == send->peer ? 0 : each->next;
    }
    assert(remembered <= send->offers);
    return send->offers > remembered;
}

void call_leave(struct core *core, u32 number, enum refusal error) {
    struct row *row = row_at(&core->table, number);
    bool was_carried = row->is_carried;
    if (!call_withdraw(core, number) && row->kind == SEND && KEPT(A_LAST_WORD_IS_NEEDED)) {
        if (is_being_written(core, row)) {
            if (row->state != ENDING) call_ends(core, number); /* that decides, in this very turn */
            return;
        }
        row->flags |= ANSWERED;
        if (was_carried || !call_ask_back(core, number, true)) {
            end(core, number, UNKNOWN_OUTCOME, was_carried ? SILENT_OWNER : SILENT_LISTENER, 0, 0);
            call_free_if_done(core, number);
            return;
        }
    }
    if (error == NO_REFUSAL || call_is_cancelled(core, row))
        call_over(core, number);
    else
        call_fail(core, number, error, 0, 0);
    call_free_if_done(core, number);
}

void call_expired(struct core *core, u32 number) {
    const struct row *row = row_at(&core->table, number);
    u64 handle = row_handle(number, row);
    if (!call_is_kept(row)) return;
    if (row->kind == SEND && row->state != ENDING) {
        call_ends(core, number);
        return;
    }
    if (row->state == ENDING) {
        call_hear_last_words(core, number);
        if (!row_find(&core->table, handle) || !call_is_kept(row)) return;
    }
    call_leave(core, number, NO_REFUSAL);
}

void call_conclude(struct core *core, u64 handle) {
    u32 number = row_find(&core->table, handle);
    if (!number || row_is_answered(row_at(&core->table, number))) return;
    call_ask_back(core, number, false);
    if (row_find(&core->table, handle)) call_free_if_done(core, number);
}
