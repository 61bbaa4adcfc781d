/*
 * shrink.c - taking away from a case.
 */
#include "shrink.h"

#include <string.h>

#include "machine.h"

typedef struct shrinking {
  const mla_shrink_how *how;
  mla_shrunk *s;
  double deadline;
} shrinking;

/* 1: the smaller case fails too, and is the smallest now. */
static int attempt(shrinking *k, const mla_case *c) {
  if (mla_machine_seconds() > k->deadline || mla_case_check(c, NULL) != MLA_OK)
    return 0;
  k->s->tried++;
  if (!k->how->fails(k->how->context, c)) return 0;
  k->s->smallest = *c;
  k->s->changed++;
  return 1;
}

/* --------------------------------------------------------------- requests */

/* Without requests first .. end-1. */
static int without(mla_case *c, int64_t first, int64_t end) {
  int64_t n = c->num[MLA_K_REQUESTS], left = n - (end - first);
  if (left < 1) return 0;
  for (int i = 0; i < MLA_CASE_LISTS; i++) {
    mla_case_list *list = &c->list[i];
    if (list->count <= 1) continue;
    memmove(list->value + first, list->value + end,
            (size_t)(n - end) * sizeof list->value[0]);
    list->count = (int32_t)left;
  }
  c->num[MLA_K_REQUESTS] = left;
  return 1;
}

static int keep_only(shrinking *k, int64_t request) {
  mla_case c = k->s->smallest;
  int64_t n = c.num[MLA_K_REQUESTS];
  if (n <= 1 || request < 0 || request >= n) return 0;
  if (request + 1 < n) without(&c, request + 1, n);
  if (request > 0) without(&c, 0, request);
  return attempt(k, &c);
}

/* Runs of requests, from halves down to single ones. */
static void drop_requests(shrinking *k) {
  for (int64_t run = k->s->smallest.num[MLA_K_REQUESTS] / 2; run >= 1; run /= 2)
    for (int64_t at = 0; at < k->s->smallest.num[MLA_K_REQUESTS];) {
      mla_case c = k->s->smallest;
      int64_t end = at + run, n = c.num[MLA_K_REQUESTS];
      if (end > n) end = n;
      if (!without(&c, at, end) || !attempt(k, &c)) at += run;
    }
}

static void shrink_requests(shrinking *k, int64_t request) {
  int32_t count;
  const mla_key_use *uses = mla_key_uses(k->s->smallest.op, &count);
  int has = 0;
  for (int32_t i = 0; i < count; i++) has |= uses[i].key == MLA_K_REQUESTS;
  if (!has || keep_only(k, request)) return;
  for (int64_t b = 0; b < 4; b++)
    if (b != request && keep_only(k, b)) return;
  drop_requests(k);
}

/* ----------------------------------------------------------------- numbers */

/* A number of a case: a key's, or entry `at` of its list. */
typedef struct number {
  int key, is_list;
  int32_t at;
} number;

static int64_t get(const mla_case *c, number n) {
  return n.is_list ? c->list[mla_key_spec_of(n.key)->list].value[n.at]
                   : c->num[n.key];
}

static int set_number(shrinking *k, number n, int64_t value) {
  mla_case c = k->s->smallest;
  if (n.is_list)
    c.list[mla_key_spec_of(n.key)->list].value[n.at] = (int32_t)value;
  else
    c.num[n.key] = value;
  return attempt(k, &c);
}

/* Small numbers from below, each round a power of two: failures live there.
   Then halves between the last that passes and the first that fails. */
static void minimise(shrinking *k, number n, int64_t least) {
  int64_t high = get(&k->s->smallest, n), low = least - 1;
  if (high <= least) return;
  for (int64_t step = 1; least - 1 + step < high; step *= 2) {
    int64_t value = least - 1 + step;
    if (set_number(k, n, value)) {
      high = value;
      break;
    }
    low = value;
    if (step > 1 && value + 1 < high && set_number(k, n, value + 1)) {
      high = value + 1;
      break;
    }
    if (step > 1 && value + 1 < high) low = value + 1;
  }
  while (high - low > 1 && mla_machine_seconds() < k->deadline) {
    int64_t middle = low + (high - low) / 2;
    if (set_number(k, n, middle))
      high = middle;
    else
      low = middle;
  }
}

static void minimise_list(shrinking *k, int key, int64_t least) {
  mla_case_list *list = &k->s->smallest.list[mla_key_spec_of(key)->list];
  if (!mla_key_use_of(k->s->smallest.op, key)) return;
  for (int32_t i = 0; i < list->count && i < 16; i++) {
    number n = {key, 1, i};
    minimise(k, n, least);
  }
}

