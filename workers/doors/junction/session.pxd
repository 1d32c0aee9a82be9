cimport cython

from workers.calls.call cimport ClientCall, NodeCall
from skywalker.wire.junction cimport reply
from workers.doors.connection cimport Connection
from workers.doors.subscription cimport Delivery, Subscription
from workers.doors.junction.unacked cimport Unacked
from workers.doors.junction.waiting cimport Waiting


cdef bytes RECV
cdef bytes SEND
cdef bytes MESSAGE


cdef class Session(Connection):
    cdef public Py_ssize_t unreadable
    cdef public Py_ssize_t too_fast
    cdef public bint has_called
    cdef Py_ssize_t _max_calls
    cdef Waiting _waiting
    cdef Unacked _unacked
    cdef object _silence
    cdef object _subscriptions
    cdef public bint acks
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
