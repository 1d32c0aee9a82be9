/* What a connection says: its frames, one after another, each taken apart where it was read. A good send!, recv!, :take!,
   :cancel or :ack is done here; any other frame, and any that is not good in every way, is its owner's to deal with. */
#include "pubsub.h"

#include <errno.h>

#define LENGTH_BYTES 2u

u8 *input_room(struct core *core, u32 size) { return segment_room(&core->segment, size); }

void input_use(struct core *core, u32 size) { core->segment->used += (size + PADDING - 1) & ~(PADDING - 1); }

/* Bytes of the frame that these begin with; 0 if it is not all there. */
static u32 frame_size(const u8 *data, u32 size) {
    if (size < LENGTH_BYTES) return 0;
    u32 whole = LENGTH_BYTES + ((u32)data[0] << 8 | data[1]);
    return size < whole ? 0 : whole;
}

static u32 whole_size(const struct connection *connection, const u8 *data, u32 size) {
    return UNLIKELY(connection->door == PUBSUB_DOOR) ? pubsub_size(data, size) : frame_size(data, size);
}

/* Bytes of those that are whole frames or messages. */
static u32 all_whole(const struct connection *connection, const u8 *data, u32 size) {
    u32 at = 0, length;
    while ((length = whole_size(connection, data + at, size - at))) at += length;
    return at;
}

/* Whether there are more of them than so many. */
static bool has_more_than(const struct connection *connection, const u8 *data, u32 size, u32 most) {
    u32 at = 0, length;
    if (size <= most) return false;
    while ((length = whole_size(connection, data + at, size - at))) {
        if (!most--) return true;
        at += length;
    }
    return false;
}

static void keep_tail(struct connection *connection, const u8 *data, u32 size) {
    assert(connection->tail == NULL);
    if (!size) return;
    connection->tail = memory(size);
    memcpy(connection->tail, data, size);
    connection->tail_size = size;
}

void input_watch_tail(struct core *core, struct connection *connection, bool fresh) {
    if (!connection->tail_size)
        alarm_off(core, &connection->half);
    else if (fresh || !connection->half)
        connection->half = alarm_set(core, connection, connection->half, ALARM_HALF, core->now + core->limits.half_frame_s);
}

/* What a call names as its word for the end of its time; most connections always name the same. */
static struct blob *word(struct connection *connection, const u8 *data, u32 size) {
    struct blob *last = connection->timed_out;
    if (last == NULL || last->size != size || memcmp(last->data, data, size)) {
        blob_drop(last);
        last = connection->timed_out = blob_new(data, size);
    }
    return blob_ref(last);
}

