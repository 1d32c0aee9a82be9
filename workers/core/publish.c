/* What waits for nobody: a value for all who listen now, and wills, which become such a value. Where another worker owns
   its topic it is in effect once that one says so; its connection may be gone by then. */
#include "life.h"
#include "link.h"
#include "pubsub.h"

static u32 publication(struct core *core, struct connection *caller, u32 topic, u32 size, u64 place) {
    u32 number;
    struct row *row = row_new(&core->table, &number, PUBLICATION, topic, 0, core->now);
    row->caller = caller->number;
    row->state = DONE; /* nobody keeps track of it as of a call that waits, since it has no time of its own */
    row->size = size;
    row->place = place;
    caller->rows++;
    return number;
}

static u32 cost(const struct core *core, const struct row *row) {
    return WAITING_CALL_BYTES + spot_at(&core->table, row->topic)->size + row->size;
}

/* Hand it out where its topic is owned; whether it is in effect. */
static bool hand_out(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    u32 way = topic_way(core, row->topic);
    if (UNLIKELY(way)) {
        row_own(&core->table, row); /* it may have to go elsewhere */
        outbound_forward(core, link_at(core, way), number);
        return false;
    }
    junction_publish(&core->table, number);
    row_empty(&core->table, row); /* whoever is given it has it written, or copied, by then */
    return !row->delays;
}

void publication_settle(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    struct connection *caller = caller_of(core, row);
    row_empty(&core->table, row);
    call_count(core, row, PROMPT);
    if (row->flags & ORPHANED) {
        core->orphans--;
        core->bytes_held -= cost(core, row);
    } else if (row->place) {
        publisher_done(core, caller, row->place);
    }
    call_free_if_done(core, number);
}

void publication_goes_on(struct core *core, u32 number) {
    if (hand_out(core, number)) publication_settle(core, number);
}

void publication_delayed_no_more(struct core *core, u32 number) {
    struct row *row = row_at(&core->table, number);
    assert(row->delays && row->offers);
    row->offers--;
    if (--row->delays) return;
    if (row->kind == IN_PUBLICATION)
        inbound_published(core, number);
    else
        publication_settle(core, number);
}

/* Its connection is gone. */
static void orphan(struct core *core, struct row *row) {
    row->flags |= ORPHANED;
    core->orphans++;
    core->bytes_held += cost(core, row);
}

void publications_reroute(struct core *core) {
    struct words found = {0};
    for (u32 at = 0; (at = pool_next(&core->links, at));) {
        const struct link *link = link_at(core, at);
        u32 first = link->generation ? link->forwarded : 0, number = first;
        while (number) {
            const struct row *row = row_at(&core->table, number);
            if (row->kind == PUBLICATION) words_add(&found, row_handle(number, row));
            number = row->next == first ? 0 : row->next;
        }
    }
    calls_by_arrival(core, &found);
    for (u32 at = 0; at < found.size; at++) {
        u32 number = row_find(&core->table, found.items[at]);
        if (!number) continue;
        const struct row *row = row_at(&core->table, number);
        if (row->is_carried && row->carrier != topic_way(core, row->topic)) outbound_ask_back(core, number);
    }
    words_free(&found);
}

void publication_orphan(struct core *core, u64 handle) {
    u32 number = row_find(&core->table, handle);
    if (number) orphan(core, row_at(&core->table, number));
}

u64 call_publish(struct core *core, struct connection *caller, const struct publication *what) {
    u32 number = publication(core, caller, what->topic, what->size, what->place);
    struct row *row = row_at(&core->table, number);
    row->value = what->value;
    core->table.borrowed++;
    if (what->form_size) row_extra(&core->table, row)->form = blob_new(what->form, what->form_size);
    u64 handle = row_handle(number, row);
    if (!hand_out(core, number)) return handle;
    row->place = 0; /* its caller sees that it is */
    publication_settle(core, number);
    return 0;
}

enum refusal call_will(struct core *core, struct connection *caller, const struct call *call) {
    u32 number;
    struct row *row = row_new(&core->table, &number, WILL, call->topic, 0, core->now);
    row->deadline = core->now + call->seconds;
    row->caller = caller->number;
    caller->rows++;
    row_set_id(&core->table, row, call->id, call->id_size);
    row->value = call->value;
    row->size = call->value_size;
    core->table.borrowed++;
    enum refusal why = call_admit(core, caller, row);
    if (why) {
        row->state = DONE;
        call_free(core, number);
    } else {
        call_become(core, number, row, KEPT);
    }
    return why;
}

void call_testify(struct core *core, u32 will) {
    struct row *from = row_at(&core->table, will);
    spot_refer(&core->table, from->topic);
    u32 number = publication(core, caller_of(core, from), from->topic, from->size, 0);
    struct row *row = row_at(&core->table, number);
    row->value = from->value;
    row->flags |= from->flags & OWNS;
    from->value = NULL;
    from->flags &= (u8)~OWNS;
    orphan(core, row);
    publication_goes_on(core, number);
}

u32 call_deliver(struct core *core, struct connection *caller, u32 send) {
    u32 delivery;
    const struct row *from = row_at(&core->table, send);
    struct row *row = row_new(&core->table, &delivery, DELIVERY, 0, 0, from->since);
    row->caller = caller->number;
    caller->rows++;
    row->state = GIVEN;
    row_given(&core->table, delivery, send);
    if (row_is_foreign(from)) row->flags |= REMEMBERED;
    return delivery;
}

bool call_give_to_subscriber(struct core *core, struct connection *caller, u32 subscriber, u32 send) {
    struct table *table = &core->table;
    const struct row *to = row_at(table, subscriber), *from = row_at(table, send);
    bool is_pubsub = caller->door == PUBSUB_DOOR;
    if (caller->flags & (LEAVES | IS_CLOSED) || output_is_flooded(core, caller)) return false;
    u32 size = 10u + to->id_size + from->size;
    if (UNLIKELY(size > MAX_FRAME) && !is_pubsub) {
        core->owner.failed(core->owner.its, connection_handle(caller), M_MESSAGE, row_id(core, to), to->id_size, NULL,
                           REPLY_TOO_LARGE, size, MAX_FRAME);
        return false;
    }
    const struct told *words = is_pubsub ? pubsub_words(core, to, send) : NULL;
    if (is_pubsub && UNLIKELY(words == NULL)) return false;
    if (row_is_answered(from)) {
        if (is_pubsub)
            pubsub_tell(core, caller, words, send, 0);
        else
            output_message(core, caller, to, send, 0);
        output_see_that_it_is_read(core, caller);
        return false;
    }
    if (is_pubsub) {
        pubsub_tell(core, caller, words, send, call_deliver(core, caller, send));
        return true;
    }
    /* What is written in this very turn needs no row to be asked for: only where it is not does choke() make one. */
    u32 listener = send;
    if (UNLIKELY(caller->flags & CHOKED || row_is_foreign(from))) {
        listener = call_deliver(core, caller, send);
        if (caller->flags & CHOKED) {
            row_at(table, listener)->flags |= REMEMBERED;
            call_hold(core, send);
        }
    }
    output_message(core, caller, to, send, listener);
    output_see_that_it_is_read(core, caller);
    return true;
}
