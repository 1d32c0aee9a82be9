from skywalker.deadlines cimport Deadlines


cdef class Turn:
    cdef public double now
    cdef readonly Deadlines deadlines
    cdef public list values
    cdef public list replies
    cdef public list batches
    cdef public list full

    cpdef begin(self, double now)
    cpdef relieve(self)
    cpdef end(self)
