/* What two workers say to each other, written and taken apart. To a sibling flat: a head, then what its `has` says, in
   the order of these bits; both ends are one program, on one machine. To another node as MessagePack, a length of 32 bits
   before each: the contract of workers/mesh/messages.py. */
#include "link.h"

struct head {
    u32 size; /* of all of it */
    u8 kind, has;
    u16 topic_size;
    u64 number;
};

enum { HAS_YES = 1, HAS_SINCE = 2, HAS_LIFE = 4, HAS_LIMIT = 8, HAS_FORM = 16, HAS_VALUE = 32, HAS_SENT_AS = 64 };

#define LENGTH_BYTES 4u
#define NUMBER_BYTES 9u
#define SINCE_BYTES 9u
#define NIL 0xC0u

/* What a message of each kind has in MessagePack behind its kind: n number, s since, t topic, v value, f form or nil, l life
   or nil, m limit, b whether it is so. What is not here is passed over, as is what follows. */
static const char *const FORMS[SAYINGS] = {
    [SAY_SEND] = "nstv", [SAY_LISTEN] = "nstv", [SAY_WITHDRAW] = "nb", [SAY_TOOK] = "n", [SAY_LOST] = "n",
    [SAY_PUBLISH] = "ntvf", [SAY_SUBSCRIBE] = "tv", [SAY_CENSUS] = "nt", [SAY_GIVE] = "nv", [SAY_ALSO] = "n",
    [SAY_MET] = "n", [SAY_WITHDRAWN] = "n", [SAY_BUSY] = "n", [SAY_COUNTED] = "nv", [SAY_RECALL] = "n",
    [SAY_OFFER] = "tnvf", [SAY_SUBSCRIBED] = "t", [SAY_LAGGED] = "t", [SAY_SETTLED] = "n", [SAY_PARTING] = "n",
    [SAY_RETIRED] = "n", [SAY_LONG] = "nm", [SAY_REFUSED] = "nm", [SAY_VISIT] = "nv", [SAY_TAKEN] = "nl",
    [SAY_DOUBT] = "nl", [SAY_OUT] = "n", [SAY_INQUIRE] = "nl", [SAY_UNACKED] = "nb",
    [SAY_RELAY] = "nv",
};

/* Flat. */

static u8 *put(u8 *at, const void *data, size_t size) {
    if (size) memcpy(at, data, size);
    return at + size;
}

static void say_flat(struct core *core, struct link *link, const struct message *message) {
    struct head head = {.kind = (u8)message->kind, .topic_size = (u16)message->topic_size, .number = message->number};
    assert(message->topic_size <= MAX_TOPIC);
    bool has_since = message->kind == SAY_SEND || message->kind == SAY_LISTEN || message->kind == SAY_REST;
    head.has = (u8)((message->yes ? HAS_YES : 0) | (has_since ? HAS_SINCE : 0) | (message->life ? HAS_LIFE : 0) |
                    (message->limit ? HAS_LIMIT : 0) | (message->form ? HAS_FORM : 0) | (message->value ? HAS_VALUE : 0) |
                    (message->sent_as ? HAS_SENT_AS : 0));
    u64 size = sizeof head + message->topic_size + (u64)message->value_size + (has_since ? 8 : 0) +
               (message->life ? 8 : 0) + (message->sent_as ? 8 : 0) + (message->limit ? 4 : 0) + (message->form ? 4 + (u64)message->form_size : 0);
    if (size > UINT32_MAX / 4) DIE("a message of more than 1 GiB");
    head.size = (u32)size;
    u8 *at = put(link_room(core, link, head.size, message->can_wait), &head, sizeof head);
    if (has_since) at = put(at, &message->since, 8);
    if (message->life) at = put(at, &message->life, 8);
    if (message->sent_as) at = put(at, &message->sent_as, 8);
    if (message->limit) at = put(at, &message->limit, 4);
    if (message->form) at = put(put(at, &message->form_size, 4), message->form, message->form_size);
    put(put(at, message->topic, message->topic_size), message->value, message->value_size);
}

/* Take so many bytes from *at on; NULL if there are fewer. */
static const u8 *get(const u8 **at, const u8 *end, u64 size) {
    const u8 *found = *at;
    if ((u64)(end - found) < size) return NULL;
    *at = found + size;
    return found;
}

