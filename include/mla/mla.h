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
 * before any work (docs/spec.md, section 6); when it fails, outputs are as
 * they were, and `err`, which may be NULL everywhere, has a sentence with the
 * field, its value and the limit.
 *
 * Structs may come from a caller built against another minor: what a shorter
 * one lacks reads 0, what a longer one adds must be 0 (docs/abi.md).
 *
 * All functions may be called from any thread at any time, with these limits:
 * one workspace serves one run at a time, and a device or plan must not be in
 * use when it is closed or freed. Plans are freed before their device is
 * closed.
 */
#ifndef MLA_MLA_H
#define MLA_MLA_H

#include "mla/backend.h"
#include "mla/version.h"

/* Marks what a shared libmla exports; nothing else is visible. */
#if defined(__GNUC__) && !defined(_WIN32)
#define MLA_API __attribute__((visibility("default")))
#else
#define MLA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mla_device mla_device; /* an opened device of a backend */
typedef struct mla_plan mla_plan;     /* a planned problem */

/* MLA_VERSION_STRING of the library that runs, e.g. "0.1.0". */
MLA_API const char *mla_version(void);

/* ------------------------------------------------------------- registry */

/* Backends built in ("ref" is always one), then plugins in order of loading.
   Tables live for ever; mla_backend_find: NULL when there is none. */
MLA_API size_t mla_backend_count(void);
MLA_API const mla_backend *mla_backend_at(size_t index);
MLA_API const mla_backend *mla_backend_find(const char *name);

/*
 * Loads a shared object that exports mla_backend_get(), and keeps it for
 * ever. `path` names a file; without a slash it is one in the working
 * directory. *backend (may be NULL) is a full table, whatever the plugin's
 * minor; loading the same object again finds it again.
 * Errors: NOT_AVAILABLE (no such file, no symbol), VERSION_MISMATCH (major,
 * short table), INVALID_ARGUMENT (a name that is taken, "ref" among them, a
 * missing required member, half a group of members).
 *
 * mla_plugins_from_env loads the files of MLA_PLUGIN_PATH, separated by
 * colons: all that load, and returns what the first failure returned.
 */
MLA_API mla_status mla_plugin_load(const char *path,
                                   const mla_backend **backend, mla_error *err);
MLA_API mla_status mla_plugins_from_env(mla_error *err);

/* --------------------------------------------------------------- problem */

/* Zeroed and sized, with op set: the start of every description. */
MLA_API mla_problem mla_problem_init(mla_op op);
MLA_API mla_limits mla_limits_init(void);
MLA_API mla_answer mla_answer_init(void);
MLA_API mla_error mla_error_init(void);

/* The defaults behind the zeros of a problem: D, v_dim, kv heads, E. */
MLA_API int32_t mla_problem_head_dim(const mla_problem *problem);
MLA_API int32_t mla_problem_v_dim(const mla_problem *problem);
MLA_API int32_t mla_problem_kv_heads(const mla_problem *problem);
/* Elements of one cache entry (bytes for packed formats); 0: unknown. */
MLA_API int64_t mla_problem_entry(const mla_problem *problem);

/* --------------------------------------------------------------- running */

/*
 * options: the backend's own, "key=value;key=value", or NULL.
 * Errors: NOT_AVAILABLE (no such backend; no device, driver or library here),
 * INVALID_ARGUMENT (device out of range, an unknown option).
 */
MLA_API mla_status mla_open(const char *backend, int32_t device,
                            const char *options, mla_device **dev,
                            mla_error *err);
MLA_API void mla_close(mla_device *dev); /* NULL is allowed */
MLA_API const mla_backend *mla_device_backend(const mla_device *dev);
MLA_API mla_handle *mla_device_handle(const mla_device *dev);
/* info->size is set by the caller. */
MLA_API mla_status mla_device_describe(const mla_device *dev,
                                       mla_device_info *info, mla_error *err);

/*
 * MLA_OK and answer->supported 0 or 1, or INVALID_ARGUMENT for a problem or
 * limits that break a rule. Flags must mean something for the operation;
 * sizes and limits that it uses must be > 0 (head_dim, v_dim, num_kv_heads,
 * num_splits and context_chunk may be 0, with the meaning in backend.h).
 *
 * Which limits an operation uses follows from its tensors: tokens bounds N,
 * T, M, the length of slot_mapping and the rows of dst; requests bounds B;
 * table_width W; num_blocks the blocks of each cache; parts S; max_seq_len
 * the entries of seq_lens (kv_read: the length gathered for one request);
 * max_query_len the rows of a request in query_start_loc.
 */
