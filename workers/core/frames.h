/* A frame found in place: where its elements begin and end in the very bytes that were read. What is refused, and why,
   is the same as in skywalker/wire/frames.py. */
#ifndef SKYWALKER_FRAMES_H
#define SKYWALKER_FRAMES_H

#include "base.h"

#define MAX_ARGUMENTS 6u
#define MAX_DEPTH 512u
#define MAX_FRAME 65535u
#define MAX_ID 32u
#define MAX_TOPIC 4096u
#define MAX_TIMEOUT_MS 86400000u

enum fault {
    WELL_FORMED,
    EMPTY,       /* no bytes at all */
    NO_ARRAY,    /* `detail` is its first byte */
    EMPTY_ARRAY,
    TRUNCATED,
    NO_VALUE,    /* `detail` is the byte that starts none */
    TOO_DEEP,
    TRAILING     /* `detail` bytes follow the array */
};

struct element {
    u32 at, size; /* from the beginning of the body */
};

struct frame {
    u32 count;      /* elements; of a longer array all that follow MAX_ARGUMENTS are one */
    u32 detail;
    enum fault fault;
    struct element elements[MAX_ARGUMENTS + 1]; /* of a bad frame, size 0 where it could not be read */
};

/* Take apart the body of one frame. */
void frame_parse(struct frame *frame, const u8 *body, u32 size);

/* Whether an encoded topic is in its canonical form already. This and what follows is of elements of a good frame. */
bool is_canonical(const u8 *data, u32 size);

/* Milliseconds that a timeout stands for; -1 where it is no short unsigned integer, or too long a time. */
i64 timeout_of(const u8 *data, u32 size);

/* Whether a value is an extension as the node's errors and timeouts are. */
bool is_reserved(const u8 *data, u32 size);

#endif
