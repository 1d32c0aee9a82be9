/* Bytes that stay where they are until the turn ends: what was read in it, and the words that many are told. */
#ifndef SKYWALKER_SEGMENT_H
#define SKYWALKER_SEGMENT_H

#include "base.h"

#define PADDING 16u /* bytes behind each that may be looked at, and scribbled on */

struct segment {
    struct segment *before;
    u32 used, room;
    u8 bytes[];
};

/* Place for so many bytes in the last of them, which are used once they are counted in `used`. */
u8 *segment_room(struct segment **last, u32 size);
/* The turn has ended. One of them is kept. */
void segments_empty(struct segment **last);

#endif
