/*
 * safetensors_types.h - the element types of the format, for its two halves.
 */
#ifndef MLA_SAFETENSORS_TYPES_H
#define MLA_SAFETENSORS_TYPES_H

#include "mla/mla.h"

#define MLA_ST_METADATA "__metadata__"

typedef struct mla_st_type {
  const char *name;
  int32_t dtype; /* MLA_DTYPE_NONE: lawful in a file, unknown to us */
  int32_t width; /* bytes an element */
  int32_t unit;  /* bytes whose order depends on the machine */
} mla_st_type;

/* NULL: not a type we can size. */
const mla_st_type *mla_st_type_named(const char *name);
const mla_st_type *mla_st_type_of(int32_t dtype);

/* Is the host's order not the file's? */
int mla_st_swaps(void);
/* Reverses every unit of an array, in place. */
void mla_st_swap(void *data, uint64_t bytes, int32_t unit);

/* Elements of a shape times width; 0 and a false return on overflow. */
int mla_st_size(const int64_t *shape, int32_t rank, int32_t width,
                uint64_t *bytes);

#endif
