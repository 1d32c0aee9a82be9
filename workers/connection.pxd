from skywalker.junction cimport Subscriber
from workers.node_call cimport NodeCall
from workers.outlet cimport Outlet


cdef Py_ssize_t RECEIVED


cdef class Connection(Outlet):
    cdef object _recv
    cdef bytes _tail
    cdef object _unfinished
    cdef object _ending

    cpdef ready(self, int events)
    @cython.locals(data=bytes)
    cdef _read(self)
    cpdef received(self, bytes data)
    cpdef tell(self, Subscriber subscription, NodeCall send)
    cpdef bytes worded(self, Subscriber subscription, NodeCall send)
