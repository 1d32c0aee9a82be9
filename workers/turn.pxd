from skywalker.deadlines cimport Deadlines
from workers.tally cimport Tally


cdef class Turn:
    cdef public double now
    cdef readonly Deadlines deadlines
    cdef readonly Tally tally
    cdef public list values
    cdef public list replies
    cdef public list batches
    cdef public list later

    cpdef begin(self, double now)
    cpdef attend(self)
    cpdef end(self)
