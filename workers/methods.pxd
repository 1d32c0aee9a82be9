cimport cython

from workers.session cimport Session
from workers.router cimport Router
from workers.calls cimport ClientCall

@cython.locals(router=Router, deadline=double)
cpdef send(Session session, frame)
@cython.locals(router=Router)
cpdef recv(Session session, frame)
cpdef take(Session session, frame)
@cython.locals(router=Router, deadline=double)
cdef _listen(Session session, bytes method, bytes id, bytes timeout, bytes timed_out, bytes topic, bytes group)
cdef double _check(Session session, bytes id, bytes timeout) except -1
