#include "segment.h"

#define SEGMENT_BYTES (256u * 1024)

u8 *segment_room(struct segment **last, u32 size) {
    struct segment *segment = *last;
    if (UNLIKELY(segment == NULL || segment->room - segment->used < size + PADDING)) {
        u32 room = size + PADDING > SEGMENT_BYTES ? size + PADDING : SEGMENT_BYTES;
        segment = memory(sizeof *segment + room);
        *segment = (struct segment){.before = *last, .room = room};
        *last = segment;
    }
    return segment->bytes + segment->used;
}

/* Who goes on to read it is to notice. */
static bool scrub(struct segment *segment) {
    memset(segment->bytes, 0xDB, segment->used);
    return true;
}

void segments_empty(struct segment **last) {
    struct segment *segment = *last;
    if (segment == NULL) return;
    while (segment->before != NULL) {
        struct segment *before = segment->before;
        free(segment);
        segment = before;
    }
    assert(scrub(segment));
    segment->used = 0;
    *last = segment;
}
