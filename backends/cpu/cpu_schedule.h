/*
 * cpu_schedule.h - decode cut into tasks.
 *
 * A unit is a tile of rows of one request and kv head. Its keys are cut into
 * splits by a rule that looks at the request's own length only, and the parts
 * are folded in order, always; so a row's bits depend neither on threads nor
 * on its mates. What does depend on them is who computes the splits: one task
 * all, folding as it goes, or a task each or several, of some of the unit's
 * panels, folded afterwards.
 */
#ifndef MLA_CPU_SCHEDULE_H
#define MLA_CPU_SCHEDULE_H

#include "cpu_internal.h"
#include "cpu_parallel.h"

#define MLA_CPU_TILE_PANELS 8

typedef struct mla_cpu_unit {
  int64_t work;      /* rows x keys */
  int64_t length;    /* keys of the request */
  int64_t row;       /* first row, of rows_of_request = q_len * group */
  int64_t slot;      /* first slot of its parts; -1: one task does it all */
  int32_t rows;      /* of this tile */
  int32_t panels;    /* that hold them */
  int32_t request;   /* b */
  int32_t kv_head;   /* g */
  int32_t query_len; /* of the request */
} mla_cpu_unit;

typedef struct mla_cpu_work {
  int32_t unit;
  int32_t split;         /* -1: all of them */
  int32_t panel, panels; /* which of the unit's */
} mla_cpu_work;

typedef struct mla_cpu_schedule {
  int panels; /* of a tile */
  mla_cpu_unit *unit;
  mla_cpu_work *work;
  int64_t units, works;
  int64_t shared_units; /* the first of unit[], whose parts wait in slots */
  float *slots;         /* [slot] parts, of a unit split after split */
  int64_t slot_panels;  /* room, in panels */
  mla_cpu_progress *progress; /* of each shared unit: panels x splits */
} mla_cpu_schedule;

/* Keys of one split of a request; a multiple of MLA_CPU_BLOCK. */
int64_t mla_cpu_split_keys(int64_t length, int32_t wanted_splits);
int64_t mla_cpu_splits(int64_t length, int32_t wanted_splits);

/* Of any request within the limits, at most. */
int64_t mla_cpu_most_splits(const mla_cpu_context *context);

/* Query rows of a kv head that share one token. */
int64_t mla_cpu_group(const mla_problem *problem);
/* Panels of the largest tile that steps within the limits need. */
int mla_cpu_max_panels(const mla_cpu_context *context);

/* Memory for any step within the limits. */
void mla_cpu_schedule_take(mla_cpu_arena *arena, mla_cpu_schedule *schedule,
                           const mla_cpu_context *context);
void mla_cpu_schedule_make(mla_cpu_schedule *schedule,
                           const mla_cpu_context *context, int64_t requests,
                           const int32_t *seq_lens,
                           const int32_t *query_start_loc);

#endif
