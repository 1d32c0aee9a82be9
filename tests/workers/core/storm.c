/* A storm of clients on the core: storm SEED INPUTS. Frames good and bad, cut and mixed, from connections that read as
   they like, break and come back, while time goes by; all from one seed, with no kernel. To be compiled with assertions,
   and where addresses and undefined behaviour are checked. At the end all leave, and nothing may be held. */
#include "core.h"

#include <errno.h>
#include <stdio.h>

#define WIRES 12
#define INPUT_BYTES (192u * 1024)

static u64 luck;

static u32 roll(u32 below) {
    luck ^= luck << 13, luck ^= luck >> 7, luck ^= luck << 17;
    return (u32)((luck >> 11) % below);
}

static struct wire {
    u64 what;
    u32 mask, size, room;
    bool open, ended;
    u8 coming[INPUT_BYTES];
} wires[WIRES];
static struct core core;
static double now = 5000.0;
static u64 heard, unusual_frames, failures, closes;

static double clock_of(void *its) { return (void)its, now; }

static ssize_t receive(void *its, int fd, void *data, size_t size) {
    struct wire *wire = wires + fd;
    (void)its;
    if (!roll(2000)) return -ECONNRESET;
    if (!wire->size) return wire->ended ? 0 : -EAGAIN;
    if (size > wire->size) size = wire->size;
    memcpy(data, wire->coming, size);
    memmove(wire->coming, wire->coming + size, wire->size - size);
    wire->size -= (u32)size;
    return (ssize_t)size;
}

static ssize_t transmit(void *its, int fd, const void *data, size_t size) {
    struct wire *wire = wires + fd;
    u8 sum = 0;
    (void)its;
    if (!roll(2000)) return -EPIPE;
    if (!wire->room) return -EAGAIN;
    if (size > wire->room) size = wire->room;
    for (size_t at = 0; at < size; at++) sum ^= ((const u8 *)data)[at]; /* every byte is there */
    heard += size + (sum & 1) - (sum & 1);
    wire->room -= (u32)size;
    return (ssize_t)size;
}

static void shut(void *its, int fd) { (void)its, (void)fd; }
static void close_it(void *its, int fd) { (void)its, wires[fd].open = false; }
static void forget(void *its, int fd) { (void)its, wires[fd].mask = 0; }

static void watch(void *its, int fd, u32 mask, u64 what, bool is_new) {
    (void)its, (void)is_new;
    wires[fd].mask = mask;
    wires[fd].what = what;
}

static int wait_for(void *its, struct ready *ready, int most, double seconds) {
    int count = 0;
    (void)its, (void)seconds;
    for (u32 fd = 0; fd < WIRES && count < most; fd++) {
        const struct wire *wire = wires + fd;
        u32 mask = wire->mask & ((wire->size || wire->ended ? READABLE : 0u) | (wire->room ? WRITABLE : 0u));
        if (wire->open && mask) ready[count++] = (struct ready){wire->what, mask};
    }
    return count;
}

static void subscribe(struct connection *connection) {
    static const u8 TOPICS[] = "\xa1t\xa1u";
    enum refusal why;
    u8 id[ID_INSIDE] = {(u8)roll(5)};
    if (roll(3) == 0) {
        call_unsubscribe(&core, connection, id, 1);
        return;
    }
    u32 subscription = call_subscribe(&core, connection, id, 1, TOPICS + 2 * roll(2), 2, &why);
    if (subscription) junction_subscribe(&core.table, subscription);
}

static void unusual(void *its, u64 handle, const u8 *body, u32 size) {
    struct connection *connection = connection_find(&core, handle);
    (void)its;
    unusual_frames++;
    if (connection == NULL) return;
    for (u32 at = 0; at < size; at++) heard += body[at] & 1;
    u32 what = roll(500);
    if (!what)
        core_finish(&core, connection);
    else if (what == 1)
        core_close_connection(&core, connection, BY_OWNER, 0);
    else if (what < 100)
        subscribe(connection);
    else
        output_push(&core, connection, (const u8 *)"\0\1\xc0", 3);
}

static void failed(void *its, u64 handle, enum method method, const u8 *id, u32 size, const struct blob *timed_out,
                   enum refusal why, u32 number, u32 limit) {
    struct connection *connection = connection_find(&core, handle);
    (void)its, (void)method, (void)timed_out, (void)why, (void)number, (void)limit;
    failures++;
    if (connection != NULL) output_push(&core, connection, id, size);
}

