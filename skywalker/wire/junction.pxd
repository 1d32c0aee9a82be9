cimport cython

cdef dict _HEADS
cdef Py_ssize_t MAX_FRAME

@cython.locals(head=int)
cpdef bint is_reserved(bytes value) except -1
@cython.locals(size=Py_ssize_t, heads=list)
cpdef bytes reply(bytes method, bytes id, bytes result)
