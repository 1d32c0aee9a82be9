/* A connection that follows its calls to the sibling that owns their topics. What waits on it waits there already, as
   that worker's IN_SEND, IN_RECV and IN_TAKE: they are adopted in place, so that no call is withdrawn or issued again.

   We offer it (MOVE) once nothing of it is unwritten and all that it waits for waits there; then it is not read here, and
   the clocks of its calls stand. The other keeps room for its descriptor, makes a connection that has none yet, for which
   output gathers, has those calls be of that one, and says which (MOVED). It has said a last word of all others before, or
   given them a value: they stay ours, and are answered here. What comes back to us meanwhile rests, and goes along (REST),
   as do wills, and the calls whose values are still to be acknowledged. Its subscriptions end here one by one, each in the
   moment in which it begins there: workers/calls/splits.py has how. Once nothing is left of it here and all is written
   the descriptor goes, with what is half read (ARRIVE). Who loses the connection in between passes none, or says so (MOVED,
   with none); and a worker that dies takes it with it. */
#include "life.h"
#include "link.h"
#include "pubsub.h"

const struct drawing DRAWING = {.calls = 1000, .least = 32, .seconds = 1.0, .rest_s = 1.0};

#define MOVED_CALLS 1000u
#define MOVED_TAIL (32u * 1024)
#define MOVED_BYTES (64u * 1024) /* of all calls, as a MOVE has them */
#define AGAIN_S 0.02             /* after which it is looked again whether it can go */
#define AWAKE_S 0.01             /* within which the other has said something, or it may hang */
#define REFUSED_S 0.1            /* and whether the other takes it by now */
#define REST_DOUBLES 6u
#define STAYS \
    ((u32)(LEAVES | IS_CLOSED | CHOKED | RESTS | IS_PUT_OFF | IS_LATER | PAUSES | SECURE | HAS_ENDED | IS_EARLY | UNHEARD | \
           MOVES | ARRIVES))

/* What a MOVE has of the connection, and then of each call, with its id and its word behind it. */
struct moved {
    double heard;
    u32 flags, max_reply, calls, times;
    bool is_probed;
};
struct moved_call {
    u64 number;
    double deadline;
    u32 too_long, doubt, word_size;
    u8 kind, id_size;
};

static void look_later(struct core *core, struct connection *connection) {
    if (connection->flags & IS_DRAWN) return;
    connection->flags |= IS_DRAWN;
    words_add(&core->drawn, connection_handle(connection));
}

void move_goes_on(struct core *core, struct connection *connection) {
    /* One that waits for nothing is quick to look at, and may never be so when it is not written to. */
    if (connection->flags & MOVES || !connection->waiting.count || core->now >= connection->rests_until)
        look_later(core, connection);
}

/* Whether a majority of what it asks goes there, which is no chance: of so few it hardly ever is. */
static bool is_pulled(const struct core *core, const struct connection *connection) {
    return connection->pull >= core->drawing.least && 3 * connection->pull >= connection->pulled_of;
}

void move_pull(struct core *core, struct connection *connection, const struct link *link) {
    if (!core->limits.max_moves || !link->life || (connection->pull && connection->pulled_to != link->number)) {
        move_push(connection);
        return;
    }
    if (!connection->pull) {
        connection->pulled_to = link->number;
        connection->pulled_since = core->now;
        connection->pulled_of = 0;
    } else if (connection->pulled_of >= 2 * core->drawing.calls) {
        connection->pull /= 2; /* what is long ago counts for less */
        connection->pulled_of /= 2;
    }
    connection->pull++;
    connection->pulled_of++;
    bool has_time = core->now - connection->pulled_since >= core->drawing.seconds;
    bool is_drawn = is_pulled(core, connection) && (has_time || connection->pulled_of >= core->drawing.calls);
    /* Not now: what it has just asked may be about to be answered. */
    if (is_drawn && core->now >= connection->rests_until) connection->flags |= LINGERS;
}

