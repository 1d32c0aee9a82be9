/* A storm of clients on three cores, two of them siblings: storm SEED INPUTS. Frames good and bad, cut and mixed, from
   connections that read as they like, break and come back, over links that are delayed, choked, cut, and, between nodes,
   say what makes no sense, while time goes by; all from one seed, with no kernel. To be compiled with assertions, and where
   addresses and undefined behaviour are checked. At the end all leave, and nothing may be held. */
#include "link.h"
#include "pubsub.h"

#include <errno.h>
#include <stdio.h>

#define WIRES 12
#define CORES 3
#define PAIRS 5 /* of links: one between the siblings, and one each way between each of them and the third core */
#define INPUT_BYTES (192u * 1024)

static u64 luck;

static u32 roll(u32 below) {
    luck ^= luck << 13, luck ^= luck >> 7, luck ^= luck << 17;
    return (u32)((luck >> 11) % below);
}

#define SUBSCRIPTIONS 4
#define PUBSUB_WIRES 3 /* the last of them speak pub/sub */

static struct wire {
    u32 subscriptions[SUBSCRIPTIONS];
    u64 what;
    u32 core, mask, size, room;
    u32 copies; /* of its descriptor */
    bool open, ended;
    u8 coming[INPUT_BYTES];
} wires[WIRES];

/* An end of a link; its other end is behind it, or before. */
static struct end {
    u64 what, handle;
    u32 mask, core;
    u32 interests[2]; /* of the other end, by topic */
    bool open, ended, delayed, full, is_stream, asks;
    struct packet {
        struct packet *next;
        u32 size, at;
        int passed; /* with it, or -1 */
        u8 bytes[];
    } *first, *last;
} ends[2 * PAIRS];
static struct core cores[CORES];
static double now = 5000.0;
static const i64 tokens[] = {-6000000000000000000, -3000000000000000000, 0, 3000000000000000000, 6000000000000000000};
static const struct share shares[] = {{0, 1}, {1, 2}, {2, 1}, {0, 3}, {1, 1}};
static const u32 owners[] = {0, 1, 2};
static u64 heard, unusual_frames, failures, closes, wills, vetted, moves, lost;

static double clock_of(void *its) { return (void)its, now; }

static struct end *end_of(int fd) { return fd < WIRES ? NULL : ends + fd - WIRES; }
static struct end *other(const struct end *end) { return ends + ((end - ends) ^ 1); }

static void deliver(struct end *end, const void *data, size_t size) {
    struct packet *packet = memory(sizeof *packet + size);
    *packet = (struct packet){.size = (u32)size, .passed = -1};
    memcpy(packet->bytes, data, size);
    if (end->first == NULL) end->first = packet; else end->last->next = packet;
    end->last = packet;
}

static void close_wire(int fd) {
    if (!--wires[fd].copies) wires[fd].open = false;
}

/* What was passed with it, and is not asked for, is closed. */
static ssize_t receive_packet(struct end *end, void *data, size_t size, int *passed) {
    struct packet *packet = end->delayed ? NULL : end->first;
    if (packet == NULL) return end->ended && !end->delayed ? 0 : -EAGAIN;
    u32 left = packet->size - packet->at;
    if (size > left) size = left;
    if (end->is_stream && size > 1 && roll(8) == 0) size = 1 + roll((u32)size - 1);
    memcpy(data, packet->bytes + packet->at, size);
    packet->at += (u32)size;
    if (passed != NULL) *passed = packet->passed;
    else if (packet->passed >= 0) close_wire(packet->passed);
    if (packet->at == packet->size || !end->is_stream) {
        end->first = packet->next;
        free(packet);
    }
    return (ssize_t)size;
}

static ssize_t transmit_packet(struct end *end, const void *data, size_t size) {
    if (!other(end)->open || end->ended) return -EPIPE;
    if (end->full) return -EAGAIN;
    if (end->is_stream && size > 1 && roll(8) == 0) size = 1 + roll((u32)size - 1);
    if (end->is_stream && roll(3000) == 0) {
        u8 *spoiled = memory(size); /* as no worker of ours says it */
        memcpy(spoiled, data, size);
        for (u32 times = 1 + roll(3); times; times--) spoiled[roll((u32)size)] = (u8)roll(256);
        deliver(other(end), spoiled, size);
        free(spoiled);
    } else {
        deliver(other(end), data, size);
    }
    return (ssize_t)size;
}

