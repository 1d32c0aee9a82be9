cimport cython


cdef bytes _CANONICAL_AS_IT_IS
cdef bytes _TAKEN
cdef bytes _WIDTHS
cdef list _BYTES
cdef Py_ssize_t _BINARY
cdef Py_ssize_t _EXTENSION
cdef Py_ssize_t _UNSIGNED
cdef Py_ssize_t _SIGNED
cdef Py_ssize_t _STRING
cdef Py_ssize_t _ARRAY
cdef Py_ssize_t _MAP
cdef Py_ssize_t MAX_TOPIC

@cython.locals(topic=bytes)
cpdef bytes topic_bytes(bytes data)
cpdef bytes canonical(bytes data)
@cython.locals(view="const unsigned char *", size=Py_ssize_t, out=list, pos=Py_ssize_t, begin=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, values=Py_ssize_t, head=Py_ssize_t, number="unsigned long long", header=bytes)
cdef bytes _canonical(bytes data, Py_ssize_t most)
@cython.locals(first=Py_ssize_t, short=Py_ssize_t, widths=Py_ssize_t)
cdef bytes _header(Py_ssize_t head, Py_ssize_t width, unsigned long long number)
@cython.locals(first=Py_ssize_t, widths=Py_ssize_t)
cdef bytes _negative(Py_ssize_t width, unsigned long long number)
