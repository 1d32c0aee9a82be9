from skywalker.deadlines cimport Deadlines


cdef class Turn:
    cdef public double now
    cdef readonly Deadlines deadlines
    cdef public list values
    cdef public list replies
    cdef public list batches

    cpdef begin(self, double now)
    cpdef end(self)
