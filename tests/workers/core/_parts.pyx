# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Parts of the core by themselves: see _parts.pyi for what each of these is for."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython cimport array
from libc.string cimport memcpy
from workers.core._c cimport *

import array

KIND_SEND = SEND
KIND_RECV = RECV
KIND_TAKE = TAKE

FAULTS = (
    "",
    "it is empty",
    "it is not an array, its first byte is 0x{:02x}",
    "the array is empty",
    "it ends within a value",
    "0x{:02x} starts no value",
    "it is nested deeper than 512",
    "{} bytes follow the array",
)


include "../../../workers/core/_shared.pxi"


# What skywalker.wire has in Python as well, to be compared with it.


def parse(bytes body):
    """Return the elements of a frame's body, or why it is none, with its first two elements."""
    cdef frame found
    frame_parse(&found, start(body), <u32> len(body))
    parts = [body[found.elements[at].at : found.elements[at].at + found.elements[at].size] for at in range(found.count)]
    if not found.fault:
        return parts
    return FAULTS[found.fault].format(found.detail), *(parts + [b"", b""])[:2]


def canonical(bytes data):
    return bool(is_canonical(start(data), <u32> len(data)))


def timeout(bytes data):
    return timeout_of(start(data), <u32> len(data))


def reserved(bytes data):
    return bool(is_reserved(start(data), <u32> len(data)))


def token(bytes topic):
    return token_of(start(topic), len(topic))


def owner_of(tokens, shares, owners, i64 wanted):
    cdef ring it
    it.tokens, it.shares, it.owners, it.count, it.version = NULL, NULL, NULL, 0, 0
    follow_ring(&it, tokens, shares, owners)
    found = ring_owner(&it, wanted)
    ring_free(&it)
    return found


def life():
    return [[LIFE[at][event] for event in range(<int> EVENTS)] for at in range(<int> STATES)]


# The table and its timers by themselves.


cdef class Table:
    cdef table it
    cdef timers times
    cdef judges judge
    cdef object judging
    cdef object error

    def __cinit__(self, judging, bytes random):
        cdef key made = secret(random)
        self.judging = judging
        self.judge.give = give
        self.judge.met = met
        self.judge.missed = missed
        table_open(&self.it, &made, &self.judge)
        timers_open(&self.times, &self.it, made.second)
        self.it.its = <void *> self

    def __dealloc__(self):
        if not self.it.rows.used:
            timers_close(&self.times)
            table_close(&self.it)

    def new(self, kind number, bytes topic, double since, bytes group=None, int audience=0):
        cdef u32 made = 0
        cdef u32 inner = 0
        cdef u32 place = spot_take(&self.it, 0, start(topic), <u32> len(topic))
        if group is not None:
            inner = spot_take(&self.it, place, start(group), <u32> len(group))
        cdef row *it = row_new(&self.it, &made, number, place, inner, since)
        if number == SUBSCRIBER:
            it.audience = audience
        return made

    def free(self, u32 number):
        row_free(&self.it, number)

    def send(self, u32 number):
        return self.told(junction_send(&self.it, number))

    def publish(self, u32 number):
        junction_publish(&self.it, number)
        self.told(True)

    def listen(self, u32 number):
        return self.told(junction_listen(&self.it, number))

    def wait(self, u32 number):
        junction_wait(&self.it, number)

    def withdraw(self, u32 number):
        return bool(junction_withdraw(&self.it, number))

    def given(self, u32 listener, u32 send):
        row_given(&self.it, listener, send)

    def decided(self, u32 listener):
        return row_decided(&self.it, listener)

    def confirm(self, u32 send):
        junction_confirm(&self.it, send)
        self.told(True)

    def lost(self, u32 send):
        junction_lost(&self.it, send)
        self.told(True)

    def resume(self, u32 send):
        junction_resume(&self.it, send)
        self.told(True)

    def subscribe(self, u32 number):
        junction_subscribe(&self.it, number)
        self.told(True)

    def unsubscribe(self, u32 number):
        junction_unsubscribe(&self.it, number)

    def resize(self, u32 number, u32 audience):
        junction_resize(&self.it, number, audience)

    def is_answered(self, u32 number):
        return bool(row_at(&self.it, number).flags & ANSWERED)

    def answer(self, u32 number):
        row_at(&self.it, number).flags |= ANSWERED

    def offers(self, u32 number):
        return row_at(&self.it, number).offers

    def line(self, bytes topic):
        cdef u32 place = spot_find(&self.it, 0, start(topic), <u32> len(topic))
        return self.ring(spot_at(&self.it, place).line.first) if place else []

    def census(self, bytes topic):
        return census_of(&self.it, topic)

    def groups(self, bytes topic):
        cdef u32 place = spot_find(&self.it, 0, start(topic), <u32> len(topic))
        found = []
        if not place or not spot_at(&self.it, place).takers:
            return found
        cdef u32 first = spot_at(&self.it, place).groups
        cdef u32 group = first
        while True:
            found.append(self.ring(spot_at(&self.it, group).line.first))
            group = spot_at(&self.it, group).of.next_group
            if group == first:
                return found

    def subscribers(self, bytes topic):
        cdef u32 place = spot_find(&self.it, 0, start(topic), <u32> len(topic))
        if not place:
            return [], 0
        return self.ring(spot_at(&self.it, place).subscribers), spot_at(&self.it, place).audience

    cdef list ring(self, u32 first):
        found = []
        cdef u32 each = first
        while each:
            found.append(each)
            each = row_at(&self.it, each).next
            if each == first:
                break
        return found

    @property
    def used(self):
        return self.it.rows.used, self.it.spots.used - self.it.idle_count

    @property
    def topic_count(self):
        return self.it.topic_count

    def add_timer(self, u32 number, double at):
        row_at(&self.it, number).deadline = at
        timers_add(&self.times, number)

    def remove_timer(self, u32 number):
        timers_remove(&self.times, number)

    def due(self, double now):
        cdef u32 each
        timers_collect(&self.times, now)
        found = []
        while True:
            each = timers_next(&self.times)
            if not each:
                return found
            found.append(each)

    def wait_for_timers(self, double now):
        wait = timers_wait(&self.times, now)
        return None if wait < 0.0 else wait

    cdef object told(self, bint result):
        error, self.error = self.error, None
        if error is not None:
            raise error
        return bool(result)


cdef boolean give(table *it, u32 listener, u32 send) noexcept with gil:
    self = <Table> it.its
    try:
        return self.judging.give(listener, send)
    except BaseException as error:
        self.error = error
        return False


cdef void met(table *it, u32 send) noexcept with gil:
    self = <Table> it.its
    try:
        self.judging.met(send)
    except BaseException as error:
        self.error = error


cdef void missed(table *it, u32 send) noexcept with gil:
    self = <Table> it.its
    try:
        self.judging.missed(send)
    except BaseException as error:
        self.error = error


