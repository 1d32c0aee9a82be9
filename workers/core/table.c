#include "table.h"

/* Spots by name. */

static u32 spot_hash(const void *owner, u32 item) { return spot_at(owner, item)->hash; }
static u32 *spot_next(const void *owner, u32 item) { return &spot_at(owner, item)->next; }
static const struct hash_kind NAMES = {spot_hash, spot_next};

void table_open(struct table *table, const struct key *key, const struct judges *judges) {
    static_assert(sizeof(struct row) == 96, "a row takes a line and a half of the cache");
    static_assert(sizeof(struct spot) == 64, "a spot takes one");
    static_assert(offsetof(struct row, name_size) < offsetof(struct row, extra), "who is named may have an extra");
    *table = (struct table){.key = *key, .judges = judges};
    pool_open(&table->rows, sizeof(struct row), offsetof(struct row, generation));
    pool_open(&table->extras, sizeof(struct extra), 0);
    pool_open(&table->spots, sizeof(struct spot), offsetof(struct spot, next));
    store_open(&table->values);
}

static void forget_idle(struct table *table);

void table_close(struct table *table) {
    while (table->idle_count) forget_idle(table);
    assert(!table->rows.used && !table->spots.used && !table->extras.used && "who made rows has freed them");
    assert(store_is_empty(&table->values) && "of every row its value");
    pool_close(&table->rows);
    pool_close(&table->extras);
    pool_close(&table->spots);
    store_close(&table->values);
    hash_free(&table->names);
    grants_free(&table->grants);
}

static u32 name_hash(const struct table *table, u32 topic, const u8 *name, u32 size) {
    return (u32)hash_bytes(&table->key, name, size) + topic * 0x9e3779b9u;
}

static bool is_named(const struct spot *spot, u32 hash, u32 topic, const u8 *name, u32 size) {
    if (spot->hash != hash || spot->size != size || memcmp(spot_name(spot), name, size)) return false;
    return spot->is_group ? topic && spot->of.topic == topic : !topic;
}

static u32 find(const struct table *table, u32 hash, u32 topic, const u8 *name, u32 size) {
    u32 number = hash_first(&table->names, hash);
    while (number) {
        const struct spot *spot = spot_at(table, number);
        if (is_named(spot, hash, topic, name, size)) break;
        number = spot->next;
    }
    return number;
}

u32 spot_find(const struct table *table, u32 topic, const u8 *name, u32 size) {
    return find(table, name_hash(table, topic, name, size), topic, name, size);
}

static void leave_idle(struct table *table, struct spot *spot) {
    u32 next = spot->idle.next, previous = spot->idle.previous;
    if (next)
        spot_at(table, next)->idle.previous = previous;
    else
        table->idle_last = previous;
    if (previous)
        spot_at(table, previous)->idle.next = next;
    else
        table->idle_first = next;
    spot->groups = spot->takers = 0;
    table->idle_count--;
}

static void forget(struct table *table, u32 number) {
    struct spot *spot = spot_at(table, number);
    hash_remove(&table->names, &NAMES, table, number);
    grants_forget(&table->grants, number);
    if (spot->size > NAME_INSIDE) free((u8 *)(uintptr_t)spot_name(spot));
    pool_give(&table->spots, number);
}

static void forget_idle(struct table *table) {
    u32 number = table->idle_first;
    leave_idle(table, spot_at(table, number));
    forget(table, number);
    if (!table->idle_first) return;
    /* Many may leave one after the other: have the memory of those that are next come meanwhile, a step ahead of each. */
    const struct spot *next = spot_at(table, table->idle_first);
    u32 first = *hash_chain(&table->names, next->hash);
    if (first) __builtin_prefetch(spot_at(table, first));
    if (!next->idle.next) return;
    const struct spot *after = spot_at(table, next->idle.next);
    __builtin_prefetch(hash_chain(&table->names, after->hash));
    if (after->idle.next) __builtin_prefetch(spot_at(table, after->idle.next));
}

void table_forget_idle(struct table *table, u32 most) {
    while (most-- && table_has_idle(table)) forget_idle(table);
}

