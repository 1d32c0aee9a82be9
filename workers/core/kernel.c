#define _GNU_SOURCE
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double monotonic(void *its) { return (void)its, seconds_of(CLOCK_MONOTONIC); }

static double spent(void *its) { return (void)its, seconds_of(CLOCK_THREAD_CPUTIME_ID); }

static ssize_t receive(void *its, int fd, void *data, size_t size) {
    (void)its;
    ssize_t got;
    while ((got = recv(fd, data, size, MSG_DONTWAIT)) < 0 && errno == EINTR) continue;
    return got < 0 ? -errno : got;
}

/* What the kernel has no memory for it may take later: the other end lives. Until then it is tried again each turn. */
static ssize_t not_sent(void) { return errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -errno; }

static ssize_t transmit(void *its, int fd, const void *data, size_t size) {
    (void)its;
    ssize_t sent;
    while ((sent = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && errno == EINTR) continue;
    return sent < 0 ? not_sent() : sent;
}

/* Room for one descriptor beside a packet. */
union beside {
    struct cmsghdr head;
    u8 bytes[CMSG_SPACE(sizeof(int))];
};

static bool reserve(void *its) {
    struct kernel *kernel = its;
    int fd = fcntl(kernel->epoll, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) words_add(&kernel->reserved, (u64)fd);
    return fd >= 0;
}

static void release(void *its) {
    struct words *reserved = &((struct kernel *)its)->reserved;
    if (reserved->size) close((int)reserved->items[--reserved->size]);
}

static ssize_t receive_passed(void *its, int fd, void *data, size_t size, int *passed) {
    union beside beside;
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside};
    bool is_expected = ((struct kernel *)its)->reserved.size;
    *passed = -1;
    release(its);
    ssize_t got;
    while ((got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
    if (got < 0) got = -errno;
    const struct cmsghdr *head = got >= 0 && message.msg_controllen ? CMSG_FIRSTHDR(&message) : NULL;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(head), sizeof *passed);
    else if (is_expected)
        reserve(its);
    return got;
}

static ssize_t transmit_passing(void *its, int fd, const void *data, size_t size, int passed) {
    union beside beside;
    struct iovec part = {(void *)(uintptr_t)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside};
    memset(&beside, 0, sizeof beside);
    beside.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof passed), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&beside.head), &passed, sizeof passed);
    ssize_t sent;
    while ((sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && errno == EINTR) continue;
    /* More descriptors are on their way, be it to others, than this user may have open: it is lost, and nothing else. */
    if (sent < 0 && errno == ETOOMANYREFS) return transmit(its, fd, data, size);
    return sent < 0 ? not_sent() : sent;
}

static void shut(void *its, int fd) {
    (void)its;
    shutdown(fd, SHUT_WR);
}

static void close_it(void *its, int fd) {
    (void)its;
    close(fd);
}

static void watch(void *its, int fd, u32 mask, u64 what, bool is_new) {
    struct epoll_event event = {.events = mask, .data.u64 = what};
    int done = epoll_ctl(((struct kernel *)its)->epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    if (done < 0) DIE(is_new ? "a descriptor cannot be watched" : "a descriptor is not watched");
}

static void forget(void *its, int fd) {
    epoll_ctl(((struct kernel *)its)->epoll, EPOLL_CTL_DEL, fd, NULL);
}

int kernel_wait(void *its, struct ready *ready, int most, double seconds) {
    struct epoll_event events[MAX_EVENTS];
    /* Rounded up, or it would be woken before anything is due. */
    double ms = seconds < 0.0 ? -1.0 : seconds * 1000.0;
    int timeout = ms > 86400000.0 ? 86400000 : (int)ms + (ms > (double)(int)ms);
    if (most > MAX_EVENTS) most = MAX_EVENTS;
    int count = epoll_wait(((struct kernel *)its)->epoll, events, most, timeout);
    for (int at = 0; at < count; at++) {
        ready[at].what = events[at].data.u64;
        ready[at].mask = events[at].events;
    }
    return count < 0 ? 0 : count; /* a signal has come in between */
}

int kernel_open(struct kernel *kernel, struct machine *machine) {
    kernel->reserved = (struct words){0};
    kernel->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (kernel->epoll < 0) return -errno;
    *machine = (struct machine){
        .its = kernel, .clock = monotonic, .spent = spent, .recv = receive, .send = transmit, .shut = shut,
        .recv_passed = receive_passed, .send_passing = transmit_passing, .reserve = reserve, .release = release,
        .close = close_it, .watch = watch, .forget = forget, .wait = kernel_wait,
    };
    return 0;
}

void kernel_close(struct kernel *kernel) {
    while (kernel->reserved.size) release(kernel);
    words_free(&kernel->reserved);
    close(kernel->epoll);
}
