/* What we ask of one other worker: calls of our clients wait there, and get values, since it owns their topics. A
   call's number is its handle, so that no table is needed. */
#include "life.h"
#include "link.h"

u64 number_of(u64 by, u32 number, const struct row *row) {
    if (UNLIKELY(number >> NUMBER_BITS)) DIE("there are more calls than other workers can be told of");
    return by | (u64)(row->generation & ((1u << GENERATION_BITS) - 1)) << NUMBER_BITS | number;
}

u32 number_find(const struct core *core, u64 number) {
    u32 at = (u32)number & ((1u << NUMBER_BITS) - 1);
    if (!pool_has(&core->table.rows, at)) return 0;
    u32 generation = row_at(&core->table, at)->generation, mask = (1u << GENERATION_BITS) - 1;
    return generation && (generation & mask) == ((number >> NUMBER_BITS) & mask) ? at : 0;
}

/* What our clients ask. */

/* Rows of a link, beyond which a RECV that is carried leaves its spot. Where calls come and go there are fewer, and to look
   for the spot again takes time. Where assertions are checked few are many, so that both is. */
#ifdef NDEBUG
#define MANY_ROWS 1024u
#else
#define MANY_ROWS 2u
#endif

void outbound_forward(struct core *core, struct link *link, u32 number) {
    struct row *row = row_at(&core->table, number);
    assert(!row->is_carried && !row->peer && !(row->flags & STANDS) && !(link->flags & LINK_CLOSED));
    if (row->kind != PUBLICATION) call_become(core, number, row, SENT_ON);
    row->is_out = false;
    row->is_carried = true;
    row->carrier = link->number;
    link->rows++;
    rows_add(&core->table, &link->forwarded, number, row, link->forwarded);
    /* Of those that came at once, who is sent on first is first elsewhere, too. */
    if (!(link->flags & LINK_ABSENT) || !row->route) row->arrival = ++core->table.arrivals;
    if (link->flags & LINK_ABSENT) {
        core->owner.wanted(core->owner.its, link->owner);
        return;
    }
    row->route = link->flags & LINK_ABROAD ? ROUTE_NODE : ROUTE_SIBLING;
    const struct spot *topic = spot_at(&core->table, row->topic);
    struct message message = {.kind = SAY_LISTEN, .number = number_of(NUMBER_OF_HOME, number, row), .since = row->since,
                              .topic = spot_name(topic), .topic_size = topic->size};
    if (link->flags & LINK_ABROAD) message.since -= core->now;
    if (row->kind == SEND) {
        message.kind = SAY_SEND;
        message.value = row->value;
        message.value_size = row->size;
    } else if (row->kind == PUBLICATION) {
        const struct blob *form = row_form(&core->table, row);
        message.kind = SAY_PUBLISH;
        message.value = row->value;
        message.value_size = row->size;
        if (form != NULL) message.form = form->data, message.form_size = form->size;
    } else if (row->kind == TAKE) {
        const struct spot *group = spot_at(&core->table, row->group);
        message.value = spot_name(group);
        message.value_size = group->size;
    }
    message_say(core, link, &message);
    if (UNLIKELY(link->rows > MANY_ROWS) && row->kind == RECV) row_leave_spot(&core->table, row);
}

void outbound_unlink(struct core *core, u32 number, struct row *row) {
    struct link *link = carrier_of(core, row);
    rows_remove(&core->table, &link->forwarded, number, row);
    row->is_carried = false;
    row->carrier = 0;
    if (UNLIKELY(row->flags & NAMED)) row_take_spot(&core->table, row);
    link_dropped(core, link);
}

static void ask_back(struct core *core, struct link *link, u32 number, const struct row *row, bool is_final) {
    const struct message message = {.kind = SAY_WITHDRAW, .number = number_of(NUMBER_OF_HOME, number, row), .yes = is_final};
    message_say(core, link, &message);
}

