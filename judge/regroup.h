/*
 * regroup.h - the same rows in another batch, or in other pages.
 *
 * A backend that declares batch invariance promises that a row's bits follow
 * from its own data alone. Data of a case is a function of the request and
 * the position in it, so the first request can be run without its mates, and
 * the others where their tokens stand elsewhere.
 */
#ifndef MLA_REGROUP_H
#define MLA_REGROUP_H

#include "hearing.h"

/*
 * got[slot]: outputs of the whole batch: out and lse, positions and logits.
 * *differs 1: a row of the first request has other bits alone; 2: one of the
 * others has (unless they are large) without the first one's tokens. Vectors
 * that cannot be regrouped (no recipe, one request, no tokens): MLA_OK, nothing
 * done. Else whatever the backend says.
 */
mla_status mla_regroup_check(mla_device *device, const mla_vector *v,
                             unsigned char *const *got, int *differs,
                             mla_error *err);

/*
 * All requests with other physical pages, strides, page size, splits and
 * chunks (as far as the backend takes them): the values must be right there
 * too. Adds to a verdict that is a pass so far.
 */
void mla_regroup_elsewhere(hearing *h);

#endif
