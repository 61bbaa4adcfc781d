/*
 * batch_fixture.h - random requests, and what a step of them must be, said
 * one element at a time.
 */
#ifndef BATCH_FIXTURE_H
#define BATCH_FIXTURE_H

#include "mla/batch.h"
#include "rng.h"

enum { FIXTURE_REQUESTS = 12, FIXTURE_ROWS = 40, FIXTURE_BLOCKS = 64 };

/* A stream of small random numbers. */
typedef struct draws {
  mla_rng rng;
  uint64_t at;
} draws;
draws draws_from(uint64_t seed);
int32_t draw(draws *d, int32_t least, int32_t most);

/* Requests, their lists in arrays of exactly the length they need. */
typedef struct step_requests {
  mla_batch_input input;
  int32_t block_size;
  int64_t table_width;
  int32_t context[FIXTURE_REQUESTS], rows[FIXTURE_REQUESTS];
  int64_t starts[FIXTURE_REQUESTS + 1];
  int32_t *ids, *tokens;
} step_requests;
void requests_random(step_requests *r, draws *d);
void requests_free(step_requests *r);
int64_t requests_tokens(const step_requests *r);

/* A batch in memory of its own, with guards behind it. */
typedef struct batch_memory {
  mla_batch batch;
  unsigned char *memory;
  uint64_t bytes;
} batch_memory;
/* Room for `requests` and `tokens`, filled with 0xa5. */
void batch_memory_new(batch_memory *m, const mla_batch_room *room);
void batch_memory_free(batch_memory *m);
/* A copy of struct and memory, to see that nothing was written. */
unsigned char *batch_memory_copy(const batch_memory *m);
int batch_memory_same(const batch_memory *m, const unsigned char *copy);

/* A room that the requests fit, and some more. */
mla_batch_room room_for(const step_requests *r, int64_t more);
/* The slot of position j of request b, from its list. */
int64_t slot_of(const step_requests *r, int64_t b, int64_t j);
/* Aborts the test unless the batch is the step of these requests; place p
   holds request order[p]. */
void require_step(const mla_batch *batch, const step_requests *r);

#endif
