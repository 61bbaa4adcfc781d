/*
 * support.h - what a backend serves, found out by asking its query.
 *
 * A row is an operation, or a way of using it, as the name of a plain case
 * with the format left open; its cells are the cache formats (for operations
 * without a cache, types).
 */
#ifndef MLA_TOOL_SUPPORT_H
#define MLA_TOOL_SUPPORT_H

#include "mla/mla.h"

/* "decode", "decode, sparse"; NULL past the last. */
const char *support_row(int row);

typedef enum support_answer {
  SUPPORT_NONE, /* there is no such case */
  SUPPORT_NO,   /* answer->reason says why */
  SUPPORT_YES   /* answer->kernel */
} support_answer;

support_answer support_ask(mla_device *device, int row, int32_t format,
                           mla_answer *answer);

/* "f32, f16, bf16": the formats of a row that are served; "-": none. */
void support_list(mla_device *device, int row, char *text, size_t size);

/* The same in fewer words: "plain" for f32, f16 and bf16. */
void support_brief(mla_device *device, int row, char *text, size_t size);

/* "plain: f32, f16, bf16; fp8: ...": what those words stand for. */
void support_legend(char *text, size_t size);

#endif
