# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The way between Python and the core: see _core.pyi for what each of these is for."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython cimport array
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from workers.core._c cimport *

import array
import errno
import os

from workers.engine.points import reached

include "_shared.pxi"
include "_failing.pxi"
include "_links.pxi"

KIND_SEND = SEND
KIND_RECV = RECV
KIND_TAKE = TAKE

SAFEGUARDS = {
    "a value is written first": A_VALUE_IS_WRITTEN_FIRST,
    "a value is asked back": A_VALUE_IS_ASKED_BACK,
    "a last word is needed": A_LAST_WORD_IS_NEEDED,
    "who returns has its place": WHO_RETURNS_HAS_ITS_PLACE,
    "publishers wait": PUBLISHERS_WAIT,
    "an ack comes last": AN_ACK_COMES_LAST,
    "a lost call goes elsewhere": A_LOST_CALL_GOES_ELSEWHERE,
    "a hand is written down": A_HAND_IS_WRITTEN_DOWN,
    "a taker tells home": A_TAKER_TELLS_HOME,
    "the dead are heard first": THE_DEAD_ARE_HEARD_FIRST,
    "doubt stays": DOUBT_STAYS,
    "what is given stays": WHAT_IS_GIVEN_STAYS,
    "all is written first": ALL_IS_WRITTEN_FIRST,
}


def without(*names):
    cdef u32 mask = 0
    for name in names:
        mask |= <u32> 1 << <u32> SAFEGUARDS[name]
    if not safeguards_without(mask):
        raise RuntimeError("a release has all of its safeguards")


cdef class Moment:
    cdef public double now
    cdef public double began
    cdef readonly object core
    cdef public object resting
    cdef public double rests_until
    cdef dict _alarms

    def __init__(self, rare, bounds, memory, layout, bytes random, simulated=None):
        self._alarms, self.resting, self.rests_until = {}, None, 0.0
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

    cpdef go_on(self):
        pass