static ssize_t receive(void *its, int fd, void *data, size_t size) {
    struct wire *wire = wires + fd;
    (void)its;
    if (end_of(fd)) return receive_packet(end_of(fd), data, size, NULL);
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
    if (end_of(fd)) return transmit_packet(end_of(fd), data, size);
    if (!roll(2000)) return -EPIPE;
    if (!wire->room) return -EAGAIN;
    if (size > wire->room) size = wire->room;
    for (size_t at = 0; at < size; at++) sum ^= ((const u8 *)data)[at]; /* every byte is there */
    heard += size + (sum & 1) - (sum & 1);
    wire->room -= (u32)size;
    return (ssize_t)size;
}

static u32 reserved;

static bool reserve(void *its) {
    (void)its;
    bool has_room = roll(20) != 0;
    reserved += has_room;
    return has_room;
}

static void release(void *its) {
    (void)its;
    reserved--;
}

static ssize_t receive_passed(void *its, int fd, void *data, size_t size, int *passed) {
    *passed = -1;
    ssize_t got = receive_packet(end_of(fd), data, size, passed);
    if (*passed >= 0) reserved--, wires[*passed].core = (u32)((struct core *)its - cores);
    return got;
}

static ssize_t transmit_passing(void *its, int fd, const void *data, size_t size, int passed) {
    (void)its;
    ssize_t sent = transmit_packet(end_of(fd), data, size);
    if (sent < 0) return sent;
    other(end_of(fd))->last->passed = passed;
    wires[passed].copies++;
    return sent;
}

/* What is there for who reads no more, with what was passed. */
static void drop_packets(struct end *end) {
    while (end->first) {
        struct packet *packet = end->first;
        end->first = packet->next;
        if (packet->passed >= 0) close_wire(packet->passed);
        free(packet);
    }
}

static void shut(void *its, int fd) {
    (void)its;
    if (end_of(fd)) other(end_of(fd))->ended = true;
}
static void close_it(void *its, int fd) {
    (void)its;
    if (!end_of(fd)) {
        close_wire(fd);
        return;
    }
    end_of(fd)->open = false, other(end_of(fd))->ended = true;
    drop_packets(end_of(fd));
}
static void forget(void *its, int fd) {
    (void)its;
    *(end_of(fd) ? &end_of(fd)->mask : &wires[fd].mask) = 0;
}

static void watch(void *its, int fd, u32 mask, u64 what, bool is_new) {
    (void)its, (void)is_new;
    *(end_of(fd) ? &end_of(fd)->mask : &wires[fd].mask) = mask;
    *(end_of(fd) ? &end_of(fd)->what : &wires[fd].what) = what;
}

static int wait_for(void *its, struct ready *ready, int most, double seconds) {
    int count = 0;
    (void)seconds;
    for (u32 at = 0; at < 2 * PAIRS && count < most; at++) {
        const struct end *end = ends + at;
        bool has_ended = end->ended && !end->delayed, has_some = has_ended || (end->first && !end->delayed);
        u32 mask = end->mask & ((has_some ? READABLE : 0u) | (!end->full || end->ended ? WRITABLE : 0u));
        if (has_ended) mask |= 16;
        if (end->open && cores + end->core == its && mask) ready[count++] = (struct ready){end->what, mask};
    }
    for (u32 fd = 0; fd < WIRES && count < most; fd++) {
        const struct wire *wire = wires + fd;
        if (cores + wire->core != its) continue;
        u32 mask = wire->mask & ((wire->size || wire->ended ? READABLE : 0u) | (wire->room ? WRITABLE : 0u));
        if (wire->open && mask) ready[count++] = (struct ready){wire->what, mask};
    }
    return count;
}

static const u8 TWO_TOPICS[] = "\xa1t\xa1u";

static void subscribe(struct core *core, struct connection *connection) {
    struct wire *wire = wires + connection->fd;
    enum refusal why;
    u8 id[ID_INSIDE] = {(u8)roll(5)};
    u32 *place = wire->subscriptions + roll(SUBSCRIPTIONS);
    if (*place) {
        if (roll(2)) call_unsubscribe(core, *place); /* which it may be given something after */
        if (roll(2)) return;
        call_end_subscription(core, *place);
        *place = 0;
        return;
    }
    *place = call_subscribe(core, connection, id, 1, TWO_TOPICS + 2 * roll(2), 2, &why);
    if (!*place) return;
    row_at(&core->table, *place)->is_typed = roll(2);
    junction_subscribe(&core->table, *place);
}

