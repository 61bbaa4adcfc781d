/*
 * case_parse.c - from a case's name to the case.
 */
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "case_types.h"
#include "error.h"

/* What is being read, and where we are in it. */
typedef struct reader {
  const char *text;
  mla_case *c;
  mla_error *err;
  char seen[MLA_K_COUNT];
} reader;

static mla_status bad(const reader *r, const char *at, const char *why,
                      const char *what, size_t length) {
  if (length > 40) length = 40;
  return mla_fail(r->err, MLA_INVALID_ARGUMENT, "case",
                  "case, character %d: \"%.*s\" %s", (int)(at - r->text) + 1,
                  (int)length, what, why);
}

/* Copies text[0, length) into a terminated word; 0 when it is too long. */
static int take_word(const char *text, size_t length, char *word, size_t size) {
  if (length >= size) return 0;
  memcpy(word, text, length);
  word[length] = '\0';
  return 1;
}

static int is_digit(char ch) {
  return ch >= '0' && ch <= '9';
}

/* An unsigned integer of [0, INT64_MAX]; 0 when it is none. */
static int read_int(const char *text, size_t length, int64_t *value) {
  int64_t v = 0;
  if (length == 0 || length > 18) return 0;
  for (size_t i = 0; i < length; i++) {
    if (!is_digit(text[i])) return 0;
    v = v * 10 + (text[i] - '0');
  }
  *value = v;
  return 1;
}

static mla_status put_int(reader *r, const mla_key_use *use, const char *text,
                          size_t length) {
  int64_t v;
  if (!read_int(text, length, &v))
    return bad(r, text, "is not a whole number", text, length);
  if (v < use->min || v > use->max)
    return bad(r, text, "is out of range", text, length);
  r->c->num[use->key] = v;
  return MLA_OK;
}

static mla_status put_list(reader *r, const mla_key_use *use, const char *text,
                           size_t length) {
  mla_case_list *list = &r->c->list[mla_key_spec_of(use->key)->list];
  const char *end = text + length;
  list->count = 0;
  for (const char *at = text;; at++) {
    const char *stop = memchr(at, '+', (size_t)(end - at));
    size_t n = (size_t)((stop ? stop : end) - at);
    int64_t v;
    if (!read_int(at, n, &v)) return bad(r, at, "is not a whole number", at, n);
    if (v < use->min || v > use->max)
      return bad(r, at, "is out of range", at, n);
    if (list->count == MLA_CASE_LIST_MAX)
      return bad(r, at, "is past the longest list, 256 values", at, n);
    list->value[list->count++] = (int32_t)v;
    if (!stop) return MLA_OK;
    at = stop;
  }
}

static mla_status put_real(reader *r, const mla_key_use *use, const char *text,
                           size_t length) {
  char word[40];
  char *end;
  if (!take_word(text, length, word, sizeof word) || !length)
    return bad(r, text, "is not a number", text, length);
  double v = strtod(word, &end);
  if (*end || !(v >= 0) || v > 1e300)
    return bad(r, text, "is not a number of 0 or above", text, length);
  r->c->real[use->key] = v;
  return MLA_OK;
}

static mla_status put_named(reader *r, const mla_key_use *use, const char *text,
                            size_t length) {
  const mla_key_spec *spec = mla_key_spec_of(use->key);
  char word[40];
  int64_t v = -1;
  if (take_word(text, length, word, sizeof word)) {
    if (spec->kind == MLA_KIND_DTYPE)
      v = mla_dtype_from_name(word);
    else if (spec->kind == MLA_KIND_FORMAT)
      v = mla_format_from_name(word);
    for (int i = 0; spec->words && spec->words[i]; i++)
      if (strcmp(spec->words[i], word) == 0) v = i;
    if (!spec->words && v == 0) v = -1;
  }
  if (v < 0) return bad(r, text, "is no value of this key", text, length);
  r->c->num[use->key] = v;
  return MLA_OK;
}

static mla_status put_value(reader *r, const mla_key_use *use, const char *text,
                            size_t length) {
  switch (mla_key_spec_of(use->key)->kind) {
    case MLA_KIND_INT: return put_int(r, use, text, length);
    case MLA_KIND_LIST: return put_list(r, use, text, length);
    case MLA_KIND_REAL: return put_real(r, use, text, length);
    case MLA_KIND_FLAG:
      return bad(r, text, "is a value, but the key takes none", text, length);
    default: return put_named(r, use, text, length);
  }
}

