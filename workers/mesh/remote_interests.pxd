cimport cython

from skywalker.junction cimport Call, Subscriber
from workers.calls.call cimport NodeCall
from workers.mesh.messages cimport Messages, wrapped
from workers.calls.publication cimport Publication


cdef int LAGGED
cdef int OFFER
cdef int SUBSCRIBED
cdef bytes NIL
cdef Py_ssize_t BEHIND_BYTES


cdef class RemoteInterests


cdef class RemoteInterest(Subscriber):
    cdef public Py_ssize_t asked
    cdef public Py_ssize_t changes
    cdef public bint stands
    cdef RemoteInterests _all

    cpdef begin_for(self, RemoteInterests remote_interests)


cdef class RemoteInterests:
    cdef object _expect
    cdef object _turn
    cdef object _junction
    cdef object _standing
    cdef object _interests
    cdef object _log
    cdef Messages _messages
    cdef dict _by_topic
    cdef readonly list delayed
    cdef object _stuck

    @cython.locals(messages=Messages, form=bytes, value=bytes)
    cpdef bint give(self, RemoteInterest interest, NodeCall send) except -1
