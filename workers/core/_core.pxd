cdef class Moment:
    cdef public double now
    cdef public double began
    cdef readonly object core
    cdef public list heavy
    cdef dict _alarms

    cpdef unsigned long long set_alarm(self, object item, double at) except 0
    cpdef drop_alarm(self, unsigned long long alarm)
    cpdef go_on(self)
