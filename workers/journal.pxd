cimport cython

from skywalker.journal.recorder cimport Recorder
from workers.turn cimport Turn


cdef Py_ssize_t PAGE_RECORDS


cdef class Journal:
    cdef object _alarm
    cdef unsigned int _connections
    cdef Py_ssize_t _every
    cdef Py_ssize_t _skipped
    cdef set _named
    cdef Py_ssize_t _named_bytes
    cdef double _now
    cdef Recorder _recorder
    cdef dict _tokens
    cdef Turn _turn
    cdef object _writer

    cpdef look_at_the_clock(self)
    @cython.locals(now=double, recorder=Recorder)
    cpdef add(self, bytes topic, double since, Py_ssize_t size, unsigned int connection, unsigned int codes)
    @cython.locals(recorder=Recorder)
    cdef _hand_over(self)
