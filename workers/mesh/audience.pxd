cimport cython

from skywalker.line cimport Call, Subscriber
from workers.calls.node_call cimport NodeCall
from workers.mesh.messages cimport Messages, wrapped
from workers.calls.publication cimport Publication


cdef int LAGGED
cdef int OFFER
cdef int SUBSCRIBED
cdef bytes NIL
cdef Py_ssize_t BEHIND_BYTES


cdef class Audiences


cdef class Audience(Subscriber):
    cdef public Py_ssize_t asked
    cdef public Py_ssize_t changes
    cdef public bint stands
    cdef Audiences _audiences

    cpdef begin_for(self, Audiences audiences)


cdef class Audiences:
    cdef object _expect
    cdef object _turn
    cdef object _junction
    cdef object _standing
    cdef object _feeds
    cdef object _log
    cdef Messages _messages
    cdef dict _by_topic
    cdef list _delayed
    cdef object _stuck

    @cython.locals(messages=Messages, form=bytes, value=bytes)
    cpdef bint give(self, Audience audience, NodeCall send) except -1