/* What a client may say that is for others to do: wills, publications, accounts, pauses. */
static void do_rare(struct core *core, struct connection *connection) {
    if (connection->publisher != NULL) {
        if (roll(2)) publisher_done(core, connection, publisher_awaits(connection));
        if (roll(30) == 0) {
            connection->publisher->is_over = true;
            if (!publisher_is_owed(connection)) core_finish(core, connection);
            return;
        }
        if (roll(20) == 0) publishers_hold_back(core);
        if (roll(20) == 0) publications_reroute(core);
        return;
    }
    u32 topic = spot_take(&core->table, 0, TWO_TOPICS + 2 * roll(2), 2), size = roll(3) ? 5 : 3000;
    u8 *value = input_room(core, size), id[ID_INSIDE] = {(u8)roll(5)};
    struct call call = {.kind = SEND, .id = id, .id_size = 1, .value_size = size, .value = value, .topic = topic, .seconds = roll(9)};
    memset(value, 'w', size);
    input_use(core, size);
    switch (roll(6)) {
    case 0:
        call_publish(core, connection, &(struct publication){topic, size, roll(3), value, value, 0});
        return;
    case 1: case 2:
        wills += !call_will(core, connection, &call);
        return;
    case 3:
        account_enter(core, connection, roll(core->accounts.count + 1));
        break;
    case 4:
        input_pause(core, connection, roll(2) ? 0.02 : 2.0);
        break;
    default:
        if (connection->account) grants_add(&core->table.grants, topic, connection->account, (enum action)(1u << roll(4)));
        connection->flags ^= VETTED;
    }
    spot_drop(&core->table, topic);
}

static enum verdict vet(void *its, u64 handle, const u8 *body, u32 size) {
    struct core *core = its;
    struct connection *connection = connection_find(core, handle);
    (void)body, (void)size;
    vetted++;
    if (roll(100) == 0) core_finish(core, connection);
    if (core->standing & OPENING && roll(2)) return HAS_TO_WAIT;
    return roll(20) ? GOES_ON : IS_DONE;
}

static void half_begun(void *its, u64 handle, const u8 *half, u32 size, bool is_first) {
    struct core *core = its;
    (void)is_first;
    for (u32 at = 0; at < size; at++) heard += half[at] & 1;
    if (roll(50) == 0) core_finish(core, connection_find(core, handle));
}

static void is_through(void *its, u64 handle) {
    struct core *core = its;
    core_finish(core, connection_find(core, handle));
}

static ssize_t receive_sealed(void *its, u64 handle, u32 most, const u8 **data) {
    static u8 plain[READ_BYTES];
    struct connection *connection = connection_find(its, handle);
    ssize_t got = receive(its, connection->fd, plain, roll(2) ? most : 100);
    *data = plain;
    if (wires[connection->fd].ended && !wires[connection->fd].size) connection->flags |= HAS_ENDED;
    return got;
}

static ssize_t transmit_sealed(void *its, u64 handle, const u8 *data, u32 size, u32 *on_its_way) {
    ssize_t sent = transmit(its, connection_find(its, handle)->fd, data, size);
    u32 left = sent < 0 ? size : size - (u32)sent;
    assert(*on_its_way <= size);
    if (sent > 0 || sent == -EAGAIN) *on_its_way = roll(2) || left < *on_its_way ? left : left < 300 ? left : 300;
    return sent;
}

static void shut_sealed(void *its, u64 handle) { (void)its, (void)handle; }
static void named(void *its, i64 token, const u8 *topic, u32 size) { (void)its, (void)topic, heard += (token & 1) + size; }

static void recorded(void *its, u32 records) {
    static u8 pages[CORES][2][32 * 50];
    struct core *core = its;
    u8(*own)[32 * 50] = pages[core - cores];
    if (records == 50) journal_turn(core, own[core->journal.page == own[0]], 50);
}

static void unusual(void *its, u64 handle, const u8 *body, u32 size) {
    struct core *core = its;
    struct connection *connection = connection_find(core, handle);
    unusual_frames++;
    if (connection == NULL) return;
    for (u32 at = 0; at < size; at++) heard += body[at] & 1;
    u32 what = roll(500);
    if (!what)
        core_finish(core, connection);
    else if (what == 1)
        core_close_connection(core, connection, BY_OWNER, 0);
    else if (what < 100)
        subscribe(core, connection);
    else if (what < 250)
        do_rare(core, connection);
    else
        output_push(core, connection, (const u8 *)"\0\1\xc0", 3);
}

