/* What this worker is just handing out, written where it outlives the worker: workers/stats/hands.py reads it. */
#include "link.h"

enum { HAND_COUNT = 1, HAND_HEAD = 8, HAND_ENTRY = 5 };

void hand_add(struct core *core, const struct row *send) {
    if (send->kind != IN_SEND && send->kind != OFFER && send->kind != PASSING) return;
    const struct link *link = link_of(core, send);
    if (!link->life || !KEPT(A_HAND_IS_WRITTEN_DOWN)) return;
    struct hand *hand = &core->hand;
    if (hand->count == hand->room) {
        hand->cells[HAND_COUNT] = hand->room + 1;
        return;
    }
    i64 *entry = hand->cells + HAND_HEAD + HAND_ENTRY * hand->count;
    bool is_inbound = send->kind == IN_SEND;
    u64 number = word_at(send->id);
    entry[0] = (i64)(is_inbound ? core->life : link->life); /* where its topic is owned */
    entry[1] = is_inbound ? 0 : (i64)number;
    entry[2] = (i64)(is_inbound ? link->life : send->home);
    entry[3] = (i64)(is_inbound ? number : send->sent_as);
    entry[4] = 0;
    hand->cells[HAND_COUNT] = ++hand->count;
}

void hand_taken(struct core *core, u32 since) {
    struct hand *hand = &core->hand;
    if (hand->cells == NULL) return;
    for (; since < hand->count; since++) hand->cells[HAND_HEAD + HAND_ENTRY * since + 4] = 1;
    hand->has_it = hand->cells[HAND_COUNT] <= hand->room;
}

void hand_clear(struct core *core) { core->hand.cells[HAND_COUNT] = core->hand.count = 0; }
