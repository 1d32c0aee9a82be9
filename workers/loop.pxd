cimport cython


cdef class Loop:
    cdef object _epoll
    cdef readonly dict _handlers

    cpdef poll(self, timeout)
    cpdef dispatch(self, list events)
