from skywalker.junction cimport Junction
from workers.calls.call cimport ClientCall


cdef bytes NIL
cdef int PROMPT
cdef int PUBLISH


cdef class Publication(ClientCall):
    cdef public Py_ssize_t size
    cdef public int delays
    cdef public bint done
    cdef public Py_ssize_t place

    cpdef begin_as(self, Py_ssize_t size)
    cpdef bytes goes_to(self, object messages)
    cpdef Py_ssize_t place_for(self, object caller) except -1
    cpdef bint hand_out(self, Junction junction) except -1
    cpdef delayed_no_more(self)