static void failed(void *its, u64 handle, enum method method, const u8 *id, u32 size, const struct blob *timed_out,
                   enum refusal why, u32 number, u32 limit) {
    struct core *core = its;
    struct connection *connection = connection_find(core, handle);
    (void)method, (void)timed_out, (void)why, (void)number, (void)limit;
    failures++;
    if (connection != NULL) output_push(core, connection, id, size);
}

static void half_is_old(void *its, u64 handle) {
    struct connection *connection = connection_find(its, handle);
    if (connection != NULL) core_finish(its, connection);
}

static void end_subscriptions(struct core *core, struct wire *wire) {
    for (u32 at = 0; at < SUBSCRIPTIONS; at++) {
        if (wire->subscriptions[at]) call_end_subscription(core, wire->subscriptions[at]);
        wire->subscriptions[at] = 0;
    }
}

static void closed(void *its, u64 handle, enum close why, int error) {
    struct core *core = its;
    struct connection *connection = connection_at(core, (u32)handle);
    (void)error;
    closes++;
    lost += why == LOST_ON_ITS_WAY;
    if (why == MOVED || connection->fd < 0) return;
    end_subscriptions(core, wires + connection->fd);
    if (connection->flags & SECURE) close_wire(connection->fd);
}

static bool may_move(void *its, u64 handle, const u8 **facts, u32 *size) {
    (void)its, (void)handle;
    *facts = TWO_TOPICS;
    *size = roll(5);
    return roll(20) != 0;
}

static u64 arriving(void *its, u64 link, const u8 *facts, u32 size, u32 calls, bool has_room) {
    struct core *core = its;
    (void)link, (void)calls;
    if (!has_room || roll(20) == 0 || memcmp(facts, TWO_TOPICS, size)) return 0;
    u64 handle = core_connect(core, -1, JUNCTION_DOOR);
    if (roll(3) == 0) account_enter(core, connection_find(core, handle), 1 + roll(core->accounts.count));
    return handle;
}

static void arrived(void *its, u64 handle) {
    struct core *core = its;
    moves++;
    if (roll(4) == 0) subscribe(core, connection_find(core, handle));
    if (roll(50) == 0) core_finish(core, connection_find(core, handle));
    else if (roll(50) == 0) core_close_connection(core, connection_find(core, handle), BY_OWNER, 0);
}

static void may_go(void *its, u64 handle, bool goes) { (void)its, (void)handle, (void)goes; }

/* Whoever is at one of the siblings goes to the other, if it can; or is closed, or told to go, perhaps on its way. */
static void draw(void) {
    u32 at = roll(2);
    struct core *core = cores + at;
    struct link *link = link_find(core, ends[at].handle);
    for (u32 number = 1; number < CHUNK_ITEMS; number++) {
        if (!pool_has(&core->connections, number) || !connection_at(core, number)->generation) continue;
        struct connection *connection = connection_at(core, number);
        if (connection->flags & IS_CLOSED) continue;
        bool is_on_its_way = connection->flags & (MOVES | ARRIVES);
        if (connection->flags & MOVES && connection->there) end_subscriptions(core, wires + connection->fd);
        if (is_on_its_way && roll(30) == 0) core_close_connection(core, connection, BY_OWNER, 0);
        else if (is_on_its_way && roll(30) == 0 && !(connection->flags & LEAVES)) core_finish(core, connection);
        else if (link != NULL && !(link->flags & LINK_CLOSED)) move_draw(core, connection, link);
    }
}

static void other_ready(void *its, u32 what, u32 mask) { (void)its, (void)what, (void)mask; }

static u64 alarms[CORES][8]; /* of nobody but this test */
static void rang(void *its, u64 alarm) {
    u64 *set = alarms[(struct core *)its - cores];
    u32 at = 0;
    while (at < 8 && set[at] != alarm) at++;
    if (at == 8) DIE("an alarm rings that is not set");
    set[at] = roll(4) ? 0 : core_set_alarm(its, now + 0.01 * roll(100));
}

static void wind(u32 of, u32 at) {
    core_drop_alarm(cores + of, alarms[of][at]);
    alarms[of][at] = roll(3) ? core_set_alarm(cores + of, now + 0.01 * roll(3000)) : 0;
}

