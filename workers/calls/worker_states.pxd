cdef class Standing:
    cdef readonly object state
    cdef readonly bint opening
    cdef readonly bint draining
    cdef readonly bint node_drains
    cdef readonly bint replaced
    cdef readonly bint leaving
