cimport cython

from workers.calls.call cimport ClientCall


cdef Py_ssize_t JOINED_BYTES
cdef Py_ssize_t WRITE_BYTES


cdef class WriteBuffer:
    cdef object _chunks
    cdef list _loose
    cdef Py_ssize_t _loose_bytes
    cdef Py_ssize_t _begun
    cdef readonly Py_ssize_t size

    cpdef add(self, bytes chunk)
    cpdef add_value(self, ClientCall listener)
    @cython.locals(chunk=bytes, at=Py_ssize_t)
    cpdef add_all(self, list chunks, list values)
    cdef _join(self)
    cpdef begin(self, Py_ssize_t count)
    @cython.locals(chunk=bytes, begun=Py_ssize_t)
    cpdef bint has_begun(self, ClientCall listener) except -1
    @cython.locals(chunk=bytes, listener=ClientCall, item=tuple, begun=Py_ssize_t)
    cpdef list withdraw(self)
    @cython.locals(chunk=bytes, listener=ClientCall, chunks=list, listeners=list, size=Py_ssize_t)
    cpdef tuple batch(self)
    @cython.locals(chunk=bytes, listener=ClientCall, done=list)
    cpdef list written(self, Py_ssize_t sent)
