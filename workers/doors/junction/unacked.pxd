from workers.calls.call cimport ClientCall


cdef class Unacked:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size
    cdef dict _by_id

    cpdef add(self, ClientCall listener)
    cpdef bint has(self, ClientCall listener) except -1
    cpdef ClientCall pop(self, bytes id)
    cpdef list clear(self)
