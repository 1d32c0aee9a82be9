cimport cython

from skywalker.journal.recorder cimport Recorder
from workers.engine.loop cimport Turn


cdef unsigned long long DICE
cdef Py_ssize_t PAGE_RECORDS


cdef class Journal:
    cdef object _alarm
    cdef unsigned int _connections
    cdef unsigned long long _dice
    cdef unsigned long long _every
    cdef unsigned long long _gap
    cdef set _named
    cdef Py_ssize_t _named_bytes
    cdef Recorder _recorder
    cdef dict _tokens
    cdef Turn _turn
    cdef object _writer

    cdef _set_gap(self)
    @cython.locals(now=double, recorder=Recorder)
    cpdef add(self, bytes topic, double since, Py_ssize_t size, unsigned int connection, unsigned int codes)
    @cython.locals(recorder=Recorder)
    cdef _hand_over(self)
