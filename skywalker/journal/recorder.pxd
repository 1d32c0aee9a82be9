cdef class Recorder:
    cdef public Py_ssize_t count

    cpdef begin(self, bytearray data)
    cpdef bytearray data(self)
    cpdef add(self, double ended, long long token, double wait, unsigned int size, unsigned int connection, unsigned int codes)
