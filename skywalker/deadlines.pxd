cimport cython


cdef double BUCKETS_PER_SECOND


cdef class Deadlines:
    cdef readonly dict _buckets
    cdef readonly list _times

    @cython.locals(time=long, bucket=dict)
    cpdef add(self, item, double at)
    @cython.locals(time=long, bucket=dict)
    cpdef discard(self, item, double at)