static double others_rest(void *its, double at) { return (void)its, (void)at, -1.0; }
static void others_go_on(void *its) { (void)its; }

static u32 sampled(void *its, const u8 *topic, u32 size) { return (void)its, size ? topic[0] & 3u : 0; }

/* Links. */

static u64 said_kinds, links_ended;

static void said(void *its, u64 link, const struct message *message) {
    struct message answer = {.kind = SAY_COUNTED, .number = message->number, .value = (const u8 *)"\xc0", .value_size = 1};
    said_kinds++;
    if (message->kind == SAY_CENSUS && link_find(its, link)) message_say(its, link_find(its, link), &answer);
}

static void early(void *its, u64 link) { (void)its, (void)link; }

static void end_interests(struct core *core, struct end *end) {
    for (u32 at = 0; at < 2; at++) {
        if (end->interests[at]) inbound_interest_end(core, end->interests[at]);
        end->interests[at] = 0;
    }
}

static void link_ended(void *its, u64 link, const char *why) {
    struct core *core = its;
    struct end *end = end_of(link_find(core, link)->fd);
    u32 owner = link_find(core, link)->owner;
    (void)why;
    links_ended++;
    if (core->ways[owner].now == (u32)link) core_lead(core, owner, 0);
    if (end->handle != link) return;
    if (link_find(core, link)->flags & LINK_SECURE) close_it(core, link_find(core, link)->fd);
    end_interests(core, end);
    for (u32 at = 0; at < WIRES * SUBSCRIPTIONS; at++) {
        u32 number = wires[at / SUBSCRIPTIONS].subscriptions[at % SUBSCRIPTIONS];
        if (cores + wires[at / SUBSCRIPTIONS].core != core || !number) continue;
        if (!(row_at(&core->table, number)->flags & AFAR)) continue;
        junction_unsubscribe(&core->table, number);
        junction_subscribe(&core->table, number);
    }
}

/* Somebody there subscribes, or changes how many they are, or leaves; or somebody here hears what comes from there. */
static void be_interested(struct end *end) {
    struct core *core = cores + end->core;
    struct link *link = link_find(core, end->handle);
    u32 which = roll(2), *interest = end->interests + which;
    if (link == NULL || link->flags & LINK_CLOSED) return;
    const struct wire *wire = wires + roll(WIRES);
    u32 subscription = wire->subscriptions[roll(SUBSCRIPTIONS)];
    if (roll(2) && wire->open && cores + wire->core == core && subscription) {
        junction_unsubscribe(&core->table, subscription);
        if (end->asks) junction_hear_afar(&core->table, subscription);
        else junction_subscribe(&core->table, subscription);
    } else if (!*interest) {
        *interest = inbound_interest_new(core, link, TWO_TOPICS + 2 * which, 2);
        junction_resize(&core->table, *interest, 1);
        junction_subscribe(&core->table, *interest);
    } else if (roll(2)) {
        junction_resize(&core->table, *interest, 1 + roll(3));
    } else {
        inbound_interest_end(core, *interest);
        *interest = 0;
    }
}

static ssize_t link_receive(void *its, u64 handle, u32 most, const u8 **data) {
    static u8 plain[READ_BYTES];
    struct link *link = link_find(its, handle);
    ssize_t got = receive_packet(end_of(link->fd), plain, most, NULL);
    *data = plain;
    if (got > 0 && end_of(link->fd)->ended && !end_of(link->fd)->first) link->flags |= LINK_HAS_ENDED;
    return got;
}

static ssize_t link_transmit(void *its, u64 handle, const u8 *data, u32 size, u32 *on_its_way) {
    *on_its_way = 0;
    return transmit_packet(end_of(link_find(its, handle)->fd), data, size);
}

static void link_shut(void *its, u64 handle) { other(end_of(link_find(its, handle)->fd))->ended = true; }

static u64 stuck_links;
static void stuck(void *its, u64 handle) {
    stuck_links++;
    end_interests(its, end_of(link_find(its, handle)->fd));
}

static void link_over(void *its, u64 link) { (void)its, (void)link; }

/* What is to be released is so later, or at once. */
static u64 dead[CORES][64];
static u32 dead_count[CORES];

static void ask_all(void *its, u64 link) { core_answer(its, link_find(its, link)->life, 0, 0, link); }

