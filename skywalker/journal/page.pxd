cimport cython

from skywalker.journal.recorder cimport Recorder


cdef class Page(Recorder):
    cdef bytearray _data
    cdef double[::1] _times
    cdef long long[::1] _tokens
    cdef float[::1] _waits
    cdef unsigned int[::1] _numbers

    @cython.locals(at=Py_ssize_t)
    cpdef add(self, double ended, long long token, double wait, unsigned int size, unsigned int connection, unsigned int codes)
