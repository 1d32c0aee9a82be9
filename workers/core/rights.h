/* Whose connections are, where that matters, and what each of these may do to a topic as far as that was asked: who asks
   again is answered here. What is known is forgotten with the spot of the topic, or where others need its place. */
#ifndef SKYWALKER_RIGHTS_H
#define SKYWALKER_RIGHTS_H

#include "base.h"

/* What is done to a topic, a bit each. */
enum action { MAY_SEND = 1, MAY_RECV = 2, MAY_PUBLISH = 4, MAY_SUBSCRIBE = 8 };

struct account {
    u64 most;      /* calls of it that may wait, with its subscriptions; 0 for any number */
    u64 in_flight; /* that do */
};

/* By number, from 1 on; one that was made stays. */
struct accounts {
    struct account *items;
    u32 count;
};

u32 account_new(struct accounts *accounts, u64 most);
void accounts_free(struct accounts *accounts);
static inline struct account *account_at(const struct accounts *accounts, u32 number) {
    assert(number && number <= accounts->count);
    return accounts->items + number - 1;
}
static inline bool account_is_full(const struct accounts *accounts, u32 number) {
    const struct account *account = account_at(accounts, number);
    return account->most && account->in_flight >= account->most;
}

struct grant {
    u32 spot, account;
    u32 actions;
};

#define GRANT_SETS 4096u /* a power of two: spots of the same remainder share one */
#define GRANT_WAYS 4u

/* What was found to be allowed. */
struct grants {
    struct grant *items; /* NULL while nothing was asked */
};

void grants_add(struct grants *grants, u32 spot, u32 account, enum action action);
void grants_forget(struct grants *grants, u32 spot);
void grants_free(struct grants *grants);

static inline struct grant *grants_of(const struct grants *grants, u32 spot) {
    return grants->items + (size_t)(spot & (GRANT_SETS - 1)) * GRANT_WAYS;
}
static inline bool grants_has(const struct grants *grants, u32 spot, u32 account, enum action action) {
    if (grants->items == NULL) return false;
    const struct grant *set = grants_of(grants, spot);
    for (u32 way = 0; way < GRANT_WAYS; way++)
        if (set[way].spot == spot && set[way].account == account) return set[way].actions & action;
    return false;
}

#endif
