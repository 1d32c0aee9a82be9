/* What is recorded of the calls that were answered: 32 bytes each, as skywalker/journal/record.py says. */
#include "core.h"

struct record {
    double ended;
    i64 token;
    float wait;
    u32 size, connection;
    u8 method, outcome, route, door;
};

#define AHEAD_BYTES 256u

/* Choose how many calls to leave out, at random: at even distances one might meet only the sends of pairs. */
static void set_gap(struct journal *journal) {
    journal->dice = journal->dice * 1664525u + 1013904223u;
    journal->gap = (u32)((u64)journal->dice * (2ull * journal->every - 1) >> 32);
}

void journal_begin(struct core *core, u32 every, u32 dice) {
    static_assert(sizeof(struct record) == 32, "a record is what a journal has");
    core->journal = (struct journal){.every = every, .dice = dice};
    set_gap(&core->journal);
}

/* Token of a topic, which is named from now on. What is known of the number of one that is not was of another's. */
static i64 token_to_record(struct core *core, u32 number, struct spot *topic) {
    struct journal *journal = &core->journal;
    u32 at = number % KNOWN_TOKENS;
    if (LIKELY(topic->is_named && journal->known[at].spot == number)) return journal->known[at].token;
    i64 token = token_of(spot_name(topic), topic->size);
    journal->known[at].spot = number;
    journal->known[at].token = token;
    if (!topic->is_named) {
        topic->is_named = true;
        core->owner.named(core->owner.its, token, spot_name(topic), topic->size);
    }
    return token;
}

void journal_turn(struct core *core, u8 *page, u32 room) {
    core->journal.page = page;
    core->journal.room = room;
    core->journal.used = 0;
}

void journal_record(struct core *core, const struct row *row, u32 method, enum outcome outcome) {
    struct journal *journal = &core->journal;
    if (journal->every > 1) {
        if (journal->gap) {
            journal->gap--;
            return;
        }
        set_gap(journal);
    }
    const struct connection *caller = caller_of(core, row);
    i64 token = token_to_record(core, row->topic, spot_at(&core->table, row->topic));
    if (journal->page == NULL) return; /* who was just told of the topic has failed */
    assert(journal->used < journal->room && "a page that is full is handed over");
    const struct record record = {
        .ended = core->now, .token = token, .wait = (float)(core->now - row->since), .size = row->size,
        .connection = caller->generation, .method = (u8)method, .outcome = (u8)outcome, .route = row->route,
        .door = caller->door,
    };
    u8 *at = journal->page + (size_t)journal->used++ * sizeof record;
    __builtin_prefetch(at + AHEAD_BYTES, 1); /* who had the page last was another thread, maybe of another processor */
    memcpy(at, &record, sizeof record);
    if (UNLIKELY(journal->used == 1 || journal->used == journal->room))
        core->owner.recorded(core->owner.its, journal->used);
}