void move_draw(struct core *core, struct connection *connection, const struct link *link) {
    connection->pulled_to = link->number;
    connection->pull = connection->pulled_of = core->drawing.calls;
    connection->rests_until = 0.0;
    look_later(core, connection);
}

static void start_moving(struct core *core, struct connection *connection, u32 flag, const struct link *link) {
    connection->flags |= flag;
    connection->moves_by = link->number;
    core->moving++;
    if (flag == ARRIVES) connection->rows++; /* so that it stays, closed or not, until the other end has said its last of it */
}

static void stop_moving(struct core *core, struct connection *connection) {
    bool has_arrived = connection->flags & ARRIVES;
    connection->flags &= ~(u32)(MOVES | ARRIVES);
    core->moving--;
    if (!has_arrived) return;
    connection->rows--;
    if (!connection->rows && connection->flags & IS_CLOSED) words_add(&core->dead, connection->number);
}

/* Whether it waits for an answer to whether it may come. */
static bool is_offered(const struct connection *connection) { return connection->flags & MOVES && !connection->there; }

/* Calls as they are sent. */

static struct moved_call described(const struct core *core, u32 number, const struct row *row) {
    struct moved_call call;
    memset(&call, 0, sizeof call); /* also what is between its members */
    call.number = number_of(NUMBER_OF_HOME, number, row);
    call.deadline = row->deadline;
    call.kind = row->kind;
    call.id_size = row->id_size;
    if (!row->extra) return call;
    const struct extra *extra = extra_at(&core->table, row->extra);
    call.too_long = extra->too_long;
    call.doubt = extra->doubt;
    call.word_size = extra->timed_out ? extra->timed_out->size : 0;
    return call;
}

static u32 size_of(const struct moved_call *call) { return sizeof *call + call->id_size + call->word_size; }

static u8 *put_call(const struct core *core, u8 *at, const struct moved_call *call, const struct row *row) {
    memcpy(at, call, sizeof *call);
    memcpy(at + sizeof *call, row_id(core, row), call->id_size);
    at += sizeof *call + call->id_size;
    if (call->word_size) memcpy(at, extra_at(&core->table, row->extra)->timed_out->data, call->word_size);
    return at + call->word_size;
}

/* Take one from *at on, whose id and word are there; NULL if there is none. */
static const u8 *get_call(struct moved_call *call, const u8 **at, const u8 *end) {
    if ((size_t)(end - *at) < sizeof *call) return NULL;
    memcpy(call, *at, sizeof *call);
    if ((u64)(end - *at) < (u64)sizeof *call + call->id_size + call->word_size) return NULL;
    if ((call->kind > TAKE && call->kind != WILL) || call->id_size > MAX_ID) return NULL;
    const u8 *words = *at + sizeof *call;
    *at = words + call->id_size + call->word_size;
    return words;
}

/* Have a row be a call of this connection's. */
static void enter(struct core *core, struct connection *connection, u32 number, const struct moved_call *call, const u8 *words) {
    struct row *row = row_at(&core->table, number);
    row->kind = call->kind;
    row->caller = connection->number;
    connection->rows++;
    row->deadline = call->deadline;
    row->route = ROUTE_SIBLING;
    row_set_id(&core->table, row, words, call->id_size);
    if (call->word_size) row_extra(&core->table, row)->timed_out = blob_new(words + call->id_size, call->word_size);
    if (call->doubt) row_extra(&core->table, row)->doubt = call->doubt;
    if (call->too_long && row_extra(&core->table, row)->too_long < call->too_long)
        row_extra(&core->table, row)->too_long = call->too_long;
}

/* And have that keep track of it from now on. */
static void keep_track(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    row->state = ARRIVED;
    call_become(core, number, row, KEPT);
}

/* The one who has it. */

/* Whether all values that its client has yet to acknowledge came from there. */
static bool are_given_there(const struct core *core, const struct connection *connection, const struct link *link) {
    for (u32 each = connection->unacked_first; each; each = row_at(&core->table, each)->timer_next) {
        const struct row *value = row_at(&core->table, row_at(&core->table, each)->peer);
        if (value->kind != OFFER || value->caller != link->number) return false;
    }
    return true;
}

