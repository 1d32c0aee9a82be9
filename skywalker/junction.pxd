cimport cython


cdef class Line


cdef class Call:
    cdef public bytes topic
    cdef public double since
    cdef public bytes value
    cdef public bytes group
    cdef public Py_ssize_t arrival
    cdef public int offers
    cdef public bint answered
    cdef public Line line
    cdef public Call previous
    cdef public Call next

    cpdef begin(self, bytes topic, double since, bytes value, bytes group)
    cpdef bint precedes(self, Call other)
    cpdef bint give(self, Call send) except -1
    cpdef met(self)
    cpdef missed(self)


cdef class Line:
    cdef public Call first
    cdef public Call returned
    cdef public Py_ssize_t size

    @cython.locals(first=Call, before=Call, after=Call)
    cpdef add(self, Call call)
    @cython.locals(call=Call)
    cpdef list calls(self)
    @cython.locals(after=Call)
    cdef Call _successor(self, Call call, Call first)
    @cython.locals(before=Call, after=Call)
    cpdef remove(self, Call call)


cdef class Groups:
    cdef public dict lines
    cdef public Py_ssize_t size


cdef class Subscriber(Call):
    cdef public Py_ssize_t audience


cdef class Subscribers:
    cdef public dict members
    cdef public Py_ssize_t audience


cdef class Junction:
    cdef Py_ssize_t _arrivals
    cdef readonly dict _senders
    cdef readonly dict _receivers
    cdef readonly dict _takers
    cdef readonly dict _subscribers

    @cython.locals(topic=bytes)
    cpdef bint send(self, Call send) except -1
    cpdef publish(self, Call send)
    @cython.locals(subscriber=Subscriber)
    cpdef bint pass_on(self, Call send, list subscribers) except -1
    @cython.locals(topic=bytes, receivers=Line, receiver=Call, groups=Groups)
    cdef _offer(self, Call send)
    @cython.locals(groups=Groups, line=Line, taker=Call)
    cdef _send_to_group(self, Call send, bytes group)
    @cython.locals(line=Line, send=Call)
    cpdef bint listen(self, Call listener) except -1
    @cython.locals(topic=bytes, subscribers=Subscribers, line=Line, send=Call)
    cpdef subscribe(self, Subscriber subscriber)
    @cython.locals(subscribers=Subscribers)
    cpdef unsubscribe(self, Subscriber subscriber)
    @cython.locals(subscribers=Subscribers)
    cpdef resize(self, Subscriber subscriber, Py_ssize_t audience)
    @cython.locals(subscribers=Subscribers)
    cpdef list subscribers(self, bytes topic)
    cdef _arrived(self, Call call)
    @cython.locals(lines=dict, key=bytes, line=Line, groups=Groups)
    cpdef wait(self, Call call)
    @cython.locals(line=Line, groups=Groups)
    cpdef bint withdraw(self, Call call) except -1
    @cython.locals(lines=dict, key=bytes, groups=Groups)
    cdef _close(self, Line line, Call last)
    @cython.locals(receivers=Line, senders=Line, groups=Groups, subscribers=Subscribers, line=Line, room=Py_ssize_t)
    cpdef census(self, bytes topic)
    cpdef confirm(self, Call send)
    cpdef lost(self, Call send)
    cpdef resume(self, Call send)
