/* What calls.c does with a call, for held.c. */
#ifndef SKYWALKER_LIFE_H
#define SKYWALKER_LIFE_H

#include "core.h"

extern const struct hash_kind CALLS_BY_ID;

/* Whether its caller keeps track of it, and its clock runs. */
static inline bool call_is_kept(const struct row *row) { return row->state >= HERE && row->state <= ENDING; }

/* What a reply to it repeats, and what it counts as while it waits. */
static inline enum method call_method(const struct row *row) { return row->kind == WILL ? M_WILL : (enum method)row->kind; }
static inline enum kind call_waits_as(const struct row *row) { return row->kind == WILL ? RECV : (enum kind)row->kind; }

bool call_is_cancelled(const struct core *core, const struct row *row);
/* Nothing more becomes of it; count what did. */
void call_close(struct core *core, u32 number, struct row *row, enum outcome outcome);
void call_free(struct core *core, u32 number);
/* Free one of which nothing more becomes, and that nobody may have anything of. */
void call_free_if_done(struct core *core, u32 number);
/* Its caller expects nothing more of it: take the value back, if it has one. */
void call_abandon(struct core *core, u32 number);
/* Leave the place where it waits; false of a send that may just be meeting somebody. */
bool call_withdraw(struct core *core, u32 number);
void call_count(struct core *core, const struct row *row, enum outcome outcome);
enum refusal call_admit(struct core *core, const struct connection *caller, const struct row *row);
void call_keep(struct core *core, u32 number);
void call_unpark(struct core *core, u32 listener, struct row *row);

#endif
