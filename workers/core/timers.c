#include "timers.h"

static struct bucket *bucket_at(const struct timers *timers, u32 number) {
    return pool_item(&timers->buckets, number, sizeof(struct bucket));
}

/* Callers choose their timeouts, so the hash of a time has a factor that they cannot know. */
static u32 time_hash(const struct timers *timers, i64 time) { return (u32)((u64)time * timers->secret >> 32); }

static u32 bucket_hash(const void *owner, u32 item) { return time_hash(owner, bucket_at(owner, item)->time); }
static u32 *bucket_next(const void *owner, u32 item) { return &bucket_at(owner, item)->next; }
static const struct hash_kind BY_TIME = {bucket_hash, bucket_next};

void timers_open(struct timers *timers, struct table *table, u64 secret) {
    *timers = (struct timers){.table = table, .secret = secret | 1};
    pool_open(&timers->buckets, sizeof(struct bucket), 0);
}

void timers_close(struct timers *timers) {
    pool_close(&timers->buckets);
    hash_free(&timers->by_time);
    free(timers->heap);
}

static void put(struct timers *timers, u32 at, u32 number) {
    timers->heap[at] = number;
    bucket_at(timers, number)->at = at;
}

static i64 time_in(const struct timers *timers, u32 at) { return bucket_at(timers, timers->heap[at])->time; }

/* Put a bucket into the heap where place `at` is free, or above or below that. */
static void sift(struct timers *timers, u32 at, u32 number) {
    i64 time = bucket_at(timers, number)->time;
    while (at && time_in(timers, (at - 1) / 2) > time) {
        put(timers, at, timers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        u32 child = 2 * at + 1;
        if (child + 1 < timers->size && time_in(timers, child + 1) < time_in(timers, child)) child++;
        if (child >= timers->size || time_in(timers, child) >= time) break;
        put(timers, at, timers->heap[child]);
        at = child;
    }
    put(timers, at, number);
}

static u32 bucket_of(struct timers *timers, i64 time) {
    if (LIKELY(timers->recent) && bucket_at(timers, timers->recent)->time == time) return timers->recent;
    u32 number = hash_first(&timers->by_time, time_hash(timers, time));
    while (number && bucket_at(timers, number)->time != time) number = bucket_at(timers, number)->next;
    if (!number) {
        number = pool_take(&timers->buckets);
        *bucket_at(timers, number) = (struct bucket){.time = time};
        hash_add(&timers->by_time, &BY_TIME, timers, number);
        if (timers->size == timers->room) {
            timers->room = timers->room ? 2 * timers->room : 64;
            timers->heap = memory_again(timers->heap, timers->room * sizeof *timers->heap);
        }
        timers->heap[timers->size] = number;
        sift(timers, timers->size++, number);
    }
    timers->recent = number;
    return number;
}

/* Take a bucket out of the table and the heap. */
static void leave(struct timers *timers, u32 number) {
    u32 at = bucket_at(timers, number)->at;
    hash_remove(&timers->by_time, &BY_TIME, timers, number);
    if (timers->recent == number) timers->recent = 0;
    u32 moved = timers->heap[--timers->size];
    if (at < timers->size) sift(timers, at, moved);
}

void timers_add(struct timers *timers, u32 number) {
    struct row *row = row_at(timers->table, number);
    assert(!row->bucket && "it has one timer");
    /* Truncated as Python's int() does, so that both have it in the same bucket. */
    row->bucket = bucket_of(timers, (i64)(row->deadline * BUCKETS_PER_SECOND) + 1);
    struct bucket *bucket = bucket_at(timers, row->bucket);
    row->timer_next = 0;
    row->timer_previous = bucket->last;
    if (bucket->last)
        row_at(timers->table, bucket->last)->timer_next = number;
    else
        bucket->first = number;
    bucket->last = number;
}

void timers_remove(struct timers *timers, u32 number) {
    struct row *row = row_at(timers->table, number);
    if (!row->bucket) return;
    struct bucket *bucket = bucket_at(timers, row->bucket);
    if (row->timer_next)
        row_at(timers->table, row->timer_next)->timer_previous = row->timer_previous;
    else
        bucket->last = row->timer_previous;
    if (row->timer_previous)
        row_at(timers->table, row->timer_previous)->timer_next = row->timer_next;
    else
        bucket->first = row->timer_next;
    if (!bucket->first && !bucket->is_due) {
        leave(timers, row->bucket);
        pool_give(&timers->buckets, row->bucket);
    }
    row->bucket = row->timer_next = row->timer_previous = 0;
}

void timers_collect(struct timers *timers, double now) {
    while (timers->size && (double)time_in(timers, 0) <= now * BUCKETS_PER_SECOND) {
        u32 number = timers->heap[0];
        struct bucket *bucket = bucket_at(timers, number);
        leave(timers, number);
        bucket->is_due = true;
        bucket->next = 0;
        if (timers->due)
            bucket_at(timers, timers->last_due)->next = number;
        else
            timers->due = number;
        timers->last_due = number;
    }
}

u32 timers_next(struct timers *timers) {
    while (timers->due) {
        const struct bucket *bucket = bucket_at(timers, timers->due);
        u32 number = bucket->first, emptied = timers->due;
        if (number) {
            timers_remove(timers, number);
            return number;
        }
        timers->due = bucket->next;
        pool_give(&timers->buckets, emptied);
    }
    return 0;
}

double timers_wait(const struct timers *timers, double now) {
    if (!timers->size) return -1.0;
    double left = (double)time_in(timers, 0) / BUCKETS_PER_SECOND - now;
    return left > 0.0 ? left : 0.0;
}
