/* What another worker asks of us: calls of its clients wait here, and get values, since we own their topics. Their
   states are those of our own clients' calls: HERE while one waits or its value is offered; PARKED when a value came for it
   while so much was queued for its worker that there was no room; GIVEN until its worker says whether its client got that;
   ENDING while its value is asked back, since its time is over, or it is cancelled; and DONE. */
#include "life.h"
#include "link.h"

#define LONGEST_PAYLOAD (UINT16_MAX + 3u) /* that a client publishes, as a value */

static u64 number_in(const struct row *row) { return word_at(row->id); }

static void tell(struct core *core, const struct row *row, enum said kind) {
    message_tell(core, link_of(core, row), kind, number_in(row));
}

static u32 cost(const struct core *core, const struct row *row) {
    u32 size = WAITING_CALL_BYTES + spot_at(&core->table, row->topic)->size;
    if (row->kind == IN_SEND) return size + row->size;
    return row->kind == IN_TAKE ? size + spot_at(&core->table, row->group)->size : size;
}

static u32 find(const struct core *core, const struct link *link, u64 number) {
    return call_find(core, &link->calls, (const u8 *)&number, sizeof number);
}

/* A row of the other end's, by that number. */
static struct row *row_for(struct core *core, struct link *link, u32 number, u64 its_number) {
    struct row *row = row_at(&core->table, number);
    row->caller = link->number;
    link->rows++;
    row->id_size = sizeof its_number;
    memcpy(row->id, &its_number, sizeof its_number);
    return row;
}

void inbound_forget(struct core *core, u32 number, struct row *row) {
    hash_remove(&link_of(core, row)->calls, &CALLS_BY_ID, core, number);
    core->bytes_held -= cost(core, row);
}

/* Forget one that was answered. */
static void let_go(struct core *core, u32 number, struct row *row) {
    assert(row->state != DONE && row->state != GIVEN && !(row->flags & STANDS));
    row->state = DONE;
    inbound_forget(core, number, row);
}

static void send_home(struct core *core, u32 number, struct row *row) {
    row->flags |= ANSWERED;
    let_go(core, number, row);
    tell(core, row, SAY_WITHDRAWN);
    if (row->kind == IN_SEND) row_empty(&core->table, row);
}

/* Its topic is our successor's, so that it meets nobody here. Who is told of that one has it back, to ask there. One that
   only asks over its link issues its calls again when that ends. */
static void turn_away(struct core *core, u32 number, struct row *row) {
    if (core->standing & REPLACED && link_of(core, row)->flags & LINK_BOTH_WAYS)
        send_home(core, number, row);
    else if (row->kind == IN_SEND)
        row_own(&core->table, row);
}

/* Have it meet somebody, or wait; it may be gone afterwards. */
static void meet(struct core *core, u32 number) {
    struct table *table = &core->table;
    struct row *row = row_at(table, number);
    if (core->standing & (LEAVING | REPLACED)) {
        turn_away(core, number, row);
    } else if (!(row->kind == IN_SEND ? junction_send(table, number) : junction_listen(table, number))) {
        if (row->kind == IN_SEND) row_own(table, row);
        junction_wait(table, number);
    }
    call_free_if_done(core, number);
}

static void hand_out(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    junction_publish(&core->table, number);
    row_empty(&core->table, row); /* whoever was given it has it */
    if (!row->delays) inbound_published(core, number);
}

static void begin(struct core *core, u32 number) {
    if (row_at(&core->table, number)->kind == IN_PUBLICATION)
        hand_out(core, number);
    else
        meet(core, number);
}

/* Have what came begin, once all others that come as this worker opens are heard. */
static void come(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    if (LIKELY(!core->gathers)) {
        begin(core, number);
        return;
    }
    if (row_sends(row)) row_own(&core->table, row);
    words_add(&core->gathered, row_handle(number, row));
}

void inbound_gather(struct core *core) {
    core->gathers = true;
    words_add(&core->later, LATER_GATHERED);
}