u32 spot_take(struct table *table, u32 topic, const u8 *name, u32 size) {
    u32 hash = name_hash(table, topic, name, size);
    u32 number = find(table, hash, topic, name, size);
    if (LIKELY(number)) {
        struct spot *spot = spot_at(table, number);
        if (!spot->references++ && !topic) leave_idle(table, spot);
        return number;
    }
    table_forget_idle(table, 2); /* more than come, so that there are never many more than were used at a time */
    number = pool_take(&table->spots);
    struct spot *spot = spot_at(table, number);
    memset(spot, 0, sizeof *spot);
    spot->hash = hash;
    spot->references = 1;
    spot->size = (u16)size;
    assert(spot->size == size && "a client's is no longer");
    if (topic) {
        spot->is_group = true;
        spot->of.topic = topic;
        spot_at(table, topic)->references++;
    }
    if (LIKELY(size <= NAME_INSIDE)) {
        memcpy(spot->name, name, size);
    } else {
        u8 *outside = memcpy(memory(size), name, size);
        memcpy(spot->name, &outside, sizeof outside);
    }
    hash_add(&table->names, &NAMES, table, number);
    return number;
}

void spot_drop(struct table *table, u32 number) {
    struct spot *spot = spot_at(table, number);
    assert(spot->references);
    if (--spot->references) return;
    assert(!spot->line.size && "a line refers to its spot");
    if (spot->is_group) {
        u32 topic = spot->of.topic;
        forget(table, number);
        spot_drop(table, topic);
        return;
    }
    assert(!spot->groups && !spot->takers && !spot->subscribers && !spot->audience);
    spot->idle.next = 0;
    spot->idle.previous = table->idle_last;
    if (table->idle_last)
        spot_at(table, table->idle_last)->idle.next = number;
    else
        table->idle_first = number;
    table->idle_last = number;
    table->idle_count++;
}

/* Whether somebody is at a topic; of those who are given what comes over a link its owner knows. */
static inline bool is_visited(const struct spot *topic) { return topic->line.size || topic->takers || topic->audience; }

u32 table_topics(const struct table *table, u32 *spots, u32 most) {
    u32 count = 0;
    for (u32 number = 0; count < most && (number = pool_next(&table->spots, number));) {
        const struct spot *spot = spot_at(table, number);
        if (!spot->references || spot->is_group) continue; /* one that is free has none */
        if (is_visited(spot)) spots[count++] = number;
    }
    return count;
}

/* Rows. */

struct row *row_new(struct table *table, u32 *number, enum kind kind, u32 topic, u32 group, double since) {
    *number = pool_take(&table->rows);
    struct row *row = row_at(table, *number);
    memset(row, 0, sizeof *row);
    if (UNLIKELY(!++table->generation)) table->generation = 1;
    row->generation = table->generation;
    row->kind = (u8)kind;
    row->topic = topic;
    row->since = since;
    row->arrival = ++table->arrivals;
    if (row_takes(row)) row->group = group;
    return row;
}

void row_free(struct table *table, u32 number) {
    struct row *row = row_at(table, number);
    assert(row->generation && !(row->flags & STANDS) && !row->offers && !row->peer && !row->bucket);
    if (row_sends(row))
        row_empty(table, row);
    else if (row_takes(row))
        spot_drop(table, row->group);
    if (UNLIKELY(row->extra)) {
        struct extra *extra = extra_at(table, row->extra);
        blob_drop(extra->id);
        blob_drop(extra->timed_out);
        blob_drop(extra->cancelled_by);
        pool_give(&table->extras, row->extra);
    }
    if (row->topic) spot_drop(table, row->topic);
    row->generation = 0;
    pool_give(&table->rows, number);
}

struct extra *row_extra(struct table *table, struct row *row) {
    if (!row->extra) {
        row->extra = pool_take(&table->extras);
        memset(extra_at(table, row->extra), 0, sizeof(struct extra));
    }
    return extra_at(table, row->extra);
}

void row_set_id(struct table *table, struct row *row, const u8 *id, u32 size) {
    row->id_size = (u8)size;
    if (size <= ID_INSIDE)
        memcpy(row->id, id, size);
    else
        row_extra(table, row)->id = blob_new(id, size);
}

