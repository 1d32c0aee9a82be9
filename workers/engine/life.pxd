cimport cython


cdef int NOWHERE


cdef class Life:
    cdef readonly object name
    cdef readonly object states
    cdef readonly object events
    cdef bytes _next
    cdef Py_ssize_t _width

    @cython.locals(after=int)
    cpdef int after(self, int state, int event) except -1
