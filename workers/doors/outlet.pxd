cimport cython

from workers.doors.write_buffer cimport WriteBuffer
from workers.calls.call cimport ClientCall
from workers.calls.ledger cimport Ledger
from workers.doors.subscription cimport Delivery, Subscribing


cdef Py_ssize_t SENT
cdef Py_ssize_t MAX_AT_ONCE


cdef class Outlet(Subscribing):
    cdef readonly double opened_at
    cdef Py_ssize_t _max_out_bytes
    cdef Py_ssize_t _max_unread
    cdef Py_ssize_t _counted
    cdef Ledger _ledger
    cdef bint _is_deferred
    cdef bint _was_flooded
    cdef public bint paused
    cdef public str peer
    cdef public bint closed
    cdef object _socket
    cdef object _secure
    cdef object _write
    cdef list _out
    cdef Py_ssize_t _out_bytes
    cdef list _values
    cdef WriteBuffer _unwritten
    cdef dict _parked
    cdef object _alarm

    @cython.locals(sent=Py_ssize_t)
    cdef Py_ssize_t _send(self, bytes data) except -2
    cdef _roomy(self)
    cdef _drain(self)
    cdef _wait(self)
    cpdef delivered(self, ClientCall listener)
    cpdef push(self, bytes chunk)
    cpdef push_message(self, bytes chunk)
    cpdef push_delivery(self, Delivery delivery)
    @cython.locals(unwritten=Py_ssize_t)
    cpdef bint is_flooded(self) except -1
    cdef _see_that_it_is_read(self)
    cpdef attend(self)
    @cython.locals(out=list, values=list, listener=ClientCall, sent=Py_ssize_t)
    cpdef flush(self)
