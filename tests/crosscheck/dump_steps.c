/*
 * dump_steps - what was given to batch building, maps of ranks and
 * compositions, and what came out, for crosscheck_steps.py.
 *
 * Records: a line "record KIND", lines "NAME VALUE...", a line "end". Reals
 * are in hexadecimal, so that nothing is rounded.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dtype.h"
#include "fixed_steps.h"

static void ints(const char *name, const int32_t *x, int64_t n) {
  printf("%s", name);
  for (int64_t i = 0; i < n; i++) printf(" %d", x[i]);
  putchar('\n');
}
static void longs(const char *name, const int64_t *x, int64_t n) {
  printf("%s", name);
  for (int64_t i = 0; i < n; i++) printf(" %lld", (long long)x[i]);
  putchar('\n');
}
static void number(const char *name, int64_t x) {
  longs(name, &x, 1);
}

/* ------------------------------------------------------------------ batches */

static void input(const fixed_batch *b) {
  int64_t n = b->input.requests;
  number("block_size", b->batch.room.block_size);
  number("width", b->batch.room.table_width);
  number("threshold", b->input.decode_threshold);
  ints("context", b->context, n);
  ints("rows", b->rows, n);
  longs("starts", b->starts, n + 1);
  ints("ids", b->ids, b->starts[n]);
  ints("tokens", b->tokens, 256);
  number("pad_requests", b->pad_requests);
  number("pad_tokens", b->pad_tokens);
  number("next", b->next.requests);
  ints("kept", b->kept, b->next.requests);
  ints("next_rows", b->next_rows, b->next.requests);
}

static void step(const mla_batch *b, const char *which) {
  printf("step %s\n", which);
  longs("positions", b->positions, b->tokens);
  longs("slot_mapping", b->slot_mapping, b->tokens);
  ints("query_start_loc", b->query_start_loc, b->requests + 1);
  ints("seq_lens", b->seq_lens, b->requests);
  ints("block_table", b->block_table, b->requests * b->room.table_width);
  ints("order", b->order, b->requests);
  ints("sources", b->rows, b->tokens);
  ints("token_ids", b->token_ids, b->tokens);
  number("decodes", b->decodes);
}

static void ranks_of(const mla_batch *b) {
  const mla_cp_table table = {b->block_table, b->room.table_width,
                              b->room.table_width};
  static int32_t ids[512 * 32];
  int64_t slots[512];
  int32_t lens[512], starts[513];
  for (int32_t rank = 0; rank < 3; rank++) {
    mla_cp_map map = {3, 2, rank, b->room.block_size};
    if (mla_cp_slots(&map, b, &table, slots, NULL) != MLA_OK ||
        mla_cp_rows(&map, b, &table, 1, lens, starts, ids, NULL) != MLA_OK)
      exit(1);
    printf("step rank%d\n", rank);
    longs("slots", slots, b->tokens);
    ints("lens", lens, b->tokens);
    ints("table", ids, b->tokens * b->room.table_width);
  }
}

static void batch(int i) {
  fixed_batch b;
  fixed_batch_new(&b, i);
  printf("record batch\n");
  input(&b);
  step(&b.batch, "first");
  ranks_of(&b.batch);
  fixed_batch_advance(&b);
  step(&b.batch, "second");
  printf("end\n");
  fixed_batch_free(&b);
}

/* ------------------------------------------------------------- compositions */

static void tensor(const fixed_case *c, int slot) {
  const mla_tensor *t = &c->tensor[slot];
  int64_t count = 1;
  if (!t->data) return;
  printf("shape_%s", mla_slot_name(slot));
  for (int32_t a = 0; a < t->rank; a++)
    printf(" %lld", (long long)t->shape[a]), count *= t->shape[a];
  printf("\n%s", mla_slot_name(slot));
  for (int64_t i = 0; i < count; i++) {
    int64_t at = fixed_case_at(t, i);
    if (t->dtype == MLA_I32)
      printf(" %lld", (long long)mla_get_int(t->data, t->dtype, at));
    else
      printf(" %a", mla_get(t->data, t->dtype, at));
  }
  putchar('\n');
}

static void composed(int i) {
  fixed_composed x;
  fixed_composed_new(&x, i);
  const mla_problem *p = &x.c.problem;
  printf("record %s\n", x.name);
  number("causal", (p->flags & MLA_CAUSAL) != 0);
  number("base2", (p->flags & MLA_LSE_BASE2) != 0);
  number("page", p->block_size);
  number("latent", p->kv_lora_rank);
  number("nope", p->qk_nope_head_dim);
  printf("dtype %s\nscale %a\n", mla_dtype_name(p->q_dtype), p->scale);
  for (int s = 0; s < MLA_T_COUNT; s++) tensor(&x.c, s);
  printf("end\n");
  fixed_composed_free(&x);
}

int main(void) {
  for (int i = 0; i < FIXED_BATCHES; i++) batch(i);
  printf("record splits\n");
  for (int64_t n = 0; n < 70000; n += 997)
    for (int32_t units = 1; units < 200; units += 33)
      printf("case %lld %d %d\n", (long long)n, units,
             mla_num_splits(n, units, 0));
  printf("end\n");
  for (int i = 0; i < FIXED_COMPOSED; i++) composed(i);
  return 0;
}