void row_leave_spot(struct table *table, struct row *recv) {
    u32 topic = recv->topic;
    const struct spot *spot = spot_at(table, topic);
    assert(recv->kind == RECV && recv->is_carried && !recv->offers && !(recv->flags & NAMED));
    if (spot->size > NAME_INSIDE) return;
    memcpy(recv->name, spot->name, NAME_INSIDE);
    recv->name_size = (u8)spot->size;
    recv->flags |= NAMED;
    spot_drop(table, topic);
}

void row_take_spot(struct table *table, struct row *recv) {
    assert(recv->flags & NAMED);
    u32 topic = spot_take(table, 0, recv->name, recv->name_size);
    recv->flags &= (u8)~NAMED;
    recv->value = NULL;
    recv->size = recv->offers = 0;
    recv->topic = topic;
}

void row_own(struct table *table, struct row *send) {
    if (send->flags & OWNS || send->value == NULL) return;
    send->value = store_copy(&table->values, send->value, send->size);
    send->flags |= OWNS;
    table->borrowed--;
}

void row_empty(struct table *table, struct row *send) {
    if (send->value == NULL) return;
    if (send->flags & OWNS)
        store_give(&table->values, (u8 *)(uintptr_t)send->value, send->size);
    else
        table->borrowed--;
    send->value = NULL;
    send->flags &= (u8)~OWNS;
}

/* Rings through next and previous. */

void rows_add(struct table *table, u32 *first, u32 number, struct row *row, u32 after) {
    if (!*first) {
        *first = row->next = row->previous = number;
        return;
    }
    struct row *behind = row_at(table, after);
    u32 before = behind->previous;
    row->previous = before;
    row->next = after;
    row_at(table, before)->next = number;
    behind->previous = number;
}

void rows_remove(struct table *table, u32 *first, u32 number, struct row *row) {
    if (row->next == number) {
        *first = 0;
    } else {
        row_at(table, row->previous)->next = row->next;
        row_at(table, row->next)->previous = row->previous;
        if (*first == number) *first = row->next;
    }
    row->next = row->previous = 0;
}

void row_given(struct table *table, u32 listener, u32 send) {
    struct row *to = row_at(table, listener), *from = row_at(table, send);
    assert(!to->peer && !(to->flags & STANDS) && "one value at a time");
    to->peer = send;
    rows_add(table, &from->peer, listener, to, from->peer);
}

u32 row_decided(struct table *table, u32 listener) {
    struct row *to = row_at(table, listener);
    u32 send = to->peer;
    assert(send && "it was given a value");
    rows_remove(table, &row_at(table, send)->peer, listener, to);
    to->peer = 0;
    to->flags &= (u8)~(REMEMBERED | TAKEN_BACK);
    return send;
}

/* Lines. */

static inline bool precedes(const struct row *one, const struct row *other) {
    bool is_earlier = one->since == other->since ? (int32_t)(one->arrival - other->arrival) < 0 : one->since < other->since;
    return is_earlier && KEPT(WHO_RETURNS_HAS_ITS_PLACE);
}

/* Who stands behind the place of `row`, which is not the last place. */
static u32 successor(struct table *table, const struct line *line, const struct row *row) {
    const struct row *first = row_at(table, line->first);
    if (precedes(row, first)) return line->first; /* who came for it had no room, perhaps again and again */
    u32 after = line->returned ? line->returned : first->previous;
    while (precedes(row, row_at(table, row_at(table, after)->previous))) after = row_at(table, after)->previous;
    while (!precedes(row, row_at(table, after))) after = row_at(table, after)->next;
    return after;
}

static void line_add(struct table *table, struct line *line, u32 number, struct row *row) {
    u32 after = line->first;
    row->flags |= STANDS;
    line->size++;
    if (after && UNLIKELY(precedes(row, row_at(table, row_at(table, after)->previous)))) {
        after = successor(table, line, row);
        line->returned = number;
        u32 first = line->first;
        rows_add(table, &line->first, number, row, after);
        if (after == first) line->first = number;
        return;
    }
    rows_add(table, &line->first, number, row, after);
}

static void line_remove(struct table *table, struct line *line, u32 number, struct row *row) {
    assert(row->flags & STANDS);
    u32 previous = row->previous;
    row->flags &= (u8)~STANDS;
    line->size--;
    rows_remove(table, &line->first, number, row);
    if (!line->size)
        line->returned = 0;
    else if (line->returned == number)
        line->returned = previous;
}

