cimport cython

from skywalker.junction cimport Junction
from workers.calls.call cimport NodeCall
from workers.mesh.messages cimport Messages, unwrapped
from workers.calls.publication cimport Publication
from workers.calls.ledger cimport Ledger
from workers.calls.worker_states cimport Standing
from workers.engine.life cimport Life
from workers.engine.loop cimport Turn
from workers.stats.hands cimport Hand


cdef int ASKED_BACK
cdef int GAVE
cdef int GIVEN
cdef int LET_GO
cdef int PARKED
cdef int NO_ROOM
cdef int RESUMED
cdef int WAITING
cdef int WITHDRAWING
cdef Life INBOUND_CALL
cdef int ALSO
cdef int BUSY
cdef int CENSUS
cdef int COUNTED
cdef int DOUBT
cdef int GIVE
cdef int LISTEN
cdef int LONG
cdef int LOST
cdef int MET
cdef int OF
cdef int OUT
cdef int PUBLISH
cdef int SUBSCRIBE
cdef int RECALL
cdef int RETIRED
cdef int SEND
cdef int TOOK
cdef int UNACKED
cdef int WITHDRAW
cdef int WITHDRAWN
cdef bytes NIL
cdef bytes TRUE


cdef class Inbound


cdef class InboundCall(NodeCall):
    cdef public Inbound inbound
    cdef public bytes number
    cdef public int state
    cdef public bint is_told
    cdef public bint unacked

    cpdef begin_for(self, Inbound inbound, bytes number)
    cpdef become(self, int event)
    @cython.locals(messages=Messages)
    cpdef write_down(self, Hand hand)
    @cython.locals(ours=Messages)
    cpdef announce(self, Messages messages)
    @cython.locals(inbound=Inbound)
    cpdef missed(self)


cdef class InboundPublication(Publication):
    cdef readonly Messages messages
    cdef readonly Turn turn
    cdef bint _spreads

    cpdef begin_from(self, Messages messages, Turn turn)
    cpdef bytes goes_to(self, object messages)
    cpdef acknowledge(self)


cdef class Inbound:
    cdef readonly Messages messages
    cdef readonly Junction junction
    cdef readonly Standing standing
    cdef Turn _turn
    cdef Ledger _ledger
    cdef readonly dict _calls
    cdef readonly dict _parked
    cdef NodeCall _giving
    cdef bytes _since_bytes
    cdef double _since
    cdef readonly object remote_interests
    cdef Py_ssize_t _expected

    @cython.locals(group=bytes)
    cpdef hear(self, int kind, list message)
    @cython.locals(call=InboundCall, cost=Py_ssize_t, came=double)
    cdef _issue(self, bytes number, bytes since, bytes topic, bytes value, bytes group)
    cdef _meet(self, InboundCall call)
    @cython.locals(publication=InboundPublication)
    cdef _publish(self, bytes number, bytes topic, bytes value, bytes form)
    @cython.locals(delivery=InboundCall)
    cpdef bytes expect(self, bytes topic, NodeCall send)
    cpdef refuse(self, InboundCall send)
    cpdef let_go(self, InboundCall call)
    @cython.locals(messages=Messages)
    cpdef bint give(self, InboundCall listener, NodeCall send) except -1
    cdef _give(self, InboundCall listener, NodeCall send)
    @cython.locals(send=NodeCall, listener=InboundCall)
    cdef _decided(self, bytes number, bint took, Py_ssize_t limit)
    @cython.locals(call=InboundCall)
    cdef _withdraw(self, bytes number, bint final)
    @cython.locals(listener=InboundCall)
    cpdef flushed(self)
    @cython.locals(call=InboundCall)
    cpdef close(self)
