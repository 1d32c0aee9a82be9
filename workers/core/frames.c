#include "frames.h"

/* By first byte: bytes that a value takes, 0 where more must be read, 255 where none may start so. */
#define SIXTEEN(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
static const u8 SIZES[256] = {
    SIXTEEN(1), SIXTEEN(1), SIXTEEN(1), SIXTEEN(1), SIXTEEN(1), SIXTEEN(1), SIXTEEN(1), SIXTEEN(1), /* fixint */
    SIXTEEN(0), SIXTEEN(0),                                                 /* fixmap, fixarray */
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,         /* fixstr */
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
    1,  255, 1, 1,                                                          /* nil, never used, false, true */
    0,  0,  0,  0,  0,  0,                                                  /* bin, ext */
    5,  9,                                                                  /* float */
    2,  3,  5,  9,  2,  3,  5,  9,                                          /* uint, int */
    3,  4,  6,  10, 18,                                                     /* fixext */
    0,  0,  0,  0,  0,  0,  0,                                              /* str, array, map */
    SIXTEEN(1), SIXTEEN(1),                                                 /* negative fixint */
};

/* Of those that say their length or count behind the first byte: in how many bytes. From 0xc4 on. */
static const u8 WIDTHS[0xE0 - 0xC4] = {
    1, 2, 4, 1, 2, 4,                            /* bin, ext */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* of a known size */
    1, 2, 4, 2, 4, 2, 4,                         /* str, array, map */
};

static inline u32 width_of(u8 head) { return head >= 0xC4 && head < 0xE0 ? WIDTHS[head - 0xC4] : 0; }

static inline u64 number_at(const u8 *data, u32 width) {
    u64 number = 0;
    while (width--) number = number << 8 | *data++;
    return number;
}

/* Find where the `count` values end that start at `pos`; the bytes end at `end`. */
static enum fault skip(const u8 *view, u32 *position, u32 end, u64 count, u32 *detail) {
    u64 outer[MAX_DEPTH]; /* of each container we are in: how many values follow it in its own container */
    u32 depth = 0;
    u64 pos = *position; /* as lengths have 32 bits, this does not run over */
    for (;;) {
        while (!count) {
            if (!depth) {
                *position = (u32)pos;
                return WELL_FORMED;
            }
            count = outer[--depth];
        }
        count--;
        if (pos >= end) return TRUNCATED;
        u8 head = view[pos];
        u32 size = SIZES[head];
        if (size == 255) {
            *detail = head;
            return NO_VALUE;
        }
        if (size) {
            pos += size;
        } else {
            u32 width = width_of(head);
            pos++;
            if (pos + width > end) return TRUNCATED;
            u64 length = number_at(view + pos, width);
            pos += width;
            if (width && head < 0xDC) {
                pos += length + (head >= 0xC7 && head <= 0xC9);
            } else {
                if (depth == MAX_DEPTH) return TOO_DEEP;
                outer[depth++] = count;
                count = width ? length : head & 0x0F;
                if (head < 0x90 || head >= 0xDE) count *= 2;
            }
        }
        if (pos > end) return TRUNCATED;
    }
}

static enum fault array_header(const u8 *view, u32 *pos, u32 end, u32 *count, u32 *detail) {
    if (*pos == end) return EMPTY;
    u8 head = view[*pos];
    u32 width = head == 0xDC ? 2 : head == 0xDD ? 4 : 0;
    if (!width && (head < 0x90 || head > 0x9F)) {
        *detail = head;
        return NO_ARRAY;
    }
    ++*pos;
    if (width > end - *pos) return TRUNCATED;
    *count = width ? (u32)number_at(view + *pos, width) : head & 0x0F;
    *pos += width;
    return *count ? WELL_FORMED : EMPTY_ARRAY;
}

