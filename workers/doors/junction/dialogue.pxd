cimport cython

from skywalker.wire.frames cimport split
from workers.doors.junction.methods cimport recv, send
from workers.doors.junction.session cimport Session


cdef Py_ssize_t FRAMES_PER_TURN
cdef Py_ssize_t MAX_TOO_FAST
cdef Py_ssize_t MAX_UNREADABLE
cdef bytes RECV
cdef bytes SEND


cdef class Dialogue(Session):
    @cython.locals(frames=list, fresh=bint)
    cpdef received(self, bytes data)
    @cython.locals(left=Py_ssize_t, name=bytes)
    cpdef obey(self, list todo)
