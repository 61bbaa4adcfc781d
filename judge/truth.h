/*
 * truth.h - judging a layer by what somebody else's implementation gave.
 *
 * A file of golden/external/README.md's form holds outputs only: inputs and
 * weights are drawn by name. The layer is built on the backend and run by
 * every route: prefill at once; prefill of one half over a paged past of the
 * other; absorbed decode, token by token, for every page size and number of
 * splits. All must agree with the file.
 *
 * How close is a matter of the arithmetic (docs/layer.md, "Judging"):
 *   - a backend that serves f64 (the reference): every route's output, its
 *     attention before o_proj and the latents within 1e-6 of the largest
 *     value in the file, which was made with f32 tables and norms;
 *   - any other runs in f32, and every single operation that it does on the
 *     way is held to the reference on the same inputs, within the derived
 *     budget; the distance to the file is reported.
 *
 * A layer with an indexer goes other ways: sparse prefill of all tokens at
 * once for every page size, the front of the sequence (as many tokens as the
 * indexer chooses) also by dense prefill; sparse decode, token by token. In
 * f64 every row must choose the file's positions by every way.
 */
#ifndef MLA_TRUTH_H
#define MLA_TRUTH_H

#include "mla/mla.h"
#include "safetensors.h"

#define MLA_TRUTH_TOLERANCE 1e-6 /* of the largest value */

/* Has the file the metadata key `truth`? Unreadable: no. */
int mla_truth_is(const char *path);
int mla_truth_is_file(const mla_st *file);

typedef enum mla_truth_verdict {
  MLA_TRUTH_FAIL = 0,
  MLA_TRUTH_PASS = 1,
  MLA_TRUTH_UNSUPPORTED = 2 /* the layer or the backend cannot; no pass */
} mla_truth_verdict;

/* Zeroed: page sizes 1, 16, 64 and splits 1, 2, 7, 64. */
typedef struct mla_truth_options {
  const int32_t *block_sizes;
  int32_t block_size_count;
  const int32_t *splits;
  int32_t split_count;
} mla_truth_options;

typedef struct mla_truth_result {
  int32_t verdict;      /* mla_truth_verdict */
  char name[64];        /* the file's case */
  char reason[240];     /* why not a pass; or a remark on a pass; or "" */
  int32_t activation;   /* mla_dtype the layer ran in */
  int32_t combinations; /* routes, page sizes, splits judged */
  int32_t distinct;     /* attentions that were not bit for bit an earlier
                           one, and so went through o_proj */
  /* Worst over all, of the largest value in the file. */
  double output_error;
  char output_where[64]; /* "decode, page 16, splits 7" */
  double attention_error;
  char attention_where[64];
  double latent_error;
  /* Backends without f64: worst error / budget of one operation, and how
     many operations were held to the reference. */
  double stage_ratio;
  char stage_where[96];
  int64_t stages;
  /* Layers with an indexer: rows whose choice was compared with the file's,
     over all routes, and those that differ. */
  int64_t choices, wrong_choices;
  char choice_where[64];
} mla_truth_result;

/*
 * MLA_OK: a verdict stands in result. Else there is none: NOT_AVAILABLE,
 * INVALID_ARGUMENT (the file), OUT_OF_MEMORY.
 */
mla_status mla_truth_judge(const char *path, mla_device *dev,
                           const mla_truth_options *options,
                           mla_truth_result *result, mla_error *err);

/* One line for a person, without a line end; as snprintf. */
int mla_truth_print(const mla_truth_result *result, char *text, size_t size);

#endif
