/*
 * witness.h - a backend that says yes to everything and does nothing but
 * remember: what libmla passed on, and how often.
 */
#ifndef MLA_WITNESS_H
#define MLA_WITNESS_H

#include "mla/mla.h"

typedef struct witness {
  /* What it answers; set before a call. */
  int32_t devices;
  int32_t memory_space;
  mla_answer answer;
  mla_status fail_with; /* of open, query, plan and run */
  mla_error failure;    /* copied out whole, when it fails */
  /* What it saw. */
  int runs, opens, closes, plans, frees;
  mla_problem problem;
  mla_limits limits;
  mla_args args;
  void *workspace;
} witness;

extern witness the_witness;

/* A table of size bytes with this name; memory members only when asked. */
mla_backend witness_table(const char *name, int with_memory);
/* Resets the_witness, registers "witness" once, opens it. */
mla_device *witness_open(void);

#endif
