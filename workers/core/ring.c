#include "ring.h"

void ring_follow(struct ring *ring, const i64 *tokens, const struct share *shares, u32 count, const u32 *owners,
                 u32 owner_count) {
    u16 version = (u16)(ring->version + 1);
    ring_free(ring);
    ring->version = version ? version : 1;
    ring->count = count;
    if (!count) return;
    for (u32 at = 0; at < count; at++)
        assert(shares[at].count && shares[at].first + shares[at].count <= owner_count && "all of them are known");
    ring->tokens = memory(count * sizeof *tokens);
    ring->shares = memory(count * sizeof *shares);
    ring->owners = memory(owner_count * sizeof *owners);
    memcpy(ring->tokens, tokens, count * sizeof *tokens);
    memcpy(ring->shares, shares, count * sizeof *shares);
    memcpy(ring->owners, owners, owner_count * sizeof *owners);
}

void ring_free(struct ring *ring) {
    free(ring->tokens);
    free(ring->shares);
    free(ring->owners);
    *ring = (struct ring){.version = ring->version};
}

static u64 rotated(u64 word, int bits) { return word << bits | word >> (64 - bits); }

static u64 final_mix(u64 word) {
    word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
    word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
    return word ^ word >> 33;
}

static u64 first_mix(u64 word) { return rotated(word * 0x87c37b91114253d5, 31) * 0x4cf5ad432745937f; }
static u64 second_mix(u64 word) { return rotated(word * 0x4cf5ad432745937f, 33) * 0x87c37b91114253d5; }

i64 token_of(const u8 *topic, size_t size) {
    u64 first = 0, second = 0, words[2];
    size_t left = size;
    for (; left >= 16; left -= 16, topic += 16) {
        memcpy(words, topic, 16);
        first = (rotated(first ^ first_mix(words[0]), 27) + second) * 5 + 0x52dce729;
        second = (rotated(second ^ second_mix(words[1]), 31) + first) * 5 + 0x38495ab5;
    }
    memset(words, 0, sizeof words);
    memcpy(words, topic, left);
    second ^= second_mix(words[1]);
    first ^= first_mix(words[0]);
    first ^= size;
    second ^= size;
    first += second;
    second += first;
    first = final_mix(first);
    second = final_mix(second);
    return (i64)(first + second);
}

u32 ring_owner(const struct ring *ring, i64 token) {
    u32 low = 0, high = ring->count;
    assert(high && "somebody owns it");
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (ring->tokens[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    /* One below the first that is not less; below the first of all that is the biggest. */
    const struct share *share = ring->shares + (low ? low - 1 : ring->count - 1);
    return ring->owners[share->first + ((u64)(u32)token * share->count >> 32)];
}