/* Where it is drawn to, if it can go there now. */
static struct link *way_of(struct core *core, const struct connection *connection) {
    struct link *link = link_at(core, connection->pulled_to);
    u32 bad = LINK_ABROAD | LINK_CLOSED | LINK_PAUSED | LINK_ABSENT | LINK_PARTS | LINK_RETIRED | LINK_BEHIND | LINK_FINISHES;
    if (!link->generation || !link->life || link->flags & bad) return NULL;
    if (core->standing) return NULL;
    if (connection->flags & STAYS || (connection->publisher != NULL && !publisher_rests(connection))) return NULL;
    if (connection->out_size || connection->mark_count || connection->parked) return NULL;
    u32 held = connection->waiting.count + connection->unacked.count + connection->subscriptions;
    if (connection->rows != held || held > MOVED_CALLS || connection->tail_size > MOVED_TAIL) return NULL;
    return are_given_there(core, connection, link) ? link : NULL;
}

/* Whether all of these wait there, and there alone, but for wills; how long they are together. */
static bool are_there(struct core *core, const struct words *calls, const struct link *link, u32 *size) {
    for (u32 at = 0; at < calls->size; at++) {
        u32 number = (u32)calls->items[at];
        const struct row *row = row_at(&core->table, number);
        if (row->kind == WILL) continue;
        if (row->state != FORWARDED || row->carrier != link->number) return false;
        if (call_way(core, row) != link->number) return false;
        const struct moved_call call = described(core, number, row);
        *size += size_of(&call);
    }
    return *size <= MOVED_BYTES;
}

static void offer(struct core *core, struct connection *connection, struct link *link, const struct words *calls, u32 size) {
    const u8 *facts = NULL;
    u32 facts_size = 0;
    if (!core->owner.may_move(core->owner.its, connection_handle(connection), &facts, &facts_size)) {
        connection->rests_until = core->now + core->drawing.rest_s;
        return;
    }
    u8 *form = memory(size), *at = form + sizeof(struct moved);
    struct moved head;
    memset(&head, 0, sizeof head);
    head.heard = connection->heard;
    head.flags = connection->flags & (KNOWS_ERRORS | ACKS | HAS_CALLED | IS_DEAR);
    head.max_reply = connection->max_reply;
    head.calls = calls->size;
    head.times = connection->moved;
    head.is_probed = connection->silence;
    memcpy(form, &head, sizeof head);
    for (u32 each = 0; each < calls->size; each++) {
        u32 number = (u32)calls->items[each];
        const struct row *row = row_at(&core->table, number);
        if (row->kind == WILL) continue;
        const struct moved_call call = described(core, number, row);
        at = put_call(core, at, &call, row);
        timers_remove(&core->timers, number);
    }
    const struct message message = {.kind = SAY_MOVE, .number = connection_handle(connection), .value = facts,
                                    .value_size = facts_size, .form = form, .form_size = size};
    message_say(core, link, &message);
    free(form);
    connection->there = 0;
    core->moves_made++;
    start_moving(core, connection, MOVES, link);
    core_mask(core, connection);
    assert(core_reached(core, "a connection is offered"));
}

/* Whether this second has room for one more. */
static bool may_move_now(struct core *core) {
    if (core->now - core->moves_since >= 1.0) {
        core->moves_since = core->now;
        core->moves_made = 0;
    }
    return core->moves_made < core->limits.max_moves;
}

/* The calls of who is offered are answered no sooner than the offer. */
bool move_finds_awake(struct core *core, const struct connection *connection, struct link *link) {
    if (core->now - link->heard_at <= AWAKE_S) return true;
    const struct message question = {.kind = SAY_MOVE, .number = connection_handle(connection), .yes = true};
    if (core->now - link->knocked_at > AWAKE_S) {
        link->knocked_at = core->now;
        message_say(core, link, &question);
    }
    return false;
}