static void half_is_old(void *its, u64 handle) {
    struct connection *connection = connection_find(&core, handle);
    (void)its;
    if (connection != NULL) core_finish(&core, connection);
}

static void closed(void *its, u64 handle, enum close why, int error) {
    (void)its, (void)handle, (void)why, (void)error;
    closes++;
}

static void other_ready(void *its, u32 what, u32 mask) { (void)its, (void)what, (void)mask; }

static u64 alarms[8]; /* of nobody but this test */
static void rang(void *its, u64 alarm) {
    (void)its;
    u32 at = 0;
    while (at < 8 && alarms[at] != alarm) at++;
    if (at == 8) DIE("an alarm rings that is not set");
    alarms[at] = roll(4) ? 0 : core_set_alarm(&core, now + 0.01 * roll(100));
}

static void wind(u32 at) {
    core_drop_alarm(&core, alarms[at]);
    alarms[at] = roll(3) ? core_set_alarm(&core, now + 0.01 * roll(3000)) : 0;
}

/* Some things that others do are found to do at the places of a turn. */
static u32 put_off[PLACES];
static bool others_have_more(void *its) { return (void)its, false; }
static void others_go_on(void *its) { (void)its; }
static bool others_attend(void *its, enum place place) {
    (void)its;
    if (roll(20) == 0) put_off[roll(PLACES)]++;
    if (!put_off[place]) return false;
    put_off[place]--;
    return true;
}

static u32 sampled(void *its, const u8 *topic, u32 size) { return (void)its, size ? topic[0] & 3u : 0; }

/* Frames. */

static u8 *add(u8 *at, const char *bytes, u32 size) {
    memcpy(at, bytes, size);
    return at + size;
}

static u8 *add_value(u8 *at) {
    static const u32 SIZES[] = {0, 3, 16, 16, 200, 3000, 20000};
    u32 size = SIZES[roll(7)];
    if (roll(30) == 0) return add(at, "\xd4\x45\x00", 3);
    *at++ = 0xc5;
    *at++ = (u8)(size >> 8);
    *at++ = (u8)size;
    memset(at, 'v', size);
    return at + size;
}

static u8 *add_topic(u8 *at) {
    static const char *const TOPICS[] = {"\xa1t", "\xa1t", "\xa1u", "\xbc" "a topic of 28 bytes, or more", "\xcd\x01\x00", "\xd9\x01t"};
    static const u32 SIZES[] = {2, 2, 2, 29, 3, 3};
    u32 which = roll(6);
    return add(at, TOPICS[which], SIZES[which]);
}

static u8 *add_id(u8 *at) {
    if (roll(8) == 0) return add(at, "\xb4" "an id of twenty byte", 21);
    *at++ = (u8)roll(5);
    return at;
}

static u8 *add_timeout(u8 *at) {
    static const char *const TIMEOUTS[] = {"\xcd\x00\x00", "\xcd\x00\x05", "\xcd\x00\x64", "\xcd\xea\x60", "\xcd\xea\x60", "\xce\xff\x00"};
    return add(at, TIMEOUTS[roll(6)], 3);
}

static u32 make_frame(u8 *frame) {
    u8 *at = frame + 3;
    u32 count = 0, named = roll(3) == 0;
    switch (roll(10)) {
    case 0: case 1: case 2:
        at = add_timeout(add_id(add(at, "\xa6:send!", 7)));
        if (named) at = add(at, "\xa4late", 5);
        at = add_value(add_topic(at));
        count = 5 + named;
        break;
    case 3: case 4: case 5:
        at = add_timeout(add_id(add(at, "\xa6:recv!", 7)));
        if (named) at = add(at, "\xa4late", 5);
        at = add_topic(at);
        count = 4 + named;
        break;
    case 6: case 7:
        at = add(add_topic(add_timeout(add_id(add(at, "\xa6:take!", 7)))), roll(2) ? "\xa1g" : "\xa1h", 2);
        count = 5;
        break;
    case 8:
        at = add_id(add_id(add(at, "\xa7:cancel", 8)));
        count = 3;
        break;
    default:
        at = add_id(add(at, "\xa4:ack", 5));
        count = 2;
    }
    frame[2] = (u8)(0x90 | count);
    u32 size = (u32)(at - frame);
    if (roll(8) == 0)
        for (u32 times = 1 + roll(3); times; times--) frame[2 + roll(size - 2)] = (u8)roll(256);
    if (roll(40) == 0) size -= roll(size - 2);
    frame[0] = (u8)((size - 2) >> 8);
    frame[1] = (u8)(size - 2);
    if (roll(4000) == 0) frame[roll(2)] = (u8)roll(256); /* and all that follows is something else */
    return size;
}

