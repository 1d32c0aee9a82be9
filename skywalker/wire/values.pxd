cpdef bytes topic_bytes(bytes data)
cpdef bytes canonical(bytes data)