@cython.no_gc_clear
cdef class Core(Linked):
    cdef kernel kernel
    cdef public object rare
    cdef public object linking
    cdef Moment moment
    cdef dict handlers
    cdef object simulated
    cdef object cells
    cdef bytes received  # what a SECURE connection was just read
    cdef bytes facts  # of the connection that was just offered to a sibling
    cdef bytearray recording
    cdef bint is_open
    cdef bint is_real
    cdef bint was_up  # something of Python's has had a part in these turns

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
            its = self.of_python()
        own.its = <void *> self
        own.vet, own.unusual, own.failed, own.half_begun, own.half_is_old = vet, unusual, failed_call, half_begun, half_is_old
        own.is_through, own.receive, own.transmit, own.shut = is_through, receive, transmit_plain, shut_secure
        own.may_move, own.arriving, own.arrived, own.may_go = may_move, arriving, arrived, may_go
        own.closed, own.ready, own.sampled, own.named, own.recorded = closed, is_ready, sampled, named, recorded
        own.rang, own.rests, own.go_on = rang, rests, go_on
        own.link_receive, own.link_transmit, own.link_shut, own.stuck = link_receive, link_transmit, link_shut, stuck
        own.said, own.early, own.link_ended, own.link_over = said_over, early, link_ended, link_over
        own.ask_all, own.handed, own.wanted, own.lagged, own.answered = ask_all, handed, wanted, lagged, answered
        own.reached = has_reached
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
        self.it.limits.idle_probe_s = bounds.idle_probe_s
        self.it.limits.max_moves = min(bounds.max_moves, 0xFFFFFFFF)
        PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
        self.it.figures.cells, self.cell_bytes = <i64 *> view.buf, view.len
        PyBuffer_Release(&view)  # who made this keeps the memory, and so do we
        self.it.figures.calls, self.it.figures.routed = layout["calls"], layout["routed"]
        self.it.figures.wait, self.it.figures.hand_off = layout["wait"], layout["hand_off"]
        self.it.figures.waiting, self.it.figures.turn = layout["waiting"], layout["turn"]
        self.it.figures.longest_turn = layout["longest_turn"]
        self.it.figures.received, self.it.figures.sent = layout["received"], layout["sent"]
        self.it.figures.buckets, self.it.figures.outcomes = layout["buckets"], layout["outcomes"]

    def follow(self, tokens, shares, owners, u32 here):
        follow_ring(&self.it.ring, tokens, shares, owners)
        self.it.here = here

    def owner(self, bytes topic):
        if not self.it.ring.count:
            return self.it.here
        return ring_owner(&self.it.ring, token_of(start(topic), len(topic)))

    def shut(self):
        """Close all connections. Nothing is to be asked of it afterwards."""
        core_close(&self.it)
        self.is_open = False
        self.tell()

    def __dealloc__(self):
        if self.is_open:
            # What is open is its process's, and nobody is to see any more of it, nor what is counted.
            self.fail(True)
            core_drop(&self.it)
            free(self.nowhere)
        if self.is_real:
            kernel_close(&self.kernel)

    cdef machine of_python(self):
        cdef machine its
        its.its = <void *> self
        its.clock = its.spent = clock
        its.recv, its.send, its.shut = recv, transmit, shut
        its.close, its.watch, its.forget, its.wait = close_fd, watch, forget, wait
        its.recv_passed, its.send_passing = recv_passed, transmit_passing
        its.reserve, its.release = reserve, release
        return its

    def connect(self, int fd, door came_by=JUNCTION_DOOR, bint secure=False):
        handle = core_connect(&self.it, fd, came_by)
        if secure:
            connection_find(&self.it, handle).flags |= SECURE
        return handle

    def reroute(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            calls_reroute(&self.it, it)
        self.tell()

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
        self.finish_turn()
        return count

    def turns(self):
        cdef int count = 1
        self.was_up = not self.is_real
        while count:
            count = core_turn(&self.it, -1.0)
            if self.was_up or self.error is not None:
                break
        self.finish_turn()

    def begin(self, double now):
        core_begin(&self.it, now)
        self.finish_turn()

    def settle(self):
        self.it.now, self.it.began = self.moment.now, self.moment.began
        core_settle(&self.it)
        self.finish_turn()

    # What Python does in a turn may take so long that it is another moment afterwards.

    cdef bint up(self):
        """Have Python do something now; not if something that it did in this turn has failed."""
        if self.error is not None:
            return False
        self.moment.now, self.moment.began = self.it.now, self.it.began
        self.was_up = True
        return True

    cdef down(self):
        self.it.now, self.it.began = self.moment.now, self.moment.began

    cdef finish_turn(self):
        self.moment.now, self.moment.began = self.it.now, self.it.began
        self.end_turn()

    # What becomes of all of it.

    def drain(self):
        core_drain(&self.it)

    def leave(self):
        core_leave(&self.it)
        self.tell()

    # One connection.

    def read(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            input_read(&self.it, it)
            self.moment.now = self.it.now
        self.tell()

    def push(self, u64 handle, bytes data):
        it = connection_find(&self.it, handle)
        if it != NULL:
            output_push(&self.it, it, start(data), <u32> len(data))

    def finish(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL and not it.flags & LEAVES:
            core_finish(&self.it, it)
        self.tell()

    def close(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            core_close_connection(&self.it, it, BY_OWNER, 0)
        self.tell()

    def detach(self, u64 handle):
        it = connection_find(&self.it, handle)
        assert it != NULL
        output_own(&self.it, it)
        fd, unwritten = it.fd, text(it.out + it.written, it.out_size - it.written)
        core_detach(&self.it, it)
        return fd, unwritten

    def greeted(self, u64 handle, bint acks, u32 max_reply):
        it = connection_find(&self.it, handle)
        if it != NULL:
            it.flags |= KNOWS_ERRORS
            it.flags = it.flags | ACKS if acks else it.flags & ~<u32> ACKS
            it.max_reply = max_reply

    def draw(self, u64 handle, u64 link):
        it, way = connection_find(&self.it, handle), link_find(&self.it, link)
        if it != NULL and way != NULL:
            move_draw(&self.it, it, way)

    def draw_after(self, u32 calls, u32 least, double seconds, double rest_s):
        self.it.drawing.calls, self.it.drawing.least = calls, least
        self.it.drawing.seconds, self.it.drawing.rest_s = seconds, rest_s

    def finds_awake(self, u64 handle, u64 life):
        it, way = connection_find(&self.it, handle), link_by_life(&self.it, life)
        return it != NULL and way != NULL and bool(move_finds_awake(&self.it, it, way))

    def moves(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and (it.flags & (MOVES | ARRIVES)) != 0

    @property
    def moving(self):
        return self.it.moving

    def probe(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL and not it.flags & LEAVES:
            core_probe(&self.it, it)

    def vet(self, u64 handle, bint wanted):
        it = connection_find(&self.it, handle)
        if it != NULL:
            it.flags = it.flags | VETTED if wanted else it.flags & ~<u32> VETTED

    def pause(self, u64 handle, double seconds):
        it = connection_find(&self.it, handle)
        if it != NULL:
            input_pause(&self.it, it, seconds)

    def resume(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            input_resume(&self.it, it)
        self.tell()

    def fail_all(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            calls_fail(&self.it, it, DRAINS)
        self.tell()

    # Whose it is.

    def account(self, u64 most):
        return account_new(&self.it.accounts, most)

    def enter(self, u64 handle, u32 account):
        it = connection_find(&self.it, handle)
        if it != NULL:
            account_enter(&self.it, it, account)

    def in_flight(self, u32 account):
        return account_at(&self.it.accounts, account).in_flight

    def grant(self, u32 account, int what, bytes topic):
        cdef u32 place = spot_take(&self.it.table, 0, start(topic), <u32> len(topic))
        grants_add(&self.it.table.grants, place, account, <action> what)
        spot_drop(&self.it.table, place)

    # Calls.

    def issue(self, u64 handle, kind what, bytes id, double seconds, bytes timed_out, bytes topic, bytes value, bytes group):
        cdef call made
        cdef u8[32] name
        it = connection_find(&self.it, handle)
        if it == NULL:
            return
        self.describe(&made, what, name, id, seconds, topic, value)
        if timed_out is not None:
            made.timed_out = blob_new(start(timed_out), <u32> len(timed_out))
        if group is not None:
            made.group, made.group_size = start(group), <u32> len(group)
        call_issue(&self.it, it, &made)
        self.tell()

    def will(self, u64 handle, bytes id, double seconds, bytes topic, bytes testament):
        cdef call made
        cdef u8[32] name
        it = connection_find(&self.it, handle)
        if it == NULL:
            return 0
        self.describe(&made, SEND, name, id, seconds, topic, testament)
        return <int> call_will(&self.it, it, &made)

    cdef describe(self, call *made, kind what, u8 *name, bytes id, double seconds, bytes topic, bytes value):
        assert len(id) <= 32
        memcpy(name, start(id), len(id))
        made.kind = what
        made.id, made.id_size = name, <u32> len(id)
        made.topic = spot_take(&self.it.table, 0, start(topic), <u32> len(topic))
        made.seconds = seconds
        made.timed_out = NULL
        made.value = made.group = NULL
        made.value_size = made.group_size = 0
        if value is not None:
            made.value, made.value_size = self.keep(value), <u32> len(value)

    def cancel(self, u64 handle, bytes by, bytes id):
        cdef u8[32] name  # more than there is of a short one may be looked at
        it = connection_find(&self.it, handle)
        if it != NULL:
            assert len(by) <= 32
            memcpy(name, start(by), len(by))
            call_cancel(&self.it, it, name, <u32> len(by), start(id), <u32> len(id))
        self.tell()

    def acknowledge(self, u64 handle, bytes id):
        it = connection_find(&self.it, handle)
        if it != NULL and call_acknowledged(&self.it, it, start(id), <u32> len(id)) and not it.flags & (LEAVES | IS_CLOSED):
            output_roomy(&self.it, it)
        self.tell()

    def publish(self, u64 handle, bytes topic, bytes value, bytes form):
        cdef publication what
        it = connection_find(&self.it, handle)
        if it == NULL or it.publisher == NULL:
            return
        what.topic = spot_take(&self.it.table, 0, start(topic), <u32> len(topic))
        what.value, what.size = self.keep(value), <u32> len(value)
        what.form, what.form_size = start(form), <u32> len(form)
        publisher_publish(&self.it, it, &what)
        self.tell()

    def awaits(self, u64 handle):
        it = connection_find(&self.it, handle)
        return 0 if it == NULL or it.publisher == NULL else publisher_awaits(it)

    def done(self, u64 handle, u64 place):
        it = connection_find(&self.it, handle)
        if it != NULL and place:
            publisher_done(&self.it, it, place)
        self.tell()

    def over(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL and it.publisher != NULL:
            it.publisher.is_over = True

    def hold_back(self):
        publishers_hold_back(&self.it)

    def reroute_publications(self):
        publications_reroute(&self.it)
        self.tell()

    @property
    def orphans(self):
        return self.it.orphans

    def type(self, u32 subscription, bint typed):
        row_at(&self.it.table, subscription).is_typed = typed

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
        self.tell()

    def stand_no_more(self, u32 subscription):
        junction_unsubscribe(&self.it.table, subscription)
        self.tell()

    def unsubscribe(self, u32 subscription):
        call_unsubscribe(&self.it, subscription)

    def end(self, u32 subscription):
        call_end_subscription(&self.it, subscription)
        self.tell()

    # What is told of it.

    def record(self, u32 every, u32 dice):
        journal_begin(&self.it, every, dice)

    def page(self, bytearray page, u32 room):
        """Its bytes may not be moved as long as they are recorded in."""
        self.recording = page
        journal_turn(&self.it, <u8 *> PyByteArray_AS_STRING(page), room)

    @property
    def recorded(self):
        return self.it.journal.used

    def tell_next(self, u32 gap):
        self.it.gap = gap

    def held(self):
        return self.it.calls_held, self.it.bytes_held

    @property
    def freed(self):
        return self.it.most_bytes_held - self.it.bytes_held

    def trimmed(self):
        self.it.most_bytes_held = self.it.bytes_held

    def census(self, bytes topic):
        return census_of(&self.it.table, topic)

    @property
    def topic_count(self):
        return self.it.table.topic_count

    def topics(self, u32 most):
        cdef array.array spots = array.array("I", bytes(4 * most))
        cdef u32 *numbers = <u32 *> spots.data.as_voidptr
        cdef u32 count = table_topics(&self.it.table, numbers, most)
        return [self.oldest_at(numbers[at]) for at in range(count)]

    cdef tuple oldest_at(self, u32 number):
        found = spot_at(&self.it.table, number)
        cdef u32 group = found.groups
        cdef double oldest = self.it.now
        if found.line.first:
            oldest = row_at(&self.it.table, found.line.first).since
        for _ in range(16 if group else 0):
            each = spot_at(&self.it.table, group)
            oldest = min(oldest, row_at(&self.it.table, each.line.first).since)
            group = each.of.next_group
            if group == found.groups:
                break
        return oldest, text(spot_name(found), found.size)

    def choked(self):
        cdef u32 number = 0
        found = []
        while len(found) < self.it.choked:
            it = connection_next(&self.it, &number)
            if it == NULL:
                break
            if it.flags & CHOKED:
                found.append((it.out_size - it.written, <u64> it.generation << 32 | number))
        return found

    @property
    def has_silent(self):
        cdef u32 number = 0
        while True:
            it = connection_next(&self.it, &number)
            if it == NULL:
                return False
            if it.door == JUNCTION_DOOR and not it.heard and not it.flags & LEAVES:
                return True

    def counts(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it == NULL:
            return 0, 0, 0
        waiting = it.waiting.count if it.publisher == NULL else it.publisher.count - it.publisher.changes
        return waiting, it.subscriptions, it.out_size - it.written if it.flags & CHOKED else 0

    def has_called(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and (it.flags & HAS_CALLED) != 0

    def is_closed(self, u64 handle):
        return connection_find(&self.it, handle) == NULL

    def waits(self, u64 handle, bytes id):
        it = connection_find(&self.it, handle)
        cdef u32 number = 0 if it == NULL else call_find(&self.it, &it.waiting, start(id), <u32> len(id))
        return number != 0 and not call_is_cancelled(&self.it, row_at(&self.it.table, number))

    def is_gone(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it == NULL or (it.flags & LEAVES) != 0

    def is_idle(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and not it.flags & (MOVES | ARRIVES) and not (
            it.waiting.count or it.unacked.count or it.subscriptions or it.mark_count or it.unmarked or it.tail_size
            or self.it.left or it.flags & (CHOKED | RESTS | IS_PUT_OFF)
        )

    def is_owed(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it == NULL:
            return False
        if it.publisher != NULL:
            return bool(publisher_is_owed(it))
        is_busy = it.flags & (RESTS | IS_PUT_OFF | MOVES | ARRIVES)
        return bool(it.unacked.count or is_busy or calls_are_elsewhere(&self.it, it))

    def fd(self, u64 handle):
        it = connection_find(&self.it, handle)
        return -1 if it == NULL else it.fd

    @property
    def has_more(self):
        return self.it.resting.size > 0

    @property
    def served_at(self):
        return self.it.served_at

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


include "_upcalls.pxi"
include "_simulated.pxi"
