from skywalker.junction cimport Subscriber
from workers.node_call cimport NodeCall
from workers.outlet cimport Outlet


cdef class Connection(Outlet):
    cdef object _recv
    cdef bytes _tail
    cdef object _unfinished

    cpdef ready(self, int events)
    cdef _read(self)
    cpdef received(self, bytes data)
    cpdef tell(self, Subscriber subscription, NodeCall send)
    cpdef bytes worded(self, Subscriber subscription, NodeCall send)
