/*
 * truth_fixture.h - what the tests of truth.h share.
 */
#ifndef MLA_TRUTH_FIXTURE_H
#define MLA_TRUTH_FIXTURE_H

#include "truth.h"

/* The verdict on a file; the test fails if there is none. */
mla_truth_result judge_truth(const char *path, const char *backend);
/* By fewer ways than all. */
mla_truth_result judge_truth_by(const char *path, const char *backend,
                                const mla_truth_options *options);
/* The line printed of it; valid until the next call. */
const char *truth_line(const mla_truth_result *result);
/* Replaces a piece of a text that must be there. */
void edit_json(char *text, size_t size, const char *from, const char *to);

#endif
