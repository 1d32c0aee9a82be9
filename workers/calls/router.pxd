cimport cython

from skywalker.junction cimport Junction
from workers.calls.call cimport Carrier, ClientCall, Routing
from workers.calls.owner cimport Owner
from workers.calls.publication cimport Publication
from workers.engine.loop cimport Turn


cdef class Router(Routing):
    cdef Turn _turn
    cdef Junction _junction
    cdef object _ring
    cdef Owner _only
    cdef dict _owned

    @cython.locals(owner=Owner)
    cpdef Owner owner(self, bytes topic)
    @cython.locals(carrier=Carrier)
    cpdef issue(self, ClientCall call)
    @cython.locals(carrier=Carrier, publication=Publication)
    cpdef bint publish(self, ClientCall call) except -1
    @cython.locals(carrier=Carrier)
    cpdef resume(self, ClientCall call)
    @cython.locals(owner=Owner)
    cpdef reroute(self, ClientCall call)
    cpdef bint withdraw(self, ClientCall call) except -1
    cpdef _wait(self, ClientCall call)
    cdef _forward(self, ClientCall call, Carrier carrier)
