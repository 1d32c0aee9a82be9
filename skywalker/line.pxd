cimport cython

cdef class Line


cdef class Call:
    cdef public bytes topic
    cdef public double since
    cdef public bytes value
    cdef public bytes group
    cdef public Py_ssize_t arrival
    cdef public int offers
    cdef public bint answered
    cdef public Line line
    cdef public Call previous
    cdef public Call next

    cpdef begin(self, bytes topic, double since, bytes value, bytes group)
    cpdef bint precedes(self, Call other)
    cpdef bint give(self, Call send) except -1
    cpdef met(self)
    cpdef missed(self)


cdef class Line:
    cdef public Call first
    cdef public Call returned
    cdef public Py_ssize_t size

    @cython.locals(first=Call, before=Call, after=Call)
    cpdef add(self, Call call)
    @cython.locals(call=Call)
    cpdef list calls(self)
    @cython.locals(after=Call)
    cdef Call _successor(self, Call call, Call first)
    @cython.locals(before=Call, after=Call)
    cpdef remove(self, Call call)


cdef class Groups:
    cdef public dict lines
    cdef public Py_ssize_t size


cdef class Subscriber(Call):
    cdef public Py_ssize_t audience


cdef class Subscribers:
    cdef public dict members
    cdef public Py_ssize_t audience
