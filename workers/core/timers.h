/* When rows are due: exact to 20 ms as skywalker/deadlines.py is, and O(1) but for the first timer of a bucket and its
   last. Timers are linked through the rows, in buckets of 10 ms; a heap has the buckets. Knows no clock. */
#ifndef SKYWALKER_TIMERS_H
#define SKYWALKER_TIMERS_H

#include "table.h"

#define BUCKETS_PER_SECOND 100

struct bucket {
    i64 time;   /* in hundredths of a second: what is here is due from then on */
    u32 first, last;
    u32 next;   /* in its chain; of one that is due, the next of these */
    u32 at;     /* its place in the heap, if it is not due */
    bool is_due;
};

struct timers {
    struct table *table; /* whose rows they are of */
    struct pool buckets;
    struct hash by_time;
    u32 *heap; /* buckets, the earliest first */
    u32 size, room;
    u32 recent; /* the bucket that was asked for last, if it is still there */
    u32 due, last_due; /* buckets that are in neither: timers_next() returns what is in them */
    u64 secret; /* odd */
};

void timers_open(struct timers *timers, struct table *table, u64 secret);
void timers_close(struct timers *timers);

/* Have a row be due once its deadline has passed, never before. It has no timer yet. */
void timers_add(struct timers *timers, u32 number);
/* It is not due any more; nothing happens if it has no timer. */
void timers_remove(struct timers *timers, u32 number);

/* Collect all whose time has come, at once however many these are. Until timers_next() returns one it can be removed. */
void timers_collect(struct timers *timers, double now);
/* The next one of these, in the order of their times, to 10 ms, and as they came; 0 if there is none. */
u32 timers_next(struct timers *timers);

/* Seconds until something is due, at least 0; below 0 if nothing ever is. What was collected does not count. */
double timers_wait(const struct timers *timers, double now);

#endif
