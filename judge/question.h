/*
 * question.h - cases for programs that are no backend: inputs in files, and
 * the outputs that somebody computed from them (golden/FORMAT.md, "A
 * question").
 *
 * Answers are judged like a backend's: "answers" is one, whose run() copies
 * what stands in the file that it was opened with.
 */
#ifndef MLA_QUESTION_H
#define MLA_QUESTION_H

#include <cjson/cJSON.h>

#include "vector.h"

#define MLA_QUESTION_FORMAT "mla-questions"

/*
 * Writes the inputs to `path`; *entry (never NULL on MLA_OK, freed by the
 * caller) is what an index says of them.
 */
mla_status mla_question_write(const mla_vector *v, const char *path,
                              cJSON **entry, mla_error *err);

/*
 * The backend "answers". Its option is "file=PATH": a safetensors file with
 * each output under its slot's name, dense, of its type. The file's metadata
 * may say
 *   mla-numerics     JSON of what was declared; absent members: f32
 *                    accumulation, P and up-projected values in q's type
 *   mla-unsupported  why there is no answer
 * Without a file it says no to everything.
 */
const mla_backend *mla_answers_backend(void);

/* "budget" members of mla-numerics by name; INVALID_ARGUMENT: a member or a
   value that is unknown. */
mla_status mla_numerics_read(const cJSON *json, mla_numerics *numerics,
                             mla_error *err);

#endif
