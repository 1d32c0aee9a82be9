cimport cython

from workers.stats.counters cimport Counters


cdef Py_ssize_t WAITING


cdef class Ledger:
    cdef readonly Py_ssize_t calls_held
    cdef readonly Py_ssize_t bytes_held
    cdef public Py_ssize_t most_bytes_held
    cdef Py_ssize_t _max_waiting_bytes
    cdef Counters _counters

    @cython.locals(limit=Py_ssize_t, held=Py_ssize_t)
    cpdef admit(self, Py_ssize_t cost)
    cpdef bint is_full(self) except -1
    cpdef add(self, Py_ssize_t size)
    cpdef remove(self, Py_ssize_t size)
    cpdef add_call(self, Py_ssize_t kind, Py_ssize_t cost)
    cpdef remove_call(self, Py_ssize_t kind, Py_ssize_t cost)
