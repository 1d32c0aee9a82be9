cimport cython

from skywalker.wire.junction cimport is_reserved
from skywalker.wire.values cimport timeout_seconds, topic_bytes
from workers.calls cimport client_call
from workers.connection cimport Connection
from workers.router cimport Router


cdef Py_ssize_t MAX_ID
cdef bytes TIMED_OUT

@cython.locals(id=bytes, timeout=bytes, timed_out=bytes, topic=bytes, value=bytes)
cpdef send(Connection session, list frame)
@cython.locals(id=bytes, timeout=bytes, timed_out=bytes, topic=bytes)
cpdef recv(Connection session, list frame)
cpdef take(Connection session, list frame)
@cython.locals(router=Router, seconds=double, now=double)
cdef _issue(Connection session, bytes id, bytes timeout, bytes timed_out, bytes topic, bytes value, bytes group)
