#include "told.h"

u8 *told_place(struct told *told, u64 send, u32 confirms, u32 size, u32 id_at, u32 id_size) {
    if (UNLIKELY(told->count == told->room)) {
        told->room = told->room ? 2 * told->room : 64;
        told->messages = memory_again(told->messages, told->room * sizeof *told->messages);
    }
    told->last = told->messages[told->count++] = (struct message_told){confirms, size};
    u8 *words = segment_room(&told->segment, size);
    told->segment->used += size;
    told->send = send;
    told->words = words;
    told->id = words + id_at;
    told->id_size = id_size;
    return words;
}

void told_forget(struct told *told) {
    segments_empty(&told->segment);
    told->count = 0;
    told->send = 0;
}

void told_free(struct told *told) {
    free(told->segment);
    free(told->messages);
}
