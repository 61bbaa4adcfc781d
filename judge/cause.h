/*
 * cause.h - more runs of a call that failed, to tell why.
 */
#ifndef MLA_CAUSE_H
#define MLA_CAUSE_H

#include "hearing.h"

/* A later run gave other bits than the first: fills differs, unstable and
   follows, and says so in the verdict's reason. */
void mla_find_cause(hearing *h);

/* The first run's values are wrong: are they right where tensors lie at
   multiples of more than they were promised? Then follows says so. */
void mla_find_alignment(hearing *h);

/* Where wrong values are none that is finite, runs the call again with zeros
   in what must not be read: evidence->calm. The vector lives as long as the
   evidence, and is to be freed, whatever is found. */
void mla_find_calm(hearing *h, mla_vector *calm, mla_evidence *evidence);

#endif
