/*
 * explain_bench.c - gathering values to score probes against.
 */
#include "explain_bench.h"

#include <stdlib.h>
#include <string.h>

#include "dmath.h"
#include "dtype.h"
#include "tensor.h"

#define MOST_RAW 4096 /* bytes-compared elements of each kind */

static int element_size(const mla_tensor *t) {
  return mla_dtype_bits(t->dtype) / 8;
}

static int is_value_slot(const mla_vector *v, int slot) {
  return v->role[slot] == MLA_ROLE_OUT && v->compare[slot] != MLA_COMPARE_BYTES;
}

/* -------------------------------------------------------------- one value */

/* Where an output's element lies, from its row and column. */
static int64_t offset_of(const mla_tensor *t, int is_lse, int64_t row,
                         int64_t column) {
  int64_t at = is_lse ? 0 : column;
  for (int32_t a = t->rank - (is_lse ? 1 : 2); a >= 0; a--) {
    at += row % t->shape[a] * t->stride[a];
    row /= t->shape[a];
  }
  return at;
}

static int push(bench *b, bench_value value) {
  if (b->count == b->room) {
    int64_t room = b->room ? 2 * b->room : 1024;
    bench_value *grown = realloc(b->value, (size_t)room * sizeof *grown);
    if (!grown) return 0;
    b->value = grown;
    b->room = room;
  }
  b->value[b->count++] = value;
  return 1;
}

/* ------------------------------------------------------- rows of products */

/* All outputs of a view, with their budgets. */
typedef struct slot_view {
  int32_t slot;
  mla_expected_view view;
  double *budget;
} slot_view;

static int view_of(const bench *b, int32_t slot, slot_view *s) {
  int32_t index;
  s->slot = slot;
  s->budget = NULL;
  s->view = mla_expectation_of(b->e->expectation, slot, &index);
  if (index < 0 || !s->view.value || !b->e->got[slot]) return 0;
  size_t n = (size_t)(s->view.rows * s->view.width);
  s->budget = calloc(n + 1, sizeof *s->budget);
  if (s->budget && b->v->compare[slot] != MLA_COMPARE_BITS)
    mla_expected_budget(b->e->expectation->expected, index,
                        &b->e->answer->numerics, s->budget);
  return s->budget != NULL;
}

static bench_value value_at(const bench *b, const slot_view *s, int64_t r,
                            int64_t d) {
  const mla_tensor *t = &b->v->tensor[s->slot];
  int64_t row = s->view.row_index ? s->view.row_index[r] : r;
  bench_value x = {s->slot, 0, 0, 0, 0, 0, 0, 0};
  x.offset = offset_of(t, s->slot == MLA_T_LSE, row, d);
  x.expected = s->view.value[r * s->view.width + d];
  x.budget = s->budget[r * s->view.width + d];
  x.got = mla_get(b->e->got[s->slot], t->dtype, x.offset);
  x.bad =
      !bench_is_right(t, b->v->compare[s->slot], x.expected, x.budget, x.got) ||
      bench_has_poison(t, b->e->got[s->slot], x.offset,
                       bench_poison(b, s->slot));
  return x;
}

static int row_is_bad(const bench *b, const slot_view *s, int64_t r) {
  for (int64_t d = 0; d < s->view.width; d++)
    if (value_at(b, s, r, d).bad) return 1;
  return 0;
}

void bench_thin_out(unsigned char *mark, int64_t rows, unsigned char which,
                    int64_t most) {
  int64_t n = 0, k = 0;
  for (int64_t r = 0; r < rows; r++) n += mark[r] == which;
  for (int64_t r = 0; r < rows && n > most; r++) {
    if (mark[r] != which) continue;
    if ((k + 1) * most / n == k * most / n) mark[r] = 0;
    k++;
  }
}

static int has_rows(int32_t op) {
  return op >= MLA_OP_Q_ABSORB && op <= MLA_OP_MATMUL;
}

static int64_t request_of(const bench *b, const slot_view *view, int64_t r) {
  int64_t row = view->view.row_index ? view->view.row_index[r] : r, within;
  return mla_vector_request(b->v, row / b->v->problem.num_heads, &within);
}

/* Keys are gathered request by request: rows of few requests are cheap. Keeps
   some requests that have a wrong row and some that have none. */
static int keep_few_requests(const bench *b, const slot_view *view,
                             unsigned char *mark) {
  const mla_tensor *lens = &b->v->tensor[MLA_T_SEQ_LENS];
  int64_t rows = view->view.rows, n = lens->data ? lens->shape[0] : 0;
  if (n <= 4) return 1;
  unsigned char *request = calloc((size_t)n + 1, 1);
  int64_t *of = malloc((size_t)(rows + 1) * sizeof *of);
  for (int64_t r = 0; request && of && r < rows; r++) {
    of[r] = request_of(b, view, r);
    if (of[r] >= 0 && request[of[r]] != 1) request[of[r]] = mark[r];
  }
  if (request && of) {
    bench_thin_out(request, n, 1, 3);
    bench_thin_out(request, n, 2, 1);
  }
  for (int64_t r = 0; request && of && r < rows; r++)
    if (of[r] >= 0 && !request[of[r]]) mark[r] = 0;
  int ok = request && of;
  free(request);
  free(of);
  return ok;
}

