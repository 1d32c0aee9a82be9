cimport cython

from workers.stats cimport _cells


cdef Py_ssize_t COUNT
cdef Py_ssize_t HEAD
cdef Py_ssize_t OWNER
cdef Py_ssize_t LISTENER
cdef Py_ssize_t HOME
cdef Py_ssize_t SEND
cdef Py_ssize_t TAKEN
cdef Py_ssize_t ENTRY
cdef Py_ssize_t LONG


@cython.locals(at=Py_ssize_t, cell="long long")
cpdef long long cell_of(bytes number) except -1


@cython.final
cdef class Hand:
    cdef readonly object memory
    cdef long long* cells
    cdef readonly bytes life
    cdef readonly Py_ssize_t count
    cdef object _hands

    @cython.locals(count=Py_ssize_t, at=Py_ssize_t)
    cpdef add(self, bytes owner, bytes listener, bytes home, bytes send)
    cpdef taken(self, Py_ssize_t since)
    cpdef clear(self)