/* Whether it has yet to begin, and was not withdrawn meanwhile. */
static bool is_to_begin(const struct row *row) {
    if (row->kind == IN_PUBLICATION) return true;
    return row->kind >= IN_SEND && row->kind <= IN_TAKE && row->state == HERE && !(row->flags & STANDS) && !row->offers;
}

void inbound_gathered(struct core *core) {
    struct words calls = {0};
    core->gathers = false;
    for (u32 at = 0; at < core->gathered.size; at++)
        if (row_find(&core->table, core->gathered.items[at])) words_add(&calls, core->gathered.items[at]);
    core->gathered.size = 0;
    calls_by_age(core, &calls);
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        if (number && is_to_begin(row_at(&core->table, number))) begin(core, number);
    }
    words_free(&calls);
}

/* Its number is not that of another call, and nothing of it is longer than a client's: a sibling sees to that itself. */
static bool is_good(const struct core *core, const struct link *link, const struct message *message) {
    if (!message->topic || !message->number || message->number >> 56 == NUMBER_OF_OWNER >> 56) return false;
    if (message->kind == SAY_SEND && (!message->value || message->value_size > MAX_FRAME)) return false;
    if (message->kind == SAY_LISTEN && message->value_size > MAX_TOPIC) return false;
    return !(link->flags & LINK_ABROAD) || !find(core, link, message->number);
}

static double came_at(const struct core *core, const struct link *link, double since) {
    if (!(link->flags & LINK_ABROAD)) return since;
    double longest = -(double)MAX_TIMEOUT_MS / 1000;
    return core->now + (since > 0.0 ? 0.0 : since < longest ? longest : since);
}

static bool issue(struct core *core, struct link *link, const struct message *message) {
    struct table *table = &core->table;
    u32 number, group = 0;
    if (!is_good(core, link, message)) return false;
    bool is_nil = message->value_size == 1 && *message->value == 0xC0;
    enum kind kind = message->kind == SAY_SEND ? IN_SEND : message->value && !is_nil ? IN_TAKE : IN_RECV;
    u32 size = WAITING_CALL_BYTES + message->topic_size + (kind == IN_RECV ? 0 : message->value_size);
    u64 held = core->bytes_held + size;
    if (held > core->limits.waiting_bytes) {
        message_tell(core, link, SAY_BUSY, message->number);
        return true;
    }
    if (held > core->most_bytes_held) core->most_bytes_held = held;
    core->bytes_held = held;
    u32 topic = spot_take(table, 0, message->topic, message->topic_size);
    if (kind == IN_TAKE) group = spot_take(table, topic, message->value, message->value_size);
    row_new(table, &number, kind, topic, group, came_at(core, link, message->since));
    struct row *row = row_for(core, link, number, message->number);
    row->state = HERE;
    hash_add(&link->calls, &CALLS_BY_ID, core, number);
    if (kind == IN_SEND) {
        row->value = message->value;
        row->size = message->value_size;
        table->borrowed++;
    }
    come(core, number);
    return true;
}

/* Giving. */

/* Wait for it to take something, unless it has stood still for that long: then it is far behind by now. */
static void expect_room(struct core *core, struct link *link) {
    double at = core->now + (link->flags & LINK_STUCK ? 0.0 : STUCK_S);
    if (!link->stuck) link->stuck = alarm_set_for(core, link->number, 0, ALARM_STUCK, at);
}

/* The value of a send goes to another worker: have that one know whose it is, or its own worker that it is gone. */
static void sign(struct core *core, const struct row *send, const struct link *link, struct message *message) {
    if (send->kind != IN_SEND || link_of(core, send)->flags & LINK_ABROAD) return;
    if (link->flags & LINK_ABROAD) {
        tell(core, send, SAY_OUT);
        hand_add(core, send); /* its own worker may be one that reads nothing just now */
        return;
    }
    message->life = link_of(core, send)->life;
    message->sent_as = number_in(send);
}

