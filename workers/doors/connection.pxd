cimport cython

from workers.doors.outlet cimport Outlet


cdef Py_ssize_t RECEIVED
cdef double SHARE_S
cdef Py_ssize_t DEAR_BYTES
cdef Py_ssize_t READ_BYTES


cdef class Connection(Outlet):
    cdef object _recv
    cdef bytes _tail
    cdef list _todo
    cdef bint _is_dear
    cdef bint _is_put_off
    cdef bint _is_resting
    cdef object _unfinished
    cdef object _ending
    cdef object _bucket
    cdef public double heard_at
    cdef public object stranger
    cdef public bint paced
    cdef public bint proved

    cpdef ready(self, int events)
    @cython.locals(data=bytes)
    cdef _read(self)
    cdef _see_end(self)
    cpdef received(self, bytes data)
    cpdef obey(self, list todo)
    @cython.locals(was_dear=bint)
    cdef take(self, list todo, Py_ssize_t share)
    cdef _take_early(self, list todo)
    cpdef bint may_be_early(self, object item) except -1
    @cython.locals(now=double)
    cpdef bint has_had_its_share(self) except -1
    cpdef put_off(self, list todo)
    cpdef rest(self, list todo, double seconds=*)
    cpdef rested(self)
    cpdef bint may_go_on(self) except -1
    cpdef attend(self)
    cdef _roomy(self)
