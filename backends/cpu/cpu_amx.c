/*
 * Linux gives a process AMX tiles only on request, since their state is 8 KiB
 * a thread. Asking twice is harmless; threads inherit the answer.
 */
#if defined(__linux__) && defined(__x86_64__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall() */
#endif
#include <sys/syscall.h>
#include <unistd.h>
#endif

int mla_cpu_amx_permitted(void);

int mla_cpu_amx_permitted(void) {
#if defined(__linux__) && defined(__x86_64__) && defined(SYS_arch_prctl)
  enum { request_permission = 0x1023, tile_data = 18 };
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return 0;
#endif
}
