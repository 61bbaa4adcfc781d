/*
 * error.c - filling the caller's mla_error.
 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A caller built against a shorter mla_error has no room past its size. */
#define HAS_MEMBER(err, member) \
  ((err)->size >=               \
   offsetof(mla_error, member) + sizeof(((mla_error *)0)->member))

mla_status mla_fail(mla_error *err, mla_status status, const char *field,
                    const char *format, ...) {
  if (!err) return status;
  if (HAS_MEMBER(err, status)) err->status = (int32_t)status;
  if (HAS_MEMBER(err, backend_code)) err->backend_code = 0;
  if (HAS_MEMBER(err, field)) {
    snprintf(err->field, sizeof err->field, "%s", field ? field : "");
  }
  if (HAS_MEMBER(err, message)) {
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
  }
  return status;
}
