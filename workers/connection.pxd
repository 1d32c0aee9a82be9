cimport cython

from workers.calls cimport Caller, ClientCall
from workers.router cimport Router
from workers.turn cimport Turn


cdef class Connection(Caller):
    cdef Py_ssize_t _max_out_bytes
    cdef readonly Turn turn
    cdef public str peer
    cdef public bint closed
    cdef object _socket
    cdef object _recv
    cdef object _write
    cdef list _out
    cdef Py_ssize_t _out_bytes
    cdef list _values
    cdef object _backlog
    cdef bint _begun
    cdef dict _parked
    cdef object _alarm

    cpdef ready(self, int events)
    cdef _read(self)
    cdef _send(self, bytes data)
    cdef _roomy(self)
    cpdef received(self, bytes data)
    @cython.locals(router=Router)
    cpdef delivered(self, ClientCall listener)
    cpdef push(self, bytes chunk)
    @cython.locals(out=list, values=list, listener=ClientCall)
    cpdef flush(self)
