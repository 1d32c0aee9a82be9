/* Writes back what it reads: echo PORT. One thread, level-triggered epoll; runs until it is killed. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 1024

static char buffer[256 * 1024];

/* A socket blocks when its client does not read; every client here reads. */
static int echo(int fd) {
    ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    for (ssize_t sent = 0, put; sent < got; sent += put)
        if ((put = send(fd, buffer + sent, got - sent, MSG_NOSIGNAL)) < 0) return 0;
    return got > 0;
}

int main(int argc, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(argc > 1 ? atoi(argv[1]) : 0)};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1024)) {
        perror("echo");
        return 1;
    }
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int at = 0; at < ready; at++) {
            int fd = events[at].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (!echo(fd)) {
                close(fd);
            }
        }
    }
}
