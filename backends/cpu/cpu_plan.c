/*
 * plan, run, plan_free: a plan is the context with its operation, nothing
 * that depends on lengths; those are read when it runs.
 */
#include <stdlib.h>

#include "cpu_internal.h"
#include "error.h"

mla_status mla_cpu_plan(mla_handle *handle, const mla_problem *problem,
                        const mla_limits *limits, mla_backend_plan **plan,
                        mla_error *err) {
  mla_answer answer = {0};
  answer.size = (uint32_t)sizeof answer;
  mla_cpu_query(handle, problem, limits, &answer, err);
  if (!answer.supported)
    return mla_fail(err, MLA_UNSUPPORTED, "problem", "%s", answer.reason);
  mla_backend_plan *made = malloc(sizeof *made);
  if (!made)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "plan",
                    "no memory for a plan of %d bytes", (int)sizeof *made);
  made->context = mla_cpu_context_make(handle, problem, limits);
  made->op = mla_cpu_op_of(made->context.problem.op);
  made->workspace_bytes = answer.workspace_bytes;
  *plan = made;
  return MLA_OK;
}

mla_status mla_cpu_run(const mla_backend_plan *plan, const mla_args *args,
                       void *workspace, uint64_t workspace_bytes,
                       mla_stream stream, mla_error *err) {
  (void)stream;
  if (workspace_bytes < plan->workspace_bytes)
    return mla_fail(err, MLA_WORKSPACE_TOO_SMALL, "workspace_bytes",
                    "workspace_bytes is %llu, this plan needs %llu",
                    (unsigned long long)workspace_bytes,
                    (unsigned long long)plan->workspace_bytes);
  if (plan->workspace_bytes &&
      (!workspace || (uintptr_t)workspace % MLA_CPU_ALIGNMENT))
    return mla_fail(err, MLA_INVALID_ARGUMENT, "workspace",
                    "workspace is %p, it must be a multiple of %d", workspace,
                    MLA_CPU_ALIGNMENT);
  plan->op->run(&plan->context, args, workspace);
  return MLA_OK;
}

void mla_cpu_plan_free(mla_backend_plan *plan) {
  free(plan);
}
