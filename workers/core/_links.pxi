"""What Python does to the links of a core."""


cdef class Linked(Failing):
    cdef object hand_memory

    def live(self, u64 life, memory, u32 room):
        cdef Py_buffer view
        self.it.life = life
        PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
        self.it.hand.cells, self.it.hand.room = <i64 *> view.buf, room
        self.cell_bytes = max(self.cell_bytes, view.len)
        PyBuffer_Release(&view)
        self.hand_memory = memory

    def stand_as(self, u32 standing):
        opens = self.it.standing & OPENING and not standing & OPENING
        self.it.standing = standing
        if opens:
            inbound_gather(&self.it)

    @property
    def life(self):
        return self.it.life

    def link(self, int fd, u64 life, bint abroad, bint asks_us, double grace_s, *, bint both_ways=False,
             bint secure=False, bytes unwritten=b"", bytes heard=b""):
        assert abroad or not (secure or unwritten or heard)
        flags = (LINK_ABROAD if abroad else 0) | (LINK_ASKS_US if asks_us else 0) | (LINK_SECURE if secure else 0)
        if both_ways:
            flags |= LINK_BOTH_WAYS
        it = link_at(&self.it, link_open(&self.it, fd, life, flags))
        it.grace_s = grace_s
        link_begin(&self.it, it, start(unwritten), <u32> len(unwritten), start(heard), <u32> len(heard))
        return link_handle(it)

    def ways(self, u32 count):
        core_ways(&self.it, count)

    def lead(self, u32 owner, u64 handle):
        it = link_find(&self.it, handle)
        core_lead(&self.it, owner, 0 if it == NULL else it.number)
        self.tell()

    def is_awaited(self, u32 owner):
        absent = self.it.ways[owner].absent
        return absent != 0 and link_at(&self.it, absent).forwarded != 0

    def be_patient(self, u32 owner, double grace_s):
        link_at(&self.it, way_absent(&self.it, owner)).grace_s = grace_s

    def finish_link(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_finish(&self.it, it)
        self.tell()

    def catch_up(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_catch_up(&self.it, it)
        self.tell()

    def parts(self, u64 handle):
        it = link_find(&self.it, handle)
        return it != NULL and (it.flags & LINK_PARTS) != 0

    def asks_nothing(self, u64 handle):
        it = link_find(&self.it, handle)
        return it == NULL or bool(outbound_is_idle(&self.it, it))

    def last_used(self, u64 handle):
        it = link_find(&self.it, handle)
        return float("inf") if it == NULL else link_last_used(it)

    def close_link(self, u64 handle, bytes why):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_close(&self.it, it, PyBytes_AS_STRING(why))
        self.tell()

    def pause_link(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_pause(&self.it, it)

    def hear_link(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_go_on(&self.it, it)
        self.tell()

    def attend_link(self, u64 handle, u64 via, u64 read):
        it = link_find(&self.it, handle)
        if it != NULL:
            it.via = via
            link_note_read(it, read)
            link_attend_later(&self.it, it)

    def read_to_the_end(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            link_read_to_the_end(&self.it, it)
        self.tell()

    def say(self, u64 handle, said kind, u64 number=0, bytes topic=None, bytes value=None, u64 life=0):
        cdef message it
        way = link_find(&self.it, handle)
        if way == NULL:
            return
        memset(&it, 0, sizeof(message))
        it.kind, it.number, it.life = kind, number, life
        if topic is not None:
            it.topic, it.topic_size = start(topic), <u32> len(topic)
        if value is not None:
            it.value, it.value_size = start(value), <u32> len(value)
        message_say(&self.it, way, &it)

    def cut(self, u64 life, u64 number):
        cdef message it
        way = link_by_life(&self.it, life)
        if way == NULL:
            return
        memset(&it, 0, sizeof(message))
        it.kind, it.number, it.life = SAY_CUT, number, life
        message_say(&self.it, way, &it)

    cdef const u8 *keep(self, bytes data):
        """Have bytes stay until the turn ends."""
        cdef u32 size = <u32> len(data)
        cdef u8 *place = input_room(&self.it, size)
        memcpy(place, start(data), size)
        input_use(&self.it, size)
        return place

    def hear(self, u64 handle, said kind, u64 number, bytes topic, bytes value, bytes form):
        cdef message it
        way = link_find(&self.it, handle)
        if way == NULL or way.flags & LINK_CLOSED:
            return
        memset(&it, 0, sizeof(message))
        it.kind, it.number = kind, number
        it.topic, it.topic_size = start(topic), <u32> len(topic)
        it.value, it.value_size = self.keep(value), <u32> len(value)
        it.form, it.form_size = start(form), <u32> len(form)
        if not link_hear(&self.it, way, &it):
            link_close(&self.it, way, "the other end sent what makes no sense")
        self.tell()

    def release(self, u64 handle, bint is_sure):
        it = link_find(&self.it, handle)
        if it != NULL:
            outbound_release(&self.it, it, is_sure)
        self.tell()

    def answer(self, u64 life, u64 token):
        core_answer(&self.it, life, 0, 0, token)
        self.tell()

    def comes_before(self, u64 handle, u64 heir):
        it, other = link_find(&self.it, handle), link_find(&self.it, heir)
        if it != NULL and other != NULL and not it.flags & (LINK_CLOSED | LINK_RETIRED):
            it.heir = heir
            link_pause(&self.it, other)
        self.tell()

    def retired(self, u64 handle):
        it = link_find(&self.it, handle)
        if it != NULL:
            outbound_retired(&self.it, it)
        self.tell()

    def interest(self, u64 handle, bytes topic):
        it = link_find(&self.it, handle)
        return 0 if it == NULL else inbound_interest_new(&self.it, it, start(topic), <u32> len(topic))

    def resize(self, u32 interest, u32 audience):
        junction_resize(&self.it.table, interest, audience)

    def end_interest(self, u32 interest):
        inbound_interest_end(&self.it, interest)
        self.tell()

    def hear_afar(self, u32 subscription):
        junction_hear_afar(&self.it.table, subscription)

    def unsent(self, u64 handle):
        it = link_find(&self.it, handle)
        return 0 if it == NULL else link_unsent(it)

    def is_decided(self, u64 handle):
        it = link_find(&self.it, handle)
        return it == NULL or bool(inbound_is_decided(&self.it, it))
