cimport cython

from workers.stats cimport _cells


cdef Py_ssize_t CALLS
cdef Py_ssize_t HAND_OFF
cdef Py_ssize_t ROUTED
cdef Py_ssize_t WAIT
cdef Py_ssize_t LAST_BUCKET
cdef Py_ssize_t OUTCOMES
cdef Py_ssize_t WIDTH
cdef unsigned int MET
cdef unsigned int PROMPT
cdef unsigned int PUBLISH
cdef bytes BITS


@cython.final
cdef class Counters:
    cdef readonly object memory
    cdef long long* cells
    cdef readonly object recent
    cdef object _clock
    cdef unsigned long long _gap

    @cython.locals(us="long long", rest="long long", bucket=Py_ssize_t)
    cpdef void took(self, Py_ssize_t at, double seconds) noexcept
    cpdef void answered(
        self, bytes topic, unsigned int method, unsigned int outcome, unsigned int route, double seconds
    ) noexcept
