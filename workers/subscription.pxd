cimport cython

from skywalker.line cimport Call, Subscriber
from workers.calls cimport ClientCall
from workers.node_call cimport NodeCall
from workers.connection cimport Connection


cdef class Subscription(Subscriber):
    cdef public Connection connection
    cdef public bytes key
    cdef public bint typed
    cdef public bint done
    cdef public bytes head
    cdef public Py_ssize_t size

    cpdef begin_for(self, Connection connection, bytes key, bint typed)
    @cython.locals(connection=Connection, chunk=bytes, delivery=Delivery)
    cpdef bint give(self, Call send) except -1


cdef class Delivery(ClientCall):
    cdef public bint is_late

    cpdef begin_as(self, NodeCall send, bytes chunk)
