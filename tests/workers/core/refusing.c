/* What the core makes of a kernel that has no memory for what is written, or no room for a descriptor on its way. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>

static int refusal; /* of all that is written, where it is not 0 */
static int refusal_to_pass;

static ssize_t refusing_send(int fd, const void *data, size_t size, int flags) {
    if (refusal) return errno = refusal, -1;
    return send(fd, data, size, flags);
}

static ssize_t refusing_sendmsg(int fd, const struct msghdr *message, int flags) {
    if (refusal || refusal_to_pass) return errno = refusal ? refusal : refusal_to_pass, -1;
    return sendmsg(fd, message, flags);
}

#define send refusing_send
#define sendmsg refusing_sendmsg
#include "kernel.c"

int main(void) {
    struct kernel kernel;
    struct machine machine;
    int ends[2], passed;
    u8 data[8];
    if (kernel_open(&kernel, &machine) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) return 1;

    const int short_of_memory[] = {ENOBUFS, ENOMEM};
    for (int at = 0; at < 2; at++) {
        refusal = short_of_memory[at];
        if (machine.send(&kernel, ends[0], "packet", 6) != -EAGAIN) return 2;
        if (machine.send_passing(&kernel, ends[0], "packet", 6, ends[0]) != -EAGAIN) return 3;
    }
    refusal = EPIPE;
    if (machine.send(&kernel, ends[0], "packet", 6) != -EPIPE) return 4;

    refusal = 0;
    refusal_to_pass = ETOOMANYREFS;
    if (machine.send_passing(&kernel, ends[0], "packet", 6, ends[0]) != 6) return 5;
    if (machine.recv_passed(&kernel, ends[1], data, sizeof data, &passed) != 6 || passed != -1) return 6;
    refusal_to_pass = 0;
    if (machine.send_passing(&kernel, ends[0], "packet", 6, ends[0]) != 6) return 7;
    if (machine.recv_passed(&kernel, ends[1], data, sizeof data, &passed) != 6 || passed < 0) return 8;
    return 0;
}
