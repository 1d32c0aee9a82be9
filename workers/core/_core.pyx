# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The way between Python and the core: see _core.pyi for what each of these is for."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython cimport array
from libc.string cimport memcpy
from workers.core._c cimport *

import array
import errno
import os

from skywalker.census import Census
from skywalker.junction import MAX_GROUPS, MAX_NAMES
from skywalker.wire.junction import NIL

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


cdef inline const u8 *start(bytes data):
    return <const u8 *> PyBytes_AS_STRING(data)


cdef inline bytes text(const u8 *data, u32 size):
    return PyBytes_FromStringAndSize(<const char *> data, size)


cdef key secret(bytes random):
    cdef key made
    memcpy(&made, start(random), sizeof(made))
    return made


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


def value(bytes data):
    return bool(is_value(start(data), <u32> len(data)))


def timeout(bytes data):
    return timeout_of(start(data), <u32> len(data))


def reserved(bytes data):
    return bool(is_reserved(start(data), <u32> len(data)))


cdef follow_ring(ring *it, tokens, owners):
    cdef array.array sorted_tokens = array.array("q", tokens)
    cdef array.array their_owners = array.array("H", owners)
    assert len(sorted_tokens) == len(their_owners)
    ring_follow(it, <const i64 *> sorted_tokens.data.as_voidptr, <const u16 *> their_owners.data.as_voidptr, <u32> len(tokens))


def token(bytes topic):
    return token_of(start(topic), len(topic))


def owner_of(tokens, owners, i64 wanted):
    cdef ring it
    it.tokens, it.owners, it.count, it.version = NULL, NULL, 0, 0
    follow_ring(&it, tokens, owners)
    found = ring_owner(&it, wanted)
    ring_free(&it)
    return found


def life():
    return [[LIFE[at][event] for event in range(<int> EVENTS)] for at in range(<int> STATES)]


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
        if row_at(it, found.line.first).kind == SEND:
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

    def pass_on(self, u32 number, subscribers):
        cdef u32[256] several
        for at, each in enumerate(subscribers):
            several[at] = each
        return self.told(junction_pass_on(&self.it, number, several, <u32> len(subscribers)))

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


# The core.


cdef class Moment:
    def __init__(self, rare, bounds, memory, layout, bytes random, simulated=None):
        self._alarms = {}
        self.core = Core(rare, self, bounds, memory, layout, random, simulated)
        self.now = self.began = (<Core> self.core).it.now

    cpdef unsigned long long set_alarm(self, object item, double at) except 0:
        cdef u64 alarm = core_set_alarm(&(<Core> self.core).it, at)
        self._alarms[alarm] = item
        return alarm

    cpdef drop_alarm(self, unsigned long long alarm):
        if self._alarms.pop(alarm, None) is not None:
            core_drop_alarm(&(<Core> self.core).it, alarm)

    @property
    def alarms(self):
        return len(self._alarms)

    cpdef bint has_more(self) except -1:
        return False

    cpdef go_on(self):
        pass

    cpdef bint attend_at(self, int place) except -1:
        return False