static bool get_into(void *into, size_t size, const u8 **at, const u8 *end) {
    const u8 *found = get(at, end, size);
    if (found) memcpy(into, found, size);
    return found != NULL;
}

static int hear_flat(const u8 *data, u32 size, u32 *position, struct message *message) {
    struct head head;
    if (size == *position) return 0;
    if (size - *position < sizeof head) return -1;
    memcpy(&head, data + *position, sizeof head);
    if (head.size < sizeof head || head.size > size - *position) return -1;
    const u8 *at = data + *position + sizeof head, *end = data + *position + head.size;
    *position += head.size;
    *message = (struct message){.kind = head.kind, .yes = head.has & HAS_YES, .number = head.number};
    if (head.has & HAS_SINCE && !get_into(&message->since, 8, &at, end)) return -1;
    if (head.has & HAS_LIFE && !get_into(&message->life, 8, &at, end)) return -1;
    if (head.has & HAS_SENT_AS && !get_into(&message->sent_as, 8, &at, end)) return -1;
    if (head.has & HAS_LIMIT && !get_into(&message->limit, 4, &at, end)) return -1;
    if (head.has & HAS_FORM) {
        if (!get_into(&message->form_size, 4, &at, end)) return -1;
        if (!(message->form = get(&at, end, message->form_size))) return -1;
    }
    message->topic_size = head.topic_size;
    if (head.topic_size && !(message->topic = get(&at, end, head.topic_size))) return -1;
    if (!(head.has & HAS_VALUE)) return 1;
    message->value = at;
    message->value_size = (u32)(end - at);
    return 1;
}

/* MessagePack. */

static u8 *put_big(u8 *at, u64 number, u32 width) {
    for (u32 left = width; left--; number >>= 8) at[left] = (u8)number;
    return at + width;
}

static u8 *put_number(u8 *at, u64 number) {
    if (!number) {
        *at++ = NIL;
        return at;
    }
    *at++ = (u8)(0x80 | number >> 56);
    return put_big(at, number & (((u64)1 << 56) - 1), 8);
}

static u8 *put_limit(u8 *at, u32 limit) {
    if (limit > 0xFF) *at++ = 0xCD;
    else if (limit > 0x7F) *at++ = 0xCC;
    return put_big(at, limit, limit > 0xFF ? 2 : 1);
}

static u8 *put_bytes(u8 *at, const u8 *data, u32 size) {
    if (data != NULL) return put(at, data, size);
    *at++ = NIL;
    return at;
}

/* The form of what was published is a binary; with the payload in it, compressed, there is no value besides. */
static bool is_compressed(const struct message *message) { return message->form_size > FORM_BYTES; }

static u32 width_of(u32 size) { return size > 0xFFFF ? 4 : size > 0xFF ? 2 : 1; }

static u8 *put_form(u8 *at, const struct message *message) {
    u32 width = width_of(message->form_size);
    if (message->form != NULL) {
        *at++ = width == 1 ? 0xC4 : width == 2 ? 0xC5 : 0xC6;
        at = put_big(at, message->form_size, width);
    }
    return put_bytes(at, message->form, message->form_size);
}

static bool get_form(struct message *message, const u8 *data, u32 size) {
    if (size == 1 && *data == NIL) return true;
    u32 head = *data == 0xC4 ? 2 : *data == 0xC5 ? 3 : *data == 0xC6 ? 5 : 0;
    if (!head || size < head + FORM_BYTES) return false;
    message->form = data + head;
    message->form_size = size - head;
    return is_compressed(message) == !!(message->form[1] & COMPRESSED);
}

static u8 *put_element(u8 *at, char what, const struct message *message) {
    u64 bits;
    switch (what) {
    case 'n': return put_number(at, message->number);
    case 'l': return put_number(at, message->life);
    case 't': return put_bytes(at, message->topic, message->topic_size);
    case 'v': return put_bytes(at, is_compressed(message) ? NULL : message->value, message->value_size);
    case 'f': return put_form(at, message);
    case 'm': return put_limit(at, message->limit);
    case 's':
        memcpy(&bits, &message->since, 8);
        *at++ = 0xCB;
        return put_big(at, bits, 8);
    default:
        *at++ = message->yes ? 0xC3 : 0xC2;
        return at;
    }
}