/* Have what is published not be in effect before what was said last has left us for the other worker, and so many bytes
   behind it: or who is killed just now has acked it, and told nobody. */
static void delay(struct core *core, struct link *link, u32 send, struct row *row, u32 more) {
    if (row->kind != PUBLICATION && row->kind != IN_PUBLICATION) return;
    bool is_given_up = link->flags & LINK_STUCK && link_unsent(link) <= core->limits.behind_bytes && !more;
    if (is_given_up || !KEPT(AN_ACK_COMES_LAST)) return;
    row->delays++;
    row->offers++; /* so that it stays */
    words_add(&link->delayed, row_handle(send, row));
    words_add(&link->delayed, link->taken + link_unsent(link) + more);
    if (link->mask & WRITABLE) expect_room(core, link);
}

/* Whether that worker published it: what says that it is in effect is written behind it. */
static bool is_asked_by(const struct core *core, const struct row *send, const struct link *link) {
    return send->kind == IN_PUBLICATION && link_of(core, send) == link;
}

static void given(struct core *core, u32 listener, u32 send) {
    struct row *to = row_at(&core->table, listener);
    to->state = GIVEN;
    to->flags |= REMEMBERED;
    row_given(&core->table, listener, send);
    call_hold(core, send);
}

bool inbound_give(struct core *core, u32 listener, u32 send) {
    struct row *to = row_at(&core->table, listener), *from = row_at(&core->table, send);
    struct link *link = link_of(core, to);
    u64 handle = row_handle(send, from);
    if (link->flags & (LINK_CLOSED | LINK_FINISHES)) return false;
    if (link_is_congested(core, link)) {
        to->state = PARKED;
        rows_add(&core->table, &link->parked, listener, to, link->parked);
        return false;
    }
    core->bytes_held -= cost(core, to);
    struct message message = {.kind = SAY_ALSO, .number = number_in(to)};
    if (link->giving != handle) { /* a value that many get at once crosses once */
        link->giving = handle;
        sign(core, from, link, &message);
        message.kind = SAY_GIVE;
        message.value = from->value;
        message.value_size = from->size;
    }
    message_say(core, link, &message);
    if (!is_asked_by(core, from, link)) delay(core, link, send, from, 0);
    given(core, listener, send);
    return true;
}

/* A value that subscribers are given; the other worker says later whether one got it. */
static u32 expect(struct core *core, struct link *link, u32 topic, u32 send) {
    u32 delivery;
    const struct row *from = row_at(&core->table, send);
    spot_refer(&core->table, topic);
    struct row *row = row_new(&core->table, &delivery, IN_DELIVERY, topic, 0, from->since);
    row_for(core, link, delivery, number_of(NUMBER_OF_OWNER, delivery, row));
    hash_add(&link->calls, &CALLS_BY_ID, core, delivery);
    return delivery;
}

/* So many bytes of what was said have left us. */
static void delay_no_more(struct core *core, struct link *link, u64 left) {
    struct words due = {0};
    u32 count = 0;
    for (; count < link->delayed.size && link->delayed.items[count + 1] <= left; count += 2)
        words_add(&due, link->delayed.items[count]);
    if (!count) return;
    words_skip(&link->delayed, count); /* first, as what follows may close the link */
    for (u32 at = 0; at < due.size; at++) publication_delayed_no_more(core, (u32)due.items[at]);
    words_free(&due);
}

static void see_what_is_delayed(struct core *core, struct link *link) {
    u32 unsent = link_unsent(link), before = link->delayed.size;
    bool has_all_left = !unsent && link_left(link) == link->taken;
    delay_no_more(core, link, has_all_left ? UINT64_MAX : link_left(link));
    bool goes_on = link->delayed.size < before && unsent <= core->limits.behind_bytes;
    if (goes_on || !link->delayed.size) alarm_off(core, &link->stuck);
    if (link->delayed.size) expect_room(core, link);
}

