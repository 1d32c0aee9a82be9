/* What a connection is still to be written: one growing buffer, in which some stretches are values. A sender is told
   `true` only once the kernel has taken its value for a listener, so it is remembered whose they are. One write a turn
   usually takes all, and every value in it is confirmed. If it does not, the connection is CHOKED: nothing is read from it
   and no value is given to it until the rest is written, what has not been begun can still be taken back, and a peer that
   reads nothing for too long is cut off. A subscriber gets its values nevertheless, up to a limit. Past that it is cut off
   as well.

   What many are told stays where their words were made, and only where it begins and ends is kept, as long as it is the
   last that is to be written. Most who are told something are told nothing else in that turn. */
#include "life.h"

#include <errno.h>

#define OUT_BYTES 4096u
#define SLACK 32u /* bytes behind what is to be written that may be scribbled on */

static u32 unwritten(const struct connection *connection) {
    assert(connection->written <= connection->out_size);
    return connection->out_size - connection->written;
}

static bool is_open(const struct connection *connection) { return !(connection->flags & IS_CLOSED); }

static u32 owned(const struct connection *connection) { return connection->out_size - connection->shared_size; }

/* Take its buffer, of so many bytes, from a connection that has nothing more in it. */
static u8 *take_buffer(struct connection *connection, u32 *room) {
    u8 *buffer = connection->out;
    *room = connection->out_room;
    connection->out = NULL;
    connection->out_room = connection->out_size = connection->shared_size = connection->unmarked = connection->written = 0;
    return buffer;
}

static void give_buffer_back(struct core *core, u8 *buffer, u32 room) {
    if (room == OUT_BYTES && core->spare_count < SPARES)
        core->spares[core->spare_count++] = buffer;
    else
        free(buffer);
}

static void clear(struct core *core, struct connection *connection) {
    u32 room;
    u8 *buffer = take_buffer(connection, &room);
    give_buffer_back(core, buffer, room);
}

void output_free(struct core *core, struct connection *connection) {
    clear(core, connection);
    core->bytes_held -= connection->counted;
    connection->counted = 0;
    free(connection->marks);
    connection->marks = NULL;
    connection->mark_count = connection->mark_room = 0;
}

static u8 *more_room(struct core *core, struct connection *connection, u32 size) {
    u64 wanted = (u64)connection->out_size + size + SLACK;
    if (wanted > UINT32_MAX / 2) DIE("a connection is to be written more than 2 GiB");
    if (connection->out == NULL && wanted <= OUT_BYTES) {
        connection->out = core->spare_count ? core->spares[--core->spare_count] : memory(OUT_BYTES);
        connection->out_room = OUT_BYTES;
        return connection->out;
    }
    u32 room = connection->out_room ? connection->out_room : OUT_BYTES;
    while (room < wanted) room *= 2;
    connection->out = memory_again(connection->out, room);
    connection->out_room = room;
    return connection->out + connection->out_size;
}

/* Place for so many bytes more at the end of the buffer, which are counted already. */
static inline u8 *room_behind(struct core *core, struct connection *connection, u32 size) {
    u8 *place = LIKELY(connection->out_size + size + SLACK <= connection->out_room) ? connection->out + connection->out_size
                                                                            : more_room(core, connection, size);
    connection->out_size += size;
    return place;
}

void output_own(struct core *core, struct connection *connection) {
    u32 size = connection->shared_size;
    if (!size) return;
    output_spell_out(connection);
    connection->shared_size = 0;
    connection->out_size -= size;
    memcpy(room_behind(core, connection, size), connection->shared, size);
}

static void note_said(struct core *core, const struct connection *connection) {
    if (!connection->out_size) words_add(&core->replies, connection_handle(connection));
}

static inline u8 *room_for(struct core *core, struct connection *connection, u32 size) {
    if (UNLIKELY(connection->shared_size)) output_own(core, connection);
    note_said(core, connection);
    return room_behind(core, connection, size);
}

