/* Where calls go: to the table here, to another worker, or to wait for one; and what becomes of those that were elsewhere.
   An owner is there to be asked, over a link, or is not now: then they wait for it at a link that is none. */
#include "life.h"
#include "link.h"

static u32 topic_owner(struct core *core, u32 topic) {
    if (!core->ring.count) return core->here;
    struct spot *spot = spot_at(&core->table, topic);
    if (LIKELY(spot->ring == core->ring.version)) return spot->owner;
    u32 owner = ring_owner(&core->ring, token_of(spot_name(spot), spot->size));
    if (owner > UINT16_MAX) return owner; /* it is looked up each time */
    spot->owner = (u16)owner;
    spot->ring = core->ring.version;
    return owner;
}

u32 way_absent(struct core *core, u32 owner) {
    struct way *way = core->ways + owner;
    if (!way->absent) {
        way->absent = link_open(core, -1, 0, LINK_ABSENT);
        link_at(core, way->absent)->owner = owner;
    }
    return way->absent;
}

static u32 way_to(struct core *core, u32 owner) {
    if (!core->way_count) return 0; /* this worker ends */
    assert(owner < core->way_count);
    struct way *way = core->ways + owner;
    if (UNLIKELY(!way->now && owner != core->here)) way->now = way_absent(core, owner);
    return way->now;
}

u32 topic_way(struct core *core, u32 topic) {
    return LIKELY(!core->way_count) ? 0 : way_to(core, topic_owner(core, topic));
}

u32 call_way(struct core *core, const struct row *row) {
    if (LIKELY(!(row->flags & NAMED))) return topic_way(core, row->topic);
    return way_to(core, core->ring.count ? ring_owner(&core->ring, token_of(row->name, row->name_size)) : core->here);
}

/* Have a call wait where its topic is owned. It may be gone afterwards. */
void call_go(struct core *core, u32 number, u32 way) {
    struct row *row = row_at(&core->table, number);
    struct link *link = link_at(core, way);
    if (!call_is_kept(row)) {
        enum refusal why = link_is_congested(core, link) ? MESH_IS_FULL : call_admit(core, caller_of(core, row), row);
        if (why) {
            call_fail(core, number, why, 0, 0);
            call_free_if_done(core, number);
            return;
        }
        call_become(core, number, row, KEPT);
        move_pull(core, caller_of(core, row), link);
    }
    outbound_forward(core, link, number);
    if (row->deadline <= core->now) call_ends(core, number);
}

void call_returned(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    assert(!row->is_carried);
    if (row->kind == PUBLICATION) {
        publication_goes_on(core, number);
        return;
    }
    call_become(core, number, row, RETURNED);
    if (row->state == ENDING)
        call_over(core, number);
    else if (core->standing & LEAVING)
        call_fail(core, number, DRAINS, 0, 0);
    else {
        struct connection *caller = caller_of(core, row);
        if (caller->flags & MOVES)
            move_goes_on(core, caller); /* it rests until that is over, and may be what that waits for */
        else
            call_meet(core, number);
        return;
    }
    call_free_if_done(core, number);
}

void calls_reroute(struct core *core, struct connection *connection) {
    if (connection->flags & MOVES) return; /* who adopts them does */
    struct words calls = calls_in(core, &connection->waiting);
    calls_by_age(core, &calls);
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        const struct row *row = number ? row_at(&core->table, number) : NULL;
        if (!number || !call_is_kept(row)) continue;
        u32 way = call_way(core, row);
        if (row->is_carried) {
            if (row->carrier != way) outbound_ask_back(core, number);
        } else if (way && junction_withdraw(&core->table, number)) {
            call_go(core, number, way);
        }
    }
    words_free(&calls);
}

void calls_ask_back(struct core *core, const struct connection *connection) {
    if (connection->flags & MOVES) return;
    struct words calls = calls_in(core, &connection->waiting);
    calls_by_age(core, &calls);
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        if (number && call_is_kept(row_at(&core->table, number)) && row_at(&core->table, number)->is_carried)
            outbound_ask_back(core, number);
    }
    words_free(&calls);
}

bool calls_are_elsewhere(const struct core *core, const struct connection *connection) {
    struct words calls = calls_in(core, &connection->waiting);
    bool are = false;
    for (u32 at = 0; at < calls.size && !are; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        are = number && row_at(&core->table, number)->is_carried;
    }
    words_free(&calls);
    return are;
}

static void catch_up_with(struct core *core, struct link *link) {
    if (!link->life) {
        link_catch_up(core, link);
        return;
    }
    struct words siblings = {0}; /* any of them may know */
    for (u32 at = 0; at < core->linked.size; at++)
        if (link_at(core, (u32)core->linked.items[at])->life) words_add(&siblings, core->linked.items[at]);
    for (u32 at = 0; at < siblings.size; at++) link_catch_up(core, link_at(core, (u32)siblings.items[at]));
    words_free(&siblings);
}

/* It may be us who had no processor in the meantime, and times run out before anything is read. */
void call_hear_last_words(struct core *core, u32 number) {
    const struct row *row = row_at(&core->table, number);
    if (row->is_carried) {
        if (!(carrier_of(core, row)->flags & LINK_ABSENT)) catch_up_with(core, carrier_of(core, row));
        return;
    }
    if (!row->peer) return;
    struct words links = {0};
    u32 listener = row->peer;
    do {
        const struct row *each = row_at(&core->table, listener);
        if (row_is_foreign(each)) words_add(&links, each->caller);
        listener = each->next;
    } while (listener != row->peer);
    for (u32 at = 0; at < links.size; at++) link_catch_up(core, link_at(core, (u32)links.items[at]));
    words_free(&links);
}

/* Have what waited for an owner to be there go to it, in the order in which it came to this worker. */
static void lead_those_who_wait(struct core *core, struct link *absent, struct link *link) {
    struct words calls = {0};
    while (absent->forwarded) {
        u32 number = absent->forwarded;
        struct row *row = row_at(&core->table, number);
        words_add(&calls, row_handle(number, row));
        outbound_unlink(core, number, row);
    }
    calls_by_age(core, &calls);
    for (u32 at = 0; at < calls.size; at++) {
        u32 number = row_find(&core->table, calls.items[at]);
        if (!number) continue;
        outbound_forward(core, link, number);
        if (row_at(&core->table, number)->state != ENDING) continue;
        outbound_ask_back(core, number);
        call_postpone(core, number, link->grace_s);
    }
    words_free(&calls);
}

void core_ways(struct core *core, u32 count) {
    core->ways = memory_again(core->ways, count * sizeof *core->ways);
    while (core->way_count < count) core->ways[core->way_count++] = (struct way){0};
}

void core_lead(struct core *core, u32 owner, u32 link) {
    if (!core->way_count) return; /* this worker ends */
    assert(owner < core->way_count);
    struct way *way = core->ways + owner;
    way->now = link ? link : way_absent(core, owner);
    if (!link) return;
    link_at(core, link)->owner = owner;
    if (way->absent) lead_those_who_wait(core, link_at(core, way->absent), link_at(core, link));
}
