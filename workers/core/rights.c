#include "core.h"

u32 account_new(struct accounts *accounts, u64 most) {
    accounts->items = memory_again(accounts->items, (accounts->count + 1) * sizeof *accounts->items);
    accounts->items[accounts->count] = (struct account){.most = most};
    return ++accounts->count;
}

void accounts_free(struct accounts *accounts) {
    free(accounts->items);
    *accounts = (struct accounts){0};
}

/* It is that account's from now on, with all that it has in flight. */
void account_enter(struct core *core, struct connection *connection, u32 account) {
    u32 in_flight = connection_in_flight(connection);
    if (connection->account) account_at(&core->accounts, connection->account)->in_flight -= in_flight;
    connection->account = account;
    if (account) account_at(&core->accounts, account)->in_flight += in_flight;
}

void grants_add(struct grants *grants, u32 spot, u32 account, enum action action) {
    if (grants->items == NULL) {
        size_t size = GRANT_SETS * GRANT_WAYS * sizeof *grants->items;
        grants->items = memory(size);
        memset(grants->items, 0, size);
    }
    struct grant *set = grants_of(grants, spot), *place = set + (account & (GRANT_WAYS - 1));
    for (u32 way = 0; way < GRANT_WAYS; way++) {
        if (set[way].spot == spot && set[way].account == account) {
            set[way].actions |= action;
            return;
        }
        if (!set[way].spot) place = set + way;
    }
    *place = (struct grant){spot, account, action};
}

void grants_forget(struct grants *grants, u32 spot) {
    if (LIKELY(grants->items == NULL)) return;
    struct grant *set = grants_of(grants, spot);
    for (u32 way = 0; way < GRANT_WAYS; way++)
        if (set[way].spot == spot) set[way] = (struct grant){0};
}

void grants_free(struct grants *grants) {
    free(grants->items);
    grants->items = NULL;
}
