#include "cpu_options.h"

#include <string.h>

#include "cpu_internal.h"
#include "cpu_parallel.h"
#include "error.h"

/* A decimal number in `length` characters; -1: it is none, or too large. */
static int number(const char *text, size_t length) {
  int value = 0;
  if (length == 0) return -1;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
    if (value > MLA_CPU_MAX_THREADS) return -1;
  }
  return value;
}

static mla_status set_threads(const char *text, size_t length,
                              mla_cpu_options *options, mla_error *err) {
  int threads = number(text, length);
  if (threads < 1)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "threads is \"%.*s\", it must be 1 to %d", (int)length,
                    text, MLA_CPU_MAX_THREADS);
  options->threads = threads;
  return MLA_OK;
}

static mla_status set_isa(const char *text, size_t length,
                          mla_cpu_options *options, mla_error *err) {
  uint32_t here = mla_cpu_isa_detect();
  int isa = mla_cpu_isa_from_name(text, length);
  if (isa < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                    "isa is \"%.*s\", which is no level; known are portable, "
                    "avx2, avx512, avx512_bf16, amx, neon, neon_bf16",
                    (int)length, text);
  if (!(here & MLA_CPU_BIT(isa)))
    return mla_fail(err, MLA_NOT_AVAILABLE, "options",
                    "isa is %s, this machine runs no higher level than %s",
                    mla_cpu_isa_name(isa),
                    mla_cpu_isa_name(mla_cpu_isa_best(here)));
  options->mask = mla_cpu_isa_set(isa) & here;
  return MLA_OK;
}

/* Does text, `length` long, begin with key and "="? */
static int is_key(const char *text, size_t length, const char *key) {
  size_t n = strlen(key);
  return length > n && memcmp(text, key, n) == 0 && text[n] == '=';
}

static mla_status set_one(const char *text, size_t length,
                          mla_cpu_options *options, mla_error *err) {
  if (is_key(text, length, "threads"))
    return set_threads(text + 8, length - 8, options, err);
  if (is_key(text, length, "isa"))
    return set_isa(text + 4, length - 4, options, err);
  return mla_fail(err, MLA_INVALID_ARGUMENT, "options",
                  "\"%.*s\" is no option; known are threads=N and isa=LEVEL",
                  (int)(length < 60 ? length : 60), text);
}

mla_status mla_cpu_options_parse(const char *text, mla_cpu_options *options,
                                 mla_error *err) {
  int threads = mla_cpu_default_threads();
  options->threads = (int)mla_cpu_min(threads, MLA_CPU_MAX_THREADS);
  options->mask = mla_cpu_isa_detect();
  while (text && *text) {
    size_t length = strcspn(text, ";");
    mla_status status = MLA_OK;
    if (length) status = set_one(text, length, options, err);
    if (status != MLA_OK) return status;
    text += length + (text[length] == ';');
  }
  return MLA_OK;
}
