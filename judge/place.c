/*
 * place.c - memory for a call, on the host or through a backend's members.
 */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "args_check.h"
#include "bulk.h"
#include "error.h"
#include "spans.h"
#include "spoiled.h"
#include "tensor.h"

static const mla_backend *backend_of(const mla_place *p) {
  return mla_device_backend(p->device);
}

static uint64_t power_of_two(uint64_t n) {
  uint64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

/* A multiple of that and no more, where the case asks for it. */
static uint64_t awry(const mla_place *p, const mla_placed *m) {
  const mla_vector *v = p->vector;
  return v->has_recipe && v->recipe.num[MLA_K_UNALIGNED] ? m->unit : 0;
}

static mla_status take_on_host(mla_place *p, mla_placed *m, int closed,
                               mla_error *err) {
  uint64_t room = awry(p, m);
  if (m->size > UINT64_MAX - room)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "memory",
                    "no %llu bytes of host memory",
                    (unsigned long long)m->size);
  mla_status status =
      mla_zone_take(m->size + room, m->unit, closed, &m->zone, err);
  if (status != MLA_OK) return status;
  m->base = m->image = m->zone.at;
  m->bytes = m->zone.bytes;
  m->lead = m->zone.margin;
  return MLA_OK;
}

static uint64_t device_band(const mla_placed *m) {
  uint64_t unit = 2 * m->unit;
  return (MLA_BAND + unit - 1) / unit * unit;
}

static mla_status take_on_device(mla_place *p, mla_placed *m, mla_error *err) {
  void *memory = NULL;
  m->lead = device_band(m);
  m->bytes = 2 * m->lead + awry(p, m) + m->size + MLA_BAND;
  m->image = m->bytes > SIZE_MAX / 2 ? NULL : malloc((size_t)m->bytes);
  if (!m->image)
    return mla_fail(err, MLA_OUT_OF_MEMORY, "memory",
                    "no %llu bytes of host memory",
                    (unsigned long long)m->bytes);
  mla_status status = backend_of(p)->mem_alloc(mla_device_handle(p->device),
                                               m->bytes, &memory, err);
  m->base = memory;
  return status;
}

static mla_status take(mla_place *p, mla_placed *m, uint64_t bytes,
                       uint64_t alignment, int closed, mla_error *err) {
  m->unit = power_of_two(alignment);
  m->size = bytes;
  return p->on_host ? take_on_host(p, m, closed, err)
                    : take_on_device(p, m, err);
}

static void give(mla_place *p, mla_placed *m) {
  if (!p->on_host && m->base)
    backend_of(p)->mem_free(mla_device_handle(p->device), m->base);
  if (p->on_host)
    mla_zone_give(&m->zone);
  else
    free(m->image);
  memset(m, 0, sizeof *m);
}

/* The tensors' addresses, as the zones are now. */
static void point(mla_place *p) {
  for (int s = 0; s < MLA_T_COUNT; s++) {
    int alias = p->vector->alias[s];
    if (!p->vector->role[s]) continue;
    const mla_placed *m = &p->slot[alias >= 0 ? alias : s];
    p->tensor[s] = p->vector->tensor[s];
    p->tensor[s].data = m->base + m->lead;
  }
}

static uint64_t alignment_of(const mla_vector *v, int32_t slot,
                             const mla_answer *answer) {
  const mla_op_spec *op = mla_op_spec_of(v->problem.op);
  for (int32_t i = 0; i < op->slot_count; i++)
    if (op->slots[i].slot == slot &&
        mla_slot_applies(&op->slots[i], &v->problem))
      return mla_slot_alignment(&op->slots[i], &v->problem, answer);
  return answer->tensor_alignment;
}

mla_status mla_place_new(mla_device *device, const mla_vector *v,
                         const mla_answer *answer, int closed, mla_place *p,
                         mla_error *err) {
  mla_status status = MLA_OK;
  memset(p, 0, sizeof *p);
  p->device = device;
  p->vector = v;
  p->scratch = MLA_SCRATCH_POISON;
  p->on_host = backend_of(p)->mem_alloc == NULL;
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    if (!v->role[s] || v->alias[s] >= 0) continue;
    status = take(p, &p->slot[s], (uint64_t)mla_tensor_extent(&v->tensor[s]),
                  alignment_of(v, s, answer), closed, err);
  }
  if (status == MLA_OK)
    status = take(p, &p->workspace, answer->workspace_bytes,
                  answer->workspace_alignment, closed, err);
  if (status == MLA_OK) point(p);
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

/* Moves a tensor to one end of its pages; on a device by a band, so that it
   lies elsewhere, and as aligned as before. */
static void move(const mla_place *p, mla_placed *m, int32_t slot,
                 mla_side side) {
  uint64_t off = side == MLA_SIDE_EVEN ? 0 : awry(p, m);
  if (!p->on_host) {
    m->lead = (side == MLA_SIDE_END ? 1 : 2) * device_band(m) + off;
    return;
  }
  uint64_t end = m->bytes - m->zone.margin - m->size;
  m->lead = side == MLA_SIDE_END ? end / m->unit * m->unit : m->zone.margin;
  if (m->lead / m->unit % 2 == 0)
    m->lead = side == MLA_SIDE_END ? m->lead - off : m->lead + off;
  mla_zone_watch(&m->zone, slot, m->image + m->lead, m->size);
}

static mla_status fill_bands(mla_place *p, mla_placed *m, unsigned char poison,
                             mla_error *err) {
  uint64_t behind = m->lead + m->size, rest = m->bytes - behind;
  memset(m->image, poison, (size_t)m->lead);
  memset(m->image + behind, poison, (size_t)rest);
  mla_status status = part_to_device(p, m, 0, m->lead, err);
  return status == MLA_OK ? part_to_device(p, m, behind, rest, err) : status;
}

