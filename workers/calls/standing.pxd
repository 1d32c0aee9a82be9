cdef class Standing:
    cdef public bint opening
    cdef public bint draining
    cdef public bint node_drains
    cdef public bint replaced
    cdef public bint leaving
