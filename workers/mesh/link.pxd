cimport cython

from workers.mesh.outbound cimport Outbound
from workers.mesh.inbound cimport Inbound
from workers.mesh.messages cimport Messages
from workers.engine.life cimport Life
from workers.engine.loop cimport Turn


cdef int CLOSE
cdef int CLOSED
cdef int GO_ON
cdef int OPEN
cdef int PAUSE
cdef int PAUSED
cdef Life LINK
cdef int CENSUS
cdef int INQUIRE
cdef int LONG
cdef int UNACKED
cdef int SETTLED
cdef int SUBSCRIBE
cdef int VISIT


cdef class Link:
    cdef readonly Outbound outbound
    cdef readonly Inbound inbound
    cdef object _loop
    cdef Turn _turn
    cdef object _barrier
    cdef object _ended
    cdef Messages _messages
    cdef bint _waits_to_write
    cdef int _state
    cdef bint _is_hearing
    cdef double _caught_up_at
    cdef object _settled
    cdef object _visit
    cdef object _kin
    cdef list _unheard

    cpdef flush(self)
    cpdef ready(self, int events)
    cpdef attend(self)
    cpdef catch_up(self)
    @cython.locals(messages=list)
    cdef bint _read(self) except -1
    @cython.locals(message=list, kind=int, turn=Turn)
    cdef _hear(self, list messages)
