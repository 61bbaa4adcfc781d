/*
 * suite.h - lists of cases by name: profiles.
 *
 * A profile is a text file, one case a line:
 *
 *   @title  what it is for
 *   @limit  3e9           floating-point operations of all cases, at most
 *   @include dense        the cases of another profile
 *   # a remark
 *   decode:bf16:b1,h16,q1,page16,len=33    PAGE-SIZE TAIL-NAN
 *   ?decode:f64:b1,h1,q1,page16,len=3      EMPTY-ROW seed=7
 *   decode:f32:b1,h1,q1,page16,len=3!scale=0
 *
 * Cases of batch building (batch_case.h) may stand among them.
 *
 * Behind the case stand the classes of docs/hazards.md that it hunts. A "?"
 * marks a case that a backend may leave unsupported; all others are asked of
 * it. A "!" begins a change that makes the call invalid (invalid.h).
 *
 * Those of golden/profiles are built into the judge; "model:NAME" is made of a
 * model's sizes (model_presets.h); any other is a path.
 */
#ifndef MLA_SUITE_H
#define MLA_SUITE_H

#include "vector.h"

#define MLA_SUITE_SEED 42 /* of cases that name none */

typedef struct mla_suite_entry {
  char *id; /* canonical */
  char hunts[MLA_HUNTS_MAX];
  uint64_t seed;
  int optional;
} mla_suite_entry;

typedef struct mla_suite {
  char name[64];
  char title[128];
  double limit; /* 0: none */
  int64_t count;
  mla_suite_entry *entry;
} mla_suite;

/* NOT_AVAILABLE: no such profile or file; INVALID_ARGUMENT: a line of it. */
mla_status mla_suite_load(const char *name, mla_suite *suite, mla_error *err);
/* The same from text; `name` is for sentences. */
mla_status mla_suite_parse(const char *name, const char *text, mla_suite *suite,
                           mla_error *err);
mla_status mla_suite_add(mla_suite *suite, const char *id, uint64_t seed,
                         const char *hunts, int optional, mla_error *err);
void mla_suite_init(mla_suite *suite, const char *name);
void mla_suite_free(mla_suite *suite);
/* Work of all cases together. */
double mla_suite_flops(const mla_suite *suite);

/* Names of the built-in profiles; NULL past the last. */
const char *mla_suite_builtin(int i);

#endif
