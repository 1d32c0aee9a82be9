from libc.stdint cimport int64_t as i64
from libc.stdint cimport uint8_t as u8
from libc.stdint cimport uint32_t as u32
from libc.stdint cimport uint64_t as u64


cdef extern from "pubsub.h" nogil:
    pass


cdef extern from "link.h" nogil:
    ctypedef long ssize_t
    ctypedef bint boolean "bool"

    cdef enum:
        ANSWERED

    cdef enum:
        LINK_ABROAD
        LINK_ASKS_US
        LINK_BOTH_WAYS
        LINK_CLOSED
        LINK_RETIRED
        LINK_PARTS
        LINK_SECURE
        LINK_HAS_ENDED

    cdef enum kind:
        SEND
        RECV
        TAKE
        SUBSCRIBER

    cdef enum safeguard:
        A_VALUE_IS_WRITTEN_FIRST
        A_VALUE_IS_ASKED_BACK
        A_LAST_WORD_IS_NEEDED
        WHO_RETURNS_HAS_ITS_PLACE
        PUBLISHERS_WAIT
        AN_ACK_COMES_LAST
        A_LOST_CALL_GOES_ELSEWHERE
        A_HAND_IS_WRITTEN_DOWN
        A_TAKER_TELLS_HOME
        THE_DEAD_ARE_HEARD_FIRST
        DOUBT_STAYS
        WHAT_IS_GIVEN_STAYS
        ALL_IS_WRITTEN_FIRST

    bint safeguards_without(u32 mask)

    cdef enum standing:
        OPENING
    cdef enum action:
        pass

    cdef enum door:
        JUNCTION_DOOR

    cdef enum verdict:
        IS_DONE

    cdef enum method:
        pass

    cdef enum refusal:
        DRAINS

    cdef enum close:
        BY_OWNER

    cdef enum connection_flag:
        LEAVES
        IS_CLOSED
        CHOKED
        KNOWS_ERRORS
        ACKS
        HAS_CALLED
        RESTS
        IS_PUT_OFF
        VETTED
        SECURE
        HAS_ENDED
        MOVES
        ARRIVES

    cdef enum state:
        STATES

    cdef enum event:
        EVENTS

    struct blob:
        u32 references
        u32 size
        u8 *data

    struct key:
        u64 first
        u64 second

    struct hash:
        u32 count

    struct pool:
        u32 used

    struct row:
        u32 next
        u32 topic
        double since
        double deadline
        u32 group
        u32 is_typed
        u32 audience
        u32 offers
        u8 flags

    struct line:
        u32 first
        u32 size

    struct group_of:
        u32 next_group

    struct spot:
        u32 references
        unsigned short size
        line line
        group_of of
        u32 groups
        u32 takers
        u32 subscribers
        u32 audience

    struct grants:
        pass

    struct accounts:
        pass

    struct account:
        u64 in_flight

    u32 account_new(accounts *, u64 most)
    account *account_at(const accounts *, u32)
    void grants_add(grants *, u32 spot, u32 account, action)

    struct table

    struct judges:
        boolean (*give)(table *, u32 listener, u32 send) noexcept
        void (*met)(table *, u32 send) noexcept
        void (*missed)(table *, u32 send) noexcept

    struct table:
        void *its
        pool rows
        pool spots
        pool extras
        u32 idle_count
        u32 topic_count
        grants grants

    const u8 (*LIFE)[7]

    void table_open(table *, const key *, const judges *)
    void table_close(table *)
    row *row_at(const table *, u32)
    spot *spot_at(const table *, u32)
    const u8 *spot_name(const spot *)
    u32 spot_take(table *, u32 topic, const u8 *name, u32 size)
    u32 table_topics(const table *, u32 *spots, u32 most)
    void spot_drop(table *, u32)
    bint row_sends(const row *)
    u32 spot_find(const table *, u32 topic, const u8 *name, u32 size)
    row *row_new(table *, u32 *number, kind, u32 topic, u32 group, double since)
    void row_free(table *, u32)
    void row_given(table *, u32 listener, u32 send)
    u32 row_decided(table *, u32 listener)
    bint junction_send(table *, u32)
    void junction_publish(table *, u32)
    bint junction_listen(table *, u32)
    void junction_wait(table *, u32)
    bint junction_withdraw(table *, u32)
    void junction_confirm(table *, u32)
    void junction_lost(table *, u32)
    void junction_resume(table *, u32)
    void junction_subscribe(table *, u32)
    void junction_unsubscribe(table *, u32)
    void junction_resize(table *, u32, u32)

    struct timers:
        u32 size

    void timers_open(timers *, table *, u64 secret)
    void timers_close(timers *)
    void timers_add(timers *, u32)
    void timers_remove(timers *, u32)
    void timers_collect(timers *, double now)
    u32 timers_next(timers *)
    double timers_wait(const timers *, double now)

    struct element:
        u32 at
        u32 size

    struct frame:
        u32 count
        u32 detail
        int fault
        element *elements

    void frame_parse(frame *, const u8 *body, u32 size)
    bint is_canonical(const u8 *, u32)
    i64 timeout_of(const u8 *, u32)
    bint is_reserved(const u8 *, u32)

    struct ready:
        u64 what
        u32 mask

    struct machine:
        void *its
        double (*clock)(void *) noexcept
        double (*spent)(void *) noexcept
        ssize_t (*recv)(void *, int fd, void *data, size_t size) noexcept
        ssize_t (*send)(void *, int fd, const void *data, size_t size) noexcept
        ssize_t (*recv_passed)(void *, int fd, void *data, size_t size, int *passed) noexcept
        ssize_t (*send_passing)(void *, int fd, const void *data, size_t size, int passed) noexcept
        boolean (*reserve)(void *) noexcept
        void (*release)(void *) noexcept
        void (*shut)(void *, int fd) noexcept
        void (*close)(void *, int fd) noexcept
        void (*watch)(void *, int fd, u32 mask, u64 what, boolean is_new) noexcept
        void (*forget)(void *, int fd) noexcept
        int (*wait)(void *, ready *, int most, double seconds) noexcept

    struct words:
        u32 size

    struct owner:
        void *its
        verdict (*vet)(void *, u64 connection, const u8 *body, u32 size) noexcept
        void (*unusual)(void *, u64 connection, const u8 *body, u32 size) noexcept
        void (*failed)(void *, u64 connection, method, const u8 *id, u32 id_size, const blob *timed_out, refusal why,
                       u32 size, u32 limit) noexcept
        void (*half_begun)(void *, u64 connection, const u8 *half, u32 size, boolean is_first) noexcept
        void (*half_is_old)(void *, u64 connection) noexcept
        void (*is_through)(void *, u64 connection) noexcept
        ssize_t (*receive)(void *, u64 connection, u32 most, const u8 **data) noexcept
        ssize_t (*transmit)(void *, u64 connection, const u8 *data, u32 size, u32 *begun) noexcept
        void (*shut)(void *, u64 connection) noexcept
        void (*closed)(void *, u64 connection, close why, int error) noexcept
        boolean (*may_move)(void *, u64 connection, const u8 **facts, u32 *size) noexcept
        u64 (*arriving)(void *, u64 link, const u8 *facts, u32 size, u32 calls, boolean has_room) noexcept
        void (*arrived)(void *, u64 connection) noexcept
        void (*may_go)(void *, u64 connection, boolean goes) noexcept
        void (*ready)(void *, u32 what, u32 mask) noexcept
        void (*rang)(void *, u64 alarm) noexcept
        double (*rests)(void *, double now) noexcept
        void (*go_on)(void *) noexcept
        u32 (*sampled)(void *, const u8 *topic, u32 size) noexcept
        void (*named)(void *, i64 token, const u8 *topic, u32 size) noexcept
        void (*recorded)(void *, u32 records) noexcept
        void (*said)(void *, u64 link, const message *) noexcept
        void (*early)(void *, u64 link) noexcept
        ssize_t (*link_receive)(void *, u64 link, u32 most, const u8 **data) noexcept
        ssize_t (*link_transmit)(void *, u64 link, const u8 *data, u32 size, u32 *begun) noexcept
        void (*link_shut)(void *, u64 link) noexcept
        void (*stuck)(void *, u64 link) noexcept
        void (*link_ended)(void *, u64 link, const char *why) noexcept
        void (*link_over)(void *, u64 link) noexcept
        void (*ask_all)(void *, u64 link) noexcept
        boolean (*handed)(void *, u64 life, words *entries) noexcept
        void (*wanted)(void *, u32 owner) noexcept
        void (*lagged)(void *, u32 interest) noexcept
        void (*answered)(void *, u64 token) noexcept
        void (*reached)(void *, const char *point) noexcept

    enum said:
        SAY_CUT

    struct message:
        said kind
        u64 number
        u64 life
        const u8 *topic
        const u8 *value
        const u8 *form
        u32 topic_size
        u32 value_size
        u32 form_size

    void words_add(words *, u64)

    struct limits:
        u32 max_calls
        u32 output_bytes
        u32 max_plain_reply
        u32 subscriber_buffer
        u32 mesh_bytes
        u32 max_moves
        u32 behind_bytes
        u64 waiting_bytes
        double half_frame_s
        double unread_output_s
        double idle_probe_s

    struct figures:
        i64 *cells
        u32 calls
        u32 routed
        u32 wait
        u32 hand_off
        u32 waiting
        u32 received
        u32 sent
        u32 turn
        u32 longest_turn
        u32 buckets
        u32 outcomes

    struct publisher:
        u32 count
        u32 changes
        boolean is_over

    struct connection:
        publisher *publisher
        int fd
        u32 generation
        u32 flags
        u32 subscriptions
        u32 unmarked
        u32 mark_count
        u32 max_reply
        u8 *out
        u32 written
        u32 out_size
        u32 tail_size
        hash waiting
        hash unacked
        double heard
        u8 door

    ctypedef unsigned short u16

    struct share:
        pass

    struct ring:
        i64 *tokens
        share *shares
        u32 *owners
        u32 count
        u16 version

    void ring_follow(ring *, const i64 *, const share *, u32, const u32 *, u32)
    void ring_free(ring *)
    u32 ring_owner(const ring *, i64)
    i64 token_of(const u8 *, size_t)

    struct journal:
        u8 *page
        u32 used

    struct hand:
        i64 *cells
        u32 room
        u32 count

    struct link:
        u32 number
        u32 flags
        u64 via
        u32 rows
        double grace_s
        u64 heir
        u32 forwarded

    struct way:
        u32 now
        u32 absent

    link *link_at(const core *, u32)
    link *link_find(const core *, u64)
    u64 link_handle(const link *)
    u32 link_unsent(const link *)
    u32 link_open(core *, int fd, u64 life, u32 flags)
    double link_last_used(const link *)
    void link_close(core *, link *, const char *why)
    void inbound_gather(core *)
    void link_begin(core *, link *, const u8 *unwritten, u32 size, const u8 *heard, u32 heard_size)
    void link_finish(core *, link *)
    void link_pause(core *, link *)
    void link_go_on(core *, link *)
    void link_read_to_the_end(core *, link *)
    void link_attend_later(core *, const link *)
    void link_note_read(link *, u64)
    void link_catch_up(core *, link *)
    void message_say(core *, link *, const message *)
    bint link_hear(core *, link *, const message *)
    u32 inbound_interest_new(core *, link *, const u8 *topic, u32 size)
    void inbound_interest_end(core *, u32)
    void junction_hear_afar(table *, u32 subscriber)
    boolean inbound_is_decided(const core *, const link *)
    void move_draw(core *, connection *, const link *)
    boolean move_finds_awake(core *, const connection *, link *)
    link *link_by_life(const core *, u64 life)
    void outbound_release(core *, link *, boolean is_sure)
    void outbound_retired(core *, link *)
    boolean outbound_is_idle(const core *, const link *)
    u32 way_absent(core *, u32 owner)
    void core_ways(core *, u32 count)
    void core_lead(core *, u32 owner, u32 link)
    void core_answer(core *, u64 life, u32 link, u64 number, u64 token)
    void calls_reroute(core *, connection *)
    bint calls_are_elsewhere(const core *, const connection *)

    struct drawing:
        u32 calls, least
        double seconds, rest_s

    struct core:
        machine machine
        ring ring
        u32 here
        table table
        timers timers
        pool connections
        limits limits
        figures figures
        double now
        double began
        double served_at
        words resting
        accounts accounts
        journal journal
        u32 orphans
        u32 choked
        u32 moving
        drawing drawing
        u32 left
        u32 gap
        u64 calls_held
        words linked
        way *ways
        u32 standing
        u64 life
        hand hand
        u64 bytes_held
        u64 most_bytes_held

    struct call:
        kind kind
        u32 id_size
        u32 topic
        u32 group_size
        u32 value_size
        const u8 *id
        const u8 *group
        const u8 *value
        double seconds
        blob *timed_out

    blob *blob_new(const u8 *, u32)
    connection *connection_find(const core *, u64)
    void core_open(core *, const machine *, const owner *, const key *)
    void core_close(core *)
    void core_drop(core *)
    u64 core_connect(core *, int fd, door)
    void core_watch(core *, int fd, u32 what, u32 mask, boolean is_new)
    void core_forget(core *, int fd)
    u64 core_set_alarm(core *, double at)
    void core_drop_alarm(core *, u64 alarm)
    double core_wait(core *)
    int core_turn(core *, double most)
    void core_begin(core *, double now)
    void core_close_connection(core *, connection *, close why, int error)
    void core_finish(core *, connection *)
    void core_settle(core *)
    void core_detach(core *, connection *)
    void core_drain(core *)
    void core_leave(core *)
    void core_probe(core *, connection *)
    void input_pause(core *, connection *, double seconds)
    void input_read(core *, connection *)
    void input_resume(core *, connection *)
    connection *connection_next(const core *, u32 *)
    void output_roomy(core *, connection *)
    void call_issue(core *, connection *, const call *)
    u32 call_subscribe(core *, connection *, const u8 *, u32, const u8 *, u32, refusal *)
    u32 call_find(const core *, const hash *, const u8 *, u32)
    void call_unsubscribe(core *, u32)
    void call_end_subscription(core *, u32)
    void call_cancel(core *, connection *, const u8 *by, u32, const u8 *id, u32)
    bint call_acknowledged(core *, connection *, const u8 *, u32)

    struct publication:
        u32 topic
        u32 size
        u32 form_size
        const u8 *value
        const u8 *form

    void publisher_publish(core *, connection *, publication *)
    u64 publisher_awaits(connection *)
    void publisher_done(core *, connection *, u64 place)
    bint publisher_is_owed(const connection *)
    void publishers_hold_back(core *)
    void publications_reroute(core *)
    refusal call_will(core *, connection *, const call *)
    void calls_fail(core *, connection *, refusal)
    void account_enter(core *, connection *, u32)
    void journal_begin(core *, u32 every, u32 dice)
    void journal_turn(core *, u8 *page, u32 room)
    void output_own(core *, connection *)
    void output_push(core *, connection *, const u8 *, u32)
    u8 *input_room(core *, u32)
    void input_use(core *, u32)


cdef extern from "life.h" nogil:
    bint call_is_cancelled(const core *, const row *)


cdef extern from "kernel.h" nogil:
    struct kernel:
        pass

    int kernel_open(kernel *, machine *)
    void kernel_close(kernel *)
    int kernel_wait(void *, ready *, int, double)
