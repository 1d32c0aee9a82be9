cimport cython


cdef bytes _CANONICAL_AS_IT_IS
cdef Py_ssize_t MAX_TOPIC

@cython.locals(topic=bytes)
cpdef bytes topic_bytes(bytes data)
cpdef bytes canonical(bytes data)
cdef bytes _canonical(bytes data, Py_ssize_t most)
@cython.locals(head=int, whole=long, at=Py_ssize_t)
cpdef double timeout_seconds(bytes data) except -1
