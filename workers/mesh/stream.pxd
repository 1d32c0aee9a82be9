from workers.mesh.messages cimport Messages


cdef class Stream(Messages):
    cdef object _socket
    cdef bytes _heard
    cdef bytes _tail
    cdef Py_ssize_t _most_unsent

    cpdef flush(self)
    cpdef list read(self)