u8 *output_place(struct core *core, struct connection *connection, u32 size) { return room_for(core, connection, size); }

void output_push(struct core *core, struct connection *connection, const u8 *data, u32 size) {
    if (size && is_open(connection)) memcpy(room_for(core, connection, size), data, size);
}

/* By method, what a short reply has between its size and its id. */
static const u8 HEADS[METHODS][11] = {
    "\x93\xa6:send!", "\x93\xa6:recv!", "\x93\xa6:take!", "\x93\xa7:cancel", "\x93\xa8:message", "\x93\xa6:will!",
};
static const u8 HEAD_SIZES[METHODS] = {8, 8, 8, 9, 10, 8};

static inline u8 *reply_at(u8 *place, u32 body, enum method method, const u8 *id, u32 id_size) {
    place[0] = (u8)(body >> 8);
    place[1] = (u8)body;
    memcpy(place + 2, HEADS[method], 10);
    place += 2 + HEAD_SIZES[method];
    if (LIKELY(id_size <= ID_INSIDE))
        memcpy(place, id, ID_INSIDE); /* a known size is quicker; the result goes over the rest */
    else
        memcpy(place, id, id_size);
    return place + id_size;
}

void output_reply(struct core *core, struct connection *connection, enum method method, const u8 *id, u32 id_size,
                  const u8 *result, u32 size) {
    u32 body = HEAD_SIZES[method] + id_size + size;
    assert(body <= MAX_FRAME && "it is shorter than what it answers");
    if (UNLIKELY(connection->flags & (LEAVES | IS_CLOSED))) return;
    memcpy(reply_at(room_for(core, connection, 2 + body), body, method, id, id_size), result, size);
}

static void add_mark(struct connection *connection, u32 listener, u32 begin, u32 end) {
    if (UNLIKELY(connection->mark_count == connection->mark_room)) {
        connection->mark_room = connection->mark_room ? 2 * connection->mark_room : 8;
        connection->marks = memory_again(connection->marks, connection->mark_room * sizeof *connection->marks);
    }
    connection->marks[connection->mark_count++] = (struct mark){listener, begin, end};
}

void output_spell_out(struct connection *connection) {
    if (!connection->unmarked) return;
    u32 begin = owned(connection);
    connection->unmarked = 0;
    for (u32 at = connection->told_first; begin < connection->out_size; at++) {
        struct message_told message = connection->told->messages[at];
        if (message.confirms) add_mark(connection, message.confirms, begin, begin + message.size);
        begin += message.size;
    }
}

void output_mark(struct connection *connection, u32 listener, u32 begin) {
    output_spell_out(connection);
    add_mark(connection, listener, begin, connection->out_size);
}

static bool has_values(const struct connection *connection) { return connection->mark_count || connection->unmarked; }

static void note_given(struct core *core, const struct connection *connection) {
    if (!has_values(connection) && !(connection->flags & CHOKED))
        words_add(&core->values, connection_handle(connection));
}

u8 *output_begin_value(struct core *core, struct connection *connection, u32 size) {
    note_given(core, connection);
    return room_for(core, connection, size);
}

void output_value(struct core *core, struct connection *connection, u32 listener, u32 send) {
    struct row *to = row_at(&core->table, listener);
    const struct row *from = row_at(&core->table, send);
    assert(from->value != NULL && !(connection->flags & CHOKED));
    note_given(core, connection);
    u32 begin = connection->out_size;
    output_reply(core, connection, (enum method)to->kind, row_id(core, to), to->id_size, from->value, from->size);
    to->size = from->size;
    output_mark(connection, listener, begin);
}

