cimport cython

cdef int ACK
cdef int PUBLISH
cdef int PUBLISH_TYPED
cdef bytes ACKED

@cython.locals(view="const unsigned char *", items=list, size=Py_ssize_t, start=Py_ssize_t, code=int, topic=Py_ssize_t, form=Py_ssize_t, payload=Py_ssize_t, end=Py_ssize_t, typed=bytes)
cpdef tuple split(bytes data)

@cython.locals(size=Py_ssize_t)
cpdef bytes bus_value(bytes payload)

cpdef bytes payload_of(bytes value)
