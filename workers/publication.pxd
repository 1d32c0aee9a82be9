cimport cython

from skywalker.junction cimport Junction
from workers.calls cimport ClientCall
from workers.messages cimport Messages


cdef int PROMPT
cdef int PUBLISH


cdef class Publication(ClientCall):
    cdef public Py_ssize_t size
    cdef public int delays
    cdef public bint done

    cpdef begin_as(self, Py_ssize_t size)
    cpdef goes_to(self, Messages messages)
    cpdef bint hand_out(self, Junction junction) except -1
    cpdef delayed_no_more(self)