void output_share(struct core *core, struct connection *connection, const struct told *told, u32 listener) {
    u32 begin = connection->out_size, size = told->last.size;
    core->shared_bytes += size;
    if (listener) note_given(core, connection);
    if (UNLIKELY(connection->flags & CHOKED)) {
        memcpy(room_for(core, connection, size), told->words, size);
    } else {
        note_said(core, connection);
        if (connection->shared_size && connection->shared + connection->shared_size != told->words)
            output_own(core, connection);
        if (!connection->shared_size) {
            connection->shared = told->words;
            connection->told = told;
            connection->told_first = told->count - 1;
        }
        connection->shared_size += size;
        connection->out_size += size;
        if (listener && !connection->mark_count && told->last.confirms == listener) {
            connection->unmarked++;
            return;
        }
    }
    if (listener) output_mark(connection, listener, begin);
}

/* Clients that do the same call it the same. Who calls it otherwise than the first that ends alike has words of its own. */
void output_message(struct core *core, struct connection *connection, const struct row *subscriber, u32 send,
                    u32 listener) {
    const struct row *from = row_at(&core->table, send);
    const u8 *id = row_id(core, subscriber);
    u32 id_size = subscriber->id_size, body = HEAD_SIZES[M_MESSAGE] + id_size + from->size;
    struct told *told = core->told + FRAMED + id[id_size - 1] % FRAMED_APART;
    u64 handle = row_handle(send, from);
    u32 confirms = listener == send ? send : 0; /* who has a row of its own has a mark of its own as well */
    assert(body <= MAX_FRAME && "it was seen to be");
    if (!told_has(told, handle, confirms)) {
        u8 *place = told_place(told, handle, confirms, 2 + body, 2u + HEAD_SIZES[M_MESSAGE], id_size);
        memcpy(reply_at(place, body, M_MESSAGE, id, id_size), from->value, from->size);
    }
    if (told_names(told, id, id_size)) {
        output_share(core, connection, told, listener);
        return;
    }
    u32 begin = connection->out_size;
    if (listener) note_given(core, connection);
    output_reply(core, connection, M_MESSAGE, id, id_size, from->value, from->size);
    if (listener) output_mark(connection, listener, begin);
}

void core_attend_later(struct core *core, struct connection *connection) {
    if (connection->flags & IS_LATER) return;
    connection->flags |= IS_LATER;
    words_add(&core->later, connection_handle(connection) | LATER_CONNECTION);
}

void output_see_that_it_is_read(struct core *core, struct connection *connection) {
    u32 most = connection->flags & CHOKED ? core->limits.subscriber_buffer : core->limits.output_bytes;
    if (unwritten(connection) > most) core_attend_later(core, connection);
}

bool output_is_flooded(struct core *core, struct connection *connection) {
    if (unwritten(connection) <= core->limits.subscriber_buffer + MAX_AT_ONCE) return false;
    connection->flags |= WAS_FLOODED;
    core_attend_later(core, connection);
    return true;
}

bool output_is_congested(const struct core *core, const struct connection *connection) {
    u32 limit = core->limits.output_bytes;
    if (connection->flags & CHOKED || connection->out_size > limit) return true;
    /* A value that is not acknowledged is as good as one that is not written. */
    return connection->flags & ACKS &&
           (connection->unacked.count + connection->mark_count >= core->limits.max_calls ||
            connection->unacked_bytes + connection->out_size >= limit);
}

/* Take a stretch out of what is unwritten, with its mark. */
static void cut(struct core *core, struct connection *connection, u32 at) {
    output_own(core, connection);
    struct mark *gone = connection->marks + at;
    u32 size = gone->end - gone->begin;
    memmove(connection->out + gone->begin, connection->out + gone->end, connection->out_size - gone->end);
    connection->out_size -= size;
    memmove(gone, gone + 1, (connection->mark_count - at - 1) * sizeof *gone);
    connection->mark_count--;
    for (; at < connection->mark_count; at++) {
        connection->marks[at].begin -= size;
        connection->marks[at].end -= size;
    }
}

