// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/seccomp_policy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace alcove::jail {
namespace {

// The errno (0: success) of a call made under the filter, in a child; -1 if the filter killed it.
int errno_under_filter(long (*call)()) {
  int* shared = static_cast<int*>(
      ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *shared = -1;
  const auto filter = compile_seccomp_policy();
  if (!filter) return -2;
  const pid_t child = ::fork();
  if (child == 0) {
    // Lets the test run without root; the launcher never does this.
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!load_seccomp_filter(*filter)) ::_exit(1);
    errno = 0;
    const long result = call();
    *shared = result < 0 ? errno : 0;
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const int error = *shared;
  ::munmap(shared, sizeof(int));
  return error;
}

TEST(SeccompPolicy, IsSmall) {
  const auto filter = compile_seccomp_policy();
  ASSERT_TRUE(filter) << filter.error().message();
  EXPECT_GT(filter->size(), 50u);
  EXPECT_LT(filter->size(), 4096u);
}

TEST(SeccompPolicy, AllowsOrdinaryCalls) {
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_getpid); }), 0);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_socket, AF_INET6, SOCK_STREAM, 0); }), 0);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_memfd_create, "x", 0); }), 0);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_personality, 0xffffffff); }), 0);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_clone3, nullptr, 0); }), EINVAL);
  EXPECT_EQ(errno_under_filter([]() -> long {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(0);
              return ::waitpid(child, nullptr, 0);
            }),
            0);
}

TEST(SeccompPolicy, RefusesDangerousCalls) {
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_kexec_load, 0, 0, 0, 0); }), EPERM);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_init_module, 0, 0, 0); }), EPERM);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_bpf, 0, 0, 0); }), EPERM);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_perf_event_open, 0, 0, 0, 0, 0); }),
            EPERM);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_add_key, 0, 0, 0, 0, 0); }), EPERM);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_userfaultfd, 0); }), EPERM);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_clock_settime, 0, nullptr); }), EPERM);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_iopl, 3); }), EPERM);
}

TEST(SeccompPolicy, UnknownCallsAreNotThere) {
  EXPECT_EQ(errno_under_filter([] { return ::syscall(4000); }), ENOSYS);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }), ENOSYS);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_personality, 0x1234567); }), ENOSYS);
}

// One sandbox could use up fs.aio-max-nr for the whole machine.
TEST(SeccompPolicy, AsynchronousIoIsNotThere) {
  EXPECT_EQ(errno_under_filter([]() -> long {
              unsigned long context = 0;
              return ::syscall(SYS_io_setup, 1, &context);
            }),
            ENOSYS);
  for (const long number :
       {SYS_io_destroy, SYS_io_getevents, SYS_io_submit, SYS_io_cancel, SYS_io_pgetevents}) {
    static long called;
    called = number;
    EXPECT_EQ(errno_under_filter([] { return ::syscall(called, 0, 0, 0, 0, 0, 0); }), ENOSYS)
        << number;
  }
}

TEST(SeccompPolicy, OtherAbisAreNotThere) {
  // x32's getpid.
  EXPECT_EQ(errno_under_filter([] { return ::syscall(0x40000000 | SYS_getpid); }), ENOSYS);
#ifdef __x86_64__
  // i386's getpid, 20.
  EXPECT_EQ(errno_under_filter([]() -> long {
              long result = 20;
              asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
              if (result < 0) errno = static_cast<int>(-result);
              return result;
            }),
            ENOSYS);
#endif
}

TEST(SeccompPolicy, OnlyListedSocketFamilies) {
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0); }),
            EAFNOSUPPORT);
  // The kernel drops the upper half of the argument; the filter must not.
  EXPECT_EQ(errno_under_filter(
                [] { return ::syscall(SYS_socket, (1l << 32) | AF_VSOCK, SOCK_STREAM, 0); }),
            EAFNOSUPPORT);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0); }),
            EAFNOSUPPORT);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_socket, AF_APPLETALK, SOCK_DGRAM, 0); }),
            EAFNOSUPPORT);
  // XFRM
  EXPECT_NE(errno_under_filter([] { return ::syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 6); }), 0);
  EXPECT_EQ(errno_under_filter([] { return ::syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0); }), 0);
}

}  // namespace
}  // namespace alcove::jail