#define NAME(a, b, c, d, e, f, g) \
    ((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 | (u64)(g) << 48)
#define SEND_NAME NAME(0xa6, ':', 's', 'e', 'n', 'd', '!')
#define RECV_NAME NAME(0xa6, ':', 'r', 'e', 'c', 'v', '!')
#define TAKE_NAME NAME(0xa6, ':', 't', 'a', 'k', 'e', '!')
#define CANCEL_NAME (NAME(0xa7, ':', 'c', 'a', 'n', 'c', 'e') | (u64)'l' << 56)
#define ACK_NAME NAME(0xa4, ':', 'a', 'c', 'k', 0, 0)

/* Elements of a call, by what they are; 0 is none. */
struct form {
    u8 timed_out, topic, value, group;
};

static bool form_of(u64 name, u32 count, struct form *form, enum kind *kind) {
    if (name == SEND_NAME && (count == 5 || count == 6)) {
        *kind = SEND;
        *form = count == 5 ? (struct form){0, 3, 4, 0} : (struct form){3, 4, 5, 0};
    } else if (name == RECV_NAME && (count == 4 || count == 5)) {
        *kind = RECV;
        *form = count == 4 ? (struct form){0, 3, 0, 0} : (struct form){3, 4, 0, 0};
    } else if (name == TAKE_NAME && count == 5) {
        *kind = TAKE;
        *form = (struct form){0, 3, 0, 4};
    } else {
        return false;
    }
    return true;
}

/* Whether it is known that it may; else that is looked up, by who looks at what is no good call. */
static bool may_call(const struct core *core, const struct connection *connection, const struct call *call) {
    return LIKELY(!connection->account) || grants_has(&core->table.grants, call->topic, connection->account,
                                                      call->kind == SEND ? MAY_SEND : MAY_RECV);
}

/* Do what a frame asks, if it is a good call; false if somebody else must look at it. */
static bool do_call(struct core *core, struct connection *connection, const u8 *body, const struct frame *frame,
                    u64 name) {
    const struct element *parts = frame->elements;
    struct form form;
    struct call call = {0};
    if (!form_of(name, frame->count, &form, &call.kind)) return false;
    struct element id = parts[1], timeout = parts[2], topic = parts[form.topic];
    i64 ms = timeout_of(body + timeout.at, timeout.size);
    if (ms < 0 || id.size > MAX_ID || topic.size > MAX_TOPIC || !is_canonical(body + topic.at, topic.size)) return false;
    if (call.kind == SEND) {
        call.value = body + parts[form.value].at;
        call.value_size = parts[form.value].size;
        if (is_reserved(call.value, call.value_size)) return false;
    } else if (call.kind == TAKE) {
        call.group = body + parts[form.group].at;
        call.group_size = parts[form.group].size;
        if (call.group_size > MAX_TOPIC || !is_canonical(call.group, call.group_size)) return false;
    }
    call.id = body + id.at;
    call.id_size = id.size;
    call.topic = spot_take(&core->table, 0, body + topic.at, topic.size);
    if (UNLIKELY(!may_call(core, connection, &call))) {
        spot_drop(&core->table, call.topic);
        return false;
    }
    call.seconds = (double)ms / 1000;
    if (form.timed_out) call.timed_out = word(connection, body + parts[form.timed_out].at, parts[form.timed_out].size);
    call_issue(core, connection, &call);
    return true;
}

static bool do_other(struct core *core, struct connection *connection, const u8 *body, const struct frame *frame,
                     u64 name) {
    const struct element *parts = frame->elements;
    if (name == CANCEL_NAME && parts[0].size == 8 && frame->count == 3 && parts[1].size <= MAX_ID) {
        call_cancel(core, connection, body + parts[1].at, parts[1].size, body + parts[2].at, parts[2].size);
        return true;
    }
    if ((name & 0xFFFFFFFFFF) == ACK_NAME && parts[0].size == 5 && frame->count == 2) {
        if (call_acknowledged(core, connection, body + parts[1].at, parts[1].size) &&
            !(connection->flags & (LEAVES | IS_CLOSED)))
            output_roomy(core, connection);
        return true;
    }
    return false;
}

static bool vet(struct core *core, struct connection *connection, const u8 *body, u32 size) {
    enum verdict verdict = core->owner.vet(core->owner.its, connection_handle(connection), body, size);
    if (verdict == HAS_TO_WAIT) {
        connection->flags |= IS_EARLY;
        input_pause(core, connection, 0.0);
    } else {
        connection->heard = core->now;
    }
    return verdict == GOES_ON && !(connection->flags & (LEAVES | IS_CLOSED));
}

/* Whether a frame may be done: of nearly all that is no question. */
static inline bool may_be_done(struct core *core, struct connection *connection, const u8 *body, u32 size) {
    bool is_free = !(connection->flags & VETTED) && !(core->standing & OPENING);
    return LIKELY(is_free) || vet(core, connection, body, size);
}

bool input_may_be_done(struct core *core, struct connection *connection, const u8 *body, u32 size) {
    return may_be_done(core, connection, body, size);
}

static void do_frame(struct core *core, struct connection *connection, const u8 *body, u32 size) {
    struct frame frame;
    frame_parse(&frame, body, size);
    if (LIKELY(!frame.fault && frame.count > 1)) {
        u64 name = word_at(body + frame.elements[0].at); /* behind it there are PADDING bytes at least */
        if (frame.elements[0].size == 7) {
            if (do_call(core, connection, body, &frame, name & 0xFFFFFFFFFFFFFF)) return;
        } else if (do_other(core, connection, body, &frame, name)) {
            return;
        }
    }
    core->owner.unusual(core->owner.its, connection_handle(connection), body, size);
}

/* Whether what was done for it since it was read, or went on, is as much as one may have done in a turn. What is said to
   many may take as long as the writes that come of it, which are fewer for more that is said in one turn; until these
   have so much to copy that they make the turn long. */
bool input_has_had_its_share(struct core *core, struct connection *connection) {
    double now = core->machine.clock(core->machine.its);
    double writes = WRITE_S * (core->values.size + core->replies.size);
    bool is_little = now - core->now < SHARE_S || now - core->began < writes;
    if (is_little && core->shared_bytes < SHARED_PER_TURN) return false;
    core->now = now;
    connection->flags |= IS_DEAR;
    return true;
}

void input_keep(struct core *core, struct connection *connection, const u8 *data, u32 size, bool rests, bool fresh) {
    keep_tail(connection, data, size);
    if (connection->flags & PAUSES) {
        if (!(connection->flags & IS_PUT_OFF)) connection->flags |= RESTS;
        core_mask(core, connection);
    } else if (rests && has_more_than(connection, data, size, 0)) {
        connection->flags |= RESTS;
        words_add(&core->resting, connection_handle(connection));
    }
    if (connection->tail_size || connection->half) input_watch_tail(core, connection, fresh);
}

/* Do what is asked, and keep what has to wait for its turn. The bytes stay until this one ends. They were just read
   unless it `goes_on`, which does not make half a frame among them any younger. */
static void obey(struct core *core, struct connection *connection, const u8 *data, u32 size, bool rests, bool goes_on) {
    u32 at = 0, length, left = FRAMES_PER_TURN;
    bool fresh = false;
    if (UNLIKELY(connection->door == PUBSUB_DOOR)) {
        pubsub_obey(core, connection, data, size, rests, goes_on);
        return;
    }
    if (!rests && !(core->standing & OPENING)) connection->heard = core->now;
    while (!rests && (length = frame_size(data + at, size - at))) {
        const u8 *body = data + at + LENGTH_BYTES;
        fresh = !goes_on;
        connection->flags |= HAS_CALLED;
        core->left = size - at - length;
        if (LIKELY(may_be_done(core, connection, body, length - LENGTH_BYTES)))
            do_frame(core, connection, body, length - LENGTH_BYTES);
        else if (connection->flags & PAUSES && connection->flags & IS_EARLY)
            break;
        at += length;
        left--;
        if (!(left & 7) && input_has_had_its_share(core, connection)) left = 0;
        if (UNLIKELY(core->later.size)) {
            turn_attend(core);
            left = 0; /* somebody was given much: that is a turn's work */
        }
        if (UNLIKELY(connection->flags & (LEAVES | IS_CLOSED))) return;
        rests = !left || connection->flags & (CHOKED | PAUSES) || connection->out_size > core->limits.output_bytes;
    }
    input_keep(core, connection, data + at, size - at, rests, fresh);
}

void input_pause(struct core *core, struct connection *connection, double seconds) {
    connection->flags |= PAUSES;
    if (seconds > 0.0)
        connection->pause = alarm_set(core, connection, connection->pause, ALARM_PAUSE, core->now + seconds);
}

void input_resume(struct core *core, struct connection *connection) {
    if (!(connection->flags & RESTS) || !(connection->flags & PAUSES)) return;
    alarm_off(core, &connection->pause);
    connection->flags = (connection->flags & ~(u32)RESTS) | IS_PUT_OFF;
    core_attend_later(core, connection);
}

/* Read behind the `tail` that is there; `data` is where all of it will be. */
static ssize_t receive(struct core *core, struct connection *connection, u32 tail, u8 **data) {
    u32 most = connection->flags & IS_DEAR ? DEAR_BYTES : READ_BYTES;
    if (LIKELY(!(connection->flags & SECURE))) {
        *data = input_room(core, tail + most);
        return core->machine.recv(core->machine.its, connection->fd, *data + tail, most);
    }
    const u8 *plain = NULL;
    ssize_t got = core->owner.receive(core->owner.its, connection_handle(connection), most, &plain);
    if (got <= 0) return got;
    assert(got <= (ssize_t)UINT32_MAX / 4);
    *data = input_room(core, tail + (u32)got);
    memcpy(*data + tail, plain, (size_t)got);
    return got;
}

/* Have its owner look at what has just begun, if that may be no frame, or too much of one. */
static void show_half(struct core *core, struct connection *connection, bool is_first) {
    if (connection->flags & (LEAVES | IS_CLOSED) || !connection->tail_size) return;
    u32 whole = all_whole(connection, connection->tail, connection->tail_size), half = connection->tail_size - whole;
    const u8 *begun = connection->tail + whole;
    if (half && (connection->flags & VETTED || (is_first && !whole && half > LENGTH_BYTES && begun[0] == 0x16)))
        core->owner.half_begun(core->owner.its, connection_handle(connection), begun, half, is_first && !whole);
}

static void hung_up(struct core *core, struct connection *connection) {
    if (connection->door == PUBSUB_DOOR)
        pubsub_hung_up(core, connection);
    else
        core_close_connection(core, connection, BY_PEER, 0);
}

/* One that has said so already will tell of its end no more; what it asked just before is answered first. */
static void see_end(struct core *core, struct connection *connection) {
    if (LIKELY(!(connection->flags & HAS_ENDED)) || connection->flags & (LEAVES | IS_CLOSED)) return;
    if (all_whole(connection, connection->tail, connection->tail_size)) return;
    output_flush(core, connection);
    hung_up(core, connection);
}

void input_read(struct core *core, struct connection *connection) {
    u32 tail = connection->tail_size;
    u8 *data = NULL;
    ssize_t got = receive(core, connection, tail, &data);
    if (got == -EAGAIN || got == -EWOULDBLOCK) return;
    if (got < 0) {
        core_close_connection(core, connection, CANNOT_READ, (int)-got);
        return;
    }
    if (!got) {
        hung_up(core, connection);
        return;
    }
    core->figures.cells[core->figures.received + connection->door] += got;
    if (connection->flags & LEAVES) return;
    if (UNLIKELY(core->standing & LEAVING) && connection->publisher != NULL && !connection->publisher->is_over) {
        /* It came after the others were told: whom it published to may have gone to our successor. */
        core->owner.is_through(core->owner.its, connection_handle(connection));
        return;
    }
    if (tail) {
        memcpy(data, connection->tail, tail);
        free(connection->tail);
        connection->tail = NULL;
        connection->tail_size = 0;
    }
    u32 size = tail + (u32)got;
    input_use(core, size);
    /* A turn may take long, and what arrives in its middle has all its time before it. */
    core->now = core->machine.clock(core->machine.its);
    bool was_dear = connection->flags & IS_DEAR;
    connection->flags &= ~(u32)IS_DEAR;
    bool is_much = was_dear || has_more_than(connection, data, size, FRAMES_PER_TURN);
    obey(core, connection, data, size, is_much && turn_is_long(core), false);
    show_half(core, connection, !tail && connection->tail_size == size);
    see_end(core, connection);
}

void input_rested(struct core *core, struct connection *connection) {
    if (!(connection->flags & RESTS)) return;
    connection->flags = (connection->flags & ~(u32)RESTS) | IS_PUT_OFF;
    connection->went_on = core->turn;
    input_attend(core, connection);
}

static void go_on(struct core *core, struct connection *connection) {
    bool paused = connection->flags & PAUSES;
    connection->flags &= ~(u32)(IS_PUT_OFF | PAUSES | IS_EARLY);
    if (paused) core_mask(core, connection);
    u32 size = connection->tail_size;
    u8 *data = input_room(core, size);
    if (size) memcpy(data, connection->tail, size);
    free(connection->tail);
    connection->tail = NULL;
    connection->tail_size = 0;
    input_use(core, size);
    core->now = core->machine.clock(core->machine.its);
    obey(core, connection, data, size, false, true);
}

void input_attend(struct core *core, struct connection *connection) {
    if (connection->flags & (LEAVES | IS_CLOSED)) return;
    output_flush(core, connection);
    u32 unread = connection->flags & CHOKED ? connection->out_size - connection->written : 0;
    if (connection->flags & WAS_FLOODED || unread > core->limits.subscriber_buffer) {
        core_close_connection(core, connection, SLOW_SUBSCRIBER, 0);
        return;
    }
    if (connection->flags & (CHOKED | LEAVES | IS_CLOSED) || !(connection->flags & IS_PUT_OFF)) return;
    if (UNLIKELY(connection->publisher != NULL) && connection->tail_size &&
        pubsub_must_wait(core, connection, connection->tail[0])) {
        connection->flags |= PAUSES; /* or the kernel would tell of what is unread until then, again and again */
        core_mask(core, connection);
        return;
    }
    go_on(core, connection);
    see_end(core, connection);
}

void input_exhaust(struct core *core, struct connection *connection) {
    if (connection->publisher != NULL) return; /* a connection that ends says the same of what is not acked */
    while (connection->flags & (RESTS | IS_PUT_OFF) && !(connection->flags & (LEAVES | IS_CLOSED))) {
        alarm_off(core, &connection->pause);
        connection->flags &= ~(u32)RESTS;
        go_on(core, connection);
        if (connection->flags & IS_EARLY) return; /* that is never done */
    }
}
