"""What a core asks of Python: what is rare, and to do its own part of a turn."""


cdef verdict vet(void *its, u64 handle, const u8 *body, u32 size) noexcept:
    self = <Core> its
    if not self.up():
        return IS_DONE
    try:
        return <verdict> <int> self.rare.vet(handle, text(body, size))
    except BaseException as error:
        self.fail(error)
        return IS_DONE


cdef void unusual(void *its, u64 handle, const u8 *body, u32 size) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.unusual(handle, text(body, size))
    except BaseException as error:
        self.fail(error)


cdef void failed_call(
    void *its, u64 handle, method name, const u8 *id, u32 id_size, const blob *timed_out, refusal why, u32 size, u32 limit
) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        word = text(timed_out.data, timed_out.size) if timed_out != NULL else None
        self.rare.failed(handle, <int> name, text(id, id_size), word, <int> why, size, limit)
    except BaseException as error:
        self.fail(error)


cdef void half_begun(void *its, u64 handle, const u8 *half, u32 size, boolean is_first) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.half_begun(handle, text(half, size), bool(is_first))
    except BaseException as error:
        self.fail(error)


cdef void half_is_old(void *its, u64 handle) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.half_is_old(handle)
    except BaseException as error:
        self.fail(error)


cdef void is_through(void *its, u64 handle) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.is_through(handle)
    except BaseException as error:
        self.fail(error)


cdef int number_of(error) except? -1:
    return errno.EAGAIN if isinstance(error, BlockingIOError) else error.errno or errno.EIO


cdef ssize_t receive(void *its, u64 handle, u32 most, const u8 **data) noexcept:
    self = <Core> its
    if not self.up():
        return -errno.EIO
    try:
        got, has_ended = self.rare.receive(handle, most)
        if has_ended:
            connection_find(&self.it, handle).flags |= HAS_ENDED
        self.received = got
        data[0] = start(self.received)
        return len(self.received)
    except OSError as error:
        return -number_of(error)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef ssize_t transmit_plain(void *its, u64 handle, const u8 *data, u32 size, u32 *on_their_way) noexcept:
    self = <Core> its
    if not self.up():
        return -errno.EIO
    try:
        sent, on_their_way[0] = self.rare.transmit(handle, text(data, size))
        return sent
    except OSError as error:
        return -number_of(error)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef void shut_secure(void *its, u64 handle) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.shut(handle)
    except BaseException as error:
        self.fail(error)


cdef void closed(void *its, u64 handle, close why, int error_number) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.closed(handle, <int> why, error_number)
    except BaseException as error:
        self.fail(error)


cdef boolean may_move(void *its, u64 handle, const u8 **facts, u32 *size) noexcept:
    self = <Core> its
    if not self.up():
        return False
    try:
        found = self.rare.may_move(handle)
        if found is None:
            return False
        self.facts = found
        facts[0], size[0] = start(self.facts), <u32> len(self.facts)
        return True
    except BaseException as error:
        self.fail(error)
        return False


cdef u64 arriving(void *its, u64 link, const u8 *facts, u32 size, u32 calls, boolean has_room) noexcept:
    self = <Core> its
    if not self.up():
        return 0
    try:
        return self.rare.arriving(link, text(facts, size), calls, bool(has_room))
    except BaseException as error:
        self.fail(error)
        return 0


cdef void arrived(void *its, u64 handle) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.arrived(handle)
    except BaseException as error:
        self.fail(error)


cdef void may_go(void *its, u64 handle, boolean goes) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.may_go(handle, bool(goes))
    except BaseException as error:
        self.fail(error)


cdef u32 sampled(void *its, const u8 *topic, u32 size) noexcept:
    self = <Core> its
    if not self.up():
        return 1000
    try:
        return self.rare.sampled(text(topic, size))
    except BaseException as error:
        self.fail(error)
        return 1000


cdef void named(void *its, i64 token, const u8 *topic, u32 size) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.named(token, text(topic, size))
    except BaseException as error:
        self.fail(error)


