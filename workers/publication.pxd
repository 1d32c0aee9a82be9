cimport cython

from workers.calls cimport ClientCall
from workers.router cimport Router


cdef class Publication(ClientCall):
    cdef public Py_ssize_t size
    cdef public int delays
    cdef public bint done

    cpdef begin_as(self, Py_ssize_t size)
    cpdef bint hand_out(self, Router router) except -1
    cpdef delayed_no_more(self)
