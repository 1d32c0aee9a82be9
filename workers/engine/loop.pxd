cimport cython

from workers.engine.turn cimport Turn


cdef Py_ssize_t TURN


cdef class Loop:
    cdef object _epoll
    cdef readonly dict _handlers

    @cython.locals(has_more=bint, events=list, began=double)
    cpdef turn(self, Turn turn, bint patient=*)
