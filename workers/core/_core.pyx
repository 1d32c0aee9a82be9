# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The way between Python and the core: see _core.pyi for what each of these is for."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython cimport array
from libc.string cimport memcpy

import array
import errno
import os

include "_shared.pxi"

KIND_SEND = SEND
KIND_RECV = RECV
KIND_TAKE = TAKE


cdef class Core:
    cdef core it
    cdef kernel kernel
    cdef readonly object rare
    cdef object simulated
    cdef object cells
    cdef object hand
    cdef object error
    cdef bytes received  # what a SECURE connection was just read
    cdef bytearray recording

    def __cinit__(self, rare, bounds, memory, layout, bytes random, simulated=None):
        cdef machine its
        cdef owner own
        cdef key made = secret(random)
        cdef Py_buffer view
        self.rare, self.cells, self.simulated = rare, memory, simulated
        if simulated is None:
            failed = kernel_open(&self.kernel, &its)
            if failed:
                raise OSError(-failed, os.strerror(-failed))
        else:
            its.its = <void *> self
            its.clock, its.recv, its.send, its.shut = clock, recv, transmit, shut
            its.close, its.watch, its.forget, its.wait = close_fd, watch, forget, wait
        own.its = <void *> self
        own.vet, own.unusual, own.failed, own.begun, own.half_is_old = vet, unusual, failed_call, begun, half_is_old
        own.is_through, own.receive, own.transmit, own.shut = is_through, receive, transmit_plain, shut_secure
        own.closed, own.ready, own.sampled, own.named, own.recorded = closed, is_ready, sampled, named, recorded
        own.said, own.early, own.link_ended, own.link_over = said_over, early, link_ended, link_over
        own.ask_all, own.handed, own.wanted, own.lagged, own.answered = ask_all, handed, wanted, lagged, answered
        core_open(&self.it, &its, &own, &made)
        self.it.limits.max_calls = bounds.max_calls
        self.it.limits.output_bytes = bounds.output_bytes
        self.it.limits.max_plain_reply = bounds.max_plain_reply
        self.it.limits.waiting_bytes = bounds.waiting_bytes
        self.it.limits.subscriber_buffer = bounds.subscriber_buffer
        self.it.limits.mesh_bytes = bounds.mesh_bytes
        self.it.limits.half_frame_s = bounds.half_frame_s
        self.it.limits.unread_output_s = bounds.unread_output_s
        self.it.limits.idle_probe_s = bounds.idle_probe_s
        PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
        self.it.figures.cells = <i64 *> view.buf
        PyBuffer_Release(&view)  # who made this keeps the memory, and so do we
        self.it.figures.calls, self.it.figures.routed = layout["calls"], layout["routed"]
        self.it.figures.wait, self.it.figures.hand_off = layout["wait"], layout["hand_off"]
        self.it.figures.waiting, self.it.figures.turn = layout["waiting"], layout["turn"]
        self.it.figures.received, self.it.figures.sent = layout["received"], layout["sent"]
        self.it.figures.buckets, self.it.figures.outcomes = layout["buckets"], layout["outcomes"]

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

    def interest(self, u64 handle, bytes topic):
        it = link_find(&self.it, handle)
        return 0 if it == NULL else inbound_interest_new(&self.it, it, start(topic), <u32> len(topic))

    def resize(self, u32 interest, u32 audience):
        junction_resize(&self.it.table, interest, audience)

    def end_interest(self, u32 interest):
        inbound_interest_end(&self.it, interest)

    def hear_for(self, u64 handle, u32 subscription):
        it = link_find(&self.it, handle)
        if it != NULL:
            outbound_hear_for(&self.it, it, subscription)

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
        if self.simulated is None:
            kernel_close(&self.kernel)


    def connect(self, int fd, door came_by=JUNCTION_DOOR, bint secure=False):
        handle = core_connect(&self.it, fd, came_by)
        if secure:
            connection_find(&self.it, handle).flags |= SECURE
        return handle

    def watch(self, int fd, u32 what, u32 mask):
        core_watch(&self.it, fd, what, mask)

    def turn(self, double most=-1.0):
        cdef int count
        with nogil:
            count = core_turn(&self.it, most)
        self.tell()
        return count

    def run(self, stopped):
        """Turn until `stopped` has something in it, which an upcall may see to."""
        while not stopped:
            with nogil:
                core_turn(&self.it, -1.0)
            if self.error is not None:
                self.tell()

    cdef tell(self):
        error, self.error = self.error, None
        if error is not None:
            raise error

    def settle(self):
        with nogil:
            core_settle(&self.it)
        self.tell()

    @property
    def now(self):
        return self.it.now

    # What becomes of all of it.

    def open(self, bint hears):
        self.it.is_opening = not hears

    def drain(self):
        core_drain(&self.it)

    def leave(self):
        self.it.is_leaving = True

    # One connection.

    def push(self, u64 handle, bytes data):
        it = connection_find(&self.it, handle)
        if it != NULL:
            output_push(&self.it, it, start(data), <u32> len(data))

    def finish(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL and not it.flags & LEAVES:
            core_finish(&self.it, it)

    def close(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            core_close_connection(&self.it, it, BY_OWNER, 0)

    def detach(self, u64 handle):
        it = connection_find(&self.it, handle)
        assert it != NULL
        fd, unwritten = it.fd, text(it.out + it.written, it.out_size - it.written)
        core_detach(&self.it, it)
        return fd, unwritten

    def greeted(self, u64 handle, bint acks, u32 max_reply):
        it = connection_find(&self.it, handle)
        if it != NULL:
            it.flags |= KNOWS_ERRORS
            it.flags = it.flags | ACKS if acks else it.flags & ~<u32> ACKS
            it.max_reply = max_reply

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

    def fail_all(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it != NULL:
            calls_fail(&self.it, it, DRAINS)

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

    cdef const u8 *keep(self, bytes data):
        """Have bytes stay until the turn ends."""
        cdef u32 size = <u32> len(data)
        cdef u8 *place = input_room(&self.it, size)
        memcpy(place, start(data), size)
        input_use(&self.it, size)
        return place

    def cancel(self, u64 handle, bytes by, bytes id):
        it = connection_find(&self.it, handle)
        if it != NULL:
            call_cancel(&self.it, it, start(by), <u32> len(by), start(id), <u32> len(id))

    def acknowledge(self, u64 handle, bytes id):
        it = connection_find(&self.it, handle)
        if it != NULL and call_acknowledged(&self.it, it, start(id), <u32> len(id)) and not it.flags & (LEAVES | IS_CLOSED):
            output_roomy(&self.it, it)

    def publish(self, u64 handle, bytes topic, bytes value, bytes form):
        it = connection_find(&self.it, handle)
        if it != NULL:
            place = spot_take(&self.it.table, 0, start(topic), <u32> len(topic))
            call_publish(&self.it, it, place, self.keep(value), <u32> len(value), start(form), <u32> len(form))

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

    def stand_no_more(self, u32 subscription):
        junction_unsubscribe(&self.it.table, subscription)

    def unsubscribe(self, u32 subscription):
        call_unsubscribe(&self.it, subscription)

    def end(self, u32 subscription):
        call_end_subscription(&self.it, subscription)

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

    def hold(self, i64 size):
        self.it.bytes_held += size
        if self.it.bytes_held > self.it.most_bytes_held:
            self.it.most_bytes_held = self.it.bytes_held

    def held(self):
        most, self.it.most_bytes_held = self.it.most_bytes_held, self.it.bytes_held
        return self.it.calls_held, self.it.bytes_held, most

    def census(self, bytes topic):
        return census_of(&self.it.table, topic)

    @property
    def topic_count(self):
        return self.it.table.spots.used - self.it.table.idle_count - self.it.table.group_count

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
        cdef u32 number
        cdef u32 left = self.it.choked
        found = []
        for number in range(1, self.it.connections.chunk_count << 10):
            if not left:
                break
            if not pool_has(&self.it.connections, number):
                continue
            it = connection_at(&self.it, number)
            if it.generation and it.flags & (CHOKED | IS_CLOSED) == CHOKED:
                found.append((it.out_size - it.written, <u64> it.generation << 32 | number))
                left -= 1
        return found

    def counts(self, u64 handle):
        it = connection_find(&self.it, handle)
        if it == NULL:
            return 0, 0, 0
        return it.waiting.count, it.subscriptions, it.out_size - it.written if it.flags & CHOKED else 0

    def knows_errors(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and (it.flags & KNOWS_ERRORS) != 0

    def has_called(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and (it.flags & HAS_CALLED) != 0

    def is_closed(self, u64 handle):
        return connection_find(&self.it, handle) == NULL

    def waits(self, u64 handle, bytes id):
        it = connection_find(&self.it, handle)
        return it != NULL and call_find(&self.it, &it.waiting, start(id), <u32> len(id)) != 0

    def is_gone(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it == NULL or (it.flags & LEAVES) != 0

    def is_idle(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and not (
            it.waiting.count or it.unacked.count or it.subscriptions or it.mark_count or it.tail_size or self.it.left
            or it.flags & (CHOKED | RESTS | IS_PUT_OFF)
        )

    def is_owed(self, u64 handle):
        it = connection_find(&self.it, handle)
        return it != NULL and (it.unacked.count or it.flags & (RESTS | IS_PUT_OFF)) != 0

    def fd(self, u64 handle):
        it = connection_find(&self.it, handle)
        return -1 if it == NULL else it.fd

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


cdef verdict vet(void *its, u64 handle, const u8 *body, u32 size) noexcept with gil:
    self = <Core> its
    try:
        return <verdict> <int> self.rare.vet(handle, text(body, size))
    except BaseException as error:
        self.error = error
        return IS_DONE


cdef void unusual(void *its, u64 handle, const u8 *body, u32 size) noexcept with gil:
    self = <Core> its
    try:
        self.rare.unusual(handle, text(body, size))
    except BaseException as error:
        self.error = error


cdef void failed_call(
    void *its, u64 handle, method name, const u8 *id, u32 id_size, const blob *timed_out, refusal why, u32 size, u32 limit
) noexcept with gil:
    self = <Core> its
    try:
        word = text(timed_out.data, timed_out.size) if timed_out != NULL else None
        self.rare.failed(handle, <int> name, text(id, id_size), word, <int> why, size, limit)
    except BaseException as error:
        self.error = error


cdef void begun(void *its, u64 handle, const u8 *half, u32 size, boolean is_first) noexcept with gil:
    self = <Core> its
    try:
        self.rare.begun(handle, text(half, size), bool(is_first))
    except BaseException as error:
        self.error = error


cdef void half_is_old(void *its, u64 handle) noexcept with gil:
    self = <Core> its
    try:
        self.rare.half_is_old(handle)
    except BaseException as error:
        self.error = error


cdef void is_through(void *its, u64 handle) noexcept with gil:
    self = <Core> its
    try:
        self.rare.is_through(handle)
    except BaseException as error:
        self.error = error


cdef int number_of(error) except? -1:
    return errno.EAGAIN if isinstance(error, BlockingIOError) else error.errno or errno.EIO


cdef ssize_t receive(void *its, u64 handle, u32 most, const u8 **data) noexcept with gil:
    self = <Core> its
    try:
        got, has_ended = self.rare.receive(handle, most)
        if has_ended:
            connection_find(&self.it, handle).flags |= HAS_ENDED
        self.received = got
        data[0] = start(self.received)
        return len(self.received)
    except OSError as error:
        return -number_of(error)
    except BaseException as error:
        self.error = error
        return -errno.EIO


cdef ssize_t transmit_plain(void *its, u64 handle, const u8 *data, u32 size, u32 *on_their_way) noexcept with gil:
    self = <Core> its
    try:
        sent, on_their_way[0] = self.rare.transmit(handle, text(data, size))
        return sent
    except OSError as error:
        return -number_of(error)
    except BaseException as error:
        self.error = error
        return -errno.EIO


cdef void shut_secure(void *its, u64 handle) noexcept with gil:
    self = <Core> its
    try:
        self.rare.shut(handle)
    except BaseException as error:
        self.error = error


cdef void closed(void *its, u64 handle, close why, int error_number) noexcept with gil:
    self = <Core> its
    try:
        self.rare.closed(handle, <int> why, error_number)
    except BaseException as error:
        self.error = error


cdef void is_ready(void *its, u32 what, u32 mask) noexcept with gil:
    self = <Core> its
    try:
        self.rare.ready(what, mask)
    except BaseException as error:
        self.error = error


cdef u32 sampled(void *its, const u8 *topic, u32 size) noexcept with gil:
    self = <Core> its
    try:
        return self.rare.sampled(text(topic, size))
    except BaseException as error:
        self.error = error
        return 1000


cdef void named(void *its, i64 token, const u8 *topic, u32 size) noexcept with gil:
    self = <Core> its
    try:
        self.rare.named(token, text(topic, size))
    except BaseException as error:
        self.error = error


cdef void recorded(void *its, u32 records) noexcept with gil:
    self = <Core> its
    try:
        self.rare.recorded(records)
    except BaseException as error:
        self.error = error


cdef void said_over(void *its, u64 link, const message *it) noexcept with gil:
    self = <Core> its
    try:
        topic = None if it.topic == NULL else text(it.topic, it.topic_size)
        value = None if it.value == NULL else text(it.value, it.value_size)
        form = None if it.form == NULL else text(it.form, it.form_size)
        self.rare.said(link, <int> it.kind, it.number, topic, value, form)
    except BaseException as error:
        self.error = error


cdef void early(void *its, u64 link) noexcept with gil:
    self = <Core> its
    try:
        self.rare.early(link)
    except BaseException as error:
        self.error = error


cdef void link_ended(void *its, u64 link, const char *why) noexcept with gil:
    self = <Core> its
    try:
        self.rare.link_ended(link, why.decode())
    except BaseException as error:
        self.error = error


cdef void link_over(void *its, u64 link) noexcept with gil:
    self = <Core> its
    try:
        self.rare.link_over(link)
    except BaseException as error:
        self.error = error


cdef void ask_all(void *its, u64 link) noexcept with gil:
    self = <Core> its
    try:
        self.rare.ask_all(link)
    except BaseException as error:
        self.error = error


cdef boolean handed(void *its, u64 life, words *entries) noexcept with gil:
    self = <Core> its
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


cdef void wanted(void *its, u32 owner) noexcept with gil:
    self = <Core> its
    try:
        self.rare.wanted(owner)
    except BaseException as error:
        self.error = error


cdef void lagged(void *its, u32 interest) noexcept with gil:
    self = <Core> its
    try:
        self.rare.lagged(interest)
    except BaseException as error:
        self.error = error


cdef void answered(void *its, u64 token) noexcept with gil:
    self = <Core> its
    try:
        self.rare.answered(token)
    except BaseException as error:
        self.error = error


# A simulated machine.


cdef double clock(void *its) noexcept with gil:
    self = <Core> its
    try:
        return self.simulated.clock()
    except BaseException as error:
        self.error = error
        return 0.0


cdef ssize_t recv(void *its, int fd, void *data, size_t size) noexcept with gil:
    self = <Core> its
    try:
        got = self.simulated.recv(fd, size)
        memcpy(data, start(got), len(got))
        return len(got)
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.error = error
        return -errno.EIO


cdef ssize_t transmit(void *its, int fd, const void *data, size_t size) noexcept with gil:
    self = <Core> its
    try:
        return self.simulated.send(fd, text(<const u8 *> data, <u32> size))
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.error = error
        return -errno.EIO


cdef void shut(void *its, int fd) noexcept with gil:
    self = <Core> its
    try:
        self.simulated.shut(fd)
    except BaseException as error:
        self.error = error


cdef void close_fd(void *its, int fd) noexcept with gil:
    self = <Core> its
    try:
        self.simulated.close(fd)
    except BaseException as error:
        self.error = error


cdef void watch(void *its, int fd, u32 mask, u64 what, boolean is_new) noexcept with gil:
    self = <Core> its
    try:
        self.simulated.watch(fd, mask, what)
    except BaseException as error:
        self.error = error


cdef void forget(void *its, int fd) noexcept with gil:
    self = <Core> its
    try:
        self.simulated.forget(fd)
    except BaseException as error:
        self.error = error


cdef int wait(void *its, ready *found, int most, double seconds) noexcept with gil:
    self = <Core> its
    cdef int count = 0
    try:
        for what, mask in self.simulated.wait(None if seconds < 0.0 else seconds):
            if count < most:
                found[count].what, found[count].mask = what, mask
                count += 1
    except BaseException as error:
        self.error = error
    return count
