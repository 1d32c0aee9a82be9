cimport cython


cdef Py_ssize_t PAGE_RECORDS


cdef class Recorder:
    cdef bytearray _page
    cdef double[::1] _times
    cdef long long[::1] _tokens
    cdef float[::1] _waits
    cdef unsigned int[::1] _numbers
    cdef public Py_ssize_t count

    cpdef begin(self, bytearray page)
    cpdef Py_ssize_t room(self)
    cpdef bytearray page(self)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.locals(at=Py_ssize_t)
    cpdef add(self, double ended, long long token, double wait, unsigned int size, unsigned int connection, unsigned int kinds)