void inbound_stuck(struct core *core, struct link *link) {
    alarm_off(core, &link->stuck);
    link->flags |= LINK_STUCK;
    if (link_unsent(link) > core->limits.behind_bytes) core->owner.stuck(core->owner.its, link_handle(link));
    delay_no_more(core, link, UINT64_MAX);
}

bool inbound_interest(struct core *core, u32 interest, u32 send) {
    struct row *to = row_at(&core->table, interest), *from = row_at(&core->table, send);
    const struct spot *topic = spot_at(&core->table, to->topic);
    struct link *link = link_of(core, to);
    if (link->flags & (LINK_CLOSED | LINK_FINISHES) || to->is_told) return false;
    if (link_is_congested(core, link)) {
        words_add(&core->later, row_handle(interest, to)); /* it may not leave while it is asked */
        to->is_told = true;
        delay(core, link, send, from, 1); /* which are of the word that it leaves */
        return false;
    }
    const struct blob *form = row_form(&core->table, from);
    struct message message = {.kind = SAY_OFFER, .topic = spot_name(topic), .topic_size = topic->size,
                              .value = from->value, .value_size = from->size};
    if (form != NULL) {
        message.form = form->data;
        message.form_size = form->size;
    }
    if (row_is_answered(from)) {
        bool is_own = is_asked_by(core, from, link);
        message.number = is_own ? number_in(from) : 0;
        message_say(core, link, &message);
        if (!is_own) delay(core, link, send, from, 0);
        return false;
    }
    u32 delivery = expect(core, link, to->topic, send);
    sign(core, from, link, &message);
    message.number = number_in(row_at(&core->table, delivery));
    message_say(core, link, &message);
    given(core, delivery, send);
    return true;
}

u32 inbound_interest_new(struct core *core, struct link *link, const u8 *topic, u32 size) {
    u32 number;
    struct row *row = row_new(&core->table, &number, INTEREST, spot_take(&core->table, 0, topic, size), 0, core->now);
    row->caller = link->number;
    link->rows++;
    return number;
}

void inbound_interest_end(struct core *core, u32 interest) {
    junction_unsubscribe(&core->table, interest);
    call_free(core, interest);
}

void inbound_met(struct core *core, u32 send) {
    struct row *row = row_at(&core->table, send);
    let_go(core, send, row);
    row_empty(&core->table, row);
    if (!row->is_told) tell(core, row, SAY_MET);
}

static void refuse(struct core *core, u32 send, struct row *row, u32 limit) {
    const struct message message = {.kind = SAY_REFUSED, .number = number_in(row), .limit = limit};
    row->flags |= ANSWERED;
    let_go(core, send, row);
    row_empty(&core->table, row);
    message_say(core, link_of(core, row), &message);
}

void inbound_missed(struct core *core, u32 send) {
    struct row *row = row_at(&core->table, send);
    u32 too_long = row->extra ? extra_at(&core->table, row->extra)->too_long : 0;
    if (row->state == ENDING) {
        send_home(core, send, row);
    } else if (too_long) {
        refuse(core, send, row, too_long);
    } else if (core->standing & (LEAVING | REPLACED)) {
        turn_away(core, send, row);
    } else {
        row_own(&core->table, row);
        junction_resume(&core->table, send);
    }
}

/* What it says of what was given to its listeners, and wants back. */

static void end_listener(struct core *core, u32 listener, struct row *row) {
    row->state = DONE;
    hash_remove(&link_of(core, row)->calls, &CALLS_BY_ID, core, listener);
    call_free(core, listener);
}

static void decided(struct core *core, struct link *link, u64 number, bool took, u32 limit) {
    u32 listener = find(core, link, number);
    if (!listener || row_at(&core->table, listener)->state != GIVEN) return;
    struct row *row = row_at(&core->table, listener);
    bool was_unacked = row->flags & UNACKED;
    u32 send = row_decided(&core->table, listener);
    struct row *from = row_at(&core->table, send);
    end_listener(core, listener, row);
    if (took) {
        if (from->kind == IN_SEND && !row_is_answered(from) && !(link->flags & LINK_ABROAD))
            from->is_told = !(link_of(core, from)->flags & LINK_ABROAD);
        call_confirm(core, send);
        return;
    }
    if (limit) {
        struct extra *extra = row_extra(&core->table, from);
        if (extra->too_long < limit) extra->too_long = limit;
    }
    if (was_unacked) call_doubt(core, send, LOST_LISTENER);
    call_lose(core, send);
}