void outbound_ask_back(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    struct link *link = carrier_of(core, row);
    if (!(link->flags & LINK_ABSENT)) {
        ask_back(core, link, number, row, false);
        return;
    }
    /* "Is anyone there?" is asked of one that is about to be: so it gets the time that a last word has. */
    if (!call_is_cancelled(core, row) && row->since == row->deadline) return;
    outbound_unlink(core, number, row);
    call_returned(core, number);
}

bool outbound_withdraw(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    struct link *link = carrier_of(core, row);
    outbound_unlink(core, number, row);
    if (link->flags & LINK_ABSENT) return true;
    ask_back(core, link, number, row, true);
    return row->kind != SEND; /* a value on its way to a listener goes to somebody else */
}

/* What the other says. */

/* A call that waits there, by its number; 0 if there is none. */
static u32 waiting(const struct core *core, const struct link *link, u64 number) {
    u32 at = number_find(core, number);
    const struct row *row = at ? row_at(&core->table, at) : NULL;
    bool is_ours = at && (row->kind <= TAKE || row->kind == PUBLICATION);
    return is_ours && row->is_carried && row->carrier == link->number ? at : 0;
}

/* One of which there is a last word; 0 if it is none that this word can be about. */
static u32 no_longer_waiting(struct core *core, const struct link *link, u64 number, bool is_met) {
    u32 at = waiting(core, link, number);
    if (!at || (is_met && !row_sends(row_at(&core->table, at)))) return 0;
    outbound_unlink(core, at, row_at(&core->table, at));
    return at;
}

void outbound_taken(struct core *core, struct link *link, u64 number) {
    u32 send = core->moving ? waiting(core, link, number) : 0;
    if (send && move_keeps_in_mind(core, row_at(&core->table, send))) return;
    send = no_longer_waiting(core, link, number, true);
    if (!send) return;
    if (row_at(&core->table, send)->kind == PUBLICATION) {
        publication_settle(core, send);
        return;
    }
    row_at(&core->table, send)->flags |= ANSWERED;
    JUDGES.met(&core->table, send);
    call_free_if_done(core, send);
}

void outbound_doubted(struct core *core, const struct link *link, u64 number) {
    u32 send = waiting(core, link, number);
    if (send && row_at(&core->table, send)->kind == SEND) call_doubt(core, send, LOST_LISTENER);
}

static void doubt_all(struct core *core, const struct link *link, enum refusal why) {
    for (u32 number = link->forwarded; number;) {
        call_doubt(core, number, why);
        u32 next = row_at(&core->table, number)->next;
        number = next == link->forwarded ? 0 : next;
    }
}

void outbound_doubt_all(struct core *core, const struct link *link) { doubt_all(core, link, LOST_LISTENER); }

/* The value of a send was given to somebody of whom nobody but its owner will tell. */
static void is_out(const struct core *core, const struct link *owner, u64 number) {
    u32 send = waiting(core, owner, number);
    if (send) row_at(&core->table, send)->is_out = true;
}

/* Whether nobody else needs to. */
static bool tell_home(struct core *core, struct link *link, const struct row *offer, enum said kind) {
    if (link->flags & LINK_ABROAD || !offer->home || !KEPT(A_TAKER_TELLS_HOME)) return false;
    if (offer->home != core->life) {
        struct link *home = link_by_life(core, offer->home);
        const struct message message = {.kind = kind, .number = offer->sent_as, .life = link->life};
        if (home != NULL) message_say(core, home, &message);
    } else if (kind == SAY_TAKEN) {
        outbound_taken(core, link, offer->sent_as);
    } else if (kind == SAY_OUT) {
        is_out(core, link, offer->sent_as);
    } else {
        outbound_doubted(core, link, offer->sent_as);
    }
    return true;
}

void outbound_doubt(struct core *core, const struct row *offer) {
    tell_home(core, link_of(core, offer), offer, SAY_DOUBT); /* its owner may die before it does */
}