static void go_if_it_can(struct core *core, struct connection *connection) {
    connection->flags &= ~(u32)LINGERS;
    if (!is_pulled(core, connection)) return;
    connection->rests_until = core->now + AGAIN_S;
    connection->flags |= LINGERS;
    struct link *link = way_of(core, connection);
    if (link == NULL || !move_finds_awake(core, connection, link) || !may_move_now(core)) return;
    struct words calls = calls_in(core, &connection->waiting);
    u32 size = sizeof(struct moved);
    if (are_there(core, &calls, link, &size)) {
        connection->flags &= ~(u32)LINGERS;
        calls_by_arrival(core, &calls); /* of one id the last is found first */
        offer(core, connection, link, &calls, size);
    }
    words_free(&calls);
}

/* A call is the other's from now on. */
static void let_go(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    if (row->is_carried) outbound_unlink(core, number, row);
    call_become(core, number, row, CLOSED);
    call_free_if_done(core, number);
}

/* The clocks of those that stayed go on, and what was put off is done. */
static void keep_the_rest(struct core *core, struct connection *connection, struct link *link) {
    struct words calls = calls_in(core, &connection->waiting);
    calls_by_age(core, &calls);
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        struct row *row = number ? row_at(&core->table, number) : NULL;
        if (!number || !call_is_kept(row) || row->kind == WILL) continue;
        if (!row->bucket) timers_add(&core->timers, number);
        if (row->is_told)
            outbound_taken(core, link, number_of(NUMBER_OF_HOME, number, row));
        else if (row->state == HERE && !(connection->flags & MOVES))
            call_meet(core, number);
    }
    words_free(&calls);
}

/* It does not go: look at what was asked of all connections meanwhile, and has passed it over. */
static void stays(struct core *core, struct connection *connection) {
    if (core->standing & LEAVING)
        calls_ask_back(core, connection);
    else
        calls_reroute(core, connection);
    if (core->standing & REFUSING) words_add(&core->acks, connection_handle(connection) | LATER_CONNECTION);
}

static bool hear_answer(struct core *core, struct link *link, const struct message *message) {
    struct connection *connection = connection_find(core, message->number);
    if (message->yes) {
        if (connection != NULL && !(connection->flags & MOVES)) look_later(core, connection);
        return true;
    }
    bool is_it = connection != NULL && connection->flags & MOVES && connection->moves_by == link->number;
    if (is_it && connection->there && !message->life) {
        core_close_connection(core, connection, LOST_ON_ITS_WAY, 0); /* the other has lost it since */
        return true;
    }
    if (!is_it || connection->there) {
        if (message->life) message_tell(core, link, SAY_ARRIVE, message->life);
        return true;
    }
    for (u32 at = 0; at + 8 <= message->value_size; at += 8) {
        u32 number = number_find(core, word_at(message->value + at));
        if (!number || row_at(&core->table, number)->caller != connection->number) return false;
        let_go(core, number);
    }
    connection->there = message->life;
    if (message->life) {
        look_later(core, connection);
    } else {
        stop_moving(core, connection);
        connection->rests_until = core->now + REFUSED_S;
        core_mask(core, connection);
    }
    core->owner.may_go(core->owner.its, message->number, message->life != 0);
    keep_the_rest(core, connection, link);
    if (!message->life) stays(core, connection);
    return true;
}

bool move_keeps_in_mind(const struct core *core, struct row *send) {
    if (send->kind != SEND || !is_offered(caller_of(core, send))) return false;
    send->is_told = true;
    return true;
}

/* Whether nothing is to be written any more, nothing is subscribed to, and all that waits rests here. */
static bool is_ready(const struct core *core, const struct connection *connection, const struct words *calls) {
    bool is_written = !(connection->flags & CHOKED) && !connection->out_size && !connection->mark_count;
    if (!is_written && KEPT(ALL_IS_WRITTEN_FIRST)) return false;
    for (u32 at = 0; at < calls->size; at++) {
        const struct row *row = row_at(&core->table, (u32)calls->items[at]);
        if (row->state != HERE || row->is_carried) return false;
    }
    return connection->rows == calls->size + connection->unacked.count;
}