void inbound_lost(struct core *core, struct link *link, u64 number) { decided(core, link, number, false, 0); }

static void withdraw(struct core *core, struct link *link, u64 number, bool is_final) {
    u32 call = find(core, link, number);
    struct row *row = call ? row_at(&core->table, call) : NULL;
    if (!call || row->state == GIVEN) return; /* a value for it, or a word about it, is on its way */
    u64 handle = row_handle(call, row);
    bool was_parked = row->state == PARKED;
    if (was_parked) rows_remove(&core->table, &link->parked, call, row);
    /* A listener that stands in no line has been turned away; what is gathered has yet to meet somebody. */
    if (junction_withdraw(&core->table, call) || was_parked || row->kind != IN_SEND || core->gathers) {
        let_go(core, call, row);
        if (!is_final) tell(core, row, SAY_WITHDRAWN);
    } else if (is_final) {
        let_go(core, call, row);
        call_abandon(core, call);
    } else {
        row->state = ENDING;
        call_ask_back(core, call, false);
    }
    if (row_find(&core->table, handle)) call_free_if_done(core, call);
}

void inbound_published(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    link_of(core, row)->publishing--;
    tell(core, row, SAY_MET);
    row->offers--;
    call_free_if_done(core, number);
}

static bool publish(struct core *core, struct link *link, const struct message *message) {
    struct table *table = &core->table;
    u32 number;
    if (core->standing & REPLACED && link->flags & LINK_BOTH_WAYS) {
        message_tell(core, link, SAY_WITHDRAWN, message->number);
        return true;
    }
    if (core->standing & (LEAVING | REPLACED)) return true; /* our successor will hand it out */
    if (!message->topic || !message->value || message->value_size > LONGEST_PAYLOAD) return false;
    u32 topic = spot_take(table, 0, message->topic, message->topic_size);
    row_new(table, &number, IN_PUBLICATION, topic, 0, core->now);
    struct row *row = row_for(core, link, number, message->number);
    row->state = DONE;
    row->value = message->value;
    row->size = message->value_size;
    table->borrowed++;
    if (message->form) row_extra(table, row)->form = blob_new(message->form, message->form_size);
    row->offers++; /* so that it stays until it is acked */
    link->publishing++;
    come(core, number);
    return true;
}

/* A listener's client has the value, and is to acknowledge it, or has given it back. Should that worker and this one die at
   once, nobody else would tell the sender's. */
static void unacked(struct core *core, u32 listener, bool is_so) {
    struct row *row = listener ? row_at(&core->table, listener) : NULL;
    if (!listener) return;
    row->flags = (u8)((row->flags & ~UNACKED) | (is_so ? UNACKED : 0));
    if (row->state == GIVEN) call_awaits_ack(core, row->peer, is_so);
}

bool inbound_hear(struct core *core, struct link *link, const struct message *message) {
    switch (message->kind) {
    case SAY_SEND: case SAY_LISTEN: return issue(core, link, message);
    case SAY_TOOK: decided(core, link, message->number, true, 0); return true;
    case SAY_LOST: decided(core, link, message->number, false, 0); return true;
    case SAY_LONG: decided(core, link, message->number, false, message->limit); return true;
    case SAY_WITHDRAW: withdraw(core, link, message->number, message->yes); return true;
    case SAY_PUBLISH: return publish(core, link, message);
    case SAY_UNACKED: unacked(core, find(core, link, message->number), message->yes); return true;
    default: return true;
    }
}

/* Its end. */

