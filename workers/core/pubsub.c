#include "pubsub.h"

#include "life.h"
#include "link.h"

enum code { PUBLISH = 1, SUBSCRIBE, UNSUBSCRIBE, ACK, SUBSCRIBE_TYPED, PUBLISH_TYPED };

#define MAX_IN_FLIGHT (256u * 1024) /* bytes of one connection on their way to other workers before it is heard on */

u32 pubsub_size(const u8 *data, u32 size) {
    if (!size) return 0;
    if (data[0] == ACK) return 1;
    if (!data[0] || data[0] > PUBLISH_TYPED) return size; /* where it ends is unknown, so nothing after it can be read */
    if (size < 2) return 0;
    u32 end = 2u + data[1];
    if (data[0] == PUBLISH || data[0] == PUBLISH_TYPED) {
        end += 2 + (data[0] == PUBLISH ? 0 : FORM_BYTES);
        if (end > size) return 0;
        end += data[end - 2] | (u32)data[end - 1] << 8;
    }
    return end <= size ? end : 0;
}

/* What is to be acked. */

bool pubsub_must_wait(const struct core *core, const struct connection *connection, u8 code) {
    const struct publisher *publisher = connection->publisher;
    if (publisher->is_over) return true;
    if (!publisher->count) return false;
    /* What is published and what is subscribed to go different ways to the owner: neither may overtake the other. */
    bool is_publish = code == PUBLISH || code == PUBLISH_TYPED;
    return publisher->is_gated || (is_publish ? publisher->changes : publisher->in_flight) ||
           publisher->in_flight > MAX_IN_FLIGHT || core->bytes_held > core->limits.waiting_bytes ||
           publisher->count >= core->limits.max_calls;
}

static struct due *due_at(const struct publisher *publisher, u32 at) {
    return publisher->dues + ((publisher->first + at) & (publisher->room - 1));
}

static struct due *await(struct publisher *publisher) {
    if (publisher->count == publisher->room) {
        u32 room = publisher->room ? 2 * publisher->room : 8;
        struct due *dues = memory(room * sizeof *dues);
        for (u32 at = 0; at < publisher->count; at++) dues[at] = *due_at(publisher, at);
        free(publisher->dues);
        publisher->dues = dues;
        publisher->room = room;
        publisher->first = 0;
    }
    struct due *due = due_at(publisher, publisher->count++);
    *due = (struct due){0};
    return due;
}

static void write_late(struct core *core, struct connection *connection, u64 said);

static void say(struct core *core, struct connection *connection, u32 acks) {
    static const u8 ACKED = ACK;
    struct publisher *publisher = connection->publisher;
    for (; acks && publisher->late_count; acks--) {
        /* One by one, since each message comes right behind the ack that it waits for. */
        publisher->said++;
        output_push(core, connection, &ACKED, 1);
        write_late(core, connection, publisher->said);
        output_give_back(core, connection);
    }
    publisher->said += acks;
    if (acks) memset(output_place(core, connection, acks), ACKED, acks);
    if (publisher->is_over && !publisher->count) core->owner.is_through(core->owner.its, connection_handle(connection));
}

static void hand_out(struct core *core, struct connection *connection, u32 count) {
    struct publisher *publisher = connection->publisher;
    if (!KEPT(AN_ACK_COMES_LAST)) {
        say(core, connection, count);
        return;
    }
    if (!publisher->acks) words_add(&core->acks, connection_handle(connection) | LATER_CONNECTION);
    publisher->acks += count;
}

/* Say what is in effect: of what was published, once it is written. */
static void acknowledge(struct core *core, struct connection *connection) {
    struct publisher *publisher = connection->publisher;
    u32 acks = 0;
    bool changed = false;
    while (publisher->count && due_at(publisher, 0)->is_done) {
        const struct due *due = due_at(publisher, 0);
        publisher->in_flight -= due->size;
        core->bytes_held -= due->size;
        publisher->changes -= due->is_change;
        changed = changed || due->is_change;
        publisher->first = (publisher->first + 1) & (publisher->room - 1);
        publisher->count--;
        acks++;
    }
    if (connection->flags & (LEAVES | IS_CLOSED)) return;
    if (!publisher->count) {
        publisher->is_gated = false;
        assert(!publisher->in_flight && !publisher->changes && "what is acked is not on its way any more");
    }
    if (changed)
        say(core, connection, acks); /* now, since what comes to the topic from now on is written behind it */
    else if (acks)
        hand_out(core, connection, acks);
    if (connection->flags & IS_PUT_OFF) core_attend_later(core, connection);
}

void publisher_done(struct core *core, struct connection *connection, u64 place) {
    struct publisher *publisher = connection->publisher;
    if (publisher == NULL) return; /* the connection is gone */
    u64 before = publisher->asked - publisher->count;
    assert(place > before && place <= publisher->asked);
    due_at(publisher, (u32)(place - before) - 1)->is_done = true;
    acknowledge(core, connection);
}

