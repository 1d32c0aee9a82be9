cimport cython

from skywalker.junction cimport Junction
from workers.calls cimport Carrier, ClientCall
from workers.journal cimport Journal
from workers.owner cimport Owner
from workers.publication cimport Publication
from workers.tally cimport Tally
from workers.turn cimport Turn
from workers.wording cimport Wording


cdef Py_ssize_t WAITING


cdef Py_ssize_t _kind(ClientCall call) except -1


cdef class Router:
    cdef public object node
    cdef public object limits
    cdef public object loop
    cdef public object log
    cdef readonly object admission
    cdef readonly object credentials
    cdef readonly Journal journal
    cdef readonly Turn turn
    cdef readonly Tally tally
    cdef public Junction junction
    cdef readonly object peers
    cdef public bint draining
    cdef public bint node_drains
    cdef public bint replaced
    cdef public bint leaving
    cdef public dict connections
    cdef readonly dict choked
    cdef public Py_ssize_t calls_held
    cdef public Py_ssize_t bytes_held
    cdef public Py_ssize_t most_bytes_held
    cdef Py_ssize_t _max_waiting_bytes
    cdef object _ring
    cdef Owner _only
    cdef dict _owned
    cdef public object opening
    cdef readonly list early
    cdef readonly object siblings
    cdef readonly dict orphans
    cdef readonly object move
    cdef readonly object feeds
    cdef readonly Wording wording
    cdef public Py_ssize_t subscribers_cut_off

    @cython.locals(carrier=Carrier)
    cpdef bint publish(self, Publication publication) except -1
    @cython.locals(carrier=Carrier)
    cpdef issue(self, ClientCall call)
    @cython.locals(carrier=Carrier)
    cpdef resume(self, ClientCall call)
    cpdef bint withdraw(self, ClientCall call) except -1
    @cython.locals(owner=Owner)
    cpdef Owner owner(self, bytes topic)
    cpdef _wait(self, ClientCall call)
    cdef _forward(self, ClientCall call, Carrier carrier)
    @cython.locals(owner=Owner)
    cpdef reroute(self, ClientCall call)
    cpdef hold(self, ClientCall call)
    @cython.locals(limit=Py_ssize_t, held=Py_ssize_t)
    cpdef admit(self, Py_ssize_t cost)
    cpdef kept(self, ClientCall call)
    cpdef released(self, ClientCall call)
