from workers.calls.call cimport ClientCall


cdef class Waiting:
    cdef readonly Py_ssize_t count
    cdef dict _by_id
    cdef dict _twins

    cpdef add(self, ClientCall call)
    cpdef remove(self, ClientCall call)
    cpdef ClientCall find(self, bytes id)
