cimport cython

from skywalker.junction cimport Junction
from workers.calls cimport Carrier, ClientCall
from workers.turn cimport Turn


cdef class Router:
    cdef public object node
    cdef public object limits
    cdef public object loop
    cdef public object log
    cdef readonly Turn turn
    cdef public Junction junction
    cdef public bint draining
    cdef public bint leaving
    cdef public dict connections
    cdef public Py_ssize_t calls_held
    cdef public Py_ssize_t bytes_held
    cdef public Py_ssize_t most_bytes_held
    cdef Py_ssize_t _slot
    cdef object _ring
    cdef Py_ssize_t _max_waiting_bytes
    cdef readonly dict _links
    cdef dict _owners
    cdef readonly dict _orphans

    cpdef issue(self, ClientCall call)
    cpdef bint withdraw(self, ClientCall call) except -1
    cdef Py_ssize_t _owner(self, bytes topic) except -1
    cpdef _wait(self, ClientCall call)
    cdef Carrier _carrier(self, Py_ssize_t owner)
    @cython.locals(carrier=Carrier)
    cdef _forward(self, ClientCall call, Py_ssize_t owner)
    cpdef hold(self, ClientCall call)
    @cython.locals(limit=Py_ssize_t, held=Py_ssize_t)
    cpdef admit(self, Py_ssize_t cost)
    cpdef kept(self, ClientCall call)
    cpdef released(self, ClientCall call)
