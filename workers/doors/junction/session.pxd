cimport cython

from workers.calls.call cimport ClientCall, NodeCall
from skywalker.wire.junction cimport reply
from workers.doors.connection cimport Connection
from workers.doors.subscription cimport Delivery, Subscription


cdef bytes RECV
cdef bytes SEND
cdef bytes MESSAGE


cdef class Waiting:
    cdef readonly Py_ssize_t count
    cdef dict _by_id
    cdef dict _twins

    cpdef add(self, ClientCall call)
    cpdef remove(self, ClientCall call)
    cpdef ClientCall find(self, bytes id)


cdef class Unacked:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size
    cdef dict _by_id

    cpdef add(self, ClientCall listener)
    cpdef bint has(self, ClientCall listener) except -1
    cpdef ClientCall pop(self, bytes id)
    cpdef list clear(self)


cdef class Session(Connection):
    cdef public Py_ssize_t unreadable
    cdef public Py_ssize_t too_fast
    cdef public bint has_called
    cdef Py_ssize_t _max_calls
    cdef Waiting _waiting
    cdef Unacked _unacked
    cdef object _silence
    cdef object _subscriptions
    cdef public bint follows_ring
    cdef public object response
    cdef public str name

    @cython.locals(own=Subscription, value=bytes, whole=bytes, size=Py_ssize_t)
    cpdef tell(self, Subscription subscription, NodeCall send)
    @cython.locals(own=Subscription)
    cpdef bytes worded(self, Subscription subscription, NodeCall send)
    cpdef keep(self, ClientCall call)
    cdef _roomy(self)
    cpdef release(self, ClientCall call)
    cpdef bint congested(self) except -1
    cpdef ClientCall find(self, bytes call_id)
    cpdef acknowledged(self, bytes call_id)
