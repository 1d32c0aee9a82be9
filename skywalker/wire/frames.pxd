cimport cython

cdef bytes _SIZES
cdef bytes _WIDTHS
cdef Py_ssize_t MAX_ARGUMENTS
cdef Py_ssize_t MAX_DEPTH

@cython.locals(view="const unsigned char *", size=Py_ssize_t, start=Py_ssize_t, body=Py_ssize_t, end=Py_ssize_t, length=Py_ssize_t, frames=list)
cpdef tuple split(bytes data, Py_ssize_t width=*)

@cython.locals(elements=list, count=Py_ssize_t, at=Py_ssize_t, begin=Py_ssize_t, size=Py_ssize_t)
cdef _elements(const unsigned char *view, Py_ssize_t pos, Py_ssize_t end)

cdef tuple _array_header(const unsigned char *view, Py_ssize_t pos, Py_ssize_t end)

@cython.locals(outer=list, head=int, size=Py_ssize_t, width=Py_ssize_t, length=Py_ssize_t, at=Py_ssize_t)
cpdef Py_ssize_t skip(const unsigned char *view, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t count=*) except -1