/* Groups of a topic that have takers, in the order in which they came to have some. */

static void group_begins(struct table *table, u32 number, struct spot *group) {
    struct spot *topic = spot_at(table, group->of.topic);
    group->in_ring = true;
    if (!topic->groups) {
        topic->groups = group->of.next_group = group->of.previous_group = number;
        return;
    }
    struct spot *first = spot_at(table, topic->groups);
    u32 last = first->of.previous_group;
    group->of.next_group = topic->groups;
    group->of.previous_group = last;
    spot_at(table, last)->of.next_group = number;
    first->of.previous_group = number;
}

static void group_ends(struct table *table, u32 number, struct spot *group) {
    struct spot *topic = spot_at(table, group->of.topic);
    group->in_ring = false;
    if (group->of.next_group == number) {
        topic->groups = 0;
    } else {
        spot_at(table, group->of.previous_group)->of.next_group = group->of.next_group;
        spot_at(table, group->of.next_group)->of.previous_group = group->of.previous_group;
        if (topic->groups == number) topic->groups = group->of.next_group;
    }
}

void junction_wait(struct table *table, u32 call) {
    struct row *row = row_at(table, call);
    assert(!(row->flags & STANDS) && "it stands in one line");
    struct spot *topic = spot_at(table, row->topic);
    table->topic_count += !is_visited(topic);
    if (row_takes(row)) {
        struct spot *group = spot_at(table, row->group);
        if (!group->in_ring) group_begins(table, row->group, group);
        topic->takers++;
        line_add(table, &group->line, call, row);
        return;
    }
    assert((!topic->line.first || row_sends(row_at(table, topic->line.first)) == row_sends(row)) && "senders or listeners");
    line_add(table, &topic->line, call, row);
}

bool junction_withdraw(struct table *table, u32 call) {
    struct row *row = row_at(table, call);
    if (!(row->flags & STANDS)) return false;
    assert(row->kind != SUBSCRIBER);
    struct spot *topic = spot_at(table, row->topic);
    if (row_takes(row)) {
        struct spot *group = spot_at(table, row->group);
        line_remove(table, &group->line, call, row);
        topic->takers--;
        if (!group->line.size) group_ends(table, row->group, group);
    } else {
        line_remove(table, &topic->line, call, row);
    }
    table->topic_count -= !is_visited(topic);
    return true;
}

static inline void offer_to(struct table *table, u32 send, u32 listener) {
    if (table->judges->give(table, listener, send)) row_at(table, send)->offers++;
}

static void offer_to_group(struct table *table, u32 send, struct spot *group) {
    const struct row *row = row_at(table, send);
    u32 taker, before = row->offers;
    while ((taker = group->line.first) && row->offers == before) {
        junction_withdraw(table, taker);
        offer_to(table, send, taker);
    }
}

/* Those who take what nobody is to take twice; who is given it can change a group only by leaving it, so that the last
   that is asked is the one that was last at first. */
static void offer_to_groups(struct table *table, u32 send, struct spot *topic) {
    u32 last = spot_at(table, topic->groups)->of.previous_group, group = topic->groups, next;
    bool is_last;
    do {
        struct spot *at = spot_at(table, group);
        is_last = group == last;
        next = at->of.next_group;
        at->references++; /* its takers may all be gone by then */
        offer_to_group(table, send, at);
        spot_drop(table, group);
        group = next;
    } while (!is_last);
}

static void offer_to_subscribers(struct table *table, u32 send, u32 first) {
    u32 number = first;
    do {
        if (!(row_at(table, number)->flags & AFAR)) offer_to(table, send, number);
        number = row_at(table, number)->next;
    } while (number != first);
}

