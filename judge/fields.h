/*
 * fields.h - the members of mla_problem and mla_limits by name, as data: for
 * files of vectors, changes of invalid cases, and printing.
 */
#ifndef MLA_FIELDS_H
#define MLA_FIELDS_H

#include "mla/mla.h"

typedef enum mla_field_kind {
  MLA_FIELD_I32,
  MLA_FIELD_I64,
  MLA_FIELD_REAL,
  MLA_FIELD_OP,
  MLA_FIELD_DTYPE,
  MLA_FIELD_FORMAT,
  MLA_FIELD_FLAGS /* names joined by "+" */
} mla_field_kind;

typedef struct mla_field {
  const char *name;
  int32_t kind;
  size_t offset;
} mla_field;

/* In the order of the struct; name is NULL past the last. */
extern const mla_field mla_problem_fields[];
extern const mla_field mla_limits_fields[];

const mla_field *mla_field_find(const mla_field *fields, const char *name);
int mla_field_is_zero(const mla_field *field, const void *object);
/* The value as text: "128", "bf16", "causal+return_lse"; as snprintf. */
int mla_field_print(const mla_field *field, const void *object, char *text,
                    size_t size);
/* From text: such names, or a number (flags: also 0x..). 0: not a value. */
int mla_field_set(const mla_field *field, void *object, const char *text);

/* Bit names of mla_problem.flags: "causal"; NULL past the last. */
const char *mla_flag_word(int bit);

#endif
