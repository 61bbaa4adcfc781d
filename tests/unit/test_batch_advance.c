/*
 * test_batch_advance.c - one step in place is the next step built anew.
 */
#include <stdlib.h>
#include <string.h>

#include "batch_fixture.h"
#include "check_main.h"

/* What is drawn for the next step, by place. */
typedef struct change {
  mla_batch_next next;
  int32_t kept[FIXTURE_REQUESTS], rows[FIXTURE_REQUESTS];
  int32_t sampled[FIXTURE_REQUESTS * 4];
} change;

static void draw_change(change *c, const mla_batch *batch, draws *d) {
  memset(c, 0, sizeof *c);
  c->next.size = (uint32_t)sizeof c->next;
  c->next.requests = batch->live_requests;
  if (draw(d, 0, 2) == 0)
    c->next.requests = draw(d, 0, (int32_t)batch->live_requests);
  for (int64_t p = 0; p < c->next.requests; p++) {
    int32_t had = batch->query_start_loc[p + 1] - batch->query_start_loc[p];
    c->kept[p] = draw(d, 0, had);
    c->rows[p] = draw(d, 0, 4);
  }
  for (int i = 0; i < FIXTURE_REQUESTS * 4; i++)
    c->sampled[i] = draw(d, 1, 99999);
  if (draw(d, 0, 1)) c->next.kept = c->kept;
  if (draw(d, 0, 1)) c->next.query_lens = c->rows;
  if (draw(d, 0, 2)) c->next.sampled = c->sampled;
}

/* The requests of the next step in the order of places, for build. */
static void follow(const step_requests *from, const mla_batch *batch,
                   const change *c, step_requests *to) {
  memset(to, 0, sizeof *to);
  to->input.size = (uint32_t)sizeof to->input;
  to->input.requests = c->next.requests;
  to->input.num_blocks = from->input.num_blocks;
  to->block_size = from->block_size;
  to->table_width = from->table_width;
  to->ids = malloc((size_t)from->starts[from->input.requests] * 4 + 1);
  to->tokens = malloc(sizeof c->sampled);
  memset(to->tokens, 0, sizeof c->sampled);
  if (c->next.sampled) memcpy(to->tokens, c->sampled, sizeof c->sampled);
  for (int64_t p = 0; p < c->next.requests; p++) {
    int64_t b = batch->order[p], n = from->starts[b + 1] - from->starts[b];
    to->context[p] =
        from->context[b] + (c->next.kept ? c->kept[p] : from->rows[b]);
    to->rows[p] = c->next.query_lens ? c->rows[p] : 1;
    to->starts[p + 1] = to->starts[p] + n;
    memcpy(to->ids + to->starts[p], from->ids + from->starts[b],
           (size_t)n * sizeof *to->ids);
  }
  to->input.context_lens = to->context;
  to->input.query_lens = to->rows;
  to->input.block_ids = to->ids;
  to->input.block_starts = to->starts;
  to->input.token_ids = to->tokens;
}

static int lists_suffice(const step_requests *r) {
  for (int64_t b = 0; b < r->input.requests; b++) {
    int64_t length = (int64_t)r->context[b] + r->rows[b];
    if ((r->starts[b + 1] - r->starts[b]) * r->block_size < length) return 0;
  }
  return 1;
}

