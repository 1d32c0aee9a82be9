cimport cython

from skywalker.wire.junction cimport is_reserved
from skywalker.wire.values cimport timeout_seconds, topic_bytes
from workers.calls.call cimport ClientCall, client_call
from workers.doors.junction.session cimport Session
from workers.calls.worker_states cimport Standing


cdef Py_ssize_t MAX_ID
cdef bytes TIMED_OUT

@cython.locals(id=bytes, timeout=bytes, timed_out=bytes, topic=bytes, value=bytes)
cpdef send(Session session, list frame)
@cython.locals(id=bytes, timeout=bytes, timed_out=bytes, topic=bytes)
cpdef recv(Session session, list frame)
cpdef take(Session session, list frame)
@cython.locals(standing=Standing, call=ClientCall, seconds=double, now=double)
cdef _issue(Session session, bytes id, bytes timeout, bytes timed_out, bytes topic, bytes value, bytes group)
