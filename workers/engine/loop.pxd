from workers.core._core cimport Moment
from workers.stats.counters cimport Counters
from workers.stats.hands cimport Hand


cdef int LATER
cdef int VALUES
cdef int REPLIES
cdef int BATCHES
cdef int DISTANT
cdef int ACKS
cdef double LONG_S


cdef class Turn(Moment):
    cdef readonly object clock
    cdef readonly Counters counters
    cdef public list values
    cdef public list replies
    cdef public list batches
    cdef public list distant
    cdef public Py_ssize_t behind
    cdef readonly Hand hand
    cdef public list acks
    cdef public list later
    cdef public list resting
    cdef public list heavy

    cpdef begin(self, double now)
    cpdef bint has_more(self) except -1
    cpdef object wait(self, bint patient=*)
    cpdef bint is_long(self) except -1
    cpdef go_on(self)
    cpdef attend(self)
    cpdef bint attend_at(self, int place) except -1
    cdef bint _acknowledge(self) except -1
    cpdef end(self)
    cpdef over(self)


cdef class Loop:
    cdef Turn _turn
    cdef readonly object _core

    cpdef turn(self, bint patient=*)
