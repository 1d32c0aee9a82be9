"""A machine that is an object of Python's, in place of the kernel."""


cdef double clock(void *its) noexcept:
    self = <Core> its
    if self.error is not None:
        return self.it.now
    try:
        return self.simulated.clock()
    except BaseException as error:
        self.fail(error)
        return self.it.now


cdef ssize_t recv(void *its, int fd, void *data, size_t size) noexcept:
    self = <Core> its
    if self.error is not None:
        return -errno.EIO
    try:
        got = self.simulated.recv(fd, size)
        memcpy(data, start(got), len(got))
        return len(got)
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef ssize_t transmit(void *its, int fd, const void *data, size_t size) noexcept:
    self = <Core> its
    if self.error is not None:
        return -errno.EIO
    try:
        return self.simulated.send(fd, text(<const u8 *> data, <u32> size))
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef ssize_t recv_passed(void *its, int fd, void *data, size_t size, int *passed) noexcept:
    self = <Core> its
    passed[0] = -1
    if self.error is not None:
        return -errno.EIO
    try:
        got, passed[0] = self.simulated.recv_passed(fd, size)
        memcpy(data, start(got), len(got))
        return len(got)
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef ssize_t transmit_passing(void *its, int fd, const void *data, size_t size, int passed) noexcept:
    self = <Core> its
    if self.error is not None:
        return -errno.EIO
    try:
        return self.simulated.send_passing(fd, text(<const u8 *> data, <u32> size), passed)
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef boolean reserve(void *its) noexcept:
    self = <Core> its
    if self.error is not None:
        return False
    try:
        return self.simulated.reserve()
    except BaseException as error:
        self.fail(error)
        return False


cdef void release(void *its) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.release()
    except BaseException as error:
        self.fail(error)


cdef void shut(void *its, int fd) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.shut(fd)
    except BaseException as error:
        self.fail(error)


cdef void close_fd(void *its, int fd) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.close(fd)
    except BaseException as error:
        self.fail(error)


cdef void watch(void *its, int fd, u32 mask, u64 what, boolean is_new) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.watch(fd, mask, what)
    except BaseException as error:
        self.fail(error)


cdef void forget(void *its, int fd) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        self.simulated.forget(fd)
    except BaseException as error:
        self.fail(error)


cdef int wait(void *its, ready *found, int most, double seconds) noexcept:
    self = <Core> its
    cdef int count = 0
    if self.error is not None:
        return 0
    try:
        for what, mask in self.simulated.wait(None if seconds < 0.0 else seconds):
            if count < most:
                found[count].what, found[count].mask = what, mask
                count += 1
    except BaseException as error:
        self.fail(error)
    return count
