/*
 * replay.c - a call captured into a graph while other contents lay in its
 * tensors, replayed with the vector's. What a backend reads at capture, on the
 * host or once for all, shows here: a graph must follow lengths, tables and
 * data as they are when it is launched.
 */
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "hearing.h"
#include "spans.h"
#include "tensor.h"

typedef struct recording {
  const mla_backend *b;
  mla_handle *device;
  mla_stream stream;
  mla_graph *graph;
} recording;

static int fail(hearing *h, const char *what, mla_status status) {
  return mla_hearing_end(h, MLA_VERDICT_FAIL,
                         "declared to be safe to capture, but %s fails with "
                         "%s: %s",
                         what, mla_status_name(status), h->err.message);
}

static int record(hearing *h, recording *r) {
  mla_args args = mla_place_args(&h->place);
  mla_status status = r->b->stream_create(r->device, &r->stream, &h->err);
  if (status != MLA_OK) return fail(h, "a stream", status);
  status = r->b->capture_begin(r->device, r->stream, &h->err);
  if (status != MLA_OK) return fail(h, "the beginning of a capture", status);
  status = mla_run(h->plan, &args, mla_place_workspace(&h->place),
                   h->answer.workspace_bytes, r->stream, &h->err);
  if (status != MLA_OK) fail(h, "the captured run", status);
  mla_status ended =
      r->b->capture_end(r->device, r->stream, &r->graph, &h->err);
  if (status == MLA_OK && ended != MLA_OK)
    return fail(h, "the end of the capture", ended);
  return status == MLA_OK;
}

static int launch(hearing *h, recording *r) {
  unsigned char poison = (unsigned char)h->options->poison;
  mla_status status = mla_place_fill(&h->place, poison, MLA_SIDE_END, &h->err);
  if (status == MLA_OK)
    status = r->b->graph_launch(r->graph, r->stream, &h->err);
  if (status == MLA_OK)
    status = r->b->stream_sync(r->device, r->stream, &h->err);
  if (status == MLA_OK) status = mla_place_fetch(&h->place, &h->err);
  return status == MLA_OK || fail(h, "the replay", status);
}

/* The first run's bits, or, where bits are not promised, right values. */
static int is_right(const hearing *h, int slot) {
  const unsigned char *got = mla_place_bytes(&h->place, slot);
  mla_output_verdict o;
  mla_error err = mla_error_init();
  if (mla_span_same(&h->v->tensor[slot], h->first[slot], got)) return 1;
  if (h->answer.determinism != MLA_DETERMINISM_NONE ||
      h->v->compare[slot] == MLA_COMPARE_BYTES)
    return 0;
  return mla_compare_output(h->v, &h->expectation, slot, &h->answer.numerics,
                            got, 0, &o, &err) == MLA_OK &&
         !mla_output_fails(&o);
}

int mla_hearing_is_again(const hearing *h, int *wrong) {
  for (int s = 0; s < MLA_T_COUNT; s++)
    if (h->first[s] && !is_right(h, s)) return *wrong = s, 0;
  return 1;
}

static void compare(hearing *h) {
  int s;
  h->verdict->replayed = 1;
  if (mla_hearing_is_again(h, &s)) return;
  mla_hearing_end(h, MLA_VERDICT_FAIL,
                  "a graph captured with other contents and replayed with "
                  "these gives another %s than a fresh run",
                  mla_slot_name(s));
}

void mla_replay_graph(hearing *h) {
  recording r = {mla_device_backend(h->device), mla_device_handle(h->device),
                 NULL, NULL};
  if (!h->answer.capture_safe || !r.b->capture_begin || !h->v->has_recipe ||
      h->verdict->kind != MLA_VERDICT_PASS)
    return;
  if (mla_hearing_put_others(h) && record(h, &r) && launch(h, &r)) compare(h);
  if (r.graph) r.b->graph_free(r.graph);
  if (r.stream) r.b->stream_destroy(r.device, r.stream);
}