static void answered(void *its, u64 token) {
    u32 at = (u32)((struct core *)its - cores);
    if (dead_count[at] < 64 && roll(2)) dead[at][dead_count[at]++] = token;
    else if (link_find(its, token)) outbound_release(its, link_find(its, token), roll(2));
}

static void release_all(u32 at) {
    while (dead_count[at]) {
        u64 link = dead[at][--dead_count[at]];
        if (link_find(cores + at, link)) outbound_release(cores + at, link_find(cores + at, link), roll(2));
    }
}

static bool handed(void *its, u64 life, struct words *entries) {
    (void)its;
    for (u32 at = 0; at < CORES; at++) {
        const i64 *cells = cores[at].hand.cells;
        if (cores[at].life != life) continue;
        for (i64 entry = 0; entry < cells[1]; entry++)
            for (u32 part = 0; part < 5; part++) words_add(entries, (u64)cells[8 + 5 * entry + part]);
    }
    return roll(8) != 0;
}

static void wanted(void *its, u32 owner) { (void)its, (void)owner; }
static u64 lags;
static void lagged(void *its, u32 interest) {
    struct core *core = its;
    lags++;
    junction_unsubscribe(&core->table, interest);
}
static void reached(void *its, const char *point) { (void)its, (void)point; }

/* Of the first two cores, which are siblings, and the third: who has which end, and asks over it. */
static const u32 WHO[PAIRS][2] = {{0, 1}, {0, 2}, {2, 0}, {1, 2}, {2, 1}};

/* A link may begin with bytes that are to be written, and with some that were read. */
static void begin(struct core *core, const struct end *end, struct link *link) {
    static const u8 CENSUS[] = "\0\0\0\x0d\x93\x08\xcf\0\0\0\0\0\0\0\5\xa1t";
    static_assert(sizeof CENSUS == 4 + 13 + 1, "");
    u32 unwritten = roll(2) ? sizeof CENSUS - 1 : 0, heard = link->flags & LINK_ASKS_US ? roll(sizeof CENSUS) : 0;
    link_begin(core, link, CENSUS, unwritten, CENSUS, heard);
    if (heard && heard < sizeof CENSUS - 1) deliver((struct end *)end, CENSUS + heard, sizeof CENSUS - 1 - heard);
}

static void tie(u32 pair) {
    bool is_stream = pair != 0, is_both_ways = roll(2);
    for (u32 side = 0; side < 2; side++) {
        struct end *end = ends + 2 * pair + side;
        drop_packets(end);
        *end = (struct end){.open = true, .core = WHO[pair][side], .is_stream = is_stream, .asks = !is_stream || is_both_ways || !side};
    }
    for (u32 side = 0; side < 2; side++) {
        struct end *end = ends + 2 * pair + side;
        struct core *core = cores + end->core;
        u32 peer = WHO[pair][1 - side], flags = is_stream ? LINK_ABROAD : 0;
        if (is_stream && roll(2)) flags |= LINK_SECURE;
        if (is_stream && (is_both_ways || !end->asks)) flags |= LINK_ASKS_US;
        if (is_both_ways) flags |= LINK_BOTH_WAYS;
        u32 link = link_open(core, (int)(WIRES + (end - ends)), is_stream ? 0 : cores[peer].life, flags);
        end->handle = link_handle(link_at(core, link));
        if (is_stream) begin(core, end, link_at(core, link));
        if (end->asks) core_lead(core, peer, link);
    }
}

static void act_on_links(void) {
    struct end *end = ends + roll(2 * PAIRS);
    u32 pair = (u32)(end - ends) / 2;
    struct link *link = link_find(cores + end->core, end->handle);
    switch (roll(18)) {
    case 12: case 13: case 14: case 15: be_interested(end); break;
    case 16: if (link != NULL && roll(20) == 0) link_finish(cores + end->core, link); break;
    case 17: if (link != NULL) link_catch_up(cores + end->core, link); break;
    case 0: case 1: case 2: end->delayed = !end->delayed; break;
    case 3: case 4: end->full = !end->full; break;
    case 5: if (roll(4) == 0) end->ended = other(end)->ended = true; break;
    case 6: release_all(end->core); break;
    default:
        if (!ends[2 * pair].open && !ends[2 * pair + 1].open && !roll(4)) {
            release_all(0), release_all(1);
            tie(pair);
        }
    }
}

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