void outbound_leaves(struct core *core, const struct row *offer) {
    tell_home(core, link_of(core, offer), offer, SAY_OUT);
}

static u64 id_of(const struct row *row) { return row->id_size ? word_at(row->id) : 0; }

/* What became of an offer: TOOK or LOST. */
static void became(struct core *core, const struct row *offer, enum said outcome) {
    message_tell(core, link_of(core, offer), outcome, id_of(offer));
}

/* Somebody has it. Its owner only frees what it holds once its sender's worker was told; should this worker die before the
   owner hears of it, the hand says so. */
static void was_taken(struct core *core, const struct row *offer, bool is_told) {
    const struct message message = {.kind = SAY_TOOK, .number = id_of(offer), .can_wait = is_told && core->hand.has_it};
    message_say(core, link_of(core, offer), &message);
}

void outbound_met(struct core *core, u32 number) {
    const struct row *offer = row_at(&core->table, number);
    was_taken(core, offer, tell_home(core, link_of(core, offer), offer, SAY_TAKEN));
}

void outbound_missed(struct core *core, u32 number) {
    struct row *offer = row_at(&core->table, number);
    offer->flags |= ANSWERED;
    u32 limit = offer->extra ? extra_at(&core->table, offer->extra)->too_long : 0;
    const struct message message = {.kind = SAY_LONG, .number = id_of(offer), .limit = limit};
    if (limit)
        message_say(core, link_of(core, offer), &message);
    else
        became(core, offer, SAY_LOST);
}

static u32 offer_new(struct core *core, struct link *link, enum kind kind, u32 topic, double since, u64 number) {
    u32 offer;
    struct row *row = row_new(&core->table, &offer, kind, topic, 0, since);
    row->caller = link->number;
    link->rows++;
    row->state = DONE; /* it waits for nothing but its outcome */
    row->home = link->home;
    row->sent_as = link->sent_as;
    row->id_size = sizeof number;
    memcpy(row->id, &number, sizeof number);
    rows_add(&core->table, &link->offered, offer, row, link->offered);
    return offer;
}

static void give(struct core *core, struct link *link, u64 number) {
    u32 listener = waiting(core, link, number);
    if (listener && link->last_size) {
        struct row *to = row_at(&core->table, listener);
        if (row_sends(to)) return; /* it never listened */
        outbound_unlink(core, listener, to);
        spot_refer(&core->table, to->topic);
        u32 offer = offer_new(core, link, OFFER, to->topic, to->since, number);
        struct row *row = row_at(&core->table, offer);
        row->value = link->last;
        row->size = link->last_size;
        core->table.borrowed++;
        bool is_given = JUDGES.give(&core->table, listener, offer);
        row_empty(&core->table, row); /* the reply has it */
        if (is_given) {
            row->offers++;
            return;
        }
        call_free(core, offer);
    }
    message_tell(core, link, SAY_LOST, number);
}

static void heard_value(struct core *core, struct link *link, const struct message *message) {
    if (!link->last_is_borrowed) {
        free((void *)(uintptr_t)link->last);
        link->last_is_borrowed = true;
        words_add(&core->heard, link->number);
    }
    link->last = message->value;
    link->last_size = message->value_size;
    link->home = message->life;
    link->sent_as = message->sent_as;
}

/* Whether a subscriber is given what comes over links, also from one that its values meet at no more: all are but other
   nodes, which ask for what meets here. */
static bool hears_links(const struct core *core, const struct row *subscriber) {
    return subscriber->kind != INTEREST || !(link_of(core, subscriber)->flags & LINK_ABROAD);
}

