/*
 * region.c - places in tensors, in words.
 */
#include "region.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "error.h"

static const mla_slot_spec *spec_of(const mla_vector *v, int32_t slot) {
  const mla_op_spec *op = mla_op_spec_of(v->problem.op);
  for (int32_t i = 0; i < op->slot_count; i++)
    if (op->slots[i].slot == slot &&
        mla_slot_applies(&op->slots[i], &v->problem))
      return &op->slots[i];
  return NULL;
}

const char *mla_axis_name(const mla_vector *v, int32_t slot, int32_t axis,
                          int plural) {
  static const struct {
    int sym;
    const char *name[2];
  } table[] = {
      {MLA_S_N, {"token", "tokens"}},
      {MLA_S_GATHERED, {"token", "tokens"}},
      {MLA_S_H, {"head", "heads"}},
      {MLA_S_KVH, {"kv head", "kv heads"}},
      {MLA_S_NB, {"block", "blocks"}},
      {MLA_S_BS, {"offset", "offsets"}},
      {MLA_S_E, {"element", "elements"}},
      {MLA_S_P, {"nope row", "nope rows"}},
      {MLA_S_LQ, {"q latent", "q latents"}},
      {MLA_S_HIDDEN, {"column", "columns"}},
      {MLA_S_MN, {"column", "columns"}},
      {MLA_S_TOPK, {"entry", "entries"}},
      {MLA_S_LOGITS, {"position", "positions"}},
  };
  const mla_slot_spec *spec = spec_of(v, slot);
  int last = spec && axis == spec->rank - 1;
  for (size_t i = 0; spec && i < sizeof table / sizeof table[0]; i++) {
    int sym = spec->dim[axis];
    int named = !last || (slot == MLA_T_LSE && sym == MLA_S_H) ||
                sym == MLA_S_TOPK || sym == MLA_S_LOGITS;
    if (table[i].sym == sym && named) return table[i].name[plural != 0];
  }
  if (spec && !last && spec->dim[axis] == MLA_S_V)
    return plural ? "value rows" : "value row";
  if (spec && !last && spec->dim[axis] == MLA_S_L)
    return plural ? "latents" : "latent";
  return plural ? "dims" : "dim";
}

mla_status mla_region_new(const mla_vector *v, int32_t slot, mla_region *r,
                          mla_error *err) {
  const mla_tensor *t = &v->tensor[slot];
  memset(r, 0, sizeof *r);
  r->vector = v;
  r->slot = slot;
  r->rank = t->rank;
  for (int32_t a = 0; a < t->rank; a++) {
    r->mark[a] = calloc((size_t)t->shape[a] + 1, 1);
    if (!r->mark[a])
      return mla_fail(err, MLA_OUT_OF_MEMORY, mla_slot_name(slot),
                      "no memory to mark %s", mla_slot_name(slot));
  }
  return MLA_OK;
}

void mla_region_free(mla_region *r) {
  for (int32_t a = 0; a < MLA_MAX_RANK; a++) free(r->mark[a]);
}

void mla_region_mark(mla_region *r, const int64_t *index) {
  r->marks++;
  for (int32_t a = 0; a < r->rank; a++) r->mark[a][index[a]] = 1;
  mla_bad_mark(&r->bad, r->rank, r->vector->tensor[r->slot].shape, index);
}

typedef struct sentence {
  char *text;
  size_t size, used;
} sentence;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
say(sentence *s, const char *format, ...) {
  va_list args;
  if (s->used + 1 >= s->size) return;
  va_start(args, format);
  int n = vsnprintf(s->text + s->used, s->size - s->used, format, args);
  va_end(args);
  if (n > 0) s->used += (size_t)n;
}

/* How many of an axis's indices are marked, the first and the last. */
static int64_t marked(const unsigned char *mark, int64_t n, int64_t *first,
                      int64_t *last) {
  int64_t count = 0;
  *first = *last = -1;
  for (int64_t i = 0; i < n; i++) {
    if (!mark[i]) continue;
    if (!count++) *first = i;
    *last = i;
  }
  return count;
}

static void say_token(const mla_vector *v, sentence *s, int64_t token) {
  int64_t within, b = mla_vector_request(v, token, &within);
  if (b >= 0)
    say(s, "request %lld, token %lld", (long long)b, (long long)within);
  else
    say(s, "token %lld", (long long)token);
}

static int is_token(const mla_vector *v, int32_t slot, int32_t axis) {
  const mla_slot_spec *spec = spec_of(v, slot);
  return spec &&
         (spec->dim[axis] == MLA_S_N || spec->dim[axis] == MLA_S_GATHERED);
}

/* Tokens as requests: "requests 1, 3", when that is shorter. */
static void say_tokens(const mla_region *r, sentence *s, int64_t count,
                       int64_t first, int64_t last) {
  int64_t within, a = mla_vector_request(r->vector, first, &within);
  int64_t b = mla_vector_request(r->vector, last, &within);
  if (a >= 0 && a == b)
    say(s, "request %lld, ", (long long)a);
  else if (a >= 0 && b >= 0)
    say(s, "requests %lld to %lld, ", (long long)a, (long long)b);
  say(s, "%lld tokens (row %lld to %lld)", (long long)count, (long long)first,
      (long long)last);
}

static void say_axis(const mla_region *r, sentence *s, int32_t axis) {
  const mla_tensor *t = &r->vector->tensor[r->slot];
  int64_t first, last;
  int64_t n = marked(r->mark[axis], t->shape[axis], &first, &last);
  const char *one = mla_axis_name(r->vector, r->slot, axis, 0);
  const char *many = mla_axis_name(r->vector, r->slot, axis, 1);
  if (axis) say(s, ", ");
  if (n == 1 && is_token(r->vector, r->slot, axis))
    say_token(r->vector, s, first);
  else if (n == 1)
    say(s, "%s %lld", one, (long long)first);
  else if (n == t->shape[axis])
    say(s, "all %lld %s", (long long)n, many);
  else if (is_token(r->vector, r->slot, axis))
    say_tokens(r, s, n, first, last);
  else
    say(s, "%lld %s (%lld to %lld)", (long long)n, many, (long long)first,
        (long long)last);
}

void mla_region_describe(const mla_region *r, char *text, size_t size) {
  sentence s = {text, size, 0};
  text[0] = '\0';
  if (!r->marks) return;
  for (int32_t a = 0; a < r->rank; a++) say_axis(r, &s, a);
}

void mla_region_axes(const mla_region *r, char *text, size_t size) {
  sentence s = {text, size, 0};
  text[0] = '\0';
  for (int32_t a = 0; a < r->rank; a++)
    say(&s, "%s%s", a ? ", " : "", mla_axis_name(r->vector, r->slot, a, 0));
}

void mla_describe_index(const mla_vector *v, int32_t slot, const int64_t *index,
                        char *text, size_t size) {
  sentence s = {text, size, 0};
  text[0] = '\0';
  for (int32_t a = 0; a < v->tensor[slot].rank; a++) {
    if (a) say(&s, ", ");
    if (is_token(v, slot, a))
      say_token(v, &s, index[a]);
    else
      say(&s, "%s %lld", mla_axis_name(v, slot, a, 0), (long long)index[a]);
  }
}