/* Marks of the rows: 1 wrong, 2 right, 0 not taken. Outputs of one call have
   the same rows in the same order. */
static unsigned char *mark_rows(const bench *b, const slot_view *views,
                                int count, int64_t bad_rows,
                                int64_t good_rows) {
  int64_t rows = views[0].view.rows;
  unsigned char *mark = malloc((size_t)rows + 1);
  if (!mark) return NULL;
  memset(mark, 2, (size_t)rows);
  for (int k = 0; k < count; k++)
    for (int64_t r = 0; r < rows && r < views[k].view.rows; r++)
      if (mark[r] == 2 && row_is_bad(b, &views[k], r)) mark[r] = 1;
  if (has_rows(b->v->problem.op) && !keep_few_requests(b, &views[0], mark)) {
    free(mark);
    return NULL;
  }
  bench_thin_out(mark, rows, 1, bad_rows);
  bench_thin_out(mark, rows, 2, good_rows);
  return mark;
}

static int take_marked(bench *b, const slot_view *s,
                       const unsigned char *mark) {
  for (int64_t r = 0; r < s->view.rows; r++) {
    if (!mark[r]) continue;
    int64_t row = s->view.row_index ? s->view.row_index[r] : r;
    if (b->wanted) b->wanted[row] = 1;
    for (int64_t d = 0; d < s->view.width; d++) {
      bench_value x = value_at(b, s, r, d);
      x.mixed = mark[r] == 1 && !x.bad;
      if (!push(b, x)) return 0;
    }
  }
  return 1;
}

static int64_t all_rows(const mla_vector *v) {
  int slot = v->problem.op == MLA_OP_Q_ABSORB ? MLA_T_Q_LATENT : MLA_T_OUT;
  const mla_tensor *t = &v->tensor[slot];
  return t->shape[0] * (t->rank > 2 ? t->shape[1] : 1);
}

/* Operations with rows share their marks over out and lse; absorb's outputs
   have rows of their own. */
static int take_values(bench *b, int64_t bad_rows, int64_t good_rows) {
  slot_view views[MLA_T_COUNT];
  int count = 0, ok = 1;
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (is_value_slot(b->v, s) && b->v->compare[s] != MLA_COMPARE_CHOICE &&
        view_of(b, s, &views[count]))
      count++;
  if (count && has_rows(b->v->problem.op)) {
    b->wanted = calloc((size_t)all_rows(b->v) + 1, 1);
    ok = b->wanted != NULL;
  }
  unsigned char *shared = NULL;
  for (int k = 0; k < count && ok; k++) {
    if (!shared || !b->wanted) {
      free(shared);
      int of = b->wanted ? count : 1;
      shared = mark_rows(b, &views[k], of, bad_rows, good_rows);
    }
    ok = shared && take_marked(b, &views[k], shared);
  }
  free(shared);
  for (int k = 0; k < count; k++) free(views[k].budget);
  return ok;
}

/* ----------------------------------------------------------- bytes to keep */

/* Elements first .. end-1 of memory, against the bytes they must hold. */
static int take_raw(bench *b, int32_t slot, const unsigned char *want,
                    int64_t first, int64_t end) {
  const mla_tensor *t = &b->v->tensor[slot];
  int64_t wrong = 0, right = 0, k[2] = {0, 0};
  for (int64_t i = first; i < end; i++)
    *(bench_same_bits(t, want, b->e->got[slot], i) ? &right : &wrong) += 1;
  for (int64_t i = first; i < end; i++) {
    int bad = !bench_same_bits(t, want, b->e->got[slot], i);
    int64_t n = bad ? wrong : right, at = k[bad]++;
    if (n > MOST_RAW && (at + 1) * MOST_RAW / n == at * MOST_RAW / n) continue;
    bench_value x = {slot, (int8_t)bad, 1, !bad, i, 0, 0, 0};
    x.expected = mla_get(want, t->dtype, i);
    x.got = mla_get(b->e->got[slot], t->dtype, i);
    if (!push(b, x)) return 0;
  }
  return 1;
}