/* Give a value to all who subscribe here; of one with a number of the owner's, say whether anybody got it. */
static void pass_on(struct core *core, struct link *link, const struct message *message) {
    struct table *table = &core->table;
    struct words found = {0};
    u32 topic = spot_take(table, 0, message->topic, message->topic_size), first = spot_at(table, topic)->subscribers;
    for (u32 each = first; each; each = row_at(table, each)->next == first ? 0 : row_at(table, each)->next)
        if (hears_links(core, row_at(table, each))) words_add(&found, each);
    link->home = message->life;
    link->sent_as = message->sent_as;
    u32 passing = offer_new(core, link, PASSING, topic, core->now, message->number);
    struct row *row = row_at(table, passing);
    row->value = message->value;
    row->size = message->value_size;
    table->borrowed++;
    if (message->form) row_extra(table, row)->form = blob_new(message->form, message->form_size);
    if (message->number >> 56 != NUMBER_OF_OWNER >> 56)
        row->flags |= ANSWERED;
    else
        hash_add(&link->passing, &CALLS_BY_ID, core, passing);
    row->offers++; /* so that it stays for as long as this takes */
    for (u32 at = 0; at < found.size; at++)
        if (JUDGES.give(table, (u32)found.items[at], passing)) row->offers++;
    row->offers--;
    words_free(&found);
    row_empty(table, row);
    if (!row->offers && !row_is_answered(row)) outbound_missed(core, passing);
    call_free_if_done(core, passing);
}

/* Take back what it offered, or say who may yet have it. */
static bool take_back(struct core *core, u32 number, bool is_final) {
    struct row *offer = row_at(&core->table, number);
    if (offer->kind == OFFER) row_at(&core->table, offer->peer)->flags |= REMEMBERED;
    return call_ask_back(core, number, is_final);
}

static void recall(struct core *core, struct link *link, u64 number) {
    u32 offer = 0;
    assert(core_reached(core, "a value is asked back"));
    if (number >> 56 == NUMBER_OF_OWNER >> 56) {
        offer = call_find(core, &link->passing, (const u8 *)&number, sizeof number);
    } else {
        u32 listener = number_find(core, number);
        const struct row *row = listener ? row_at(&core->table, listener) : NULL;
        if (!listener || row->kind > TAKE || row->kind == SEND || row->is_carried || !row->peer) return;
        offer = row->peer;
        if (row_at(&core->table, offer)->kind != OFFER || link_of(core, row_at(&core->table, offer)) != link) return;
    }
    if (!offer || row_is_answered(row_at(&core->table, offer)) || !row_at(&core->table, offer)->offers) return;
    u64 handle = row_handle(offer, row_at(&core->table, offer));
    take_back(core, offer, row_at(&core->table, offer)->flags & ABANDONED); /* asked for twice, its sender was told */
    if (row_find(&core->table, handle)) call_free_if_done(core, offer);
}

static bool last_word(struct core *core, struct link *link, const struct message *message) {
    u32 number = no_longer_waiting(core, link, message->number, false);
    if (!number) return true;
    struct row *row = row_at(&core->table, number);
    if (message->kind == SAY_WITHDRAWN || row->kind == PUBLICATION) {
        call_returned(core, number);
        return true;
    }
    if (message->kind == SAY_REFUSED && row->kind != SEND) {
        call_returned(core, number);
        return false;
    }
    if (message->kind == SAY_BUSY)
        call_fail(core, number, OWNER_IS_FULL, 0, 0);
    else if (row->state == ENDING)
        call_over(core, number);
    else
        call_fail(core, number, VALUE_TOO_LARGE, row->size, message->limit);
    call_free_if_done(core, number);
    return true;
}

static struct link *sibling(const struct core *core, const struct link *link, u64 life) {
    return link->flags & LINK_ABROAD ? NULL : link_by_life(core, life);
}

