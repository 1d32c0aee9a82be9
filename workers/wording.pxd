from workers.node_call cimport NodeCall


cdef class Wording:
    cdef NodeCall _send
    cdef bytes _plain
    cdef bytes _typed

    cpdef begin(self, NodeCall send, bytes plain, bytes typed)
    cpdef bytes plain(self, NodeCall send)
    cpdef bytes typed(self, NodeCall send)