bool junction_send(struct table *table, u32 send) {
    struct row *row = row_at(table, send);
    struct spot *topic = spot_at(table, row->topic);
    /* One offer more while there are listeners to ask: one that is lost meanwhile is not the last hope. */
    row->offers++;
    if (topic->subscribers) offer_to_subscribers(table, send, topic->subscribers);
    if (topic->line.first && !row_sends(row_at(table, topic->line.first)))
        /* As many as stand there now: who is given it does not come back meanwhile. */
        for (u32 left = topic->line.size; left; left--) {
            u32 receiver = topic->line.first;
            line_remove(table, &topic->line, receiver, row_at(table, receiver));
            table->topic_count -= !is_visited(topic);
            offer_to(table, send, receiver);
        }
    if (topic->groups) offer_to_groups(table, send, topic);
    row->offers--;
    return row->offers > 0 || row_is_answered(row);
}

void junction_publish(struct table *table, u32 send) {
    row_at(table, send)->flags |= ANSWERED;
    junction_send(table, send);
}

/* Take the send that has waited longest, and have it wait again if the listener does not want it. */
static void give_oldest(struct table *table, u32 send, u32 listener) {
    struct row *row = row_at(table, send);
    junction_withdraw(table, send);
    u32 before = row->offers;
    offer_to(table, send, listener);
    if (row->offers == before && !row_is_answered(row)) junction_wait(table, send);
}

bool junction_listen(struct table *table, u32 listener) {
    u32 send = spot_at(table, row_at(table, listener)->topic)->line.first;
    if (!send || !row_sends(row_at(table, send))) return false;
    give_oldest(table, send, listener);
    return true;
}

/* So many more subscribe to a topic; or fewer, which is a number that wraps around. */
static void audience_changes(struct table *table, struct spot *topic, u32 by) {
    table->topic_count -= is_visited(topic);
    topic->audience += by;
    table->topic_count += is_visited(topic);
}

void junction_subscribe(struct table *table, u32 subscriber) {
    struct row *row = row_at(table, subscriber);
    struct spot *topic = spot_at(table, row->topic);
    if (!(row->flags & STANDS)) {
        row->flags |= STANDS;
        row->is_told = false; /* it has asked anew */
        rows_add(table, &topic->subscribers, subscriber, row, topic->subscribers);
        audience_changes(table, topic, row->audience);
    }
    u32 first = topic->line.first;
    if (!first || !row_sends(row_at(table, first))) return;
    struct words waiting = {0};
    for (u32 send = first, left = topic->line.size; left; left--, send = row_at(table, send)->next)
        words_add(&waiting, send);
    for (u32 at = 0; at < waiting.size; at++) give_oldest(table, (u32)waiting.items[at], subscriber);
    words_free(&waiting);
}

void junction_hear_afar(struct table *table, u32 subscriber) {
    struct row *row = row_at(table, subscriber);
    assert(!(row->flags & STANDS));
    u32 *first = &spot_at(table, row->topic)->subscribers;
    row->flags |= STANDS | AFAR;
    rows_add(table, first, subscriber, row, *first);
}

void junction_unsubscribe(struct table *table, u32 subscriber) {
    struct row *row = row_at(table, subscriber);
    if (!(row->flags & STANDS)) return;
    struct spot *topic = spot_at(table, row->topic);
    if (!(row->flags & AFAR)) audience_changes(table, topic, 0 - row->audience);
    row->flags &= (u8)~(STANDS | AFAR);
    rows_remove(table, &topic->subscribers, subscriber, row);
}

void junction_resize(struct table *table, u32 subscriber, u32 audience) {
    struct row *row = row_at(table, subscriber);
    if ((row->flags & (STANDS | AFAR)) == STANDS) {
        struct spot *topic = spot_at(table, row->topic);
        audience_changes(table, topic, audience - row->audience);
    }
    row->audience = audience;
}

void junction_confirm(struct table *table, u32 send) {
    struct row *row = row_at(table, send);
    MUST(row->offers && "each offer has one outcome");
    row->offers--;
    if (!row_is_answered(row)) {
        row->flags |= ANSWERED;
        table->judges->met(table, send);
    }
}

void junction_lost(struct table *table, u32 send) {
    struct row *row = row_at(table, send);
    MUST(row->offers && "each offer has one outcome");
    row->offers--;
    if (!row->offers && !row_is_answered(row)) table->judges->missed(table, send);
}

void junction_resume(struct table *table, u32 send) {
    assert(!row_at(table, send)->offers && !row_is_answered(row_at(table, send)));
    if (!junction_send(table, send)) junction_wait(table, send);
}