static void say(struct wire *wire) {
    static u8 frame[32 * 1024];
    for (u32 frames = 1 + roll(roll(8) ? 4 : 90); frames; frames--) {
        u32 size = make_frame(frame);
        if (wire->size + size > INPUT_BYTES) return;
        if (roll(300) == 0) size = roll(size); /* the rest never comes, or something else in its place */
        memcpy(wire->coming + wire->size, frame, size);
        wire->size += size;
    }
}

static void come(u32 fd) {
    wires[fd] = (struct wire){.open = true, .room = 1u << 20};
    struct connection *connection = connection_find(&core, core_connect(&core, (int)fd));
    connection->flags |= roll(2) ? KNOWS_ERRORS : 0;
    connection->flags |= roll(3) ? 0 : ACKS;
    if (roll(3) == 0) connection->max_reply = 5000;
}

static void act(void) {
    static const double SECONDS[] = {0.001, 0.005, 0.03, 0.5, 4.0, 31.0};
    static const u32 ROOMS[] = {0, 1, 50, 3000, 30000, 1u << 24};
    u32 fd = roll(WIRES);
    if (!wires[fd].open) {
        come(fd);
        return;
    }
    switch (roll(12)) {
    case 0:
        wires[fd].room = ROOMS[roll(6)];
        break;
    case 1:
        now += SECONDS[roll(6)];
        break;
    case 3:
        wind(roll(8));
        break;
    case 2:
        if (roll(4) == 0) wires[fd].ended = true;
        break;
    default:
        say(wires + fd);
    }
}

static void leave_all(void) {
    for (u32 fd = 0; fd < WIRES; fd++) {
        wires[fd].ended = true;
        wires[fd].size = 0;
        wires[fd].room = 1u << 30;
    }
    for (u32 turn = 0; turn < 200; turn++) {
        now += 1.0;
        core_turn(&core, 0.0);
    }
    if (core.connections.used || core.table.rows.used || core.table.extras.used || core.calls_held || core.bytes_held ||
        core.timers.size || core.table.spots.used != core.table.idle_count)
        DIE("something is left of what is gone");
}

int main(int count, char **words) {
    u64 seed = count > 1 ? strtoull(words[1], NULL, 10) : 1, inputs = count > 2 ? strtoull(words[2], NULL, 10) : 10000;
    static i64 cells[2048];
    const struct machine machine = {NULL, clock_of, receive, transmit, shut, close_it, watch, forget, wait_for};
    const struct owner owner = {NULL, unusual, failed, half_is_old, closed, other_ready, rang,
                                others_have_more, others_go_on, others_attend, sampled};
    luck = seed * 0x9e3779b97f4a7c15u + 1;
    const struct key key = {luck * 3, luck * 5 + 7};
    core_open(&core, &machine, &owner, &key);
    core.limits = (struct limits){.max_calls = 20, .output_bytes = 20000, .max_plain_reply = 16000, .subscriber_buffer = 100000,
                                  .waiting_bytes = 60000, .half_frame_s = 10.0, .unread_output_s = 30.0};
    core.figures = (struct figures){.cells = cells, .calls = 0, .routed = 100, .wait = 200, .hand_off = 600, .waiting = 700,
                                    .received = 710, .sent = 712, .turn = 800, .buckets = 38, .outcomes = 10, .door = 1};
    for (u64 input = 0; input < inputs; input++) {
        for (u32 acts = 1 + roll(3); acts; acts--) act();
        core_turn(&core, 0.0);
        if (input % 5000 == 4999) leave_all();
    }
    leave_all();
    core_close(&core);
    printf("%llu bytes heard, %llu unusual frames, %llu failures, %llu closes; of sends", (unsigned long long)heard,
           (unsigned long long)unusual_frames, (unsigned long long)failures, (unsigned long long)closes);
    for (u32 outcome = MET; outcome < OUTCOMES; outcome++) printf(" %lld", (long long)cells[1 * 10 + outcome]);
    printf("\n");
    return 0;
}
