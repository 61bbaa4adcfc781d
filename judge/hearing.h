/*
 * hearing.h - one vector under judgement; between judge.c and repeat.c.
 */
#ifndef MLA_HEARING_H
#define MLA_HEARING_H

#include "judge.h"
#include "place.h"

/* Of all tensors: above that, one repetition must do. */
#define MLA_REPEAT_BYTES ((int64_t)16 << 20)

typedef struct hearing {
  mla_device *device; /* composes, where the case asks for it, over base */
  mla_device *base;
  const mla_vector *v;
  const mla_judge_options *options;
  mla_verdict *verdict;
  mla_answer answer;
  mla_limits limits;
  mla_plan *plan, *beside, *stranger;
  mla_place place;
  mla_expectation expectation;
  mla_error err;
  unsigned char *first[MLA_T_COUNT]; /* outputs of the first run */
  int observed;                      /* the observer has seen the failure */
} hearing;

/* Ends the hearing: returns 0, so that steps can be chained with &&. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int
mla_hearing_end(hearing *h, int32_t kind, const char *format, ...);

/* v, or the same call with other poison: copied, run, fetched. 0: ended. */
int mla_hearing_run(hearing *h, const mla_vector *v, unsigned char poison,
                    mla_side side);
/* The call with what lies there. */
int mla_hearing_go(hearing *h);
/* Other contents, and shorter lengths, where the vector's tensors are. */
int mla_hearing_put_others(hearing *h);
/* Are the vector's numbers those of its recipe? */
int mla_hearing_can_remake(const mla_vector *v);
/* Of all tensors, gaps too: too many bytes for what is done with small ones. */
int mla_hearing_is_large(const mla_vector *v);
/* What that run touched and should not have. */
void mla_hearing_check_fences(hearing *h, unsigned char poison);
/* One more run; are the bits those of the first? -1: it did not end well. */
int mla_hearing_run_again(hearing *h, const mla_vector *v, unsigned char poison,
                          mla_side side);
/* What a plan serves before the vector, where the case asks for it. */
int mla_hearing_serve_earlier(hearing *h, unsigned char poison);
int mla_hearing_is_output(const hearing *h, int slot);
/* What the last run gave in that slot, filled with that poison before it. */
mla_status mla_hearing_compare(hearing *h, int slot, unsigned char poison,
                               mla_output_verdict *o);

/* Runs it again with other poisons, on the other side of the pages. */
void mla_repeat(hearing *h);
/* Before the plan another one of the same shapes, and its run: earlier.c. */
void mla_serve_stranger(hearing *h);
/* A plan that serves other contents at the same addresses, then these. */
void mla_serve_others(hearing *h);
/* Beside another thread, where the case asks for it: crowd.c. */
void mla_crowd(hearing *h);
/* Are the outputs the first run's, to the bit where bits are promised? 0: the
   slot that differs is in *wrong. */
int mla_hearing_is_again(const hearing *h, int *wrong);
/* As a graph, where that was declared to be safe: replay.c. */
void mla_replay_graph(hearing *h);

#endif