u64 publisher_awaits(struct connection *connection) {
    struct publisher *publisher = connection->publisher;
    await(publisher)->is_change = true;
    publisher->changes++;
    return ++publisher->asked;
}

void pubsub_acknowledge(struct core *core, struct connection *connection) {
    struct publisher *publisher = connection->publisher;
    if (publisher == NULL || !publisher->acks || connection->flags & (LEAVES | IS_CLOSED)) return;
    u32 acks = publisher->acks;
    publisher->acks = 0;
    say(core, connection, acks);
}

bool publisher_is_owed(const struct connection *connection) {
    return connection->publisher != NULL && (connection->publisher->count || connection->publisher->acks);
}

bool publisher_rests(const struct connection *connection) {
    const struct publisher *publisher = connection->publisher;
    return !publisher->count && !publisher->acks && !publisher->late_count && !publisher->is_over;
}

void publishers_hold_back(struct core *core) {
    const struct connection *connection;
    for (u32 number = 0; (connection = connection_next(core, &number));) {
        struct publisher *publisher = connection->publisher;
        if (publisher != NULL) publisher->is_gated = publisher->count != 0 && KEPT(PUBLISHERS_WAIT);
    }
}

void publisher_publish(struct core *core, struct connection *connection, struct publication *what) {
    struct publisher *publisher = connection->publisher;
    what->place = ++publisher->asked;
    u32 way = topic_way(core, what->topic), size = what->size;
    if (way)
        move_pull(core, connection, link_at(core, way));
    else
        move_push(connection);
    u64 published = call_publish(core, connection, what);
    if (connection->publisher == NULL) { /* should that have closed it */
        publication_orphan(core, published);
        return;
    }
    if (!published && !publisher->count) {
        hand_out(core, connection, 1);
        return;
    }
    *await(publisher) = (struct due){.published = published, .size = size, .is_done = !published};
    publisher->in_flight += size;
    core->bytes_held += size;
    if (way && link_is_congested(core, link_at(core, way))) publisher->is_gated = true;
}

/* What it says. */

/* Whether bytes are UTF-8, as Python has it. */
static bool is_text(const u8 *data, u32 size) {
    for (u32 at = 0; at < size;) {
        u8 head = data[at];
        u32 more = head < 0x80 ? 0 : head >= 0xC2 && head < 0xE0 ? 1 : (head & 0xF0) == 0xE0 ? 2 : head >= 0xF0 && head < 0xF5 ? 3 : 4;
        if (more == 4 || size - at <= more) return false;
        for (u32 each = 1; each <= more; each++)
            if ((data[at + each] & 0xC0) != 0x80) return false;
        u8 second = more ? data[at + 1] : 0;
        if ((head == 0xE0 && second < 0xA0) || (head == 0xED && second >= 0xA0)) return false;
        if ((head == 0xF0 && second < 0x90) || (head == 0xF4 && second >= 0x90)) return false;
        at += 1 + more;
    }
    return true;
}

/* The bus's name of a topic: the string of these bytes, or the binary where they are no text. */
static u32 bus_topic(u8 *place, const u8 *topic, u32 size) {
    u32 head = 2;
    if (!is_text(topic, size)) {
        place[0] = 0xC4, place[1] = (u8)size;
    } else if (size < 32) {
        place[0] = (u8)(0xA0 | size), head = 1;
    } else {
        place[0] = 0xD9, place[1] = (u8)size;
    }
    memcpy(place + head, topic, size);
    return head + size;
}

static const u8 *bus_value(struct core *core, const u8 *payload, u32 size, u32 *taken) {
    u8 *place = input_room(core, size + 3);
    u32 head = size < 256 ? 2 : 3;
    place[0] = size < 256 ? 0xC4 : 0xC5;
    place[1] = (u8)(size < 256 ? size : size >> 8);
    if (head == 3) place[2] = (u8)size;
    memcpy(place + head, payload, size);
    *taken = head + size;
    input_use(core, *taken);
    return place;
}

/* Publish, if that may be done without another look at it. */
static bool publish(struct core *core, struct connection *connection, const u8 *data, u32 size) {
    bool is_typed = data[0] == PUBLISH_TYPED;
    const u8 *form = data + 2 + data[1], *payload = form + (is_typed ? FORM_BYTES : 0) + 2;
    if (is_typed && form[1] & COMPRESSED) return false;
    u8 name[2 + 255];
    u32 name_size = bus_topic(name, data + 2, data[1]);
    struct publication what = {.topic = spot_take(&core->table, 0, name, name_size)};
    if (connection->account && !grants_has(&core->table.grants, what.topic, connection->account, MAY_PUBLISH)) {
        spot_drop(&core->table, what.topic);
        return false;
    }
    what.value = bus_value(core, payload, (u32)(data + size - payload), &what.size);
    if (is_typed) what.form = form, what.form_size = FORM_BYTES;
    publisher_publish(core, connection, &what);
    return true;
}

