/*
 * machine.c - the machine that this runs on.
 */
#define _POSIX_C_SOURCE 200809L
#include "machine.h"

#include <time.h>

const char *mla_machine_name(void) {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__i386__)
  return "i686";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv)
  return "riscv";
#elif defined(__powerpc64__)
  return "powerpc64";
#elif defined(__s390x__)
  return "s390x";
#else
  return "";
#endif
}

double mla_machine_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