static const mla_key_use *find_use(int32_t op, const char *name,
                                   size_t length) {
  int32_t count;
  const mla_key_use *uses = mla_key_uses(op, &count);
  for (int32_t i = 0; i < count; i++) {
    const char *key = mla_key_spec_of(uses[i].key)->name;
    if (strlen(key) == length && memcmp(key, name, length) == 0)
      return &uses[i];
  }
  return NULL;
}

/* Length of the name in "b4", "len=65", "base2"; where the value begins. */
static const mla_key_use *split(const reader *r, const char *token,
                                size_t length, size_t *value) {
  const char *eq = memchr(token, '=', length);
  size_t name = eq ? (size_t)(eq - token) : length;
  const mla_key_use *use = find_use(r->c->op, token, name);
  *value = eq ? name + 1 : length;
  if (use || eq) return use;
  for (name = 0; name < length && !is_digit(token[name]);) name++;
  *value = name;
  return find_use(r->c->op, token, name);
}

static mla_status read_attribute(reader *r, const char *token, size_t length) {
  size_t value;
  const mla_key_use *use = split(r, token, length, &value);
  if (!use)
    return bad(r, token, "is no attribute of this operation (list --keys)",
               token, length);
  if (r->seen[use->key]++) return bad(r, token, "stands twice", token, length);
  if (mla_key_spec_of(use->key)->kind != MLA_KIND_FLAG)
    return put_value(r, use, token + value, length - value);
  if (value != length) return bad(r, token, "takes no value", token, length);
  r->c->num[use->key] = 1;
  return MLA_OK;
}

/* "op:" and "format:"; leaves *at behind them. */
static mla_status read_head(reader *r, const char **at) {
  char word[40];
  const char *text = r->text;
  size_t n = strcspn(text, ":");
  int32_t op = MLA_OP_NONE, format = MLA_CACHE_NONE;
  if (take_word(text, n, word, sizeof word)) op = mla_op_from_name(word);
  if (op == MLA_OP_NONE || text[n] != ':')
    return bad(r, text, "is no operation followed by a colon (list ops)", text,
               n);
  text += n + 1;
  n = strcspn(text, ":");
  if (take_word(text, n, word, sizeof word))
    format = mla_format_from_name(word);
  if (format == MLA_CACHE_NONE || text[n] != ':')
    return bad(r, text, "is no format followed by a colon (list --keys)", text,
               n);
  mla_case_init(r->c, op, format);
  *at = text + n + 1;
  return MLA_OK;
}

/* One spelling for one case: equal lists become one value, types that are
   the default become "default". */
static void normalise(mla_case *c) {
  for (int i = 0; i < MLA_CASE_LISTS; i++) {
    mla_case_list *list = &c->list[i];
    int same = 1;
    for (int32_t k = 1; k < list->count; k++)
      same &= list->value[k] == list->value[0];
    if (same && list->count == c->num[MLA_K_REQUESTS])
      list->count = list->count ? 1 : 0;
  }
  if (c->num[MLA_K_ACT] == mla_case_default_act(c)) c->num[MLA_K_ACT] = 0;
  int32_t act = mla_case_act(c);
  if (c->num[MLA_K_OUT] == act) c->num[MLA_K_OUT] = 0;
  if (c->num[MLA_K_WEIGHT] == act) c->num[MLA_K_WEIGHT] = 0;
  if (c->num[MLA_K_CACHE] == c->format) c->num[MLA_K_CACHE] = 0;
}

mla_status mla_case_parse(const char *id, mla_case *c, mla_error *err) {
  reader r = {id, c, err, {0}};
  const char *at = id;
  mla_status status = read_head(&r, &at);
  const char *end = at + strcspn(at, "!");
  while (status == MLA_OK && at < end) {
    const char *stop = memchr(at, ',', (size_t)(end - at));
    if (!stop) stop = end;
    status = read_attribute(&r, at, (size_t)(stop - at));
    at = stop + (stop < end);
    if (status == MLA_OK && stop < end && at == end)
      return bad(&r, stop, "ends with a comma", stop, 1);
  }
  if (status != MLA_OK) return status;
  if (*end == '!' && (end[1] == '\0' || !take_word(end + 1, strlen(end + 1),
                                                   c->edit, sizeof c->edit)))
    return bad(&r, end, "is no change", end, strlen(end));
  normalise(c);
  return mla_case_check(c, err);
}
