/*
 * case_print.c - from a case to its canonical name.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

typedef struct writer {
  char *text;
  size_t size, used;
} writer;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(writer *w, const char *format, ...) {
  va_list args;
  size_t room = w->used < w->size ? w->size - w->used : 0;
  va_start(args, format);
  int n = vsnprintf(room ? w->text + w->used : NULL, room, format, args);
  va_end(args);
  if (n > 0) w->used += (size_t)n;
}

/* The shortest decimal that reads back as the same number; up to a million in
   digits alone (%g drops zeros behind the point). */
static void put_real(writer *w, double value) {
  char word[40];
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(word, sizeof word, "%.*g", digits, value);
    if (strtod(word, NULL) == value) break;
  }
  put(w, "%s", word);
}

static void put_list(writer *w, const mla_case_list *list) {
  for (int32_t i = 0; i < list->count; i++)
    put(w, "%s%d", i ? "+" : "", (int)list->value[i]);
}

static void put_value(writer *w, const mla_case *c, int key) {
  const mla_key_spec *spec = mla_key_spec_of(key);
  int64_t v = c->num[key];
  switch (spec->kind) {
    case MLA_KIND_REAL: put_real(w, c->real[key]); break;
    case MLA_KIND_LIST: put_list(w, &c->list[spec->list]); break;
    case MLA_KIND_DTYPE: put(w, "%s", mla_dtype_name((int32_t)v)); break;
    case MLA_KIND_FORMAT: put(w, "%s", mla_format_name((int32_t)v)); break;
    case MLA_KIND_WORD: put(w, "%s", spec->words[v]); break;
    default: put(w, "%lld", (long long)v); break;
  }
}

static int is_default(const mla_case *c, const mla_key_use *use) {
  const mla_key_spec *spec = mla_key_spec_of(use->key);
  if (spec->kind == MLA_KIND_REAL) return c->real[use->key] == (double)use->def;
  if (spec->kind == MLA_KIND_LIST) return !c->list[spec->list].count;
  return c->num[use->key] == use->def;
}

static void put_attribute(writer *w, const mla_case *c,
                          const mla_key_use *use) {
  const mla_key_spec *spec = mla_key_spec_of(use->key);
  int one = spec->kind != MLA_KIND_LIST || c->list[spec->list].count == 1;
  put(w, "%s", spec->name);
  if (spec->kind == MLA_KIND_FLAG) return;
  if (!spec->bare || !one) put(w, "=");
  put_value(w, c, use->key);
}

int mla_case_print(const mla_case *c, char *id, size_t size) {
  writer w = {id, size, 0};
  int32_t count, printed = 0;
  const mla_key_use *uses = mla_key_uses(c->op, &count);
  if (size) id[0] = '\0';
  put(&w, "%s:%s:", mla_op_name(c->op), mla_format_name(c->format));
  for (int32_t i = 0; i < count; i++) {
    if (!uses[i].always && is_default(c, &uses[i])) continue;
    if (printed++) put(&w, ",");
    put_attribute(&w, c, &uses[i]);
  }
  if (c->edit[0]) put(&w, "!%s", c->edit);
  return (int)w.used;
}