void pubsub_obey(struct core *core, struct connection *connection, const u8 *data, u32 size, bool rests, bool goes_on) {
    u32 at = 0, length, done = 0;
    bool fresh = false, waits = false;
    while (!rests && (length = pubsub_size(data + at, size - at))) {
        u8 code = data[at];
        bool is_publish = code == PUBLISH || code == PUBLISH_TYPED;
        fresh = !goes_on;
        if (!(core->standing & OPENING)) {
            if ((waits = pubsub_must_wait(core, connection, code))) break;
            if ((rests = connection->publisher->acks && !is_publish)) break; /* its ack comes behind those, and at once */
        }
        if (!input_may_be_done(core, connection, data + at, length)) {
            if (connection->flags & PAUSES) break;
        } else if (!is_publish || !publish(core, connection, data + at, length)) {
            core->owner.unusual(core->owner.its, connection_handle(connection), data + at, length);
        }
        at += length;
        if (UNLIKELY(core->later.size)) turn_attend(core);
        if (UNLIKELY(connection->flags & (LEAVES | IS_CLOSED))) return;
        /* A few bytes may hold much, or ask for much; a publish does not, and to look at the clock takes time, too. */
        rests = (!(++done & 7) || code != PUBLISH) && input_has_had_its_share(core, connection);
    }
    if (connection->flags & (LEAVES | IS_CLOSED)) return;
    if (waits) connection->flags |= IS_PUT_OFF | PAUSES;
    input_keep(core, connection, data + at, size - at, rests && !waits, fresh);
}

void pubsub_hung_up(struct core *core, struct connection *connection) {
    /* It may only have ended its own half, and wait for acks. */
    if (publisher_is_owed(connection)) {
        connection->publisher->is_over = true;
        connection->flags |= UNHEARD;
        core_mask(core, connection);
    } else if (connection->out_size && !(connection->flags & (CHOKED | LEAVES))) {
        core->owner.is_through(core->owner.its, connection_handle(connection));
    } else {
        core_close_connection(core, connection, BY_PEER, 0);
    }
}

/* What it is told. */

static const u8 *payload_of(const struct row *send, u32 *size) {
    u8 head = send->value[0];
    u32 skipped = 0;
    if ((head >= 0xA0 && head < 0xC0)) skipped = 1;
    if (head == 0xC4 || head == 0xD9) skipped = 2;
    if (head == 0xC5 || head == 0xDA) skipped = 3;
    if (head == 0xC6 || head == 0xDB) skipped = 5;
    *size = send->size - skipped;
    return send->value + skipped;
}

struct words_for {
    const u8 *topic, *form, *payload;
    u32 topic_size, form_size, payload_size;
};

static u32 size_of(const struct words_for *words) { return 4 + words->topic_size + words->form_size + words->payload_size; }

static void word(u8 *place, const struct words_for *words) {
    *place++ = words->form_size ? PUBLISH_TYPED : PUBLISH;
    *place++ = (u8)words->topic_size;
    memcpy(place, words->topic, words->topic_size);
    place += words->topic_size;
    memcpy(place, words->form, words->form_size);
    place += words->form_size;
    *place++ = (u8)words->payload_size;
    *place++ = (u8)(words->payload_size >> 8);
    memcpy(place, words->payload, words->payload_size);
}

static struct words_for words_for(const struct core *core, const struct row *subscriber, const struct row *send) {
    static const u8 UNTYPED[FORM_BYTES] = {0, 0};
    struct words_for words = {.topic = row_id(core, subscriber), .topic_size = subscriber->id_size, .form = UNTYPED};
    words.payload = payload_of(send, &words.payload_size);
    if (!subscriber->is_typed) return words;
    words.form_size = FORM_BYTES;
    const struct blob *form = row_form(&core->table, send);
    if (form == NULL || form->size < FORM_BYTES) return words; /* one may come from elsewhere */
    words.form = form->data;
    if (form->size > FORM_BYTES) {
        words.payload = form->data + FORM_BYTES;
        words.payload_size = form->size - FORM_BYTES;
    }
    return words;
}

const struct told *pubsub_words(struct core *core, const struct row *subscriber, u32 send) {
    const struct row *from = row_at(&core->table, send);
    struct told *told = core->told + (subscriber->is_typed ? TYPED : PLAIN);
    u64 handle = row_handle(send, from);
    if (told_has(told, handle, 0) && told_names(told, row_id(core, subscriber), subscriber->id_size)) return told;
    struct words_for words = words_for(core, subscriber, from);
    if (words.payload_size > UINT16_MAX) return NULL; /* another node's clients may have other limits */
    word(told_place(told, handle, 0, size_of(&words), 2, subscriber->id_size), &words);
    return told;
}

