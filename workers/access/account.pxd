cdef Py_ssize_t MAX_KNOWN
cdef Py_ssize_t OVERHEAD


cdef class Account:
    cdef readonly object principal
    cdef readonly object bucket
    cdef public Py_ssize_t connections
    cdef public Py_ssize_t in_flight
    cdef Py_ssize_t _most
    cdef dict _allowed
    cdef Py_ssize_t _known

    cpdef admit(self)
    cpdef check(self, str action, bytes topic)