static void require_same(const mla_batch *a, const mla_batch *b) {
  ck_assert_int_eq(a->requests, b->requests);
  ck_assert_int_eq(a->tokens, b->tokens);
  ck_assert_int_eq(a->live_requests, b->live_requests);
  ck_assert_int_eq(a->live_tokens, b->live_tokens);
  size_t tokens = (size_t)a->tokens, requests = (size_t)a->requests;
  ck_assert_mem_eq(a->positions, b->positions, tokens * sizeof(int64_t));
  ck_assert_mem_eq(a->slot_mapping, b->slot_mapping, tokens * sizeof(int64_t));
  ck_assert_mem_eq(a->rows, b->rows, tokens * sizeof(int32_t));
  ck_assert_mem_eq(a->token_ids, b->token_ids, tokens * sizeof(int32_t));
  ck_assert_mem_eq(a->query_start_loc, b->query_start_loc,
                   (requests + 1) * sizeof(int32_t));
  ck_assert_mem_eq(a->seq_lens, b->seq_lens, requests * sizeof(int32_t));
  ck_assert_mem_eq(a->block_counts, b->block_counts,
                   requests * sizeof(int32_t));
  ck_assert_mem_eq(a->block_table, b->block_table,
                   requests * (size_t)a->room.table_width * sizeof(int32_t));
}

/* One random step and the next; counts what was seen of each kind. */
static void one_step(draws *d, int64_t *advanced, int64_t *refused) {
  step_requests r, s;
  batch_memory m, anew;
  change c;
  requests_random(&r, d);
  mla_batch_room room = room_for(&r, 50);
  batch_memory_new(&m, &room);
  batch_memory_new(&anew, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &r.input, NULL), MLA_OK);
  int64_t requests = r.input.requests + draw(d, 0, 4);
  int64_t tokens = requests_tokens(&r) + draw(d, 0, 50);
  int padded = draw(d, 0, 1);
  if (padded)
    ck_assert_int_eq(mla_batch_pad(&m.batch, requests, tokens, NULL), MLA_OK);
  draw_change(&c, &m.batch, d);
  follow(&r, &m.batch, &c, &s);
  int fits = !padded || tokens == 0 || requests_tokens(&s) <= tokens;
  unsigned char *before = batch_memory_copy(&m);
  mla_status status = mla_batch_advance(&m.batch, &c.next, NULL);
  if (!lists_suffice(&s) || !fits) {
    ck_assert_int_eq(status, MLA_INVALID_ARGUMENT);
    ck_assert(batch_memory_same(&m, before));
    (*refused)++;
  } else {
    ck_assert_int_eq(status, MLA_OK);
    ck_assert_int_eq(mla_batch_build(&anew.batch, &s.input, NULL), MLA_OK);
    if (padded)
      ck_assert_int_eq(mla_batch_pad(&anew.batch, requests, tokens, NULL),
                       MLA_OK);
    require_same(&m.batch, &anew.batch);
    (*advanced)++;
  }
  free(before);
  batch_memory_free(&m);
  batch_memory_free(&anew);
  requests_free(&r);
  requests_free(&s);
}

START_TEST(is_the_next_step) {
  draws d = draws_from((uint64_t)(1000 + _i));
  int64_t advanced = 0, refused = 0;
  for (int round = 0; round < 60; round++) one_step(&d, &advanced, &refused);
  ck_assert(advanced > 0);
  if (_i == 0) ck_assert(refused > 0);
}
END_TEST