/* Say what there is of a call besides what the message has. */
static void say_rest(struct core *core, const struct connection *connection, u32 number, struct message *message) {
    const struct row *row = row_at(&core->table, number);
    const struct moved_call call = described(core, number, row);
    u8 *form = memory(size_of(&call));
    put_call(core, form, &call, row);
    message->kind = SAY_REST;
    message->number = connection->there;
    message->form = form;
    message->form_size = size_of(&call);
    message_say(core, link_at(core, connection->moves_by), message);
    free(form);
}

static void take_along(struct core *core, const struct connection *connection, u32 number) {
    const struct row *row = row_at(&core->table, number);
    const struct spot *topic = spot_at(&core->table, row->topic);
    struct message message = {.since = row->since, .topic = spot_name(topic), .topic_size = topic->size};
    if (row_sends(row)) {
        message.value = row->value;
        message.value_size = row->size;
    } else if (row->kind == TAKE) {
        const struct spot *group = spot_at(&core->table, row->group);
        message.value = spot_name(group);
        message.value_size = group->size;
    }
    say_rest(core, connection, number, &message);
    let_go(core, number);
}

/* The other has it as a call of ours that it gave a value, which is acknowledged there. */
static void leave_unacked(struct core *core, struct connection *connection) {
    struct message message = {.yes = true};
    u32 number = connection->unacked_first;
    say_rest(core, connection, number, &message);
    call_acknowledged_elsewhere(core, connection, number);
}

static void hand_over(struct core *core, struct connection *connection) {
    struct words calls = calls_in(core, &connection->waiting);
    struct link *link = link_at(core, connection->moves_by);
    if (link->flags & LINK_FINISHES) {
        core_close_connection(core, connection, LOST_ON_ITS_WAY, 0); /* nothing is said over it any more */
    } else if (is_ready(core, connection, &calls)) {
        calls_by_age(core, &calls);
        for (u32 at = 0; at < calls.size; at++) take_along(core, connection, (u32)calls.items[at]);
        while (connection->unacked_first) leave_unacked(core, connection);
        const struct message message = {.kind = SAY_ARRIVE, .number = connection->there, .yes = true,
                                        .value = connection->tail, .value_size = connection->tail_size};
        message_say(core, link, &message);
        link_pass(link, connection->fd);
        stop_moving(core, connection);
        core_close_connection(core, connection, MOVED, 0);
        assert(core_reached(core, "a connection is handed over"));
    }
    words_free(&calls);
}

void moves_attend(struct core *core) {
    u32 count = core->drawn.size;
    for (u32 at = 0; at < count; at++) {
        struct connection *connection = connection_find(core, core->drawn.items[at]);
        if (connection == NULL) continue;
        connection->flags &= ~(u32)IS_DRAWN;
        if (!(connection->flags & MOVES))
            go_if_it_can(core, connection);
        else if (connection->there)
            hand_over(core, connection);
    }
    words_skip(&core->drawn, count);
}

/* The one whom it comes to. */

/* One that was given a value is answered where it came from, once that is written. */
static bool may_be_adopted(const struct row *row) {
    return row->state == HERE || row->state == PARKED || (!KEPT(WHAT_IS_GIVEN_STAYS) && row->state == GIVEN);
}

/* Have what waits by that number be this connection's; false if there is a last word of it, or it was given a value. */
static bool adopt(struct core *core, struct link *link, struct connection *connection, const struct moved_call *call,
                  const u8 *words) {
    u32 number = call_find(core, &link->calls, (const u8 *)&call->number, sizeof call->number);
    struct row *row = number ? row_at(&core->table, number) : NULL;
    if (!number || !may_be_adopted(row) || row->kind != call->kind + IN_SEND) return false;
    bool was_parked = row->state == PARKED;
    if (was_parked) rows_remove(&core->table, &link->parked, number, row);
    inbound_forget(core, number, row);
    link_dropped(core, link);
    enter(core, connection, number, call, words);
    keep_track(core, number);
    if (!was_parked) return true;
    call_become(core, number, row, NO_ROOM);
    rows_add(&core->table, &connection->parked, number, row, connection->parked);
    return true;
}

