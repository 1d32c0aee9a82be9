cimport cython

from workers.forwarded cimport Forwarded
from workers.held cimport Held
from workers.packets cimport Packets


cdef int CENSUS


cdef class Link:
    cdef readonly Py_ssize_t slot
    cdef readonly Forwarded forwarded
    cdef readonly Held held
    cdef object _router
    cdef Packets _packets
    cdef bint _waits_to_write

    cpdef flush(self)
    cpdef ready(self, int events)
    @cython.locals(messages=list, message=list, kind=int)
    cdef bint _read(self) except -1
