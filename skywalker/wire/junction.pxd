cimport cython

cdef list _LENGTHS
cdef Py_ssize_t MAX_FRAME

@cython.locals(size=Py_ssize_t, length=bytes)
cpdef bytes reply(bytes method, bytes id, bytes result)
