cimport cython

@cython.locals(head=int)
cpdef bint is_reserved(bytes value) except -1