void inbound_flushed(struct core *core, struct link *link) {
    link->giving = 0;
    if (link->delayed.size) see_what_is_delayed(core, link);
    if (!link->parked || link_is_congested(core, link)) return;
    struct words parked = {0};
    while (link->parked) {
        u32 listener = link->parked;
        struct row *row = row_at(&core->table, listener);
        rows_remove(&core->table, &link->parked, listener, row);
        row->state = HERE;
        words_add(&parked, row_handle(listener, row));
    }
    for (u32 at = 0; at < parked.size; at++) {
        u32 listener = row_find(&core->table, parked.items[at]);
        if (listener) meet(core, listener);
    }
    words_free(&parked);
}

/* All of its calls, in the order in which they came. */
static struct words all_of(const struct core *core, const struct link *link) {
    struct words found = calls_in(core, &link->calls);
    calls_by_arrival(core, &found);
    return found;
}

bool inbound_is_decided(const struct core *core, const struct link *link) {
    if (link->publishing) return false;
    struct words calls = all_of(core, link);
    bool is_so = true;
    for (u32 at = 0; at < calls.size; at++) {
        const struct row *row = row_at(&core->table, (u32)calls.items[at]);
        if (row->state == GIVEN || (row->kind == IN_SEND && row->offers)) is_so = false;
    }
    words_free(&calls);
    return is_so;
}

void inbound_doubt_undecided(struct core *core, struct link *link) {
    struct words calls = all_of(core, link);
    for (u32 at = 0; at < calls.size; at++) {
        const struct row *row = row_at(&core->table, (u32)calls.items[at]);
        if (row->kind == IN_SEND && row->offers && !row_is_answered(row)) call_doubt(core, (u32)calls.items[at], LOST_LISTENER);
    }
    words_free(&calls);
}

/* Of what it was handing out when it died: 0 if the number is not there, 1 if it is, 2 if its client surely had it. */
static u32 was_handed(const struct core *core, const struct words *entries, u64 number) {
    u32 found = 0;
    for (u32 at = 0; at + 5 <= entries->size; at += 5) {
        const u64 *entry = entries->items + at;
        if (entry[0] == core->life && entry[1] == number && found < 2) found = entry[4] ? 2 : 1;
    }
    return found;
}

void inbound_close(struct core *core, struct link *link) {
    struct table *table = &core->table;
    alarm_off(core, &link->stuck);
    delay_no_more(core, link, UINT64_MAX);
    struct words calls = all_of(core, link), entries = {0}, given_to = {0};
    link->giving = 0;
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(table, calls.items[at]);
        if (!number) continue;
        struct row *row = row_at(table, number);
        if (row->state == GIVEN) {
            words_add(&given_to, calls.items[at]);
            continue;
        }
        if (row->state == PARKED) rows_remove(table, &link->parked, number, row);
        junction_withdraw(table, number);
        let_go(core, number, row);
        call_abandon(core, number);
        if (row_find(table, calls.items[at])) call_free_if_done(core, number);
    }
    /* Of a sibling it is known what it was doing; what another node was given may be anybody's. */
    bool is_known = !(link->flags & LINK_ABROAD) && core->owner.handed(core->owner.its, link->life, &entries);
    /* Only now, since a value that is lost may go to the next in the line. */
    for (u32 at = 0; at < given_to.size; at++) {
        u32 number = row_find(table, given_to.items[at]);
        if (!number) continue;
        struct row *row = row_at(table, number);
        u32 handed = was_handed(core, &entries, number_in(row));
        bool was_unacked = row->flags & UNACKED;
        u32 send = row_decided(table, number);
        end_listener(core, number, row);
        if (handed == 2) {
            call_confirm(core, send);
            continue;
        }
        if (!is_known || handed || was_unacked) call_doubt(core, send, LOST_LISTENER);
        call_lose(core, send);
    }
    words_free(&calls);
    words_free(&entries);
    words_free(&given_to);
    hash_free(&link->calls);
}
