cimport cython

from workers.doors.write_buffer cimport WriteBuffer
from workers.calls.call cimport ClientCall
from workers.calls.ledger cimport Ledger
from workers.doors.subscription cimport Delivery, Subscribing
from workers.stats.hands cimport Hand


cdef int CLOSED
cdef int HEARD
cdef int LEAVING
cdef int OPEN
cdef int PUT_OFF
cdef int RESTING
cdef Py_ssize_t RECEIVED
cdef Py_ssize_t SENT
cdef Py_ssize_t MAX_AT_ONCE
cdef double SHARE_S
cdef Py_ssize_t DEAR_BYTES
cdef Py_ssize_t READ_BYTES


cdef class Connection(Subscribing):
    cdef readonly double opened_at
    cdef Py_ssize_t _max_out_bytes
    cdef Py_ssize_t _max_unread
    cdef Py_ssize_t _counted
    cdef Ledger _ledger
    cdef bint _is_deferred
    cdef bint _was_flooded
    cdef public str peer
    cdef readonly int life
    cdef readonly int hearing
    cdef object _socket
    cdef object _write
    cdef list _out
    cdef Py_ssize_t _out_bytes
    cdef list _values
    cdef WriteBuffer _unwritten
    cdef dict _parked
    cdef object _alarm
    cdef object _recv
    cdef bytes _tail
    cdef list _todo
    cdef bint _is_dear
    cdef object _unfinished
    cdef object _ending
    cdef object _bucket
    cdef public double heard_at
    cdef public object stranger
    cdef public bint paced
    cdef public bint proved
    cdef public bint acks

    cdef _becomes(self, int event)
    cpdef _hears(self, int event)
    cpdef ready(self, int events)
    @cython.locals(data=bytes)
    cdef _read(self)
    cdef _see_end(self)
    cpdef received(self, bytes data)
    cpdef obey(self, list todo)
    @cython.locals(was_dear=bint)
    cdef take(self, list todo, Py_ssize_t share)
    cdef _take_early(self, list todo)
    cpdef bint may_be_early(self, object item) except -1
    @cython.locals(now=double)
    cpdef bint has_had_its_share(self) except -1
    cpdef hold(self, list todo, int event)
    cpdef rest(self, list todo, double seconds=*)
    cpdef rested(self)
    cpdef bint may_go_on(self) except -1
    cpdef list take_up(self)
    cpdef attend(self)
    @cython.locals(sent=Py_ssize_t)
    cdef Py_ssize_t _send(self, bytes data) except -2
    cdef _roomy(self)
    cdef _drain(self)
    cdef _wait(self)
    cpdef write_down(self, ClientCall listener)
    cpdef delivered(self, ClientCall listener)
    cpdef push(self, bytes chunk)
    cpdef push_message(self, bytes chunk)
    cpdef push_delivery(self, Delivery delivery)
    @cython.locals(unwritten=Py_ssize_t)
    cpdef bint is_flooded(self) except -1
    @cython.locals(unwritten=Py_ssize_t)
    cdef _see_that_it_is_read(self)
    @cython.locals(out=list, values=list, listener=ClientCall, sent=Py_ssize_t, hand=Hand, written_down=Py_ssize_t)
    cpdef flush(self)
