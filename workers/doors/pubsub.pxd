cimport cython

from skywalker.wire.pubsub cimport bus_value, split
from workers.calls.call cimport ClientCall, NodeCall
from workers.doors.connection cimport Connection
from workers.calls.publication cimport Publication
from workers.doors.subscription cimport Delivery, Subscription
from workers.doors.pubsub_wording cimport Wording


cdef int COMPRESSED
cdef int PUBLISH
cdef int PUBLISH_TYPED
cdef int SUBSCRIBE
cdef int SUBSCRIBE_TYPED
cdef int UNSUBSCRIBE
cdef bytes ACKED
cdef Py_ssize_t MAX_IN_FLIGHT
cdef double NEVER


cdef class PubSub(Connection):
    cdef object _subscriptions
    cdef Wording _wording
    cdef object _unacked
    cdef Py_ssize_t _acks
    cdef Py_ssize_t _asked
    cdef Py_ssize_t _said
    cdef object _behind
    cdef Py_ssize_t _behind_bytes
    cdef Py_ssize_t _in_flight
    cdef Py_ssize_t _changes
    cdef bint _gated
    cdef tuple _over
    cdef bytes _topic
    cdef bytes _name

    @cython.locals(items=list, had_tail=bytes)
    cpdef received(self, bytes data)
    cpdef obey(self, list todo)
    cpdef bint may_go_on(self) except -1
    @cython.locals(item=tuple)
    cdef _obey_each(self, list items)
    cpdef published(self, ClientCall call)
    @cython.locals(acks=Py_ssize_t, changed=bint)
    cdef _ack(self)
    cdef _handed_out(self, Py_ssize_t count)
    @cython.locals(acks=Py_ssize_t)
    cpdef acknowledge(self)
    cdef _say(self, Py_ssize_t acks)
    cdef bint _must_wait(self, int code) except -1
    @cython.locals(publication=Publication)
    cdef _publish(self, bytes topic, bytes form, bytes value, bytes whole)
    @cython.locals(place=Py_ssize_t, chunk=bytes)
    cpdef tell(self, Subscription subscription, NodeCall send)
    cpdef push_delivery(self, Delivery delivery)
    cpdef bint take_back(self, ClientCall listener, bint told) except -1
    cdef _put_behind(self, Py_ssize_t place, bytes chunk, object delivery)
    @cython.locals(chunk=bytes)
    cdef _catch_up(self, Py_ssize_t said)
    @cython.locals(own=Subscription)
    cpdef bytes worded(self, Subscription subscription, NodeCall send)
