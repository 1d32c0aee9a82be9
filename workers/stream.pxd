from workers.messages cimport Messages


cdef class Stream(Messages):
    cdef object _socket
    cdef bytes _tail

    cpdef flush(self)
    cpdef list read(self)
