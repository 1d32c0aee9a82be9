cimport cython

from skywalker.wire.frames cimport split
from workers.engine.loop cimport Turn


cdef list _HEADS
cdef bytes NIL
cdef Py_ssize_t LENGTH_BYTES
cdef Py_ssize_t BATCH_BYTES


cpdef tuple wrapped(bytes value, bytes form)
cpdef tuple unwrapped(bytes value, bytes form)


cdef class Messages:
    cdef Turn _turn
    cdef Py_ssize_t _limit
    cdef list _batch
    cdef Py_ssize_t _batch_bytes
    cdef object _sealed
    cdef public object link
    cdef readonly bytes life
    cdef readonly bint abroad
    cdef readonly Py_ssize_t unsent
    cdef readonly bint closed

    cpdef tuple cut(self, bytes data)
    cpdef catch_up(self)
    cpdef bint congested(self) except -1
    @cython.locals(size=Py_ssize_t, batch=list, heads=list)
    cpdef tell(self, int kind, bytes number, bytes first=*, bytes second=*, bytes third=*)
    cpdef _seal(self)
    cpdef flush(self)
    cpdef list read(self)


cdef class Packets(Messages):
    cdef object _socket
    cdef bint _is_behind

    cdef _falls_behind(self, bint is_behind)

    cpdef flush(self)
    cpdef list read(self)
