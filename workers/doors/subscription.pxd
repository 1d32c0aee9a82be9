cimport cython

from skywalker.junction cimport Call, Subscriber
from workers.access.account cimport Account
from workers.calls.call cimport Caller, ClientCall, NodeCall


cdef int GAVE


cdef class Subscription
cdef class Delivery


cdef class Subscribing(Caller):
    cdef public object commons
    cdef public Account account

    cpdef bint is_flooded(self) except -1
    cpdef bytes worded(self, Subscription subscription, NodeCall send)
    cpdef tell(self, Subscription subscription, NodeCall send)
    cpdef push_delivery(self, Delivery delivery)


cdef class Subscription(Subscriber):
    cdef public Subscribing connection
    cdef public bytes key
    cdef public bint typed
    cdef public bint done
    cdef public bytes head
    cdef public Py_ssize_t size

    cpdef begin_for(self, Subscribing connection, bytes key, bint typed)
    @cython.locals(connection=Subscribing, chunk=bytes, delivery=Delivery)
    cpdef bint give(self, Call send) except -1


cdef class Delivery(ClientCall):
    cdef public bint is_late

    cpdef begin_as(self, NodeCall send, bytes chunk)
