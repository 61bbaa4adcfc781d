/*
 * args_faults.h - the rules for the tensors of a call, each broken once in a
 * lawful step (fixed_step.h), and odd steps that are lawful.
 */
#ifndef MLA_ARGS_FAULTS_H
#define MLA_ARGS_FAULTS_H

#include "mla/mla.h"

typedef enum change {
  NOTHING,
  SHAPE,   /* shape[index] = value */
  STRIDE,  /* stride[index] = value */
  DTYPE,   /* dtype = value */
  RANK,    /* rank = value */
  NO_DATA, /* data = NULL */
  AT_END,  /* data = the last `value` bytes of memory */
  SHIFT,   /* data moved by value bytes */
  GIVEN,   /* the slot holds a copy of the tensor in slot `index` */
  ELEMENT, /* element `index` = value */
  LIMIT,   /* the int64 at offset `index` of limits = value */
  ALIGN,   /* the backend asks for tensors on multiples of value */
  COUNT,   /* args.count = value */
  END
} change;

typedef struct broken {
  int op;
  uint64_t flags;
  int format;
  change how;
  int slot;
  int64_t index, value;
  const char *field;
  const char *says[3]; /* in the sentence: value, limit, who set it */
} broken;

/* Each ends with how == END. A lawful one has no field. */
extern const broken args_faults[];
extern const broken args_lawful[];
int broken_count(const broken *list);

#endif
