cimport cython

from skywalker.wire.frames cimport split
from workers.turn cimport Turn


cdef list _HEADS
cdef Py_ssize_t LENGTH_BYTES
cdef Py_ssize_t PACKET_BYTES


cdef class Packets:
    cdef object _socket
    cdef Turn _turn
    cdef Py_ssize_t _limit
    cdef object _link
    cdef list _batch
    cdef Py_ssize_t _batch_bytes
    cdef object _sealed
    cdef readonly Py_ssize_t unsent
    cdef readonly bint closed

    cpdef bint congested(self) except -1
    @cython.locals(size=Py_ssize_t, batch=list, heads=list)
    cpdef tell(self, int kind, bytes number, bytes first=*, bytes second=*, bytes third=*)
    cpdef flush(self)
    cpdef list read(self)