/* Whether some of its value is written to one that does not take all. */
static bool has_begun(const struct connection *connection, u32 listener) {
    u32 begun = connection->written + connection->begun;
    for (u32 at = 0; at < connection->mark_count && connection->marks[at].begin < begun; at++)
        if (connection->marks[at].listener == listener) return true;
    return false;
}

bool output_take_back(struct core *core, struct connection *connection, u32 listener, bool is_final) {
    struct row *row = row_at(&core->table, listener);
    bool comes_behind_an_ack = row->kind == DELIVERY && row->is_out;
    /* An ack is about to come, or its descriptor: then it is written, or asked for once more by output_give_back(). */
    if (!is_final && (comes_behind_an_ack || connection->flags & ARRIVES)) return false;
    if (comes_behind_an_ack || (connection->flags & CHOKED && !has_begun(connection, listener))) {
        row->flags |= TAKEN_BACK; /* and left out when it would be written, which is cheaper for many */
        return true;
    }
    if (connection->flags & CHOKED) return false;
    u32 at = 0, count = connection->mark_count;
    while (at < count && connection->marks[at].listener != listener) at++;
    if (!is_final || at == count) return false;
    cut(core, connection, at);
    call_lost(core, listener);
    call_listens_again(core, listener);
    return true;
}

void output_give_back(struct core *core, const struct connection *connection) {
    struct words sends = {0};
    if ((connection->flags & (IS_CLOSED | CHOKED)) != CHOKED) return;
    for (u32 at = 0; at < connection->mark_count; at++) {
        u32 send = row_at(&core->table, connection->marks[at].listener)->peer;
        if (row_at(&core->table, send)->flags & ABANDONED) words_add(&sends, row_handle(send, row_at(&core->table, send)));
    }
    for (u32 at = 0; at < sends.size; at++) call_conclude(core, sends.items[at]);
    words_free(&sends);
}

/* Write down whose values are about to be written, of those that begin before there; see workers/stats/hands.py. */
static void write_down(struct core *core, const struct connection *connection, u64 end) {
    if (core->hand.cells == NULL || !core->linked.size) return;
    for (u32 at = 0; at < connection->mark_count && connection->marks[at].begin < end; at++) {
        u32 listener = connection->marks[at].listener;
        if (!mark_delivers(core, listener)) hand_add(core, row_at(&core->table, row_at(&core->table, listener)->peer));
    }
}

/* Bytes that the kernel took; below 0 if that closed the connection. */
static i64 send_some(struct core *core, struct connection *connection, u32 most) {
    u32 size = unwritten(connection);
    if (size > most) size = most;
    const u8 *data = owned(connection) ? connection->out + connection->written : connection->shared;
    ssize_t sent = -EAGAIN;
    if (LIKELY(!(connection->flags & (SECURE | ARRIVES))))
        sent = core->machine.send(core->machine.its, connection->fd, data, size);
    else if (connection->flags & SECURE)
        sent = core->owner.transmit(core->owner.its, connection_handle(connection), data, size, &connection->begun);
    if (sent == -EAGAIN || sent == -EWOULDBLOCK) return 0;
    if (sent < 0) {
        core_close_connection(core, connection, CANNOT_WRITE, (int)-sent);
        return -1;
    }
    core->figures.cells[core->figures.sent + connection->door] += sent;
    assert(!has_values(connection) || core_reached(core, "a value is written"));
    return sent;
}

/* Tell of the values that are written whole, as so many bytes of the buffer are, which may be another one by now. */
static void tell_written(struct core *core, struct connection *connection, u32 written) {
    u32 done = 0;
    while (done < connection->mark_count && connection->marks[done].end <= written) done++;
    if (!done) return;
    assert(!core->marks.size && "one connection at a time");
    for (u32 at = 0; at < done; at++) words_add(&core->marks, connection->marks[at].listener);
    connection->mark_count -= done;
    memmove(connection->marks, connection->marks + done, connection->mark_count * sizeof *connection->marks);
    for (u32 at = 0; at < core->marks.size; at++) {
        u32 listener = (u32)core->marks.items[at];
        if (mark_delivers(core, listener))
            call_confirm(core, listener);
        else if (connection->flags & ACKS && row_at(&core->table, listener)->kind != DELIVERY)
            call_unacked(core, connection, listener);
        else
            call_delivered(core, listener);
    }
    core->marks.size = 0;
}

