cimport cython

from skywalker.junction cimport Call, Junction
from skywalker.wire.junction cimport reply
from workers.calls.journal cimport Journal
from workers.calls.worker_states cimport Standing
from workers.stats.counters cimport Counters
from workers.engine.life cimport Life
from workers.engine.loop cimport Turn
from workers.stats.hands cimport Hand


cdef Py_ssize_t WAITING_CALL_BYTES
cdef int ARRIVED
cdef int ENDING
cdef int KEPT
cdef int SENT_ON
cdef int RETURNED
cdef int NO_ROOM
cdef int GIVEN_UP
cdef int GAVE
cdef int CLOSED
cdef Life LIFE
cdef int BUSY
cdef int CANCELLED
cdef int DRAINING
cdef int ERROR
cdef int HERE
cdef int ROUTED_HERE
cdef int MET
cdef int PROMPT
cdef int TIMED_OUT
cdef int UNKNOWN_OUTCOME
cdef int RECORDED_SEND
cdef Py_ssize_t REPLY_BYTES
cdef bytes RECV
cdef bytes SEND
cdef bytes TAKE
cdef bytes TRUE


cdef class ClientCall


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
    cpdef write_down(self, Hand hand)
    cpdef doubt(self, str why)
    cpdef Py_ssize_t place_for(self, object caller) except -1
    cpdef bint recall(self, bint told) except -1
    @cython.locals(listener=NodeCall)
    cpdef bint ask_back(self, bint told) except -1
    cpdef abandon(self)


cdef class Routing:
    cpdef issue(self, ClientCall call)
    cpdef bint publish(self, ClientCall call) except -1
    cpdef resume(self, ClientCall call)
    cpdef bint withdraw(self, ClientCall call) except -1


cdef class Caller:
    cdef readonly Junction junction
    cdef readonly Routing routing
    cdef readonly Standing standing
    cdef readonly Counters counters
    cdef readonly Turn turn
    cdef public bint gone
    cdef public bint knows_errors
    cdef public Py_ssize_t max_reply
    cdef public Journal journal
    cdef public unsigned int connection
    cdef public unsigned int door

    cpdef keep(self, ClientCall call)
    cpdef release(self, ClientCall call)
    cpdef postpone(self, ClientCall call, double seconds)
    cpdef admit(self, Py_ssize_t cost)
    cpdef bint congested(self) except -1
    cpdef park(self, ClientCall listener)
    cpdef bint unpark(self, ClientCall listener) except -1
    cpdef push_value(self, ClientCall listener)
    cpdef bint take_back(self, ClientCall listener, bint told) except -1
    cpdef published(self, ClientCall call)
    cpdef reply(self, bytes method, bytes id, bytes result)
    cpdef reply_error(self, bytes method, bytes id, error, bytes timed_out=*)


cdef class Carrier:
    cdef public object place
    cdef public double grace_s
    cdef public unsigned int route

    cpdef bint congested(self) except -1
    cpdef forward(self, ClientCall call)
    cpdef ask_back(self, ClientCall call)
    cpdef bint withdraw(self, ClientCall call) except -1
    cpdef catch_up(self)


cdef class ClientCall(NodeCall):
    cdef public Caller caller
    cdef public bytes id
    cdef public bytes timed_out
    cdef public double deadline
    cdef public unsigned long long alarm
    cdef public int state
    cdef public Carrier carrier
    cdef public bint waited
    cdef public bytes number
    cdef public unsigned int route
    cdef public bytes cancelled_by
    cdef public str doubtful
    cdef public bint is_out
    cdef public bytes chunk
    cdef public Py_ssize_t given_bytes

    cpdef Py_ssize_t cost(self)
    @cython.locals(before=int, after=int)
    cpdef become(self, int event)
    cpdef bint is_kept(self) except -1
    cpdef begin_waiting(self)
    cpdef sent_on(self, Carrier carrier, bytes number)
    cpdef Py_ssize_t kind(self) except -1
    cpdef listen_again(self)
    cpdef begin_for(self, Caller caller, bytes id, bytes timed_out, double deadline)
    @cython.locals(caller=Caller)
    cpdef bint give(self, Call send) except -1
    cpdef close(self, unsigned int outcome)
    cpdef note(self, unsigned int outcome)
    @cython.locals(caller=Caller, journal=Journal, codes="unsigned int")
    cdef record(self, unsigned int method, unsigned int outcome, Py_ssize_t size)
    cpdef delivered(self)
    cpdef met(self)
    cpdef expired(self)
    cdef _hear_last_words(self)
    @cython.locals(carrier=Carrier, turn=Turn)
    cpdef give_up(self, bytes cancelled_by=*)
    cpdef acknowledge(self)
    cpdef bint withdraw(self) except -1
    cpdef leave(self, error=*)
    cpdef returned(self)
    cpdef end_unknown(self, why)
    cpdef over(self)
    cpdef fail(self, error)


@cython.locals(call=ClientCall)
cpdef ClientCall client_call(
    Caller caller, bytes id, bytes timed_out, bytes topic, double since, double deadline, bytes value, bytes group
)
