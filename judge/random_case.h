/*
 * random_case.h - cases drawn at random from all that a case can say.
 *
 * Case number `index` of a seed is the same on every machine and in every
 * run, whatever was drawn before it. What is drawn and how often stands in
 * random_axes.c, a line for each attribute. What has no line there, attribute,
 * operation or format, is drawn seldom, from few values.
 */
#ifndef MLA_RANDOM_CASE_H
#define MLA_RANDOM_CASE_H

#include "case.h"

/* Work and memory of one case, at most. */
#define MLA_RANDOM_FLOPS 12e6
#define MLA_RANDOM_BYTES 4e6

/*
 * A lawful case, canonical, and the seed of its data. 0: many tries gave
 * none, which leaves *c undefined.
 */
int mla_random_case(uint64_t seed, uint64_t index, mla_case *c,
                    uint64_t *data_seed);

/* --------------------------------------------- between the drawing files */

typedef enum mla_axis_how {
  MLA_AXIS_AMONG,   /* one of values[] */
  MLA_AXIS_REALS,   /* one of reals[] */
  MLA_AXIS_UP_TO,   /* 1 to values[0], small ones as often as large ones */
  MLA_AXIS_ANY,     /* flags and words: any but the default */
  MLA_AXIS_LENGTHS, /* a list: edges of pages and tiles, 0, anything */
  MLA_AXIS_QUERIES  /* a list: mostly one */
} mla_axis_how;

/* How one attribute is drawn. */
typedef struct mla_axis {
  int16_t key;    /* mla_case_key */
  int16_t op;     /* of this operation alone; 0: of all */
  int16_t chance; /* of leaving its default, in 100 */
  int16_t how;
  int32_t count;
  const int64_t *values;
  const double *reals;
} mla_axis;

/* The line of an attribute; one that stands for no line of its own. */
mla_axis mla_axis_of(int32_t op, int key);
/* How often, in proportion; 0: there is no such operation, no such format. */
int32_t mla_random_op_weight(int32_t op);
int32_t mla_random_format_weight(int32_t format);

#endif