/* No descriptor comes of one that was to. */
static void none_comes(struct core *core, struct link *link) {
    if (!link->coming) return;
    link->coming--;
    core->machine.release(core->machine.its);
}

static bool may_come(const struct core *core) {
    return !core->standing && !core->gathers;
}

/* Whether a value of it is with another worker, for a client of that one: which tells the sender's home, and writes down in
   its hand where that is, so that the send cannot change it now. */
static bool is_afar(const struct core *core, const struct link *link, const u8 *at, const u8 *end) {
    struct moved_call call;
    while (get_call(&call, &at, end) != NULL) {
        u32 send = call_find(core, &link->calls, (const u8 *)&call.number, sizeof call.number);
        u32 first = send && row_at(&core->table, send)->offers ? row_at(&core->table, send)->peer : 0, each = first;
        if (first) do {
                if (row_is_foreign(row_at(&core->table, each))) return true;
                each = row_at(&core->table, each)->next;
            } while (each != first);
    }
    return false;
}

static bool hear_move(struct core *core, struct link *link, const struct message *message) {
    struct moved head;
    struct message answer = {.kind = SAY_MOVED, .number = message->number, .yes = message->yes};
    if (message->yes) {
        message_say(core, link, &answer);
        return true;
    }
    if (message->form_size < sizeof head) return false;
    memcpy(&head, message->form, sizeof head);
    const u8 *at = message->form + sizeof head, *end = message->form + message->form_size, *words;
    u64 handle = 0;
    if (may_come(core) && !is_afar(core, link, at, end)) {
        bool has_room = core->machine.reserve(core->machine.its);
        link->coming += has_room;
        handle = core->owner.arriving(core->owner.its, link_handle(link), message->value, message->value_size, head.calls,
                                      has_room);
        if (!handle && has_room) none_comes(core, link);
    }
    struct connection *connection = connection_find(core, handle);
    struct words adopted = {0};
    if (connection != NULL) {
        connection->flags |= head.flags;
        connection->max_reply = head.max_reply;
        connection->heard = head.heard;
        connection->moved = head.times;
        connection->there = message->number;
        start_moving(core, connection, ARRIVES, link);
        if (head.is_probed) core_probe(core, connection);
        struct moved_call call;
        while ((words = get_call(&call, &at, end)) != NULL)
            if (adopt(core, link, connection, &call, words)) words_add(&adopted, call.number);
        calls_reroute(core, connection);
        answer.life = handle;
        answer.value = (const u8 *)adopted.items;
        answer.value_size = adopted.size * 8;
    }
    message_say(core, link, &answer);
    words_free(&adopted);
    assert(connection == NULL || core_reached(core, "a connection is adopted"));
    return true;
}

/* The connection that is on its way over this link, which may be closed by now; NULL if there is none. */
static struct connection *comer(const struct core *core, const struct link *link, u64 handle) {
    if (!pool_has(&core->connections, (u32)handle)) return NULL;
    struct connection *connection = connection_at(core, (u32)handle);
    bool is_it = connection_handle(connection) == handle && connection->flags & ARRIVES && connection->moves_by == link->number;
    return is_it ? connection : NULL;
}

/* A value that was given to this connection where it came from, by us, is acknowledged here. */
static void hear_unacked(struct core *core, struct link *link, struct connection *connection, const struct moved_call *call,
                         const u8 *words) {
    if (connection->flags & (LEAVES | IS_CLOSED)) {
        inbound_lost(core, link, call->number);
        return;
    }
    u32 number = call_find(core, &link->calls, (const u8 *)&call->number, sizeof call->number);
    struct row *row = number ? row_at(&core->table, number) : NULL;
    if (!number || row->state != GIVEN || row->kind != call->kind + IN_SEND) return;
    hash_remove(&link->calls, &CALLS_BY_ID, core, number);
    link_dropped(core, link);
    enter(core, connection, number, call, words);
    row->flags |= WAITED;
    row->size = row_at(&core->table, row->peer)->size;
    call_unacked(core, connection, number);
}