void frame_parse(struct frame *frame, const u8 *body, u32 size) {
    u32 pos = 0, count = 0;
    frame->count = 0;
    frame->detail = 0;
    frame->fault = array_header(body, &pos, size, &count, &frame->detail);
    if (UNLIKELY(frame->fault)) return;
    u32 most = count < MAX_ARGUMENTS ? count : MAX_ARGUMENTS;
    frame->count = most;
    for (u32 at = 0; at < most; at++) {
        u32 begin = pos, taken = pos < size ? SIZES[body[pos]] : 255;
        enum fault fault = WELL_FORMED;
        /* Most elements are short, and of a size that their first bytes tell. */
        if (LIKELY(taken - 1 < 254))
            pos += taken;
        else if (pos + 1 < size && (body[pos] == 0xC4 || body[pos] == 0xD9))
            pos += 2u + body[pos + 1];
        else
            fault = skip(body, &pos, size, 1, &frame->detail);
        if (UNLIKELY(fault || pos > size)) {
            frame->fault = fault ? fault : TRUNCATED;
            while (at < most) frame->elements[at++] = (struct element){0, 0};
            return;
        }
        frame->elements[at] = (struct element){begin, pos - begin};
    }
    if (UNLIKELY(count > MAX_ARGUMENTS)) {
        u32 begin = pos;
        frame->fault = skip(body, &pos, size, count - MAX_ARGUMENTS, &frame->detail);
        if (frame->fault) return;
        frame->elements[frame->count++] = (struct element){begin, pos - begin};
    }
    if (UNLIKELY(pos != size)) {
        frame->fault = TRAILING;
        frame->detail = size - pos;
    }
}

/* Whether a number that has `width` bytes would need so many, one at least. */
static inline bool needs(u64 number, u32 width) { return width == 1 || number >> (4 * width); }

/* Whether the header of a value is the shortest that says the same. */
static bool is_shortest(u8 head, u32 width, u64 number) {
    if (head >= 0xDC) return number >= 16 && (width == 2 || number >> 16);
    if (head >= 0xD9) return number >= 32 && needs(number, width);
    if (head >= 0xD0) {
        if (!(number >> (8 * width - 1))) return false; /* it is not negative */
        u64 ones = width == 8 ? UINT64_MAX : ((u64)1 << 8 * width) - 1;
        number ^= ones; /* of which it is the complement */
        return number >= 32 && (width == 1 || number >> (4 * width - 1));
    }
    if (head >= 0xCC) return number >= 128 && needs(number, width);
    if (head >= 0xC7) return (number > 16 || !number || (number & (number - 1))) && needs(number, width);
    return needs(number, width);
}

bool is_canonical(const u8 *data, u32 size) {
    u8 head = data[0];
    if (head < 0x80 || (head >= 0xA0 && head <= 0xC3) || head >= 0xE0) return true;
    if (head == 0xD9 && data[1] >= 32) return true;
    /* Containers hold counts, not sizes, so one pass over the headers does it. */
    for (u32 pos = 0; pos < size;) {
        head = data[pos];
        if (head >= 0x80 && head < 0xA0) {
            pos++;
            continue;
        }
        bool is_integer = head >= 0xCC && head < 0xD4;
        if (SIZES[head] && !is_integer) {
            pos += SIZES[head];
            continue;
        }
        u32 width = is_integer ? 1u << (head & 3) : width_of(head);
        u64 number = number_at(data + pos + 1, width);
        if (!is_shortest(head, width, number)) return false;
        pos += 1 + width;
        if (head < 0xCC || (head >= 0xD9 && head < 0xDC)) pos += (u32)number + (head >= 0xC7 && head < 0xCC);
    }
    return true;
}

i64 timeout_of(const u8 *data, u32 size) {
    u8 head = data[0];
    if (head < 0x80) return head;
    if (LIKELY(head == 0xCD)) return data[1] << 8 | data[2];
    if (head != 0xCC && head != 0xCE) return -1;
    u64 whole = number_at(data + 1, size - 1);
    return whole <= MAX_TIMEOUT_MS ? (i64)whole : -1;
}

bool is_reserved(const u8 *data, u32 size) {
    u8 head = data[0];
    if (LIKELY(head < 0xC7) || head > 0xD8 || (head > 0xC9 && head < 0xD4)) return false;
    u32 at = head == 0xC7 ? 2 : head == 0xC8 ? 3 : head == 0xC9 ? 5 : 1;
    return at < size && (data[at] == 0x45 || data[at] == 0x54);
}