bool outbound_hear(struct core *core, struct link *link, const struct message *message) {
    struct link *owner;
    switch (message->kind) {
    case SAY_GIVE:
        heard_value(core, link, message);
        give(core, link, message->number);
        return true;
    case SAY_ALSO: give(core, link, message->number); return true;
    case SAY_MET: outbound_taken(core, link, message->number); return true;
    case SAY_TAKEN:
        owner = sibling(core, link, message->life);
        if (owner != NULL) outbound_taken(core, owner, message->number);
        return true;
    case SAY_DOUBT:
        owner = message->life ? sibling(core, link, message->life) : link;
        if (owner != NULL) outbound_doubted(core, owner, message->number);
        return true;
    case SAY_OUT:
        owner = message->life ? sibling(core, link, message->life) : link;
        if (owner != NULL) is_out(core, owner, message->number);
        return true;
    case SAY_WITHDRAWN: case SAY_BUSY: case SAY_REFUSED: return last_word(core, link, message);
    case SAY_OFFER: pass_on(core, link, message); return true;
    case SAY_RECALL: recall(core, link, message->number); return true;
    case SAY_PARTING: link->flags |= LINK_PARTS; return true;
    default: return true;
    }
}

/* Its end. */

void outbound_retired(struct core *core, struct link *link) {
    link->flags |= LINK_RETIRED;
    struct link *heir = link_find(core, link->heir);
    link->heir = 0;
    if (heir != NULL) link_go_on(core, heir);
}

/* Handles of all rows in the ring that begins with this one, of none if it is 0. */
static struct words rows_in(const struct core *core, u32 first) {
    struct words found = {0};
    for (u32 number = first; number;) {
        const struct row *row = row_at(&core->table, number);
        words_add(&found, row_handle(number, row));
        number = row->next == first ? 0 : row->next;
    }
    return found;
}

/* Have those go elsewhere that still wait there: all but sends, or these as well. */
static void bring_home(struct core *core, struct link *link, bool sends_too, bool in_doubt) {
    struct words calls = rows_in(core, link->forwarded);
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        struct row *row = number ? row_at(&core->table, number) : NULL;
        if (!number || !row->is_carried || row->carrier != link->number || (row->kind == SEND && !sends_too)) continue;
        outbound_unlink(core, number, row);
        if (row->kind == SEND && (in_doubt || row->is_out)) call_doubt(core, number, LOST_OWNER);
        call_returned(core, number);
    }
    words_free(&calls);
}

bool outbound_is_idle(const struct core *core, const struct link *link) {
    if (link->forwarded) return false;
    for (u32 number = link->offered; number;) {
        const struct row *offer = row_at(&core->table, number);
        if (!row_is_answered(offer)) return false;
        number = offer->next == link->offered ? 0 : offer->next;
    }
    return true;
}

void outbound_close(struct core *core, struct link *link) {
    assert(core_reached(core, "a link has ended"));
    outbound_retired(core, link);
    if (!KEPT(A_LOST_CALL_GOES_ELSEWHERE)) return;
    if (link->flags & LINK_ABROAD) {
        if (!(link->flags & LINK_PARTS)) doubt_all(core, link, LOST_OWNER); /* before any goes on */
        bring_home(core, link, true, false);
        return;
    }
    bring_home(core, link, false, false);
    /* Sends go on only once it is known what became of them. */
    if (link->forwarded) core->owner.ask_all(core->owner.its, link_handle(link));
}

void outbound_release(struct core *core, struct link *link, bool is_sure) {
    struct words entries = {0};
    is_sure = core->owner.handed(core->owner.its, link->life, &entries) && is_sure;
    words_free(&entries);
    bring_home(core, link, true, !is_sure);
}

void outbound_settle_all(struct core *core, struct link *link) {
    struct words offers = rows_in(core, link->offered);
    for (u32 at = 0; at < offers.size; at++) {
        u32 number = row_find(&core->table, offers.items[at]);
        if (!number || row_is_answered(row_at(&core->table, number)) || !row_at(&core->table, number)->offers) continue;
        struct row offer = *row_at(&core->table, number);
        if (!take_back(core, number, true)) tell_home(core, link, &offer, SAY_DOUBT);
        if (row_find(&core->table, offers.items[at])) call_free_if_done(core, number);
    }
    words_free(&offers);
}
