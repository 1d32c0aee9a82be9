cimport cython

from workers.turn cimport Turn


cdef class Loop:
    cdef object _epoll
    cdef readonly dict _handlers

    @cython.locals(events=list)
    cpdef turn(self, Turn turn, bint patient=*)
