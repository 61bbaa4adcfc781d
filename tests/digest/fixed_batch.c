#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixed_steps.h"
#include "rng.h"

static void must(mla_status status, const mla_error *err) {
  if (status == MLA_OK) return;
  fprintf(stderr, "fixed_batch: %s\n", err->message);
  exit(1);
}

typedef struct draws {
  mla_rng rng;
  uint64_t at;
} draws;

static int32_t draw(draws *d, int32_t least, int32_t most) {
  return least +
         (int32_t)mla_rng_below(d->rng, d->at++, (uint32_t)(most - least + 1));
}

/* Blocks for what the step needs and one more token. */
static void draw_requests(fixed_batch *b, draws *d, int32_t size) {
  b->input.requests = draw(d, 1, FIXED_MAX_REQUESTS);
  for (int r = 0; r < b->input.requests; r++) {
    b->context[r] = draw(d, 0, 1) ? draw(d, 0, 40) : 0;
    b->rows[r] = draw(d, 0, draw(d, 0, 1) ? 17 : 1);
    int64_t n = (b->context[r] + b->rows[r] + 4) / size + 1;
    b->starts[r + 1] = b->starts[r] + n;
    for (int64_t i = b->starts[r]; i < b->starts[r + 1]; i++)
      b->ids[i] = draw(d, 0, 99);
  }
  for (int i = 0; i < 256; i++) b->tokens[i] = draw(d, 0, 100000);
}

static int64_t sum(const int32_t *x, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total += x[i];
  return total;
}

void fixed_batch_new(fixed_batch *b, int number) {
  draws d = {mla_rng_named(20261129 + (uint64_t)number, "batch"), 0};
  mla_error err = mla_error_init();
  memset(b, 0, sizeof *b);
  int32_t size = draw(&d, 2, 20);
  b->input.size = (uint32_t)sizeof b->input;
  b->input.num_blocks = 100;
  b->input.decode_threshold = draw(&d, 0, 3);
  b->input.context_lens = b->context;
  b->input.query_lens = b->rows;
  b->input.block_ids = b->ids;
  b->input.block_starts = b->starts;
  b->input.token_ids = b->tokens;
  draw_requests(b, &d, size);
  const mla_batch_room room = {(uint32_t)sizeof room, size, 12, 256, 32};
  uint64_t bytes = mla_batch_bytes(&room);
  b->memory = malloc((size_t)bytes);
  if (!b->memory) exit(3);
  must(mla_batch_place(&b->batch, &room, b->memory, bytes, &err), &err);
  must(mla_batch_build(&b->batch, &b->input, &err), &err);
  b->pad_requests = b->input.requests + draw(&d, 0, 3);
  b->pad_tokens = sum(b->rows, b->input.requests) + draw(&d, 32, 40);
  must(mla_batch_pad(&b->batch, b->pad_requests, b->pad_tokens, &err), &err);
  b->next.size = (uint32_t)sizeof b->next;
  b->next.requests = draw(&d, 0, (int32_t)b->input.requests);
  for (int64_t p = 0; p < b->next.requests; p++) {
    b->kept[p] = draw(&d, 0, b->rows[b->batch.order[p]]);
    b->next_rows[p] = draw(&d, 0, 4);
  }
  b->next.kept = b->kept;
  b->next.query_lens = b->next_rows;
  b->next.sampled = b->tokens;
}

void fixed_batch_advance(fixed_batch *b) {
  mla_error err = mla_error_init();
  must(mla_batch_advance(&b->batch, &b->next, &err), &err);
}

void fixed_batch_free(fixed_batch *b) {
  free(b->memory);
}
