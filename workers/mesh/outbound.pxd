cimport cython

from workers.calls.call cimport Carrier, ClientCall, NodeCall
from workers.mesh.messages cimport Messages, unwrapped, wrapped
from workers.calls.publication cimport Publication
from workers.engine.loop cimport Turn
from workers.stats.hands cimport Hand
from skywalker.junction cimport Junction


cdef int ALSO
cdef int BUSY
cdef int CENSUS
cdef int COUNTED
cdef int DOUBT
cdef int GIVE
cdef int LAGGED
cdef int LISTEN
cdef int LOST
cdef int MET
cdef int OF
cdef int OFFER
cdef int OUT
cdef int PARTING
cdef int PUBLISH
cdef int RECALL
cdef int RETIRED
cdef int SEND
cdef int SETTLED
cdef int SUBSCRIBE
cdef int SUBSCRIBED
cdef int TAKEN
cdef int TOOK
cdef int UNACKED
cdef int WITHDRAW
cdef int WITHDRAWN
cdef list _BYTES
cdef bytes FALSE
cdef bytes NIL
cdef bytes NOBODY
cdef bytes OURS
cdef bytes TRUE


cdef class Outbound


cdef class Offer(NodeCall):
    cdef public Outbound outbound
    cdef public bytes number
    cdef public bytes home
    cdef public bytes sent_as

    cpdef begin_for(self, Outbound outbound, bytes number, bytes home, bytes sent_as)
    cpdef became(self, int outcome)


cdef class Passing(Offer):
    cdef public Publication publication

    cpdef begin_as(self, Publication publication)


cdef class Numbers:
    cdef long long _next
    cdef bytes _head

    @cython.locals(low=Py_ssize_t)
    cpdef bytes draw(self)


cdef class Outbound(Carrier):
    cdef Messages _messages
    cdef Turn _turn
    cdef Junction _junction
    cdef readonly dict _calls
    cdef readonly dict _censuses
    cdef readonly dict _interests
    cdef readonly dict _passing
    cdef object _kin
    cdef bytes _value
    cdef bytes _home
    cdef bytes _sent_as
    cdef bytes _next_home
    cdef bytes _next_sent_as
    cdef bint _is_retired
    cdef object _heir
    cdef Numbers _numbers
    cdef bytes _since_bytes
    cdef double _since
    cdef readonly bint parts

    cpdef bint congested(self) except -1
    @cython.locals(number=bytes, group=bytes, since=double)
    cpdef forward(self, ClientCall call)
    cpdef decided(self, bytes number, int outcome)
    @cython.locals(call=ClientCall)
    cpdef hear(self, int kind, list message)
    @cython.locals(call=ClientCall)
    cdef ClientCall _no_longer_waiting(self, bytes number, bint is_met)
    @cython.locals(call=ClientCall, offer=Offer)
    cdef _give(self, bytes number)
    @cython.locals(passing=Passing)
    cdef _pass_on(self, bytes topic, bytes number, bytes value, bytes form)
    cpdef passed(self, bytes number, int outcome)
    @cython.locals(call=ClientCall)
    cpdef taken(self, bytes number)
    cpdef tell_home(self, Offer offer, int kind)
    cpdef write_down(self, Offer offer, Hand hand)
    @cython.locals(call=ClientCall, offered=NodeCall)
    cdef _recall(self, bytes number)
