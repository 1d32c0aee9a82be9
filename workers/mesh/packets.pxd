from workers.mesh.messages cimport Messages


cdef class Packets(Messages):
    cdef object _socket

    cpdef flush(self)
    cpdef list read(self)