/* The same of all that is shared, where its sends have no marks; more may be told meanwhile. */
static void tell_shared(struct core *core, const struct told *told, u32 first, u32 size) {
    for (u32 at = first; size; at++) {
        struct message_told message = told->messages[at];
        size -= message.size;
        if (message.confirms) call_confirm(core, message.confirms);
    }
}

/* All that it was to be written is written, with values that are in the hand from there on. */
static void tell_all(struct core *core, struct connection *connection, u32 written_down) {
    u32 count = connection->out_size, shared = connection->unmarked ? connection->shared_size : 0, room;
    u8 *buffer = take_buffer(connection, &room); /* whoever is answered on this very connection is written behind them */
    if (!(connection->flags & ACKS)) hand_taken(core, written_down);
    tell_written(core, connection, count);
    tell_shared(core, connection->told, connection->told_first, shared);
    core->hand.has_it = false;
    give_buffer_back(core, buffer, room);
}

static void expect_reading(struct core *core, struct connection *connection) {
    double at = core->now + core->limits.unread_output_s;
    connection->unread = alarm_set(core, connection, connection->unread, ALARM_UNREAD, at);
}

static void choke(struct core *core, struct connection *connection) {
    connection->flags |= CHOKED;
    core->choked++;
    connection->counted = unwritten(connection);
    core->bytes_held += connection->counted;
    for (u32 at = 0; at < connection->mark_count; at++) {
        struct mark *mark = connection->marks + at;
        if (mark_delivers(core, mark->listener)) mark->listener = call_deliver(core, connection, mark->listener);
        struct row *listener = row_at(&core->table, mark->listener);
        listener->flags |= REMEMBERED; /* whoever asks the value back is to hear whether some of it has left */
        call_hold(core, listener->peer);
    }
    core_mask(core, connection);
    expect_reading(core, connection);
}

static void unchoke(struct core *core, struct connection *connection) {
    connection->flags &= ~(u32)CHOKED;
    core->choked--;
    core->bytes_held -= connection->counted;
    connection->counted = 0;
    core_mask(core, connection);
    alarm_off(core, &connection->unread);
}

void output_roomy(struct core *core, struct connection *connection) {
    if (connection->flags & LEAVES) {
        if (!connection->out_size && !(connection->flags & (HAS_SHUT | ARRIVES))) {
            connection->flags |= HAS_SHUT;
            if (connection->flags & SECURE)
                core->owner.shut(core->owner.its, connection_handle(connection));
            else
                core->machine.shut(core->machine.its, connection->fd);
            connection->unread = alarm_set(core, connection, connection->unread, ALARM_LINGER, core->now + LINGER_S);
        }
        return;
    }
    if (connection->parked && !output_is_congested(core, connection)) calls_unpark_all(core, connection);
    if (connection->flags & IS_PUT_OFF) core_attend_later(core, connection);
    if (UNLIKELY(connection->flags & (MOVES | LINGERS))) move_goes_on(core, connection);
    if (UNLIKELY(core->standing & REFUSING)) words_add(&core->acks, connection_handle(connection) | LATER_CONNECTION);
}