static u32 make_message(u8 *frame) {
    static const u32 SIZES[] = {0, 3, 16, 300, 3000, 20000};
    u32 size = SIZES[roll(6)], code = roll(3) ? 1 : 6, at = 3;
    if (roll(8) == 0) code = roll(8);
    frame[0] = (u8)code;
    frame[1] = 1;
    frame[2] = roll(9) ? roll(2) ? 't' : 'u' : (u8)roll(256);
    if (code == 6) frame[at++] = (u8)roll(256), frame[at++] = roll(5) ? 0 : 1;
    if (code != 1 && code != 6) return at;
    frame[at++] = (u8)size;
    frame[at++] = (u8)(size >> 8);
    memset(frame + at, 'm', size);
    return at + size;
}

static void say(struct wire *wire) {
    static u8 frame[32 * 1024];
    for (u32 frames = 1 + roll(roll(8) ? 4 : 90); frames; frames--) {
        u32 size = wire < wires + WIRES - PUBSUB_WIRES ? make_frame(frame) : make_message(frame);
        if (wire->size + size > INPUT_BYTES) return;
        if (roll(300) == 0) size = roll(size); /* the rest never comes, or something else in its place */
        memcpy(wire->coming + wire->size, frame, size);
        wire->size += size;
    }
}

static void come(u32 fd) {
    wires[fd] = (struct wire){.open = true, .room = 1u << 20, .copies = 1};
    struct core *core = cores + roll(CORES);
    wires[fd].core = (u32)(core - cores);
    struct connection *connection = connection_find(core, core_connect(core, (int)fd, fd < WIRES - PUBSUB_WIRES ? JUNCTION_DOOR : PUBSUB_DOOR));
    connection->flags |= roll(4) ? 0 : SECURE;
    connection->flags |= roll(6) ? 0 : VETTED;
    if (roll(3) == 0) core_probe(core, connection);
    if (roll(3) == 0) account_enter(core, connection, 1 + roll(core->accounts.count));
    connection->flags |= roll(2) ? KNOWS_ERRORS : 0;
    connection->flags |= roll(3) ? 0 : ACKS;
    if (roll(3) == 0) connection->max_reply = 5000;
}

/* What becomes of all of it: it opens, drains, or leaves, and begins anew. */
static void change_all(struct core *core) {
    if (roll(3) == 0) core->standing ^= LEAVING;
    core->standing = roll(8) ? core->standing & ~(u32)REPLACED : core->standing | REPLACED;
    u32 what = roll(300);
    if (what < 3) {
        core->standing |= REFUSING;
        core_drain(core);
    }
    if (what == 4) core->standing |= OPENING;
    if (what < 5) return;
    if (what < 100) core->standing &= ~(u32)REFUSING;
    if (core->standing & OPENING && what < 200) {
        core->standing &= ~(u32)OPENING;
        for (u32 number = 1; number < CHUNK_ITEMS; number++)
            if (pool_has(&core->connections, number) && connection_at(core, number)->generation)
                input_resume(core, connection_at(core, number));
    }
    const struct wire *wire = wires + roll(WIRES);
    if (what > 297 && wire->open && cores + wire->core == core) {
        struct connection *connection = connection_find(core, wire->what);
        if (connection != NULL) calls_fail(core, connection, DRAINS);
    }
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
    case 4:
        wind(roll(CORES), roll(8));
        break;
    case 2:
        if (roll(4) == 0) wires[fd].ended = true;
        break;
    case 3:
        change_all(cores + roll(CORES));
        break;
    default:
        say(wires + fd);
    }
}

static void leave_all(void) {
    for (u32 at = 0; at < CORES; at++) {
        cores[at].standing = 0;
    }
    for (u32 fd = 0; fd < WIRES; fd++) {
        struct core *core = cores + wires[fd].core;
        struct connection *connection = connection_find(core, wires[fd].what);
        if (wires[fd].open && connection != NULL) input_resume(core, connection);
    }
    for (u32 fd = 0; fd < WIRES; fd++) {
        wires[fd].ended = true;
        wires[fd].size = 0;
        wires[fd].room = 1u << 30;
    }
    for (u32 at = 0; at < CORES; at++) {
        /* What is published waits for an owner as long as there is none. */
        ring_follow(&cores[at].ring, NULL, NULL, 0, NULL, 0);
        publications_reroute(cores + at);
    }
    for (u32 at = 0; at < 2 * PAIRS; at++) {
        ends[at].delayed = ends[at].full = false;
        ends[at].ended = true; /* what was said over it may have been about other calls, or left to a successor */
    }
    for (u32 turn = 0; turn < 200 * CORES; turn++) {
        now += 0.3;
        core_turn(cores + turn % CORES, 0.0);
        release_all(turn % CORES);
    }
    for (u32 at = 0; at < CORES; at++) {
        const struct core *core = cores + at;
        if (core->connections.used || core->table.rows.used || core->table.extras.used || core->calls_held ||
            core->bytes_held || core->orphans || core->moving || core->timers.size || core->table.spots.used != core->table.idle_count)
            DIE("something is left of what is gone");
        if (reserved) DIE("room is kept for what never comes");
        ring_follow(&cores[at].ring, tokens, shares, 5, owners, 3);
    }
}

