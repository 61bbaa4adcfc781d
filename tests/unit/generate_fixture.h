/*
 * generate_fixture.h - vectors of cases by name, and what is expected of them.
 */
#ifndef MLA_GENERATE_FIXTURE_H
#define MLA_GENERATE_FIXTURE_H

#include "generate.h"

/* With seed 42. To be freed by mla_vector_free. */
void make_vector(const char *id, mla_poison poison, mla_vector *v);
/* The reference's values of an output, row after row; to be freed. */
double *expected_of(const mla_vector *v, int32_t slot, int64_t *count);

#endif
