/*
 * cpu_options.h - the options of open(): "threads=N;isa=LEVEL".
 */
#ifndef MLA_CPU_OPTIONS_H
#define MLA_CPU_OPTIONS_H

#include "mla/backend.h"

typedef struct mla_cpu_options {
  int threads;   /* 1 .. MLA_CPU_MAX_THREADS */
  uint32_t mask; /* levels that kernels may use */
} mla_cpu_options;

/*
 * text NULL or "": as many threads as OpenMP would use, every level that this
 * machine runs. isa=LEVEL is a mask: that level and those below it.
 * INVALID_ARGUMENT: an unknown key or level, a bad number.
 * NOT_AVAILABLE: a level that this machine does not run.
 */
mla_status mla_cpu_options_parse(const char *text, mla_cpu_options *options,
                                 mla_error *err);

#endif
