// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// The smallest HTTP service that a proxy can stand in front of: one thread, one answer, kept
// alive. The same program runs in the sandbox and beside nginx.
//   http_service PORT

#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char kAnswer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n"
    "{\"hello\":\"world\"}";

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  signal(SIGPIPE, SIG_IGN);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((unsigned short)atoi(argv[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 ||
      listen(listener, 4096) != 0) {
    perror("listen");
    return 1;
  }
  int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  puts("ready");
  fflush(stdout);
  for (;;) {
    struct epoll_event ready[256];
    int count = epoll_wait(poll, ready, 256, -1);
    for (int i = 0; i < count; ++i) {
      int fd = ready[i].data.fd;
      if (fd == listener) {
        int peer;
        while ((peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
          setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          event.data.fd = peer;
          epoll_ctl(poll, EPOLL_CTL_ADD, peer, &event);
        }
        continue;
      }
      // A proxy sends a request without a body in one piece.
      char request[16384];
      ssize_t size = recv(fd, request, sizeof request, 0);
      if (size <= 0) {
        close(fd);
      } else if (size >= 4 && memcmp(request + size - 4, "\r\n\r\n", 4) == 0) {
        send(fd, kAnswer, sizeof kAnswer - 1, 0);
      }
    }
  }
}
