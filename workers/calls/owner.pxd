from workers.calls.call cimport Carrier, ClientCall


cdef int ENDING


cdef class Absent


cdef class Owner:
    cdef public object place
    cdef public Absent absent
    cdef public Carrier carrier

    cpdef wanted(self)
    cpdef met(self, Carrier carrier)
    cpdef lost(self, Carrier carrier)
    cpdef end(self)


cdef class Absent(Carrier):
    cdef readonly dict _calls
    cdef dict _censuses
    cdef dict _interests
    cdef Owner _owner

    cdef _want(self)
    cpdef bint congested(self) except -1
    cpdef forward(self, ClientCall call)
    cpdef ask_back(self, ClientCall call)
    cpdef bint withdraw(self, ClientCall call) except -1
    cpdef release(self, Carrier carrier)
