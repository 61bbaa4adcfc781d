/*
 * spoiled.h - requests that dist=nan leaves without a meaning.
 *
 * A NaN in a visible key makes its own row undefined, and must not touch any
 * other (docs/spec.md, 3.6). Keys of every other request are NaN throughout;
 * what a backend makes of that request's rows is overwritten before anything
 * is compared, so that only its neighbours are judged.
 */
#ifndef MLA_SPOILED_H
#define MLA_SPOILED_H

#include "vector.h"

/* Are all keys of request b NaN? */
int mla_case_is_spoiled(const mla_case *c, int64_t b);
/* The one value that stands for any, in the undefined rows of out and lse;
   bytes: the slot's, laid out as in v. */
void mla_spoiled_settle(const mla_vector *v, int32_t slot,
                        unsigned char *bytes);

#endif
