/*
 * digest_group.h - what the groups of oracle_digest share.
 */
#ifndef DIGEST_GROUP_H
#define DIGEST_GROUP_H

#include "fixed_case.h"

/* One digest at a time is open; values go to it in order. */
void digest_begin(void);
void digest_bits(uint64_t bits);
void digest_double(double value);
/* All of the tensor's memory, gaps between rows too. */
void digest_tensor(const mla_tensor *tensor);
/* Closes the digest, prints it with -v, and adds it to the total. */
uint64_t digest_end(const char *name);

/*
 * The call through mla_oracle_run, its outputs digested; then the call
 * through mla_expect, its values and the budgets of several arithmetics.
 * num_splits and context_chunk are those of c->limits.
 */
void digest_run(fixed_case *c);
void digest_expect(const fixed_case *c, const mla_numerics *emulate);

/* A check of the program's own: unequal digests end it with status 1. */
void digest_same(const char *what, uint64_t a, uint64_t b);

/* The groups. */
void digest_dmath(void);
void digest_dtypes(void);
void digest_decode(void);
void digest_prefill(void);
void digest_merge(void);
void digest_products(void);
void digest_cache(void);
void digest_formats(void);
void digest_layer(void);
void digest_sparse(void);
void digest_steps(void);

#endif
