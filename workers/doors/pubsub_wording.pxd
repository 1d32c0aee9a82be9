from skywalker.wire.pubsub cimport payload_of, publish
from workers.calls.call cimport NodeCall


cdef bytes UNTYPED
cdef bytes _value(NodeCall send)


cdef class Wording:
    cdef NodeCall _send
    cdef bytes _plain
    cdef bytes _typed

    cpdef begin(self, NodeCall send, bytes plain, bytes typed)
    cpdef bytes plain(self, NodeCall send, bytes topic)
    cpdef bytes typed(self, NodeCall send, bytes topic)
