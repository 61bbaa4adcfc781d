/*
 * composed.h - a device whose decode or prefill is a composition over those of
 * another: how cases with cascade, ranks or chunked judge a backend's parts
 * together, by the same fences, budgets and repetitions as its operations.
 */
#ifndef MLA_COMPOSED_H
#define MLA_COMPOSED_H

#include "vector.h"

/*
 * *over is the device itself for a vector that asks for no composition; else
 * one to be closed before it, by mla_composed_close.
 */
mla_status mla_composed_device(mla_device *device, const mla_vector *v,
                               mla_device **over, mla_error *err);
void mla_composed_close(mla_device *over, mla_device *device);

#endif
