/*
 * place.c - memory for a call, on the host or through a backend's members.
 */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "spans.h"
#include "tensor.h"

static const mla_backend *backend_of(const mla_place *p) {
  return mla_device_backend(p->device);
}

/* Host memory at a multiple of `alignment`; *block is what to free. */
static mla_status take_image(mla_placed *m, uint64_t alignment,
                             mla_error *err) {
  uint64_t unit = alignment > 64 ? alignment : 64;
  uint64_t size = (m->bytes + unit - 1) / unit * unit;
  m->image = size > SIZE_MAX / 2 ? NULL : aligned_alloc(unit, (size_t)size);
  if (m->image) return MLA_OK;
  return mla_fail(err, MLA_OUT_OF_MEMORY, "memory",
                  "no %llu bytes of host memory", (unsigned long long)size);
}

static uint64_t power_of_two(uint64_t n) {
  uint64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

static mla_status take(mla_place *p, mla_placed *m, uint64_t bytes,
                       uint64_t alignment, mla_error *err) {
  uint64_t unit = power_of_two(alignment);
  m->lead = (MLA_BAND + unit - 1) / unit * unit;
  m->bytes = m->lead + bytes + MLA_BAND;
  mla_status status = take_image(m, unit, err);
  if (status != MLA_OK) return status;
  if (!p->on_host) {
    void *memory = NULL;
    status = backend_of(p)->mem_alloc(mla_device_handle(p->device), m->bytes,
                                      &memory, err);
    m->base = memory;
    return status;
  }
  m->base = m->image;
  return MLA_OK;
}

static void give(mla_place *p, mla_placed *m) {
  if (!p->on_host && m->base)
    backend_of(p)->mem_free(mla_device_handle(p->device), m->base);
  free(m->image);
  memset(m, 0, sizeof *m);
}

mla_status mla_place_new(mla_device *device, const mla_vector *v,
                         const mla_answer *answer, mla_place *p,
                         mla_error *err) {
  mla_status status = MLA_OK;
  memset(p, 0, sizeof *p);
  p->device = device;
  p->vector = v;
  p->on_host = backend_of(p)->mem_alloc == NULL;
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    if (!v->role[s] || v->alias[s] >= 0) continue;
    status = take(p, &p->slot[s], (uint64_t)mla_tensor_extent(&v->tensor[s]),
                  answer->tensor_alignment, err);
  }
  if (status == MLA_OK)
    status = take(p, &p->workspace, answer->workspace_bytes,
                  answer->workspace_alignment, err);
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    if (!v->role[s]) continue;
    const mla_placed *m = &p->slot[v->alias[s] >= 0 ? v->alias[s] : s];
    p->tensor[s] = v->tensor[s];
    p->tensor[s].data = m->base + m->lead;
  }
  return status;
}

void mla_place_free(mla_place *p) {
  if (!p->device) return;
  for (int s = 0; s < MLA_T_COUNT; s++) give(p, &p->slot[s]);
  give(p, &p->workspace);
}

static mla_status part_to_device(mla_place *p, mla_placed *m, uint64_t at,
                                 uint64_t bytes, mla_error *err) {
  if (p->on_host || bytes == 0) return MLA_OK;
  return backend_of(p)->mem_to_device(mla_device_handle(p->device),
                                      m->base + at, m->image + at, bytes, NULL,
                                      err);
}

static mla_status to_device(mla_place *p, mla_placed *m, mla_error *err) {
  return part_to_device(p, m, 0, m->bytes, err);
}

static mla_status settle(mla_place *p, mla_error *err) {
  const mla_backend *b = backend_of(p);
  if (p->on_host || !b->stream_sync) return MLA_OK;
  return b->stream_sync(mla_device_handle(p->device), NULL, err);
}

/* The tensor's bytes, and the bands. Gaps of gigabytes stay as they are. */
static mla_status fill_slot(mla_place *p, int s, unsigned char poison,
                            mla_error *err) {
  const mla_tensor *t = &p->vector->tensor[s];
  mla_placed *m = &p->slot[s];
  uint64_t behind = m->bytes - MLA_BAND;
  memset(m->image, poison, (size_t)m->lead);
  memset(m->image + behind, poison, MLA_BAND);
  mla_status status = part_to_device(p, m, 0, m->lead, err);
  if (status == MLA_OK) status = part_to_device(p, m, behind, MLA_BAND, err);
  for (int64_t i = 0; status == MLA_OK && i < mla_span_count(t); i++) {
    mla_span span = mla_span_at(t, i);
    uint64_t at = m->lead + (uint64_t)span.at;
    memcpy(m->image + at, (const unsigned char *)t->data + span.at,
           (size_t)span.bytes);
    status = part_to_device(p, m, at, (uint64_t)span.bytes, err);
  }
  return status;
}

mla_status mla_place_fill(mla_place *p, unsigned char poison, mla_error *err) {
  mla_status status = MLA_OK;
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    if (p->slot[s].image) status = fill_slot(p, s, poison, err);
  }
  if (status == MLA_OK) {
    memset(p->workspace.image, poison, (size_t)p->workspace.bytes);
    status = to_device(p, &p->workspace, err);
  }
  return status == MLA_OK ? settle(p, err) : status;
}

mla_status mla_place_put(mla_place *p, int32_t slot, const void *bytes,
                         mla_error *err) {
  mla_placed *m = &p->slot[slot];
  memcpy(m->image + m->lead, bytes, (size_t)(m->bytes - m->lead - MLA_BAND));
  mla_status status = to_device(p, m, err);
  return status == MLA_OK ? settle(p, err) : status;
}

mla_args mla_place_args(const mla_place *p) {
  mla_args args = {(uint32_t)sizeof(mla_args), MLA_T_COUNT, p->tensor};
  return args;
}

void *mla_place_workspace(const mla_place *p) {
  return p->workspace.base + p->workspace.lead;
}

static mla_status fetch(mla_place *p, mla_placed *m, mla_error *err) {
  if (!m->base) return MLA_OK;
  return backend_of(p)->mem_to_host(mla_device_handle(p->device), m->image,
                                    m->base, m->bytes, NULL, err);
}

mla_status mla_place_fetch(mla_place *p, mla_error *err) {
  mla_status status = settle(p, err);
  if (p->on_host) return status;
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++)
    status = fetch(p, &p->slot[s], err);
  if (status == MLA_OK) status = fetch(p, &p->workspace, err);
  return status == MLA_OK ? settle(p, err) : status;
}

const unsigned char *mla_place_bytes(const mla_place *p, int32_t slot) {
  if (p->vector->alias[slot] >= 0) slot = p->vector->alias[slot];
  return p->slot[slot].image + p->slot[slot].lead;
}

int64_t mla_place_band_hit(const mla_place *p, int32_t slot,
                           unsigned char poison) {
  const mla_placed *m = slot < 0 ? &p->workspace : &p->slot[slot];
  if (!m->image) return 0;
  uint64_t behind = m->bytes - MLA_BAND;
  for (uint64_t i = m->lead; i-- > 0;)
    if (m->image[i] != poison) return (int64_t)i - (int64_t)m->lead;
  for (uint64_t i = behind; i < m->bytes; i++)
    if (m->image[i] != poison) return (int64_t)(i - m->lead);
  return 0;
}