/* Caches by all their bytes; rows past the live ones by what they were. */
static int take_bytes(bench *b) {
  for (int s = 0; s < MLA_T_COUNT; s++) {
    const mla_tensor *t = &b->v->tensor[s];
    int32_t index;
    if (!(b->v->role[s] & MLA_ROLE_OUT) || !b->e->got[s]) continue;
    mla_expected_view view = mla_expectation_of(b->e->expectation, s, &index);
    int64_t end = mla_tensor_extent(t) / element_size(t);
    int64_t live = mla_vector_live(b->v, s);
    if (index >= 0 && view.bytes && !take_raw(b, s, view.bytes, 0, end))
      return 0;
    if (is_value_slot(b->v, s) && live >= 0 && live < t->shape[0] &&
        !take_raw(b, s, t->data, live * t->stride[0], end))
      return 0;
  }
  return 1;
}

/* ------------------------------------------------------------------ making */

static int take_earlier(bench *b) {
  int64_t requests = b->v->tensor[MLA_T_SEQ_LENS].shape[0];
  if (!b->v->has_recipe || !b->v->recipe.num[MLA_K_REPLAY]) return 1;
  b->earlier = malloc((size_t)(requests + 1) * sizeof *b->earlier);
  if (!b->earlier) return 0;
  for (int64_t i = 0; i < requests; i++)
    b->earlier[i] = (int32_t)mla_vector_earlier_len(b->v, i);
  return 1;
}

static int take_images(bench *b) {
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (!(b->v->role[s] & MLA_ROLE_OUT)) continue;
    b->image[s] = malloc((size_t)mla_tensor_extent(&b->v->tensor[s]) + 1);
    if (!b->image[s]) return 0;
  }
  return 1;
}

static int64_t wanted_of_request(const bench *b, int64_t request) {
  const mla_tensor *starts = &b->v->tensor[MLA_T_QUERY_START_LOC];
  int64_t heads = b->v->problem.num_heads, n = 0;
  int64_t from =
      mla_get_int(starts->data, starts->dtype, mla_at1(starts, request));
  int64_t to =
      mla_get_int(starts->data, starts->dtype, mla_at1(starts, request + 1));
  for (int64_t row = from * heads; row < to * heads; row++)
    n += b->wanted ? b->wanted[row] : 1;
  return n;
}

/* Gathering keys, one multiplication after the other; in prefill, projecting
   them up for each head. */
static double attention_cost(const bench *b) {
  const mla_problem *p = &b->v->problem;
  const mla_tensor *lens = &b->v->tensor[MLA_T_SEQ_LENS];
  double width =
      p->op == MLA_OP_DECODE
          ? mla_problem_head_dim(p) + mla_problem_v_dim(p)
          : p->qk_nope_head_dim + p->qk_rope_head_dim + p->v_head_dim;
  double up = (double)p->kv_lora_rank * (p->qk_nope_head_dim + p->v_head_dim);
  double cost = 0;
  if (p->flags & MLA_SPARSE)
    return (double)all_rows(b->v) * width * (p->topk + p->extra_topk);
  for (int64_t i = 0; i < lens->shape[0]; i++) {
    double n = (double)mla_get_int(lens->data, lens->dtype, mla_at1(lens, i));
    double rows = (double)wanted_of_request(b, i);
    if (rows == 0) continue;
    cost += n * width * (mla_problem_kv_heads(p) + rows);
    if (p->op == MLA_OP_PREFILL)
      cost += n * up * (rows < p->num_heads ? rows : p->num_heads);
  }
  return cost;
}

/* About the nanoseconds of one probe. */
static double probe_cost(const bench *b) {
  int32_t op = b->v->problem.op;
  double cost = 20 * (double)b->count;
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (b->image[s]) cost += 0.2 * (double)mla_tensor_extent(&b->v->tensor[s]);
  if (op == MLA_OP_DECODE || op == MLA_OP_PREFILL)
    return cost + attention_cost(b);
  if (op == MLA_OP_Q_ABSORB || op == MLA_OP_V_EXPAND)
    return cost + 10 * (double)b->count *
                      (op == MLA_OP_V_EXPAND ? b->v->problem.kv_lora_rank
                                             : b->v->problem.qk_nope_head_dim);
  if (op == MLA_OP_MATMUL)
    return cost + 10 * (double)b->count * b->v->problem.q_lora_rank;
  return b->v->has_recipe ? cost + 10 * mla_case_flops(&b->v->recipe) : cost;
}

int bench_new(bench *b, const mla_vector *v, const mla_evidence *e,
              int64_t bad_rows, int64_t good_rows) {
  memset(b, 0, sizeof *b);
  b->v = v;
  b->e = e;
  int ok = take_values(b, bad_rows, good_rows) && take_bytes(b) &&
           choice_new(&b->choice, v, e, bad_rows, good_rows) &&
           take_earlier(b) && take_images(b) && (b->count > 0 || b->choice.t);
  if (ok) b->cost = probe_cost(b);
  return ok;
}

void bench_free(bench *b) {
  for (int s = 0; s < MLA_T_COUNT; s++) free(b->image[s]);
  choice_free(&b->choice);
  free(b->value);
  free(b->wanted);
  free(b->earlier);
  memset(b, 0, sizeof *b);
}
