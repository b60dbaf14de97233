// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// The smallest HTTP service that a proxy can stand in front of: one thread, one answer, kept
// alive; a body is read to its end before. The same program runs in the sandbox and beside nginx.
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

enum { kMaxFds = 65536 };

// What is still to come of the body that each connection sends.
static long body_left[kMaxFds];

// True if a request has ended with these bytes.
static int take(int fd, char* data, long size) {
  if (body_left[fd] == 0) {
    // A proxy sends a head in one piece.
    data[size] = '\0';
    char* end = strstr(data, "\r\n\r\n");
    if (end == NULL) return 0;
    *end = '\0';
    char* length = strcasestr(data, "\ncontent-length:");
    body_left[fd] = length == NULL ? 0 : atol(strchr(length, ':') + 1);
    size -= end + 4 - data;
  }
  body_left[fd] -= size;
  return body_left[fd] == 0;
}

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
          if (peer >= kMaxFds) return 1;
          body_left[peer] = 0;
          setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          event.data.fd = peer;
          epoll_ctl(poll, EPOLL_CTL_ADD, peer, &event);
        }
        continue;
      }
      static char request[65536 + 1];
      ssize_t size = recv(fd, request, sizeof request - 1, 0);
      if (size <= 0) {
        close(fd);
      } else if (take(fd, request, size)) {
        send(fd, kAnswer, sizeof kAnswer - 1, 0);
      }
    }
  }
}