/* A call that met nobody where it came from is issued here, with the place in line that it had; and so is a will, which is
   published at once should the connection be lost by now. */
static bool hear_rest(struct core *core, struct link *link, const struct message *message) {
    struct table *table = &core->table;
    struct connection *connection = comer(core, link, message->number);
    struct moved_call call;
    const u8 *at = message->form, *words = at ? get_call(&call, &at, at + message->form_size) : NULL;
    if (words == NULL || connection == NULL) return false;
    if (message->yes) {
        hear_unacked(core, link, connection, &call, words);
        return true;
    }
    if (!message->topic || (call.kind != RECV && !message->value)) return false;
    bool is_lost = connection->flags & (LEAVES | IS_CLOSED);
    if (is_lost && call.kind != WILL) return true;
    u32 number, topic = spot_take(table, 0, message->topic, message->topic_size);
    u32 group = call.kind == TAKE ? spot_take(table, topic, message->value, message->value_size) : 0;
    struct row *row = row_new(table, &number, (enum kind)call.kind, topic, group, message->since);
    if (row_sends(row)) {
        row->value = message->value;
        row->size = message->value_size;
        table->borrowed++;
    }
    enter(core, connection, number, &call, words);
    if (is_lost) {
        row->state = DONE;
        call_testify(core, number);
        call_free(core, number);
        return true;
    }
    keep_track(core, number);
    if (call.kind != WILL) call_meet(core, number);
    return true;
}

static bool hear_arrival(struct core *core, struct link *link, const struct message *message) {
    struct connection *connection = comer(core, link, message->number);
    int fd = message->yes ? link->passed : -1; /* one that is lost may share a packet with one that comes behind it */
    if (fd < 0) none_comes(core, link);
    if (connection == NULL) return true; /* and the descriptor is nobody's */
    bool is_lost = connection->flags & IS_CLOSED;
    stop_moving(core, connection);
    if (fd < 0 || is_lost) {
        core_close_connection(core, connection, LOST_ON_ITS_WAY, 0);
        return true;
    }
    link->passed = -1;
    u32 times = connection->moved < REST_DOUBLES ? connection->moved : REST_DOUBLES;
    connection->rests_until = core->now + core->drawing.rest_s * (double)(1u << times);
    connection->moved++;
    core_arrived(core, connection, fd);
    if (message->value_size && !(connection->flags & LEAVES))
        input_keep(core, connection, message->value, message->value_size, false, true);
    core->owner.arrived(core->owner.its, connection_handle(connection));
    assert(core_reached(core, "a connection has arrived"));
    if (connection->flags & IS_CLOSED) return true;
    if (!(connection->flags & CHOKED)) {
        output_roomy(core, connection);
        return true;
    }
    output_drain(core, connection); /* or what it was told may be taken back */
    output_give_back(core, connection);
    return true;
}

bool move_hear(struct core *core, struct link *link, const struct message *message) {
    switch (message->kind) {
    case SAY_MOVE: return hear_move(core, link, message);
    case SAY_MOVED: return hear_answer(core, link, message);
    case SAY_REST: return hear_rest(core, link, message);
    default: return hear_arrival(core, link, message);
    }
}

/* Its end on the way. */

void move_lose(struct core *core, struct connection *connection) {
    struct link *link = link_at(core, connection->moves_by);
    if (connection->flags & ARRIVES) {
        message_tell(core, link, SAY_MOVED, connection->there);
        return;
    }
    if (connection->there) message_tell(core, link, SAY_ARRIVE, connection->there);
    stop_moving(core, connection);
}

void moves_end(struct core *core, struct link *link) {
    while (link->coming) none_comes(core, link);
    for (u32 number = 0; core->moving && (number = pool_next(&core->connections, number));) {
        struct connection *connection = connection_at(core, number);
        if (!connection->generation || !(connection->flags & (MOVES | ARRIVES)) || connection->moves_by != link->number) continue;
        if (connection->flags & ARRIVES) stop_moving(core, connection);
        core_close_connection(core, connection, LOST_ON_ITS_WAY, 0);
    }
}