static void put_behind(struct core *core, struct connection *connection, u64 place, u32 delivery, struct blob *words) {
    struct publisher *publisher = connection->publisher;
    if (publisher->late_first + publisher->late_count == publisher->late_room) {
        if (publisher->late_first > publisher->late_room / 2) {
            memmove(publisher->late, publisher->late + publisher->late_first, publisher->late_count * sizeof *publisher->late);
        } else {
            u32 room = publisher->late_room ? 2 * publisher->late_room : 16;
            struct late *late = memory(room * sizeof *late);
            if (publisher->late_count)
                memcpy(late, publisher->late + publisher->late_first, publisher->late_count * sizeof *late);
            free(publisher->late);
            publisher->late = late;
            publisher->late_room = room;
        }
        publisher->late_first = 0;
    }
    if (delivery) {
        /* Or, cancelled just when this is about to be written, its sender is told that nobody has it. */
        struct row *row = row_at(&core->table, delivery);
        row->is_out = true;
        row->flags |= REMEMBERED;
        call_hold(core, row->peer);
    }
    publisher->late[publisher->late_first + publisher->late_count++] = (struct late){place, delivery, words};
    publisher->late_bytes += words->size;
    if (publisher->late_bytes > core->limits.subscriber_buffer)
        write_late(core, connection, publisher->asked); /* so much is not kept for anybody */
}

static void write_delivery(struct core *core, struct connection *connection, u32 delivery, const u8 *words, u32 size) {
    if (connection->flags & CHOKED) {
        struct row *row = row_at(&core->table, delivery);
        row->flags |= REMEMBERED;
        call_hold(core, row->peer);
    }
    u32 begin = connection->out_size;
    u8 *place = output_begin_value(core, connection, size);
    memcpy(place, words, size);
    output_mark(connection, delivery, begin);
}

/* Write what waits for no more acks than those. */
static void write_late(struct core *core, struct connection *connection, u64 said) {
    struct publisher *publisher = connection->publisher;
    while (publisher->late_count && publisher->late[publisher->late_first].place <= said) {
        struct late late = publisher->late[publisher->late_first++];
        publisher->late_count--;
        publisher->late_bytes -= late.words->size;
        if (late.delivery) row_at(&core->table, late.delivery)->is_out = false;
        if (!late.delivery) {
            output_push(core, connection, late.words->data, late.words->size);
        } else if (row_at(&core->table, late.delivery)->flags & TAKEN_BACK) {
            call_lost(core, late.delivery);
            call_listens_again(core, late.delivery);
        } else {
            write_delivery(core, connection, late.delivery, late.words->data, late.words->size);
        }
        blob_drop(late.words);
        output_see_that_it_is_read(core, connection);
    }
}

/* Behind which of its acks a connection is told of what it has itself published, here or where the topic is owned. */
static u64 place_of(const struct core *core, const struct connection *connection, const struct row *value) {
    if (value->kind == PASSING) {
        u64 sent_as = word_at(value->id);
        u32 number = sent_as >> 56 == NUMBER_OF_HOME >> 56 ? number_find(core, sent_as) : 0;
        if (!number) return 0;
        value = row_at(&core->table, number);
    }
    return value->kind == PUBLICATION && value->caller == connection->number ? value->place : 0;
}

void pubsub_tell(struct core *core, struct connection *connection, const struct told *words, u32 send, u32 delivery) {
    struct publisher *publisher = connection->publisher;
    const struct row *from = row_at(&core->table, send);
    u64 place = !delivery && publisher->asked != publisher->said ? place_of(core, connection, from) : 0;
    if (publisher->late_count || place > publisher->said) {
        put_behind(core, connection, place, delivery, blob_new(words->words, words->last.size));
        return;
    }
    if (delivery && connection->flags & CHOKED) {
        row_at(&core->table, delivery)->flags |= REMEMBERED;
        call_hold(core, send);
    }
    output_share(core, connection, words, delivery);
    output_see_that_it_is_read(core, connection);
}

void pubsub_forget(struct core *core, struct connection *connection) {
    struct publisher *publisher = connection->publisher;
    if (publisher == NULL) return;
    connection->publisher = NULL;
    core->bytes_held -= publisher->in_flight;
    for (u32 at = 0; at < publisher->count; at++) {
        const struct due *due = due_at(publisher, at);
        if (!due->is_done) publication_orphan(core, due->published);
    }
    for (u32 at = 0; at < publisher->late_count; at++) {
        struct late *late = publisher->late + publisher->late_first + at;
        if (late->delivery) call_drop(core, late->delivery, GONE);
        blob_drop(late->words);
    }
    free(publisher->dues);
    free(publisher->late);
    free(publisher);
}
