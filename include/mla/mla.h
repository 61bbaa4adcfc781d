/*
 * mla/mla.h - the caller's side of libmla.
 *
 * Find a backend, open a device, ask, plan, run:
 *
 *   mla_device *dev;
 *   mla_open("cpu", 0, NULL, &dev, &err);
 *   mla_query(dev, &problem, &limits, &answer, &err);   yes or no, and why
 *   mla_plan_create(dev, &problem, &limits, &plan, &err);
 *   mla_run(plan, &args, workspace, answer.workspace_bytes, NULL, &err);
 *
 * Every function that returns a status checks all it can see on the host
 * before any work (docs/spec.md, section 6). `err` may be NULL everywhere.
 * Functions are thread-safe, except that one plan's workspace serves one run
 * at a time, and mla_plugin_load() must not race with mla_backend_at().
 */
#ifndef MLA_MLA_H
#define MLA_MLA_H

#include "mla/backend.h"
#include "mla/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mla_device mla_device; /* an opened device of a backend */
typedef struct mla_plan mla_plan;     /* a planned problem */

/* ------------------------------------------------------------- registry */

/* Backends built in, then plugins in order of loading. */
size_t mla_backend_count(void);
const mla_backend *mla_backend_at(size_t index);
const mla_backend *mla_backend_find(const char *name);

/*
 * Loads a shared object that exports mla_backend_get(). It is never unloaded.
 * Errors: NOT_AVAILABLE (no such file, no symbol), VERSION_MISMATCH (major,
 * short table), INVALID_ARGUMENT (a name that is taken, "ref" among them, a
 * missing required member, half a group of members).
 * MLA_PLUGIN_PATH (colon-separated files) is loaded by mla_plugins_from_env.
 */
mla_status mla_plugin_load(const char *path, const mla_backend **backend,
                           mla_error *err);
mla_status mla_plugins_from_env(mla_error *err);

/* --------------------------------------------------------------- problem */

/* Zeroed and sized, with op set: the start of every description. */
mla_problem mla_problem_init(mla_op op);
mla_limits mla_limits_init(void);
mla_answer mla_answer_init(void);
mla_error mla_error_init(void);

/* The defaults behind the zeros of a problem: D, v_dim, kv heads, E. */
int32_t mla_problem_head_dim(const mla_problem *problem);
int32_t mla_problem_v_dim(const mla_problem *problem);
int32_t mla_problem_kv_heads(const mla_problem *problem);
/* Elements of one cache entry (bytes for packed formats); 0: unknown. */
int64_t mla_problem_entry(const mla_problem *problem);

/* --------------------------------------------------------------- running */

mla_status mla_open(const char *backend, int32_t device, const char *options,
                    mla_device **dev, mla_error *err);
void mla_close(mla_device *dev);
const mla_backend *mla_device_backend(const mla_device *dev);
mla_handle *mla_device_handle(const mla_device *dev);
mla_status mla_device_describe(const mla_device *dev, mla_device_info *info,
                               mla_error *err);

/*
 * MLA_OK and answer->supported 0 or 1, or INVALID_ARGUMENT for a problem or
 * limits that break a rule.
 */
mla_status mla_query(mla_device *dev, const mla_problem *problem,
                     const mla_limits *limits, mla_answer *answer,
                     mla_error *err);
/* As query, but a "no" is UNSUPPORTED with the reason. */
mla_status mla_plan_create(mla_device *dev, const mla_problem *problem,
                           const mla_limits *limits, mla_plan **plan,
                           mla_error *err);
const mla_answer *mla_plan_answer(const mla_plan *plan);
mla_status mla_run(const mla_plan *plan, const mla_args *args, void *workspace,
                   uint64_t workspace_bytes, mla_stream stream, mla_error *err);
void mla_plan_free(mla_plan *plan);

/* ----------------------------------------------------------------- names */

const char *mla_status_name(mla_status status);    /* "INVALID_ARGUMENT" */
const char *mla_op_name(int32_t op);               /* "kv_write" or NULL */
int32_t mla_op_from_name(const char *name);        /* MLA_OP_NONE: unknown */
const char *mla_slot_name(int32_t slot);           /* "q_nope" or NULL */
int32_t mla_slot_from_name(const char *name);      /* -1: unknown */
const char *mla_dtype_name(int32_t dtype);         /* "bf16" or NULL */
int32_t mla_dtype_from_name(const char *name);     /* MLA_DTYPE_NONE */
const char *mla_format_name(int32_t cache_format); /* "fp8_ds_mla" or NULL */
int32_t mla_format_from_name(const char *name);    /* MLA_CACHE_NONE */

/* Bits of one element; 4 for MLA_I4, 0 for an unknown type. */
int32_t mla_dtype_bits(int32_t dtype);

#ifdef __cplusplus
}
#endif
#endif