MLA_API mla_status mla_query(mla_device *dev, const mla_problem *problem,
                             const mla_limits *limits, mla_answer *answer,
                             mla_error *err);
/* As query, but a "no" is UNSUPPORTED with the reason. */
MLA_API mla_status mla_plan_create(mla_device *dev, const mla_problem *problem,
                                   const mla_limits *limits, mla_plan **plan,
                                   mla_error *err);
MLA_API const mla_answer *mla_plan_answer(const mla_plan *plan);

/*
 * Checks the arguments, and hands them to the backend. Tensors must be those
 * of the operation and its flags, no more and no fewer. Contents of index
 * tensors are checked when the device's memory is the host's; elsewhere bad
 * ones are undefined behaviour.
 *
 * A step may be empty: N, T, M, the length of slot_mapping and the rows of
 * dst may be 0 (data may then be NULL, with rank and shape given). Nothing is
 * done then, and the backend is not called. B, W, S and the numbers of blocks
 * are at least 1; a request without a query row or without a key is lawful
 * (its blocks are then not looked at).
 * In decode seq_len may be less than the query length: the first rows see
 * nothing. In prefill it may not, and without MLA_CONTEXT they are equal.
 *
 * Elements of outputs and caches must not overlap each other, and a cache's
 * block stride spans a whole block; inputs may overlap (a stride of 0).
 * Packed cache entries hold f32 scales or bf16 values: their address and
 * strides are multiples of 4 (fp8_584: of 2) bytes.
 */
MLA_API mla_status mla_run(const mla_plan *plan, const mla_args *args,
                           void *workspace, uint64_t workspace_bytes,
                           mla_stream stream, mla_error *err);
MLA_API void mla_plan_free(mla_plan *plan); /* NULL is allowed */

/* ------------------------------------------------------------- selection */

/* What is wanted beside being right; zeros: nothing more. */
typedef struct mla_wish {
  uint32_t size;
  int32_t memory_space; /* where the tensors lie; 0: anywhere */
  int32_t determinism;  /* mla_determinism, at least */
  int32_t capture_safe; /* nonzero: run() must be */
} mla_wish;

/* A backend's device, and what it said. */
typedef struct mla_candidate {
  uint32_t size;
  int32_t usable;       /* 1: it can serve; 0: the reason says why not */
  const char *backend;  /* its name, for ever */
  int32_t device;       /* for mla_open; -1: it has none here */
  int32_t memory_space; /* mla_memory_space; 0: it did not say */
  int64_t rank;         /* order of preference, lower is better */
  char reason[240];
  mla_answer answer; /* when it was asked; last, since it may grow */
} mla_candidate;

MLA_API mla_wish mla_wish_init(void);
MLA_API mla_candidate mla_candidate_init(void);

/*
 * Asks every device of every backend, and writes what they said to choices[0,
 * room), the best first, the refused behind those that can serve; choices[0]
 * .size is set by the caller and holds for all. *count (may be NULL) is how
 * many were written. What comes first:
 *
 *   devices with memory of their own, then the host's, then "ref";
 *   among these plugins, then what is built in;
 *   among these in order of the registry and of the devices.
 *
 * Devices are opened and closed: for start-up, not for every step.
 * Errors: UNSUPPORTED (none can; choices say why), INVALID_ARGUMENT (a problem
 * or limits that break a rule, an unknown wish, no room).
 */
MLA_API mla_status mla_select(const mla_problem *problem,
                              const mla_limits *limits, const mla_wish *wish,
                              mla_candidate *choices, size_t room,
                              size_t *count, mla_error *err);

/* ----------------------------------------------------------------- names */

MLA_API const char *mla_status_name(mla_status status); /* "OUT_OF_MEMORY" */
MLA_API const char *mla_op_name(int32_t op);            /* "kv_write" or NULL */
MLA_API int32_t mla_op_from_name(const char *name);   /* MLA_OP_NONE: unknown */
MLA_API const char *mla_slot_name(int32_t slot);      /* "q_nope" or NULL */
MLA_API int32_t mla_slot_from_name(const char *name); /* -1: unknown */
MLA_API const char *mla_dtype_name(int32_t dtype);    /* "bf16" or NULL */
MLA_API int32_t mla_dtype_from_name(const char *name);     /* MLA_DTYPE_NONE */
MLA_API const char *mla_format_name(int32_t cache_format); /* "bf16" or NULL */
MLA_API int32_t mla_format_from_name(const char *name);    /* MLA_CACHE_NONE */

/* Bits of one element; 4 for MLA_I4, 0 for an unknown type. */
MLA_API int32_t mla_dtype_bits(int32_t dtype);

#ifdef __cplusplus
}
#endif
#endif
