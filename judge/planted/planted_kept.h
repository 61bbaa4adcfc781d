/*
 * planted_kept.h - faults that keep something from one call to the next.
 */
#ifndef MLA_PLANTED_KEPT_H
#define MLA_PLANTED_KEPT_H

#include "planted_core.h"

/* The problem of the first plan of the same shapes. */
void planted_share_plan(mla_problem *p);
/* Of tensor[MLA_T_COUNT] those that the plan's fault read once and for all. */
void planted_keep(mla_backend_plan *plan, mla_tensor *tensor);

#endif