void output_flush(struct core *core, struct connection *connection) {
    if (connection->flags & (CHOKED | IS_CLOSED)) return;
    if (!connection->out_size) {
        /* All that took the room of those that are parked may have been taken back. */
        if (connection->flags & LEAVES || connection->parked) output_roomy(core, connection);
        return;
    }
    if (!KEPT(A_VALUE_IS_WRITTEN_FIRST)) {
        output_spell_out(connection);
        tell_written(core, connection, connection->out_size);
    }
    if (connection->shared_size && owned(connection)) output_own(core, connection);
    bool is_awaited = has_values(connection);
    u32 written_down = core->hand.count;
    if (is_awaited) write_down(core, connection, UINT32_MAX);
    i64 sent = send_some(core, connection, UINT32_MAX);
    if (sent < 0) return;
    /* What these values bring about is answered now, and not when the turn began. */
    if (is_awaited) core->now = core->machine.clock(core->machine.its);
    if (LIKELY(sent == unwritten(connection))) {
        if (is_awaited)
            tell_all(core, connection, written_down);
        else
            clear(core, connection);
        output_roomy(core, connection);
        return;
    }
    output_own(core, connection);
    choke(core, connection);
    connection->written = (u32)sent;
    tell_written(core, connection, connection->written);
}

/* Take what is written off the buffer, once that is most of it, but for the beginning of a value that is on its way. */
static void compact(struct connection *connection) {
    u32 gone = connection->written;
    if (connection->mark_count && connection->marks[0].begin < gone) gone = connection->marks[0].begin;
    if (gone < WRITE_BYTES || gone < connection->out_size / 2) return;
    connection->out_size -= gone;
    connection->written -= gone;
    memmove(connection->out, connection->out + gone, connection->out_size);
    for (u32 at = 0; at < connection->mark_count; at++) {
        connection->marks[at].begin -= gone;
        connection->marks[at].end -= gone;
    }
}

/* Take out all values that were taken back, in one pass, as they may be very many.
   Returns who was to have them. */
static struct words leave_out(struct core *core, struct connection *connection) {
    struct words lost = {0};
    u8 *out = connection->out;
    u32 kept = 0;
    u32 to = 0, from = 0; /* what stands from here on goes there */
    assert(!connection->shared_size && "all of who is choked is its own");
    for (u32 at = 0; at < connection->mark_count; at++) {
        struct mark mark = connection->marks[at];
        if (!(row_at(&core->table, mark.listener)->flags & TAKEN_BACK)) {
            mark.begin -= from - to;
            mark.end -= from - to;
            connection->marks[kept++] = mark;
            continue;
        }
        if (from != to) memmove(out + to, out + from, mark.begin - from);
        to += mark.begin - from;
        from = mark.end;
        words_add(&lost, mark.listener);
    }
    if (from != to) memmove(out + to, out + from, connection->out_size - from);
    connection->out_size -= from - to;
    connection->mark_count = kept;
    return lost;
}

/* Write more of what is unwritten, except values whose sender's time is over meanwhile. */
void output_drain(struct core *core, struct connection *connection) {
    struct words lost = leave_out(core, connection);
    for (u32 at = 0; at < lost.size; at++) {
        call_lost(core, (u32)lost.items[at]);
        call_listens_again(core, (u32)lost.items[at]);
    }
    words_free(&lost);
    write_down(core, connection, (u64)connection->written + WRITE_BYTES);
    i64 sent = unwritten(connection) ? send_some(core, connection, WRITE_BYTES) : 0;
    if (sent < 0) return;
    connection->written += (u32)sent;
    if (sent)
        expect_reading(core, connection);
    tell_written(core, connection, connection->written);
    if (is_open(connection) && !unwritten(connection)) {
        assert(!has_values(connection));
        clear(core, connection);
        unchoke(core, connection);
        output_roomy(core, connection);
    } else if (is_open(connection)) {
        compact(connection);
    }
}

void output_unread(struct core *core, struct connection *connection) {
    /* A socket counts as writable once a third of its buffer is free: who reads slowly may have made some room. */
    output_drain(core, connection);
    if (!is_open(connection) || !(connection->flags & CHOKED)) return;
    if (connection->flags & ARRIVES)
        expect_reading(core, connection); /* it is not its peer who is late */
    else if (!connection->unread)
        core_close_connection(core, connection, UNREAD, 0);
}
