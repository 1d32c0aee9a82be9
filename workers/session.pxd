cimport cython

from skywalker.junction cimport Subscriber
from workers.calls cimport ClientCall
from workers.node_call cimport NodeCall
from skywalker.wire.frames cimport split
from skywalker.wire.junction cimport reply
from workers.connection cimport Connection
from workers.methods cimport recv, send
from workers.router cimport Router
from workers.subscription cimport Delivery, Subscription


cdef bytes RECV
cdef bytes SEND
cdef bytes MESSAGE


cdef class Session(Connection):
    cdef Py_ssize_t _unreadable
    cdef Py_ssize_t _in_flight
    cdef Py_ssize_t _max_calls
    cdef readonly dict _calls
    cdef readonly dict _twins
    cdef readonly dict _unacked
    cdef double _heard_at
    cdef Py_ssize_t _unacked_bytes
    cdef object _probe
    cdef object _subscriptions
    cdef public bint acks
    cdef public bint follows_ring
    cdef public str name

    @cython.locals(frames=list)
    cpdef received(self, bytes data)
    @cython.locals(own=Subscription, value=bytes, whole=bytes, size=Py_ssize_t)
    cpdef tell(self, Subscriber subscription, NodeCall send)
    @cython.locals(own=Subscription)
    cpdef bytes worded(self, Subscriber subscription, NodeCall send)
    @cython.locals(router=Router)
    cpdef keep(self, ClientCall call)
    @cython.locals(router=Router)
    cpdef release(self, ClientCall call)
    cpdef bint congested(self) except -1
    cdef ClientCall _no_longer_unacked(self, bytes call_id)
    cpdef ClientCall find(self, bytes call_id)
    cpdef acknowledged(self, bytes call_id)
