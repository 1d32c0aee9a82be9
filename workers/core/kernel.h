/* The real machine: sockets and epoll of this kernel. */
#ifndef SKYWALKER_KERNEL_H
#define SKYWALKER_KERNEL_H

#include "core.h"

struct kernel {
    int epoll;
    struct words reserved; /* descriptors that only hold the room for those to come */
};

/* -errno if it cannot be had. It is to be made after the fork: an inherited epoll would be the parent's too. */
int kernel_open(struct kernel *kernel, struct machine *machine);
void kernel_close(struct kernel *kernel);
/* As its machine has it; `its` is the kernel. */
int kernel_wait(void *its, struct ready *ready, int most, double seconds);

#endif
