cimport cython

from skywalker.deadlines cimport Deadlines
from workers.stats.counters cimport Counters
from workers.stats.hands cimport Hand


cdef Py_ssize_t TURN
cdef double LONG_S


cdef class Turn:
    cdef public double now
    cdef double _began
    cdef readonly object clock
    cdef readonly Deadlines deadlines
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
    cpdef end(self)


cdef class Loop:
    cdef object _poller
    cdef readonly dict _handlers

    @cython.locals(has_more=bint, events=list, began=double)
    cpdef turn(self, Turn turn, bint patient=*)
