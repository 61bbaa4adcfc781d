/*
 * fields.c - members of descriptions by name.
 */
#include "fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P(member, kind) \
  { #member, kind, offsetof(mla_problem, member) }
#define L(member, kind) \
  { #member, kind, offsetof(mla_limits, member) }

const mla_field mla_problem_fields[] = {
    P(op, MLA_FIELD_OP),
    P(flags, MLA_FIELD_FLAGS),
    P(q_dtype, MLA_FIELD_DTYPE),
    P(out_dtype, MLA_FIELD_DTYPE),
    P(weight_dtype, MLA_FIELD_DTYPE),
    P(cache_format, MLA_FIELD_FORMAT),
    P(num_heads, MLA_FIELD_I32),
    P(num_kv_heads, MLA_FIELD_I32),
    P(kv_lora_rank, MLA_FIELD_I32),
    P(qk_nope_head_dim, MLA_FIELD_I32),
    P(qk_rope_head_dim, MLA_FIELD_I32),
    P(v_head_dim, MLA_FIELD_I32),
    P(head_dim, MLA_FIELD_I32),
    P(v_dim, MLA_FIELD_I32),
    P(q_lora_rank, MLA_FIELD_I32),
    P(hidden_size, MLA_FIELD_I32),
    P(block_size, MLA_FIELD_I32),
    P(window, MLA_FIELD_I32),
    P(scale, MLA_FIELD_REAL),
    P(logits_soft_cap, MLA_FIELD_REAL),
    P(k_scale, MLA_FIELD_REAL),
    P(v_scale, MLA_FIELD_REAL),
    P(topk, MLA_FIELD_I32),
    P(extra_topk, MLA_FIELD_I32),
    P(extra_block_size, MLA_FIELD_I32),
    {NULL, 0, 0},
};

const mla_field mla_limits_fields[] = {
    L(num_splits, MLA_FIELD_I32),    L(requests, MLA_FIELD_I64),
    L(tokens, MLA_FIELD_I64),        L(max_query_len, MLA_FIELD_I64),
    L(max_seq_len, MLA_FIELD_I64),   L(num_blocks, MLA_FIELD_I64),
    L(table_width, MLA_FIELD_I64),   L(parts, MLA_FIELD_I64),
    L(context_chunk, MLA_FIELD_I64), {NULL, 0, 0},
};

static const char *const flag_words[] = {
    "causal",       "return_lse", "lse_base2",       "has_sink",
    "separate_v",   "context",    "batch_invariant", "fused_q",
    "fused_o",      "alibi",      "output_scale",    "sparse",
    "extra_cache",  "scale_pow2", "return_logits",   "block_scaled",
    "common_prefix"};
#define FLAG_WORDS ((int)(sizeof flag_words / sizeof flag_words[0]))

const char *mla_flag_word(int bit) {
  return bit >= 0 && bit < FLAG_WORDS ? flag_words[bit] : NULL;
}

const mla_field *mla_field_find(const mla_field *fields, const char *name) {
  for (; fields->name; fields++)
    if (strcmp(fields->name, name) == 0) return fields;
  return NULL;
}

static const void *at(const mla_field *f, const void *object) {
  return (const char *)object + f->offset;
}

static int64_t get_int(const mla_field *f, const void *object) {
  if (f->kind == MLA_FIELD_I64) return *(const int64_t *)at(f, object);
  if (f->kind == MLA_FIELD_FLAGS)
    return (int64_t) * (const uint64_t *)at(f, object);
  return *(const int32_t *)at(f, object);
}

int mla_field_is_zero(const mla_field *f, const void *object) {
  if (f->kind == MLA_FIELD_REAL) return *(const double *)at(f, object) == 0;
  return get_int(f, object) == 0;
}

static const char *name_of(const mla_field *f, int32_t value) {
  switch (f->kind) {
    case MLA_FIELD_OP: return mla_op_name(value);
    case MLA_FIELD_DTYPE: return mla_dtype_name(value);
    case MLA_FIELD_FORMAT: return mla_format_name(value);
    default: return NULL;
  }
}

static int print_flags(uint64_t flags, char *text, size_t size) {
  int used = 0;
  if (flags >> FLAG_WORDS || flags == 0)
    return snprintf(text, size, "0x%llx", (unsigned long long)flags);
  for (int bit = 0; bit < FLAG_WORDS; bit++) {
    if (!(flags >> bit & 1)) continue;
    size_t room = (size_t)used < size ? size - (size_t)used : 0;
    used += snprintf(room ? text + used : NULL, room, "%s%s", used ? "+" : "",
                     flag_words[bit]);
  }
  return used;
}

int mla_field_print(const mla_field *f, const void *object, char *text,
                    size_t size) {
  if (f->kind == MLA_FIELD_REAL)
    return snprintf(text, size, "%.17g", *(const double *)at(f, object));
  if (f->kind == MLA_FIELD_FLAGS)
    return print_flags((uint64_t)get_int(f, object), text, size);
  int64_t value = get_int(f, object);
  const char *name = name_of(f, (int32_t)value);
  if (name) return snprintf(text, size, "%s", name);
  return snprintf(text, size, "%lld", (long long)value);
}

/* ---------------------------------------------------------------- setting */

static int read_flags(const char *text, uint64_t *flags) {
  *flags = 0;
  while (*text) {
    size_t n = strcspn(text, "+");
    int bit = 0;
    while (bit < FLAG_WORDS && (strlen(flag_words[bit]) != n ||
                                memcmp(flag_words[bit], text, n) != 0))
      bit++;
    if (bit == FLAG_WORDS) return 0;
    *flags |= (uint64_t)1 << bit;
    text += n + (text[n] == '+');
  }
  return 1;
}

static int read_name(const mla_field *f, const char *text, int64_t *value) {
  uint64_t flags;
  switch (f->kind) {
    case MLA_FIELD_OP: *value = mla_op_from_name(text); break;
    case MLA_FIELD_DTYPE: *value = mla_dtype_from_name(text); break;
    case MLA_FIELD_FORMAT: *value = mla_format_from_name(text); break;
    case MLA_FIELD_FLAGS:
      if (!read_flags(text, &flags)) return 0;
      *value = (int64_t)flags;
      break;
    default: *value = 0; break;
  }
  return *value != 0;
}

int mla_field_set(const mla_field *f, void *object, const char *text) {
  char *end;
  void *to = (char *)object + f->offset;
  if (!*text) return 0;
  if (f->kind == MLA_FIELD_REAL) {
    double value = strtod(text, &end);
    if (*end) return 0;
    *(double *)to = value;
    return 1;
  }
  int64_t value = strtoll(text, &end, 0);
  if (*end && !read_name(f, text, &value)) return 0;
  if (f->kind == MLA_FIELD_I64)
    *(int64_t *)to = value;
  else if (f->kind == MLA_FIELD_FLAGS)
    *(uint64_t *)to = (uint64_t)value;
  else if (value < INT32_MIN || value > INT32_MAX)
    return 0;
  else
    *(int32_t *)to = (int32_t)value;
  return 1;
}
