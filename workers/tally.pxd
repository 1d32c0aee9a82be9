cdef class Tally:
    cpdef add(self, Py_ssize_t at, long long by)
    cpdef set(self, Py_ssize_t at, long long value)
    cpdef took(self, Py_ssize_t at, double seconds)
    cpdef answered(self, bytes topic, unsigned int method, unsigned int outcome, unsigned int route, double seconds)
