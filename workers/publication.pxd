cimport cython

from skywalker.junction cimport Junction
from workers.calls cimport ClientCall


cdef int PROMPT
cdef int PUBLISH


cdef class Publication(ClientCall):
    cdef public Py_ssize_t size
    cdef public int delays
    cdef public bint done
    cdef public object source
    cdef public bint spreads

    cpdef begin_as(self, Py_ssize_t size, source)
    cpdef bint hand_out(self, Junction junction) except -1
    cpdef delayed_no_more(self)
