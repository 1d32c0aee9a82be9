cimport cython

@cython.locals(view="const unsigned char *", items=list, ack=int, plain=int, with_form=int, size=Py_ssize_t, start=Py_ssize_t, code=int, topic=Py_ssize_t, form=Py_ssize_t, payload=Py_ssize_t, end=Py_ssize_t, typed=bytes)
cpdef tuple split(bytes data)

cpdef bytes publish(bytes topic, bytes payload)

cdef bytes _about(int code, bytes topic)

cdef bytes _size(bytes payload)
