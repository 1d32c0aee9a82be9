cimport cython

from workers.calls cimport ClientCall
from workers.connection cimport Connection


cdef class Session(Connection):
    cdef bytes _tail
    cdef Py_ssize_t _unreadable
    cdef Py_ssize_t _in_flight
    cdef readonly dict _calls
    cdef readonly dict _twins
    cdef readonly dict _unacked
    cdef double _heard_at
    cdef Py_ssize_t _unacked_bytes
    cdef object _half_frame
    cdef object _probe
    cdef public bint acks
    cdef public str name

    cpdef received(self, bytes data)
    cpdef bint congested(self) except -1
    cpdef ClientCall _no_longer_unacked(self, bytes call_id)
    cpdef ClientCall find(self, bytes call_id)
    cpdef acknowledged(self, bytes call_id)
