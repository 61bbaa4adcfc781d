/*
 * test_context_parallel.c - maps of keys to ranks, counted one by one, and the
 * step of a rank.
 */
#include "mla/context_parallel.h"

#include <stdlib.h>
#include <string.h>

#include "batch_fixture.h"
#include "check_main.h"

static mla_cp_map map_of(int32_t ranks, int32_t interleave, int32_t rank) {
  mla_cp_map map = {ranks, interleave, rank, 4};
  return map;
}

/* By hand: 3 ranks, interleave 2: 0 0 1 1 2 2 0 0 1 1 2 2 ... */
START_TEST(by_hand) {
  const int64_t lens[3][8] = {{0, 1, 2, 2, 2, 2, 2, 3},
                              {0, 0, 0, 1, 2, 2, 2, 2},
                              {0, 0, 0, 0, 0, 1, 2, 2}};
  for (int32_t r = 0; r < 3; r++) {
    mla_cp_map map = map_of(3, 2, r);
    for (int64_t n = 0; n < 8; n++)
      ck_assert_int_eq(mla_cp_local_len(&map, n), lens[r][n]);
  }
  mla_cp_map map = map_of(3, 2, 1);
  ck_assert_int_eq(mla_cp_rank_of(&map, 9), 1);
  ck_assert_int_eq(mla_cp_local_index(&map, 9), 3);
  ck_assert_int_eq(mla_cp_position(&map, 3), 9);
}
END_TEST

/* Each position has one place; a length counts those below it. */
START_TEST(maps_count) {
  for (int32_t ranks = 1; ranks <= 7; ranks++)
    for (int32_t interleave = 1; interleave <= 9; interleave++) {
      int64_t count[7] = {0};
      for (int64_t j = 0; j < 200; j++) {
        for (int32_t r = 0; r < ranks; r++) {
          mla_cp_map map = map_of(ranks, interleave, r);
          ck_assert_int_eq(mla_cp_local_len(&map, j), count[r]);
        }
        mla_cp_map map = map_of(ranks, interleave, 0);
        map.rank = mla_cp_rank_of(&map, j);
        ck_assert_int_eq(mla_cp_local_index(&map, j), count[map.rank]);
        ck_assert_int_eq(mla_cp_position(&map, count[map.rank]), j);
        count[map.rank]++;
      }
    }
}
END_TEST

START_TEST(far_positions) {
  mla_cp_map map = map_of(7, 64, 3);
  const int64_t far = (int64_t)1 << 45;
  int64_t n = mla_cp_local_len(&map, far);
  ck_assert(n > far / 7 - 64 && n < far / 7 + 64);
  ck_assert(mla_cp_position(&map, n - 1) < far);
  ck_assert(mla_cp_position(&map, n) >= far);
}
END_TEST

/* --------------------------------------------------------------- a step */

/* Blocks of one list for all ranks: the batch's are `ranks` times as long. */
typedef struct shard_step {
  step_requests requests;
  batch_memory memory;
  int32_t ranks, interleave;
  mla_cp_table table;
  mla_cp_map map;
} shard_step;

static void shard_step_new(shard_step *s, draws *d) {
  requests_random(&s->requests, d);
  s->ranks = draw(d, 1, 4);
  s->interleave = draw(d, 1, 3);
  s->map = map_of(s->ranks, s->interleave, 0);
  s->map.block_size = s->interleave * draw(d, 1, 3);
  mla_batch_room room = room_for(&s->requests, 3);
  batch_memory_new(&s->memory, &room);
  ck_assert_int_eq(mla_batch_build(&s->memory.batch, &s->requests.input, NULL),
                   MLA_OK);
  ck_assert_int_eq(
      mla_batch_pad(&s->memory.batch, room.requests, room.tokens, NULL),
      MLA_OK);
  /* Lists of the rank's own, long enough for any. */
  s->table.width = 100;
  s->table.stride = 103;
  int32_t *ids = malloc((size_t)room.requests * 103 * sizeof *ids);
  for (int64_t i = 0; i < room.requests * 103; i++) ids[i] = draw(d, 0, 5000);
  s->table.block_ids = ids;
}

static void shard_step_free(shard_step *s) {
  free((int32_t *)(uintptr_t)s->table.block_ids);
  batch_memory_free(&s->memory);
  requests_free(&s->requests);
}

static int64_t local_slot(const shard_step *s, int64_t place, int64_t local) {
  int64_t size = s->map.block_size;
  return s->table.block_ids[place * s->table.stride + local / size] * size +
         local % size;
}

static void require_slots(const shard_step *s, const int64_t *slots) {
  const mla_batch *b = &s->memory.batch;
  for (int64_t p = 0; p < b->live_requests; p++)
    for (int64_t i = b->query_start_loc[p]; i < b->query_start_loc[p + 1];
         i++) {
      int64_t before = 0, j = b->positions[i];
      for (int64_t k = 0; k < j; k++)
        before += k / s->interleave % s->ranks == s->map.rank;
      int here = j / s->interleave % s->ranks == s->map.rank;
      ck_assert_int_eq(slots[i], here ? local_slot(s, p, before) : -1);
    }
  for (int64_t i = b->live_tokens; i < b->tokens; i++)
    ck_assert_int_eq(slots[i], -1);
}

