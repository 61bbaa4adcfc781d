/*
 * test_cpu_fixture.h - a problem with deterministic tensors, run on "cpu" and
 * judged by the reference's expectation and derived budget.
 */
#ifndef MLA_TEST_CPU_FIXTURE_H
#define MLA_TEST_CPU_FIXTURE_H

#include "mla/mla.h"
#include "op_table.h"

typedef struct cpu_case {
  mla_problem problem;
  mla_limits limits;
  int64_t free_dim[MLA_S_COUNT]; /* of free symbols, by mla_sym */
  int64_t pad;                   /* elements between rows, beyond dense */
  double amplitude;              /* of the inputs' bell values */
  mla_tensor tensor[MLA_T_COUNT];
} cpu_case;

/* An empty case of an operation: f32 everywhere, amplitude 1, dense. */
cpu_case cpu_case_init(mla_op op);
/* Allocates every tensor that applies and fills the real-valued inputs with
   bell values; caches with NaN, outputs with a pattern; index tensors are 0. */
void cpu_case_build(cpu_case *c);
void cpu_case_free(cpu_case *c);
mla_args cpu_case_args(const cpu_case *c);

/*
 * Pages for B requests of these lengths (context and query tokens alike):
 * fills seq_lens, query_start_loc and a shuffled block table, and gives the
 * used entries of the caches bell values, leaving the rest NaN. table entries
 * past the last used page are -1. Call between setting sizes and judging:
 * cpu_case_build() has been called.
 */
void cpu_case_requests(cpu_case *c, const int32_t *seq_lens,
                       const int32_t *query_lens);
/* Sets B, N, W, NB and the limits for such requests; before building. */
void cpu_case_size_requests(cpu_case *c, int64_t requests,
                            const int32_t *seq_lens, const int32_t *query_lens);

/*
 * Runs on 1, 2 and 3 threads at the levels under test, each twice with
 * differently poisoned outputs and workspace, canaries behind the workspace and
 * allocations counted; all must be equal to the bit. Compares with the
 * reference. Returns the worst error / budget (lse and out alike); prints it.
 */
double cpu_case_judge(cpu_case *c, const char *what);
/* Runs once; for tests that look at outputs themselves. */
void cpu_case_run(cpu_case *c, const char *options);

/* Bytes of an output tensor, gaps included. */
int64_t cpu_tensor_bytes(const mla_tensor *t);

/* Allocations since the program began, by the code under test. */
long cpu_allocations(void);

#endif