/* A prefill of 6 and a decode; both decode afterwards, at a block's edge. */
START_TEST(prefill_becomes_decode) {
  const int32_t context[] = {0, 7}, rows[] = {6, 1}, ids[] = {3, 1, 2};
  const int64_t starts[] = {0, 2, 3};
  const mla_batch_room room = {sizeof room, 8, 2, 8, 2};
  const int32_t sampled[] = {50, 60}, more[] = {5};
  mla_batch_input in = {sizeof in, 1, 2, 8, context, rows, ids, starts, NULL};
  mla_batch_next next = {sizeof next, 0, 2, NULL, NULL, sampled};
  mla_error err = mla_error_init();
  batch_memory m;
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &in, NULL), MLA_OK);
  ck_assert_int_eq(m.batch.decodes, 1);
  ck_assert_int_eq(mla_batch_advance(&m.batch, &next, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_str_eq(err.message,
                   "block_table's row 0 has 1 blocks, the 9 entries need 2");
  ck_assert_int_eq(mla_batch_extend(&m.batch, 0, more, 1, NULL), MLA_OK);
  ck_assert_int_eq(mla_batch_advance(&m.batch, &next, NULL), MLA_OK);
  ck_assert_int_eq(m.batch.tokens, 2);
  ck_assert_int_eq(m.batch.decodes, 2);
  ck_assert_int_eq(m.batch.positions[0], 8);
  ck_assert_int_eq(m.batch.slot_mapping[0], 40);
  ck_assert_int_eq(m.batch.positions[1], 6);
  ck_assert_int_eq(m.batch.slot_mapping[1], 3 * 8 + 6);
  ck_assert_int_eq(m.batch.seq_lens[1], 7);
  ck_assert_int_eq(m.batch.token_ids[0], 50);
  ck_assert_int_eq(m.batch.token_ids[1], 60);
  batch_memory_free(&m);
}
END_TEST

START_TEST(bad_extensions) {
  const int32_t context[] = {3}, rows[] = {1}, ids[] = {3};
  const int64_t starts[] = {0, 1};
  const mla_batch_room room = {sizeof room, 8, 2, 8, 2};
  const int32_t lawful[] = {5, 6}, high[] = {8}, low[] = {-1};
  const struct {
    int64_t place;
    const int32_t *ids;
    int64_t count;
    const char *field;
  } bad[] = {{1, lawful, 1, "place"},   {-1, lawful, 1, "place"},
             {0, lawful, 2, "count"},   {0, lawful, -1, "count"},
             {0, NULL, 1, "block_ids"}, {0, high, 1, "block_ids"},
             {0, low, 1, "block_ids"}};
  mla_batch_input in = {sizeof in, 1, 1, 8, context, rows, ids, starts, NULL};
  mla_error err = mla_error_init();
  batch_memory m;
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &in, NULL), MLA_OK);
  unsigned char *before = batch_memory_copy(&m);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_int_eq(mla_batch_extend(&m.batch, bad[i].place, bad[i].ids,
                                      bad[i].count, &err),
                     MLA_INVALID_ARGUMENT);
    ck_assert_str_eq(err.field, bad[i].field);
    ck_assert(batch_memory_same(&m, before));
  }
  free(before);
  batch_memory_free(&m);
}
END_TEST

START_TEST(bad_next) {
  const int32_t context[] = {3, 0}, rows[] = {2, 1}, ids[] = {3, 4};
  const int64_t starts[] = {0, 1, 2};
  const mla_batch_room room = {sizeof room, 8, 2, 8, 2};
  const int32_t many[] = {3, 0}, few[] = {0, -1}, wide[] = {1, -1};
  const mla_batch_next bad[] = {{sizeof bad[0], 0, 3, NULL, NULL, NULL},
                                {sizeof bad[0], 0, -1, NULL, NULL, NULL},
                                {sizeof bad[0], 0, 2, many, NULL, NULL},
                                {sizeof bad[0], 0, 2, few, NULL, NULL},
                                {sizeof bad[0], 0, 2, NULL, wide, NULL},
                                {4, 0, 2, NULL, NULL, NULL}};
  static const char *const fields[] = {"requests", "requests",   "kept",
                                       "kept",     "query_lens", "next"};
  mla_batch_input in = {sizeof in, 1, 2, 8, context, rows, ids, starts, NULL};
  mla_error err = mla_error_init();
  batch_memory m;
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &in, NULL), MLA_OK);
  unsigned char *before = batch_memory_copy(&m);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_int_ne(mla_batch_advance(&m.batch, &bad[i], &err), MLA_OK);
    ck_assert_str_eq(err.field, fields[i]);
    ck_assert(batch_memory_same(&m, before));
  }
  free(before);
  batch_memory_free(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("batch_advance");
  TCase *tcase = tcase_create("advance");
  tcase_add_loop_test(tcase, is_the_next_step, 0, 20);
  tcase_add_test(tcase, prefill_becomes_decode);
  tcase_add_test(tcase, bad_extensions);
  tcase_add_test(tcase, bad_next);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