static u32 element_size(char what, const struct message *message) {
    switch (what) {
    case 'n': return message->number ? NUMBER_BYTES : 1;
    case 'l': return message->life ? NUMBER_BYTES : 1;
    case 't': return message->topic ? message->topic_size : 1;
    case 'v': return message->value && !is_compressed(message) ? message->value_size : 1;
    case 'f': return message->form ? 1 + width_of(message->form_size) + message->form_size : 1;
    case 'm': return message->limit > 0xFF ? 3 : message->limit > 0x7F ? 2 : 1;
    case 's': return SINCE_BYTES;
    default: return 1;
    }
}

static void say_packed(struct core *core, struct link *link, const struct message *message) {
    const char *form = FORMS[message->kind];
    u32 size = 2;
    for (const char *what = form; *what; what++) size += element_size(*what, message);
    u8 *at = put_big(link_room(core, link, LENGTH_BYTES + size, false), size, LENGTH_BYTES);
    *at++ = (u8)(0x90 | (1 + strlen(form)));
    *at++ = (u8)message->kind;
    for (const char *what = form; *what; what++) at = put_element(at, *what, message);
}

static u64 big_at(const u8 *data, u32 width) {
    u64 number = 0;
    while (width--) number = number << 8 | *data++;
    return number;
}

static bool get_number(u64 *number, const u8 *data, u32 size) {
    *number = 0;
    if (size == 1 && *data == NIL) return true;
    if (size != NUMBER_BYTES || *data < 0x80 || data[1]) return false;
    *number = (u64)(*data & 0x7F) << 56 | big_at(data + 1, 8);
    return true;
}

static bool get_element(char what, struct message *message, const u8 *data, u32 size) {
    switch (what) {
    case 'n': return get_number(&message->number, data, size);
    case 'l': return get_number(&message->life, data, size);
    case 't':
        message->topic = data;
        message->topic_size = size;
        return size <= MAX_TOPIC;
    case 'v':
        message->value = data;
        message->value_size = size;
        return true;
    case 'f': return get_form(message, data, size);
    case 'm': {
        i64 limit = timeout_of(data, size);
        message->limit = (u32)limit;
        return limit > 0 && limit <= MAX_FRAME;
    }
    case 's': {
        u64 bits = size == SINCE_BYTES ? big_at(data + 1, 8) : 0;
        memcpy(&message->since, &bits, 8);
        return size == SINCE_BYTES && *data == 0xCB && message->since == message->since;
    }
    default:
        message->yes = *data == 0xC3;
        return true;
    }
}

static int hear_packed(const u8 *data, u32 size, u32 *position, struct message *message) {
    struct frame frame;
    if (size - *position < LENGTH_BYTES) return 0;
    u64 length = big_at(data + *position, LENGTH_BYTES);
    if (size - *position - LENGTH_BYTES < length) return 0;
    const u8 *body = data + *position + LENGTH_BYTES;
    *position += LENGTH_BYTES + (u32)length;
    frame_parse(&frame, body, (u32)length);
    if (frame.fault) return -1;
    *message = (struct message){.kind = body[frame.elements[0].at]};
    if (message->kind >= SAYINGS || FORMS[message->kind] == NULL) return 1; /* what this release does not know */
    u32 at = 1;
    for (const char *what = FORMS[message->kind]; *what; what++, at++) {
        if (at >= frame.count) return -1;
        struct element element = frame.elements[at];
        if (!get_element(*what, message, body + element.at, element.size)) return -1;
    }
    return 1;
}

void message_say(struct core *core, struct link *link, const struct message *message) {
    if (link->flags & (LINK_CLOSED | LINK_ABSENT | LINK_FINISHES)) return;
    link->used_at = core->now;
    if (link->flags & LINK_ABROAD)
        say_packed(core, link, message);
    else
        say_flat(core, link, message);
}

int message_hear(const struct link *link, const u8 *data, u32 size, u32 *at, struct message *message) {
    return link->flags & LINK_ABROAD ? hear_packed(data, size, at, message) : hear_flat(data, size, at, message);
}
