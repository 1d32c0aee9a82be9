/* What is done with a call within the core: steps of its life that several of its parts take. */
#ifndef SKYWALKER_LIFE_H
#define SKYWALKER_LIFE_H

#include "core.h"

extern const struct hash_kind CALLS_BY_ID;

/* Whether its caller keeps track of it, and its clock runs. */
static inline bool call_is_kept(const struct row *row) { return row->state >= HERE && row->state <= ENDING; }

/* What a reply to it repeats, and what it counts as while it waits. */
static inline enum method call_method(const struct row *row) { return row->kind == WILL ? M_WILL : (enum method)row->kind; }
static inline enum kind call_waits_as(const struct row *row) { return row->kind == WILL ? RECV : (enum kind)row->kind; }

/* Go on to the state that this event leads to; its caller keeps track of it as long as it should. */
void call_become(struct core *core, u32 number, struct row *row, enum event event);
/* Look at it in so many seconds rather than at its deadline. */
void call_postpone(struct core *core, u32 number, double seconds);
/* It ends without having met anybody, or with an error; it is still there. */
void call_over(struct core *core, u32 number);
void call_fail(struct core *core, u32 number, enum refusal why, u32 size, u32 limit);
/* Bytes that are counted for it while it waits; why it may not wait, if so. */
u32 call_cost(const struct core *core, const struct row *row);
enum refusal call_admit(struct core *core, const struct connection *caller, const struct row *row);
/* Have it meet somebody, or wait; have it wait over a link. It may be gone afterwards. */
void call_meet(struct core *core, u32 number);
void call_go(struct core *core, u32 number, u32 way);
/* Its time is over, or it is cancelled: it ends, now or once it is known whether it just met somebody. */
void call_ends(struct core *core, u32 number);
/* Hear what was said of it already; it may be gone afterwards. */
void call_hear_last_words(struct core *core, u32 number);
/* It met nobody where it waited, and waits there no more. It may be gone afterwards. */
void call_returned(struct core *core, u32 number);
/* Somebody may have taken the value of a send, and nobody will say so. */
void call_doubt(struct core *core, u32 send, enum refusal why);
void call_awaits_ack(struct core *core, u32 send, bool is_so);
/* Take its value back from where it is not being written yet; where that `is_final`, as its sender is told that nobody has
   it, also from where it is written in this very turn. If it is back from everywhere it is missed. Whether it is. */
bool call_ask_back(struct core *core, u32 number, bool is_final);
/* One who was given its value has it, or is lost. It may be gone afterwards. */
void call_confirm(struct core *core, u32 send);
void call_lose(struct core *core, u32 send);
/* Handles of all calls in a table; sort them in the order in which they came to this worker; or of those that wait here,
   then of those that wait elsewhere, by when their clients called, and of one moment as they were sent on. */
struct words calls_in(const struct core *core, const struct hash *hash);
void calls_by_arrival(const struct core *core, struct words *calls);
void calls_by_age(const struct core *core, struct words *calls);
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
/* What a connection published: it goes to where its topic is owned now; it is in effect. */
void publication_goes_on(struct core *core, u32 number);
void publication_settle(struct core *core, u32 number);
/* It is written to a link. */
void publication_delayed_no_more(struct core *core, u32 number);
/* Give it to a subscription, which stays, and is given what comes however much there is already. */
bool call_give_to_subscriber(struct core *core, struct connection *caller, u32 subscriber, u32 send);
/* A row for what a subscriber of that connection has of a send whose sender waits. */
u32 call_deliver(struct core *core, struct connection *caller, u32 send);
void call_count(struct core *core, const struct row *row, enum outcome outcome);
void call_unpark(struct core *core, u32 listener, struct row *row);

#endif
