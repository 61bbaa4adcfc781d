/*
 * gpu_fast.h - kernels for particular devices, asked before the portable
 * ones.
 */
#ifndef MLA_GPU_FAST_H
#define MLA_GPU_FAST_H

#include "gpu_host.h"

typedef struct mla_gpu_fast {
  /* Whether it serves a problem, at query... */
  int (*serves)(const mla_handle *h, const mla_problem *p, const mla_limits *l);
  uint64_t (*workspace)(const mla_handle *h, const mla_problem *p,
                        const mla_limits *l);
  /* ... and what it promises, its name among it: amends the answer for the
     portable kernel. */
  void (*describe)(const mla_problem *p, mla_answer *answer);
  /* Whether it takes these tensors, at run: strides that it cannot take go to
     the portable kernel. */
  int (*takes)(const mla_gpu_call *c);
  mla_status (*run)(const mla_gpu_call *c);
} mla_gpu_fast;

#endif