int main(int count, char **words) {
    u64 seed = count > 1 ? strtoull(words[1], NULL, 10) : 1, inputs = count > 2 ? strtoull(words[2], NULL, 10) : 10000;
    static i64 cells[CORES][2048], hands[CORES][8 + 5 * 16];
    struct machine machine = {NULL, clock_of, clock_of, receive, transmit, receive_passed, transmit_passing, reserve, release,
                              shut, close_it, watch, forget, wait_for};
    struct owner owner = {NULL, vet, unusual, failed, half_begun, half_is_old, is_through, receive_sealed, transmit_sealed,
                          shut_sealed, closed, may_move, arriving, arrived, may_go, other_ready, rang, others_rest, others_go_on, sampled,
                          named, recorded, said, early, link_receive, link_transmit, link_shut, stuck, link_ended, link_over, ask_all, handed, wanted, lagged, answered, reached};
    luck = seed * 0x9e3779b97f4a7c15u + 1;
    const struct key key = {luck * 3, luck * 5 + 7};
    for (u32 at = 0; at < CORES; at++) {
        struct core *core = cores + at;
        machine.its = owner.its = core;
        core_open(core, &machine, &owner, &key);
    core->limits = (struct limits){.max_calls = 20, .output_bytes = 20000, .max_plain_reply = 16000, .subscriber_buffer = 100000,
                                  .waiting_bytes = 60000, .half_frame_s = 10.0, .unread_output_s = 30.0,
                                  .idle_probe_s = 7.0, .max_moves = 1000000, .mesh_bytes = 30000, .behind_bytes = 5000};
        account_new(&core->accounts, 3);
        account_new(&core->accounts, 0);
        journal_begin(core, 2, (u32)seed);
        recorded(core, 50);
    core->figures = (struct figures){.cells = cells[at], .calls = 0, .routed = 100, .wait = 200, .hand_off = 600, .waiting = 700,
                                    .received = 710, .sent = 712, .turn = 800, .longest_turn = 850, .buckets = 38, .outcomes = 10};
        core->life = NUMBER_OF_HOME | (at + 1);
        core->hand = (struct hand){hands[at], 16, 0};
        core->here = at;
        ring_follow(&core->ring, tokens, shares, 5, owners, 3);
        core_ways(core, CORES);
    }
    for (u32 pair = 0; pair < PAIRS; pair++) tie(pair);
    for (u64 input = 0; input < inputs; input++) {
        for (u32 acts = 1 + roll(3); acts; acts--) act();
        if (roll(3) == 0) act_on_links();
        if (roll(3) == 0) draw();
        for (u32 at = 0; at < CORES; at++) core_turn(cores + at, 0.0);
        if (input % 5000 == 4999) leave_all();
    }
    leave_all();
    for (u32 at = 0; at < CORES; at++) core_close(cores + at);
    for (u32 at = 0; at < CORES; at++) release_all(at);
    printf("%llu bytes heard, %llu unusual frames, %llu failures, %llu closes, %llu wills, %llu vetted, "
           "%llu links ended, %llu lagged, %llu stuck, %llu moves, %llu lost; of sends",
           (unsigned long long)heard, (unsigned long long)unusual_frames, (unsigned long long)failures,
           (unsigned long long)closes, (unsigned long long)wills, (unsigned long long)vetted,
           (unsigned long long)links_ended, (unsigned long long)lags, (unsigned long long)stuck_links,
           (unsigned long long)moves, (unsigned long long)lost);
    for (u32 outcome = MET; outcome < OUTCOMES; outcome++)
        printf(" %lld", (long long)(cells[0][1 * 10 + outcome] + cells[1][1 * 10 + outcome] + cells[2][1 * 10 + outcome]));
    printf("\n");
    return 0;
}
