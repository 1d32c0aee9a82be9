cimport cython

from skywalker.junction cimport Junction
from skywalker.line cimport Call


cdef Py_ssize_t WAITING_CALL_BYTES


cdef class NodeCall(Call):
    cdef public bint abandoned
    cdef public list given_to
    cdef public NodeCall given
    cdef public bytes form
    cdef public Py_ssize_t too_long

    @cython.locals(value=bytes)
    cpdef Py_ssize_t cost(self)
    cpdef bint meet(self, Junction junction) except -1
    cpdef hold(self)
    cpdef NodeCall sender(self)
    cpdef NodeCall decided(self)
    cpdef catch_up(self)
    cpdef remember(self, NodeCall listener)
    cpdef given_here(self, NodeCall listener)
    cpdef Py_ssize_t place_for(self, object caller) except -1
    cpdef bint recall(self, bint told) except -1
    @cython.locals(listener=NodeCall)
    cpdef ask_back(self, bint told)
    cpdef abandon(self)
