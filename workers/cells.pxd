cimport cython

from workers.tally cimport Tally


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


cdef class Cells(Tally):
    cdef long long[::1] _cells

    cpdef add(self, Py_ssize_t at, long long by)
    cpdef set(self, Py_ssize_t at, long long value)
    @cython.locals(us="long long", rest="long long", bucket=Py_ssize_t)
    cpdef took(self, Py_ssize_t at, double seconds)
    cpdef answered(self, bytes topic, unsigned int method, unsigned int outcome, unsigned int route, double seconds)