cdef void recorded(void *its, u32 records) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.rare.recorded(records)
    except BaseException as error:
        self.fail(error)


# Python's own part of a turn.


cdef void is_ready(void *its, u32 what, u32 mask) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        handler = self.handlers.get(what)
        if handler is not None:  # one that was handled before may have removed it
            handler.ready(mask)
    except BaseException as error:
        self.fail(error)
    self.down()


cdef void rang(void *its, u64 alarm) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.moment._alarms.pop(alarm).expired()
    except BaseException as error:
        self.fail(error)
    self.down()


cdef double rests(void *its, double now) noexcept:
    self = <Core> its
    if self.error is not None or self.moment.resting is None:
        return -1.0
    return max(0.0, self.moment.rests_until - now)


cdef void go_on(void *its) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.moment.go_on()
    except BaseException as error:
        self.fail(error)
    self.down()


cdef void has_reached(void *its, const char *point) noexcept:
    self = <Core> its
    if self.error is not None:
        return
    try:
        reached(point.decode())
    except BaseException as error:
        self.fail(error)


cdef int wait_without_lock(void *its, ready *found, int most, double seconds) noexcept:
    """The kernel's wait, in which other threads have Python's lock: all else of a turn is done with it."""
    cdef int count
    with nogil:
        count = kernel_wait(its, found, most, seconds)
    return count


# Of links.


cdef void said_over(void *its, u64 link, const message *it) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        topic = None if it.topic == NULL else text(it.topic, it.topic_size)
        value = None if it.value == NULL else text(it.value, it.value_size)
        form = None if it.form == NULL else text(it.form, it.form_size)
        self.linking.said(link, <int> it.kind, it.number, topic, value, form, it.life)
    except BaseException as error:
        self.fail(error)


cdef void early(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.early(link)
    except BaseException as error:
        self.fail(error)


cdef ssize_t link_receive(void *its, u64 link, u32 most, const u8 **data) noexcept:
    self = <Core> its
    if not self.up():
        return -errno.EIO
    try:
        got, has_ended = self.linking.link_receive(link, most)
        if has_ended:
            link_find(&self.it, link).flags |= LINK_HAS_ENDED
        self.received = got
        data[0] = start(self.received)
        return len(self.received)
    except OSError as error:
        return -number_of(error)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef ssize_t link_transmit(void *its, u64 link, const u8 *data, u32 size, u32 *on_their_way) noexcept:
    self = <Core> its
    if not self.up():
        return -errno.EIO
    try:
        sent, on_their_way[0] = self.linking.link_transmit(link, text(data, size))
        return sent
    except OSError as error:
        return -number_of(error)
    except BaseException as error:
        self.fail(error)
        return -errno.EIO


cdef void link_shut(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.link_shut(link)
    except BaseException as error:
        self.fail(error)


cdef void stuck(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.stuck(link)
    except BaseException as error:
        self.fail(error)


cdef void link_ended(void *its, u64 link, const char *why) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.link_ended(link, why.decode())
    except BaseException as error:
        self.fail(error)


cdef void link_over(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.link_over(link)
    except BaseException as error:
        self.fail(error)


cdef void ask_all(void *its, u64 link) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.ask_all(link)
    except BaseException as error:
        self.fail(error)


cdef boolean handed(void *its, u64 life, words *entries) noexcept:
    self = <Core> its
    if not self.up():
        return False
    try:
        found = self.linking.handed(life)
        if found is None:
            return False
        for cell in found:
            words_add(entries, cell)
        return True
    except BaseException as error:
        self.fail(error)
        return False


cdef void wanted(void *its, u32 owner) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.wanted(owner)
    except BaseException as error:
        self.fail(error)


cdef void lagged(void *its, u32 interest) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.lagged(interest)
    except BaseException as error:
        self.fail(error)


cdef void answered(void *its, u64 token) noexcept:
    self = <Core> its
    if not self.up():
        return
    try:
        self.linking.answered(token)
    except BaseException as error:
        self.fail(error)