cdef class Core:
    cdef core it
    cdef kernel kernel
    cdef public object rare
    cdef Moment moment
    cdef dict handlers
    cdef object simulated
    cdef object cells
    cdef object hand
    cdef object error
    cdef bint is_open
    cdef bint is_real

    def __cinit__(self, rare, Moment moment, bounds, memory, layout, bytes random, simulated=None):
        cdef machine its
        cdef owner own
        cdef key made = secret(random)
        cdef Py_buffer view
        self.rare, self.moment, self.cells, self.simulated = rare, moment, memory, simulated
        self.handlers = {}
        if simulated is None:
            failed = kernel_open(&self.kernel, &its)
            if failed:
                raise OSError(-failed, os.strerror(-failed))
            self.is_real = True
            its.wait = wait_without_lock
        else:
            its.its = <void *> self
            its.clock, its.recv, its.send, its.shut = clock, recv, transmit, shut
            its.close, its.watch, its.forget, its.wait = close_fd, watch, forget, wait
        own.its = <void *> self
        own.unusual, own.failed, own.half_is_old = unusual, failed_call, half_is_old
        own.closed, own.ready, own.rang, own.sampled = closed, is_ready, rang, sampled
        own.has_more, own.go_on, own.attend = has_more, go_on, attend
        own.said, own.early, own.link_ended, own.link_over = said_over, early, link_ended, link_over
        own.ask_all, own.handed, own.wanted, own.lagged, own.answered = ask_all, handed, wanted, lagged, answered
        core_open(&self.it, &its, &own, &made)
        self.is_open = True
        self.it.limits.max_calls = bounds.max_calls
        self.it.limits.output_bytes = bounds.output_bytes
        self.it.limits.max_plain_reply = bounds.max_plain_reply
        self.it.limits.waiting_bytes = bounds.waiting_bytes
        self.it.limits.subscriber_buffer = bounds.subscriber_buffer
        self.it.limits.mesh_bytes = bounds.mesh_bytes
        self.it.limits.half_frame_s = bounds.half_frame_s
        self.it.limits.unread_output_s = bounds.unread_output_s
        PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
        self.it.figures.cells = <i64 *> view.buf
        PyBuffer_Release(&view)  # who made this keeps the memory, and so do we
        self.it.figures.calls, self.it.figures.routed = layout["calls"], layout["routed"]
        self.it.figures.wait, self.it.figures.hand_off = layout["wait"], layout["hand_off"]
        self.it.figures.waiting, self.it.figures.turn = layout["waiting"], layout["turn"]
        self.it.figures.received, self.it.figures.sent = layout["received"], layout["sent"]
        self.it.figures.buckets, self.it.figures.outcomes = layout["buckets"], layout["outcomes"]
        self.it.figures.door = layout["door"]

    def follow(self, tokens, owners, u16 here):
        follow_ring(&self.it.ring, tokens, owners)
        self.it.here = here

    def live(self, u64 life, memory, u32 room):
        cdef Py_buffer view
        self.it.life = life
        PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
        self.it.hand.cells, self.it.hand.room = <i64 *> view.buf, room
        PyBuffer_Release(&view)
        self.hand = memory

    def stand_as(self, u32 standing):
        self.it.standing = standing

    def link(self, int fd, u64 life, bint abroad, bint asks_us, double grace_s):
        flags = (LINK_ABROAD if abroad else 0) | (LINK_ASKS_US if asks_us else 0)
        it = link_at(&self.it, link_open(&self.it, fd, life, flags))
        it.grace_s = grace_s
        return link_handle(it)

    def ways(self, u32 count):
        core_ways(&self.it, count)

    def lead(self, u32 owner, u64 handle):
        it = link_find(&self.it, handle)
        core_lead(&self.it, owner, 0 if it == NULL else it.number)

    def close_link(self, u64 handle, bytes why):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_close(&self.it, it, PyBytes_AS_STRING(why))

    def pause_link(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_pause(&self.it, it)

    def hear_link(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_go_on(&self.it, it)

    def read_to_the_end(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_read_to_the_end(&self.it, it)

    def say(self, u64 handle, said kind, u64 number=0, bytes topic=None, bytes value=None, u64 life=0):
        cdef message it
        way = link_find(&self.it, handle)
        if way == NULL:
            return
        it.kind, it.number, it.life, it.yes, it.limit, it.since = kind, number, life, False, 0, 0.0
        it.topic = it.value = it.form = NULL
        it.topic_size = it.value_size = it.form_size = 0
        if topic is not None:
            it.topic, it.topic_size = start(topic), <u32> len(topic)
        if value is not None:
            it.value, it.value_size = start(value), <u32> len(value)
        message_say(&self.it, way, &it)

    def release(self, u64 handle, bint is_sure):
        it = link_find(&self.it, handle)
        if it != NULL:
            outbound_release(&self.it, it, is_sure)

    def answer(self, u64 life, u64 token):
        core_answer(&self.it, life, 0, 0, token)

    def comes_before(self, u64 handle, u64 heir):
        it, other = link_find(&self.it, handle), link_find(&self.it, heir)
        if it != NULL and other != NULL and not it.flags & LINK_CLOSED:
            it.heir = heir
            link_pause(&self.it, other)

    def retired(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            outbound_retired(&self.it, it)

    def reroute(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            calls_reroute(&self.it, it)

    def unsent(self, u64 handle):
        it = link_find(&self.it, handle)
        return 0 if it == NULL else link_unsent(it)

    def is_decided(self, u64 handle):
        it = link_find(&self.it, handle)
        return it == NULL or bool(inbound_is_decided(&self.it, it))

    def shut(self):
        """Close all connections. Nothing is to be asked of it afterwards."""
        core_close(&self.it)
        self.is_open = False

    def __dealloc__(self):
        # What is open is its process's, and nobody is to be told any more.
        if self.is_open and not (self.it.connections.used or self.it.links.used):
            core_close(&self.it)
        if self.is_real:
            kernel_close(&self.kernel)

    def connect(self, int fd):
        return core_connect(&self.it, fd)

    def watch(self, int fd, handler, u32 mask):
        core_watch(&self.it, fd, <u32> fd, mask, fd not in self.handlers)
        self.handlers[fd] = handler

    def change(self, int fd, u32 mask):
        core_watch(&self.it, fd, <u32> fd, mask, False)

    def forget(self, int fd):
        del self.handlers[fd]
        core_forget(&self.it, fd)

    def wait(self):
        wait = core_wait(&self.it)
        self.tell()
        return None if wait < 0.0 else wait

    def turn(self, double most=-1.0):
        cdef int count = core_turn(&self.it, most)
        self.done()
        return count

    def begin(self, double now):
        core_begin(&self.it, now)
        self.done()

    def settle(self):
        self.it.now, self.it.began = self.moment.now, self.moment.began
        core_settle(&self.it)
        self.done()

    # What Python does in a turn may take so long that it is another moment afterwards.

    cdef bint up(self):
        """Have Python do something now; not if something that it did in this turn has failed."""
        if self.error is not None:
            return False
        self.moment.now, self.moment.began = self.it.now, self.it.began
        return True

    cdef down(self):
        self.it.now, self.it.began = self.moment.now, self.moment.began

    cdef done(self):
        self.moment.now, self.moment.began = self.it.now, self.it.began
        self.tell()

    cdef tell(self):
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def push(self, u64 handle, bytes data):
        it = connection_find(&self.it, handle)
        if it != NULL:
            output_push(&self.it, it, start(data), <u32> len(data))

    def finish(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            core_finish(&self.it, it)

    def close(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            core_close_connection(&self.it, it, BY_OWNER, 0)

    def greeted(self, u64 handle, bint acks, u32 max_reply):
        it = connection_find(&self.it, handle)
        if it != NULL:
            it.flags |= KNOWS_ERRORS
            it.flags = it.flags | ACKS if acks else it.flags & ~<u32> ACKS
            it.max_reply = max_reply

    def issue(self, u64 handle, kind what, bytes id, double seconds, bytes timed_out, bytes topic, bytes value, bytes group):
        cdef call made
        cdef u8 *place
        cdef u8[32] name
        it = connection_find(&self.it, handle)
        if it == NULL:
            return
        made.kind = what
        assert len(id) <= <Py_ssize_t> sizeof(name)
        memcpy(name, start(id), len(id))
        made.id, made.id_size = name, <u32> len(id)
        made.topic = spot_take(&self.it.table, 0, start(topic), <u32> len(topic))
        made.seconds = seconds
        made.timed_out = NULL
        made.value = made.group = NULL
        made.value_size = made.group_size = 0
        if timed_out is not None:
            made.timed_out = blob_new(start(timed_out), <u32> len(timed_out))
        if group is not None:
            made.group, made.group_size = start(group), <u32> len(group)
        if value is not None:
            made.value_size = <u32> len(value)
            place = input_room(&self.it, made.value_size)
            memcpy(place, start(value), made.value_size)
            input_use(&self.it, made.value_size)
            made.value = place
        call_issue(&self.it, it, &made)

    def subscribe(self, u64 handle, bytes id, bytes topic):
        cdef refusal why = <refusal> 0
        cdef u32 number
        it = connection_find(&self.it, handle)
        if it == NULL:
            return 0, 0
        number = call_subscribe(&self.it, it, start(id), <u32> len(id), start(topic), <u32> len(topic), &why)
        return number, <int> why

    def stand(self, u32 subscription):
        junction_subscribe(&self.it.table, subscription)

    def unsubscribe(self, u64 handle, bytes id):
        it = connection_find(&self.it, handle)
        return it != NULL and bool(call_unsubscribe(&self.it, it, start(id), <u32> len(id)))

    def census(self, bytes topic):
        return census_of(&self.it.table, topic)

    def knows_errors(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and (it.flags & KNOWS_ERRORS) != 0

    def has_called(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and (it.flags & HAS_CALLED) != 0

    def unwritten(self, u64 handle):
        it = connection_find(&self.it, handle)
        return b"" if it == NULL else text(it.out + it.written, it.out_size - it.written)

    def state(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it == NULL:
            return {}
        return {"flags": it.flags, "tail": it.tail_size, "unwritten": it.out_size - it.written,
                "waiting": it.waiting.count, "unacked": it.unacked.count}

    @property
    def has_more(self):
        return self.it.resting.size > 0

    @property
    def holds(self):
        return {
            "connections": self.it.connections.used,
            "rows": self.it.table.rows.used,
            "extras": self.it.table.extras.used,
            "spots": self.it.table.spots.used - self.it.table.idle_count,
            "calls": self.it.calls_held,
            "bytes": self.it.bytes_held,
            "buckets": self.it.timers.size,
            "links": self.it.linked.size,
        }


# What is rare.


cdef void unusual(void *its, u64 handle, const u8 *body, u32 size) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.unusual(handle, text(body, size))
    except BaseException as error:
        self.error = error


cdef void failed_call(
    void *its, u64 handle, method name, const u8 *id, u32 id_size, const blob *timed_out, refusal why, u32 size, u32 limit
) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        word = text(timed_out.data, timed_out.size) if timed_out != NULL else None
        self.rare.failed(handle, <int> name, text(id, id_size), word, <int> why, size, limit)
    except BaseException as error:
        self.error = error


cdef void half_is_old(void *its, u64 handle) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.half_is_old(handle)
    except BaseException as error:
        self.error = error


cdef void closed(void *its, u64 handle, close why, int error_number) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.closed(handle, <int> why, error_number)
    except BaseException as error:
        self.error = error


# Python's own part of a turn.


cdef void is_ready(void *its, u32 what, u32 mask) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        handler = self.handlers.get(what)
        if handler is not None:  # one that was handled before may have removed it
            handler.ready(mask)
            self.moment.attend_at(0)
    except BaseException as error:
        self.error = error
    self.down()


cdef void rang(void *its, u64 alarm) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.moment._alarms.pop(alarm).expired()
    except BaseException as error:
        self.error = error
    self.down()


cdef boolean has_more(void *its) noexcept:
    self = <Core> its
    try:
        return self.error is None and self.moment.has_more()
    except BaseException as error:
        self.error = error
        return False


cdef void go_on(void *its) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.moment.go_on()
    except BaseException as error:
        self.error = error
    self.down()


cdef boolean attend(void *its, place at) noexcept:
    self = <Core> its
    cdef bint did = False
    if not self.up():
        return False
    try:
        did = self.moment.attend_at(<int> at)
    except BaseException as error:
        self.error = error
    self.down()
    return did


cdef int wait_without_lock(void *its, ready *found, int most, double seconds) noexcept:
    """The kernel's wait, in which other threads have Python's lock: all else of a turn is done with it."""
    cdef int count
    with nogil:
        count = kernel_wait(its, found, most, seconds)
    return count


cdef u32 sampled(void *its, const u8 *topic, u32 size) noexcept:
    self = <Core> its
    if not self.up():
        return 1000
    try:
        return self.rare.sampled(text(topic, size))
    except BaseException as error:
        self.error = error
        return 1000


cdef void said_over(void *its, u64 link, const message *it) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        topic = None if it.topic == NULL else text(it.topic, it.topic_size)
        value = None if it.value == NULL else text(it.value, it.value_size)
        form = None if it.form == NULL else text(it.form, it.form_size)
        self.rare.said(link, <int> it.kind, it.number, topic, value, form)
    except BaseException as error:
        self.error = error


cdef void early(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.early(link)
    except BaseException as error:
        self.error = error


cdef void link_ended(void *its, u64 link, const char *why) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.link_ended(link, why.decode())
    except BaseException as error:
        self.error = error


cdef void link_over(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.link_over(link)
    except BaseException as error:
        self.error = error


cdef void ask_all(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.ask_all(link)
    except BaseException as error:
        self.error = error


cdef boolean handed(void *its, u64 life, words *entries) noexcept:
    self = <Core> its
    if not self.up():
        return False
    try:
        found = self.rare.handed(life)
        if found is None:
            return False
        for cell in found:
            words_add(entries, cell)
        return True
    except BaseException as error:
        self.error = error
        return False


cdef void wanted(void *its, u32 owner) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.wanted(owner)
    except BaseException as error:
        self.error = error


cdef void lagged(void *its, u32 interest) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.lagged(interest)
    except BaseException as error:
        self.error = error


cdef void answered(void *its, u64 token) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.answered(token)
    except BaseException as error:
        self.error = error


# A simulated machine.


cdef double clock(void *its) noexcept:
    self = <Core> its
    if self.error is not None:
        return self.it.now
    try:
        return self.simulated.clock()
    except BaseException as error:
        self.error = error
        return self.it.now


cdef ssize_t recv(void *its, int fd, void *data, size_t size) noexcept:
    self = <Core> its
    if self.error is not None:
        return -errno.EIO
    try:
        got = self.simulated.recv(fd, size)
        memcpy(data, start(got), len(got))
        return len(got)
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.error = error
        return -errno.EIO


cdef ssize_t transmit(void *its, int fd, const void *data, size_t size) noexcept:
    self = <Core> its
    if self.error is not None:
        return -errno.EIO
    try:
        return self.simulated.send(fd, text(<const u8 *> data, <u32> size))
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.error = error
        return -errno.EIO


cdef void shut(void *its, int fd) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.shut(fd)
    except BaseException as error:
        self.error = error


cdef void close_fd(void *its, int fd) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.close(fd)
    except BaseException as error:
        self.error = error


cdef void watch(void *its, int fd, u32 mask, u64 what, boolean is_new) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.watch(fd, mask, what)
    except BaseException as error:
        self.error = error


cdef void forget(void *its, int fd) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.forget(fd)
    except BaseException as error:
        self.error = error


cdef int wait(void *its, ready *found, int most, double seconds) noexcept:
    self = <Core> its
    cdef int count = 0
    if self.error is not None:
        return 0
    try:
        for what, mask in self.simulated.wait(None if seconds < 0.0 else seconds):
            if count < most:
                found[count].what, found[count].mask = what, mask
                count += 1
    except BaseException as error:
        self.error = error
    return count