/* The tensor's bytes, and the bands. Gaps of gigabytes stay as they are. */
static mla_status fill_slot(mla_place *p, int s, unsigned char poison,
                            mla_error *err) {
  const mla_tensor *t = &p->vector->tensor[s];
  mla_placed *m = &p->slot[s];
  mla_status status = fill_bands(p, m, poison, err);
  for (int64_t i = 0; status == MLA_OK && i < mla_span_count(t); i++) {
    mla_span span = mla_span_at(t, i);
    uint64_t at = m->lead + (uint64_t)span.at;
    mla_bulk_copy(m->image + at, (const unsigned char *)t->data + span.at,
                  (uint64_t)span.bytes);
    status = part_to_device(p, m, at, (uint64_t)span.bytes, err);
  }
  return status;
}

static void fill_scratch(mla_place *p, unsigned char poison) {
  mla_placed *w = &p->workspace;
  if (p->scratch == MLA_SCRATCH_LEFT) return;
  memset(w->image, poison, (size_t)w->bytes);
  if (p->scratch >= 0) memset(w->image + w->lead, p->scratch, (size_t)w->size);
}

mla_status mla_place_fill(mla_place *p, unsigned char poison, mla_side side,
                          mla_error *err) {
  mla_status status = MLA_OK;
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++) {
    if (!p->slot[s].image) continue;
    move(p, &p->slot[s], s, side);
    status = fill_slot(p, s, poison, err);
  }
  move(p, &p->workspace, -1, side);
  point(p);
  if (status == MLA_OK) {
    fill_scratch(p, poison);
    status = to_device(p, &p->workspace, err);
  }
  return status == MLA_OK ? settle(p, err) : status;
}

mla_status mla_place_put(mla_place *p, int32_t slot, const void *bytes,
                         mla_error *err) {
  mla_placed *m = &p->slot[slot];
  memcpy(m->image + m->lead, bytes, (size_t)m->size);
  mla_status status = to_device(p, m, err);
  return status == MLA_OK ? settle(p, err) : status;
}

/* Memory that two names have is an input only if both are. */
static int is_only_read(const mla_vector *v, int s) {
  if (v->role[s] != MLA_ROLE_IN || v->alias[s] >= 0) return 0;
  for (int k = 0; k < MLA_T_COUNT; k++)
    if (v->role[k] && v->alias[k] == s && v->role[k] != MLA_ROLE_IN) return 0;
  return 1;
}

void mla_place_lock(mla_place *p, int locked) {
  for (int s = 0; p->on_host && s < MLA_T_COUNT; s++)
    if (p->slot[s].image && is_only_read(p->vector, s))
      mla_zone_lock(&p->slot[s].zone, locked);
}

mla_args mla_place_args(const mla_place *p) {
  mla_args args = {(uint32_t)sizeof(mla_args), MLA_T_COUNT, p->tensor};
  return args;
}

void *mla_place_workspace(const mla_place *p) {
  return p->workspace.base + p->workspace.lead;
}

static mla_status part_to_host(mla_place *p, mla_placed *m, uint64_t at,
                               uint64_t bytes, mla_error *err) {
  if (!m->base || bytes == 0) return MLA_OK;
  return backend_of(p)->mem_to_host(mla_device_handle(p->device), m->image + at,
                                    m->base + at, bytes, NULL, err);
}

/* What lies round a tensor, and of it what is looked at. */
static mla_status fetch(mla_place *p, int s, mla_error *err) {
  const mla_tensor *t = &p->vector->tensor[s];
  mla_placed *m = &p->slot[s];
  uint64_t behind = m->lead + m->size;
  if (!m->base || !mla_span_is_vast(t))
    return part_to_host(p, m, 0, m->bytes, err);
  mla_status status = part_to_host(p, m, 0, m->lead, err);
  for (int64_t i = 0; status == MLA_OK && i < mla_span_count(t); i++) {
    mla_span span = mla_span_at(t, i);
    status = part_to_host(p, m, m->lead + (uint64_t)span.at,
                          (uint64_t)span.bytes, err);
  }
  if (status != MLA_OK) return status;
  return part_to_host(p, m, behind, m->bytes - behind, err);
}

mla_status mla_place_fetch(mla_place *p, mla_error *err) {
  mla_status status = settle(p, err);
  for (int s = 0; !p->on_host && s < MLA_T_COUNT && status == MLA_OK; s++)
    status = fetch(p, s, err);
  if (!p->on_host && status == MLA_OK)
    status = part_to_host(p, &p->workspace, 0, p->workspace.bytes, err);
  if (!p->on_host && status == MLA_OK) status = settle(p, err);
  for (int s = 0; s < MLA_T_COUNT && status == MLA_OK; s++)
    if (p->slot[s].image)
      mla_spoiled_settle(p->vector, s, p->slot[s].image + p->slot[s].lead);
  return status;
}

const unsigned char *mla_place_bytes(const mla_place *p, int32_t slot) {
  if (p->vector->alias[slot] >= 0) slot = p->vector->alias[slot];
  return p->slot[slot].image + p->slot[slot].lead;
}

int64_t mla_place_band_hit(const mla_place *p, int32_t slot,
                           unsigned char poison) {
  const mla_placed *m = slot < 0 ? &p->workspace : &p->slot[slot];
  if (!m->image) return 0;
  uint64_t behind = m->lead + m->size;
  for (uint64_t i = m->lead; i-- > 0;)
    if (m->image[i] != poison) return (int64_t)i - (int64_t)m->lead;
  for (uint64_t i = behind; i < m->bytes; i++)
    if (m->image[i] != poison) return (int64_t)(i - m->lead);
  return 0;
}
