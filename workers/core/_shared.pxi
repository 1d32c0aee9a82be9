"""What the way to the core and the way to its parts share."""

from skywalker.census import Census
from skywalker.junction import MAX_GROUPS, MAX_NAMES
from skywalker.wire.junction import NIL


cdef inline const u8 *start(bytes data):
    return <const u8 *> PyBytes_AS_STRING(data)


cdef inline bytes text(const u8 *data, u32 size):
    return PyBytes_FromStringAndSize(<const char *> data, size)


cdef key secret(bytes random):
    cdef key made
    memcpy(&made, start(random), sizeof(made))
    return made


cdef follow_ring(ring *it, tokens, shares, owners):
    cdef array.array sorted_tokens = array.array("q", tokens)
    cdef array.array numbers = array.array("I", owners)
    cdef array.array pairs = array.array("I", (each for share in shares for each in share))
    assert len(pairs) == 2 * len(tokens)
    ring_follow(
        it,
        <const i64 *> sorted_tokens.data.as_voidptr,
        <const share *> pairs.data.as_voidptr,
        <u32> len(tokens),
        <const u32 *> numbers.data.as_voidptr,
        <u32> len(owners),
    )


cdef census_of(const table *it, bytes topic):
    cdef u32 place = spot_find(it, 0, start(topic), <u32> len(topic))
    cdef u32 group
    cdef u32 first
    cdef u32 others
    if not place or not spot_at(it, place).references:
        return Census(0, {}, 0, 0, None)
    found = spot_at(it, place)
    receivers = senders = 0
    ages = []
    if found.line.size:
        ages.append(row_at(it, found.line.first).since)
        if row_sends(row_at(it, found.line.first)):
            senders = found.line.size
        else:
            receivers = found.line.size
    takers = {}
    others, room = found.takers, MAX_NAMES
    first = group = found.groups
    while group and len(takers) < MAX_GROUPS:
        each = spot_at(it, group)
        room -= each.size
        if room < 0:
            break
        ages.append(row_at(it, each.line.first).since)
        takers[text(spot_name(each), each.size)] = each.line.size
        others -= each.line.size
        group = each.of.next_group
        if group == first:
            break
    if others:
        takers[NIL] = takers.get(NIL, 0) + others
    return Census(receivers, takers, senders, found.audience, min(ages) if ages else None)
