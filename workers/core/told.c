#include "told.h"

u8 *told_place(struct told *told, u64 send, u32 size, u32 id_at, u32 id_size) {
    u8 *words = segment_room(&told->segment, size);
    told->segment->used += size;
    told->send = send;
    told->words = words;
    told->size = size;
    told->id = words + id_at;
    told->id_size = id_size;
    return words;
}

void told_forget(struct told *told) {
    segments_empty(&told->segment);
    told->send = 0;
}