static void minimise_key(shrinking *k, int key, int64_t least) {
  const mla_key_use *use = mla_key_use_of(k->s->smallest.op, key);
  number n = {key, 0, 0};
  if (!use) return;
  if (least < use->min) least = use->min;
  minimise(k, n, least);
}

/* ----------------------------------------------------------------- options */

static int is_size(int key) {
  static const int sizes[] = {
      MLA_K_REQUESTS, MLA_K_HEADS,  MLA_K_KV_HEADS, MLA_K_TOKENS,
      MLA_K_M,        MLA_K_N,      MLA_K_K,        MLA_K_PARTS,
      MLA_K_BLOCKS,   MLA_K_COPIES, MLA_K_PAGE,     MLA_K_LORA,
      MLA_K_ROPE,     MLA_K_NOPE,   MLA_K_VHEAD,    MLA_K_SRC_BLOCKS,
      MLA_K_Q_LORA,   MLA_K_HIDDEN, MLA_K_HEAD_DIM};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    if (sizes[i] == key) return 1;
  return 0;
}

static void drop_option(shrinking *k, const mla_key_use *use) {
  const mla_key_spec *spec = mla_key_spec_of(use->key);
  mla_case c = k->s->smallest;
  if (spec->kind == MLA_KIND_LIST || is_size(use->key)) return;
  if (spec->kind == MLA_KIND_REAL) {
    if (c.real[use->key] == (double)use->def) return;
    c.real[use->key] = (double)use->def;
  } else {
    if (c.num[use->key] == use->def) return;
    c.num[use->key] = use->def;
  }
  if (use->key == MLA_K_SEPARATE_V)
    c.num[MLA_K_KV_HEADS] = 1, c.num[MLA_K_HEAD_DIM] = 0,
    c.num[MLA_K_V_DIM] = 0;
  attempt(k, &c);
}

static void drop_options(shrinking *k) {
  int32_t count;
  const mla_key_use *uses = mla_key_uses(k->s->smallest.op, &count);
  for (int32_t i = 0; i < count; i++) drop_option(k, &uses[i]);
}

/* ------------------------------------------------------------------- whole */

/* One key or one token looks like many mistakes at once. */
enum { TELLING_KEYS = 33, TELLING_TOKENS = 3, TELLING_HEADS = 3 };

static void shrink_tokens(shrinking *k) {
  int gently = k->how->gently;
  minimise_list(k, MLA_K_LEN, gently ? TELLING_KEYS : 0);
  minimise_list(k, MLA_K_CTX, gently ? TELLING_KEYS : 0);
  minimise_list(k, MLA_K_Q, gently ? TELLING_TOKENS : 1);
  if (gently) return;
  minimise_list(k, MLA_K_START, 0);
  minimise_key(k, MLA_K_TOKENS, 1);
  minimise_key(k, MLA_K_M, 1);
  minimise_key(k, MLA_K_N, 1);
  minimise_key(k, MLA_K_K, 1);
  minimise_key(k, MLA_K_PARTS, 1);
  minimise_key(k, MLA_K_COPIES, 1);
  minimise_key(k, MLA_K_BLOCKS, 1);
}

static void shrink_heads(shrinking *k) {
  mla_case c = k->s->smallest;
  if (mla_key_use_of(c.op, MLA_K_KV_HEADS) && c.num[MLA_K_KV_HEADS] > 1) {
    c.num[MLA_K_HEADS] /= c.num[MLA_K_KV_HEADS];
    c.num[MLA_K_KV_HEADS] = 1;
    attempt(k, &c);
  }
  minimise_key(k, MLA_K_HEADS, k->how->gently ? TELLING_HEADS : 1);
}

static void shrink_widths(shrinking *k) {
  static const int widths[] = {MLA_K_LORA,   MLA_K_ROPE,  MLA_K_NOPE,
                               MLA_K_VHEAD,  MLA_K_V_DIM, MLA_K_HEAD_DIM,
                               MLA_K_SPLITS, MLA_K_CHUNK, MLA_K_TAIL,
                               MLA_K_WIDTH,  MLA_K_GAP,   MLA_K_PAGE};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    minimise_key(k, widths[i], 1);
}

void mla_shrink(const mla_case *c, int64_t request, const mla_shrink_how *how,
                mla_shrunk *shrunk) {
  shrinking k = {how, shrunk, mla_machine_seconds() + how->seconds};
  int32_t before;
  memset(shrunk, 0, sizeof *shrunk);
  shrunk->smallest = *c;
  do {
    before = shrunk->changed;
    shrink_requests(&k, request);
    shrink_tokens(&k);
    shrink_heads(&k);
    if (how->gently) return;
    drop_options(&k);
    shrink_widths(&k);
    request = 0;
  } while (shrunk->changed > before && mla_machine_seconds() < k.deadline);
}
