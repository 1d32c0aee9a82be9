cimport cython

from skywalker.line cimport Subscriber
from workers.calls cimport ClientCall
from workers.node_call cimport NodeCall
from skywalker.wire.frames cimport split
from skywalker.wire.junction cimport reply
from workers.connection cimport Connection
from workers.methods cimport recv, send
from workers.router cimport Router
from workers.subscription cimport Delivery, Subscription
from workers.unacked cimport Unacked
from workers.waiting cimport Waiting


cdef Py_ssize_t FRAMES_PER_TURN
cdef Py_ssize_t MAX_TOO_FAST
cdef Py_ssize_t MAX_UNREADABLE
cdef bytes RECV
cdef bytes SEND
cdef bytes MESSAGE


cdef class Session(Connection):
    cdef public Py_ssize_t unreadable
    cdef public Py_ssize_t too_fast
    cdef bint _has_called
    cdef Py_ssize_t _max_calls
    cdef Waiting _waiting
    cdef Unacked _unacked
    cdef readonly double heard_at
    cdef object _silence
    cdef object _subscriptions
    cdef public bint acks
    cdef public bint follows_ring
    cdef public object response
    cdef public str name

    @cython.locals(frames=list, fresh=bint)
    cpdef received(self, bytes data)
    @cython.locals(left=Py_ssize_t, name=bytes)
    cpdef obey(self, list todo)
    @cython.locals(own=Subscription, value=bytes, whole=bytes, size=Py_ssize_t)
    cpdef tell(self, Subscriber subscription, NodeCall send)
    @cython.locals(own=Subscription)
    cpdef bytes worded(self, Subscriber subscription, NodeCall send)
    @cython.locals(router=Router)
    cpdef keep(self, ClientCall call)
    @cython.locals(router=Router)
    cdef _roomy(self)
    @cython.locals(router=Router)
    cpdef release(self, ClientCall call)
    cpdef bint congested(self) except -1
    cpdef ClientCall find(self, bytes call_id)
    cpdef acknowledged(self, bytes call_id)