static void require_rows(const shard_step *s, int causal, const int32_t *lens,
                         const int32_t *starts, const int32_t *table) {
  const mla_batch *b = &s->memory.batch;
  int64_t width = s->table.width;
  for (int64_t p = 0; p < b->live_requests; p++)
    for (int64_t i = b->query_start_loc[p]; i < b->query_start_loc[p + 1];
         i++) {
      int64_t sees = causal ? b->positions[i] + 1 : b->seq_lens[p], n = 0;
      for (int64_t k = 0; k < sees; k++)
        n += k / s->interleave % s->ranks == s->map.rank;
      ck_assert_int_eq(lens[i], n);
      ck_assert_mem_eq(table + i * width,
                       s->table.block_ids + p * s->table.stride,
                       (size_t)width * sizeof *table);
    }
  for (int64_t i = b->live_tokens; i < b->tokens; i++) {
    ck_assert_int_eq(lens[i], 0);
    ck_assert_int_eq(table[i * width], 0);
  }
  for (int64_t i = 0; i <= b->tokens; i++) ck_assert_int_eq(starts[i], i);
}

START_TEST(steps_of_ranks) {
  draws d = draws_from((uint64_t)(90 + _i));
  for (int round = 0; round < 12; round++) {
    shard_step s;
    shard_step_new(&s, &d);
    size_t n = (size_t)s.memory.batch.tokens;
    int64_t *slots = malloc(n * sizeof *slots);
    int32_t *lens = malloc(n * sizeof *lens);
    int32_t *starts = malloc((n + 1) * sizeof *starts);
    int32_t *table = malloc(n * 100 * sizeof *table);
    for (s.map.rank = 0; s.map.rank < s.ranks; s.map.rank++) {
      ck_assert_int_eq(
          mla_cp_slots(&s.map, &s.memory.batch, &s.table, slots, NULL), MLA_OK);
      require_slots(&s, slots);
      for (int causal = 0; causal < 2; causal++) {
        ck_assert_int_eq(mla_cp_rows(&s.map, &s.memory.batch, &s.table, causal,
                                     lens, starts, table, NULL),
                         MLA_OK);
        require_rows(&s, causal, lens, starts, table);
      }
    }
    free(slots);
    free(lens);
    free(starts);
    free(table);
    shard_step_free(&s);
  }
}
END_TEST

START_TEST(mistakes) {
  const struct {
    mla_cp_map map;
    const char *field;
  } bad[] = {{{0, 1, 0, 1}, "ranks"},      {{1, 0, 0, 1}, "interleave"},
             {{2, 1, 2, 1}, "rank"},       {{2, 1, -1, 1}, "rank"},
             {{2, 1, 0, 0}, "block_size"}, {{1, 1, 0, 1}, "table"}};
  const int32_t context[] = {5}, rows[] = {3}, ids[] = {3, 1};
  const int64_t list[] = {0, 2};
  const mla_batch_room room = {sizeof room, 8, 1, 3, 2};
  mla_batch_input in = {sizeof in, 0, 1, 8, context, rows, ids, list, NULL};
  mla_cp_table table = {ids, 2, 2}, overlap = {ids, 1, 2};
  int64_t slots[3] = {7, 7, 7};
  mla_error err = mla_error_init();
  batch_memory m;
  batch_memory_new(&m, &room);
  ck_assert_int_eq(mla_batch_build(&m.batch, &in, NULL), MLA_OK);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_int_eq(mla_cp_slots(&bad[i].map, &m.batch, &table, slots, &err),
                     MLA_INVALID_ARGUMENT);
    ck_assert_str_eq(err.field, bad[i].field);
  }
  mla_cp_map map = map_of(1, 1, 0);
  ck_assert_int_eq(mla_cp_slots(&map, &m.batch, &overlap, slots, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(mla_cp_slots(&map, NULL, &table, slots, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(mla_cp_slots(&map, &m.batch, &table, NULL, &err),
                   MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(
      mla_cp_rows(&map, &m.batch, &table, 1, NULL, NULL, NULL, &err),
      MLA_INVALID_ARGUMENT);
  for (int i = 0; i < 3; i++) ck_assert_int_eq(slots[i], 7);
  batch_memory_free(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("context_parallel");
  TCase *tcase = tcase_create("maps");
  tcase_add_test(tcase, by_hand);
  tcase_add_test(tcase, maps_count);
  tcase_add_test(tcase, far_positions);
  tcase_add_loop_test(tcase, steps_of_ranks, 0, 5);
  tcase_add_test(tcase, mistakes);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
