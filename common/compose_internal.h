/*
 * compose_internal.h - what compositions share: parts that are asked, planned
 * and run through the front door, and one workspace for all of them.
 *
 *   workspace: [what a part needs | index arrays | tensors between parts]
 *
 * Parts run one after another on a stream, so one piece serves them all.
 */
#ifndef MLA_COMPOSE_INTERNAL_H
#define MLA_COMPOSE_INTERNAL_H

#include "mla/compose.h"

enum { MLA_COMPOSE_PARTS = 7 };

typedef struct mla_compose_part {
  const char *name; /* in a reason: "the prefix" */
  mla_problem problem;
  mla_limits limits;
  mla_answer answer;
  mla_plan *plan;
} mla_compose_part;

/* A run under way. */
typedef struct mla_compose_call {
  const mla_tensor *tensor; /* [MLA_T_COUNT], absent ones zero */
  mla_step step;
  int64_t rows; /* query_start_loc[B] */
  unsigned char *workspace;
  uint64_t workspace_bytes;
  mla_stream stream;
} mla_compose_call;

typedef struct mla_composer {
  const char *name; /* "cascade" */
  int32_t op;       /* of the problem it stands for */
  /* Fills the parts; or refuses. */
  mla_status (*describe)(mla_composed *c, mla_error *err);
  /* Reserves what it needs; or refuses. After all parts said yes. */
  void (*lay_out)(mla_composed *c);
  /* What is beyond the checks of the one operation; may be NULL. */
  mla_status (*check)(const mla_composed *c, const mla_compose_call *call,
                      mla_error *err);
  mla_status (*run)(mla_composed *c, const mla_compose_call *call,
                    mla_error *err);
} mla_composer;

struct mla_composed {
  mla_device *dev;
  const mla_composer *composer;
  int itself; /* the backend does the whole: part 0 */
  int host;   /* the device's memory is the host's */
  mla_composition what;
  mla_problem problem;
  mla_limits limits; /* without hints */
  mla_answer answer;
  int32_t part_count;
  mla_compose_part part[MLA_COMPOSE_PARTS];

  uint64_t bytes;       /* of workspace so far; UINT64_MAX: overflow */
  uint64_t index_bytes; /* of index arrays, which begin at index_at */
  uint64_t index_at;
  unsigned char *staging; /* host copy of the index arrays */
  uint64_t at[9];         /* places of the composer's own arrays */
  int64_t size[4];        /* and numbers */
};

extern const mla_composer mla_composer_cascade;
extern const mla_composer mla_composer_chunked;
extern const mla_composer mla_composer_sharded;

/* cascade.c: keys of the step's prefix that fill whole blocks. */
int64_t mla_cascade_prefix(const mla_composed *c, const mla_compose_call *call);

/* ------------------------------------------------------------- describing */

/* The first reason stays. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void mla_compose_refuse(mla_composed *c, const char *format, ...);

/* One more part, its limits those of the whole without hints. */
mla_compose_part *mla_compose_add(mla_composed *c, const char *name,
                                  const mla_problem *problem);
/* A part of the decode or prefill that is merged later: no sink, with lse,
   its values as exact as lse. */
mla_problem mla_compose_partial(const mla_composed *c);
/* Merging parts of width `width` to partial results, or to the outputs. */
mla_problem mla_compose_merging(const mla_composed *c, int32_t width,
                                int final);
/* The type of partial results: f64 where q is, else f32. */
int32_t mla_compose_wide(const mla_composed *c);

/* Is the alignment that a part wants of tensors more than the element's? */
int mla_compose_strict(const mla_compose_part *part, int32_t dtype);

/* -------------------------------------------------------------- workspace */

/* A place for count * each bytes, aligned for every part. */
uint64_t mla_compose_reserve(mla_composed *c, uint64_t count, uint64_t each);
/* Likewise among the index arrays; to be called first. */
uint64_t mla_compose_reserve_index(mla_composed *c, uint64_t count,
                                   uint64_t each);
/* `n` elements rounded up to whole alignments. */
int64_t mla_compose_padded(const mla_composed *c, int64_t n, int32_t dtype);

/* ---------------------------------------------------------------- running */

/* The host's copy of an index array; all go to the device together. */
void *mla_compose_host(const mla_composed *c, uint64_t at);
mla_status mla_compose_upload(mla_composed *c, const mla_compose_call *call,
                              mla_error *err);
/* A dense tensor in the workspace. */
mla_tensor mla_compose_tensor(const mla_compose_call *call, uint64_t at,
                              int32_t dtype, int32_t rank,
                              const int64_t *shape);
mla_tensor mla_compose_vector(const mla_compose_call *call, uint64_t at,
                              int32_t dtype, int64_t length);
/* Rows [first, first + count) of a tensor. */
mla_tensor mla_compose_rows(const mla_tensor *t, int64_t first, int64_t count);
/* tensor[MLA_T_COUNT] */
mla_status mla_compose_run(const mla_composed *c, const mla_compose_call *call,
                           int32_t part, const mla_tensor *tensor,
                           mla_error *err);
/* Merges into rows [first, first + rows) of the call's outputs, with its
   sink. */
mla_status mla_compose_join(const mla_composed *c, const mla_compose_call *call,
                            int32_t part, mla_tensor parts, mla_tensor lses,
                            int64_t first, int64_t rows, mla_error *err);

#endif
