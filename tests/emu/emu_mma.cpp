/*
 * emu_mma.cpp - sm_80's matrix products, loads of matrices and asynchronous
 * copies, by their definition.
 */
#include "emu_mma.h"

#include <string.h>

#include <vector>

#include "emu_lanes.h"
#include "emu_mfma.h"
#include "emu_watch.h"
#include "emu_where.h"

static bool wrong_layout = false, waits_for_nothing = false;

void emu_mma_plant(bool wrong) {
  wrong_layout = wrong;
}

void emu_copy_plant(bool no_wait) {
  waits_for_nothing = no_wait;
}

static void must_be_warp(const char *file, int line, const void *pc) {
  if (emu_wave_width() != 32 || emu_lanes_of_wave() != 32)
    emu_stop("a matrix instruction of sm_80 in a wave of %d lanes, %s",
             emu_lanes_of_wave(), emu_where(pc, file, line).c_str());
}

/* ---------------------------------------------------------------- products */

/* Four numbers at once: this is most of what a product costs. */
typedef float four __attribute__((vector_size(16)));

/* What lanes give each other: their elements, as f32. a[i] belongs to k of
   2t + i % 2, from i = 2 on 8 more, of row g, then of row g + 8. */
struct operands {
  float a[2][4], b[4];
};

static void widen(uint32_t pair, int is_bf16, float to[2]) {
  const uint32_t wide[2] = {pair << 16, pair & 0xffff0000u};
  if (is_bf16)
    memcpy(to, wide, sizeof wide);
  else
    for (int i = 0; i < 2; i++) to[i] = emu_element(&pair, i, 0);
}

/* Rows g and g + 8 by columns 2t and 2t + 1, row by row; k ascends. */
static four multiply(const emu_payload *all, int g, int t, four sum) {
  for (int half = 0; half < 4; half += 2)
    for (int i = 0; i < 4; i++) {
      operands row, left, right;
      memcpy(&row, all[4 * g + i], sizeof row);
      memcpy(&left, all[8 * t + i], sizeof left);
      memcpy(&right, all[8 * t + 4 + i], sizeof right);
      for (int k = half; k < half + 2; k++) {
        const four a = {row.a[0][k], row.a[0][k], row.a[1][k], row.a[1][k]};
        const four b = {left.b[k], right.b[k], left.b[k], right.b[k]};
        sum += a * b;
      }
    }
  return sum;
}

void emu_mma(const uint32_t a[4], const uint32_t b[2], float d[4], int is_bf16,
             const char *file, int line) {
  const void *pc = __builtin_return_address(0);
  must_be_warp(file, line, pc);
  operands own;
  for (int i = 0; i < 4; i++) widen(a[i], is_bf16, &own.a[i % 2][i / 2 * 2]);
  for (int i = 0; i < 2; i++) widen(b[i], is_bf16, &own.b[2 * i]);
  const emu_payload *all = emu_gather(
      &own, sizeof own, is_bf16 ? "mma bf16" : "mma f16", file, line, pc);
  const int lane = emu_current.lane % 32;
  const four sum =
      multiply(all, lane / 4, lane % 4, four{d[0], d[1], d[2], d[3]});
  for (int r = 0; r < 4; r++)
    d[r] = sum[wrong_layout && (r == 1 || r == 2) ? 3 - r : r];
}

/* ------------------------------------------------------ votes and counts */

uint32_t emu_ballot(int x, const char *file, int line) {
  const void *pc = __builtin_return_address(0);
  must_be_warp(file, line, pc);
  const int truth = x != 0;
  const emu_payload *all =
      emu_gather(&truth, sizeof truth, "ballot", file, line, pc);
  uint32_t bits = 0;
  for (int i = 0; i < 32; i++) {
    int theirs;
    memcpy(&theirs, all[i], sizeof theirs);
    bits |= (uint32_t)(theirs != 0) << i;
  }
  return bits;
}

uint32_t emu_most(uint32_t x, const char *file, int line) {
  const void *pc = __builtin_return_address(0);
  must_be_warp(file, line, pc);
  const emu_payload *all =
      emu_gather(&x, sizeof x, "redux.max", file, line, pc);
  uint32_t most = 0;
  for (int i = 0; i < 32; i++) {
    uint32_t theirs;
    memcpy(&theirs, all[i], sizeof theirs);
    most = theirs > most ? theirs : most;
  }
  return most;
}

uint32_t emu_count(uint32_t *at) {
  return (*at)++;
}

/* --------------------------------------------------------------- matrices */

static uint32_t read_element(const unsigned char *row, int column,
                             const void *pc) {
  uint16_t v;
  emu_read_shared(row + 2 * column, 2, pc);
  memcpy(&v, row + 2 * column, sizeof v);
  return v;
}

void emu_load4(const void *row, uint32_t to[4], int turned, const char *file,
               int line) {
  const void *pc = __builtin_return_address(0);
  must_be_warp(file, line, pc);
  if (reinterpret_cast<uintptr_t>(row) % 16)
    emu_stop("a row of a matrix not at a multiple of 16 bytes, %s",
             emu_where(pc, file, line).c_str());
  const emu_payload *all = emu_gather(
      &row, sizeof row, turned ? "ldmatrix.trans" : "ldmatrix", file, line, pc);
  const int lane = emu_current.lane % 32, g = lane / 4, t = lane % 4;
  for (int m = 0; m < 4; m++) {
    const unsigned char *at[2];
    if (!turned) {
      memcpy(&at[0], all[8 * m + g], sizeof at[0]);
      emu_read_shared(at[0] + 4 * t, 4, pc);
      memcpy(&to[m], at[0] + 4 * t, 4);
      continue;
    }
    memcpy(&at[0], all[8 * m + 2 * t], sizeof at[0]);
    memcpy(&at[1], all[8 * m + 2 * t + 1], sizeof at[1]);
    to[m] = read_element(at[0], g, pc) | read_element(at[1], g, pc) << 16;
  }
}

/* ----------------------------------------------------------------- copies */

namespace {

struct copy {
  void *to;
  const void *from;
  int bytes;
  const void *pc;
};

/* Of a lane, the oldest first; ends[i]: copies up to the end of group i. */
struct on_its_way {
  std::vector<copy> copies;
  std::vector<size_t> ends;
};

on_its_way queues[EMU_MAX_LANES];

on_its_way &own_queue() {
  return queues[emu_current.lane];
}

}  // namespace

void emu_copy_begin(void *to, const void *from, int bytes, const char *file,
                    int line) {
  const void *pc = __builtin_return_address(0);
  if (reinterpret_cast<uintptr_t>(to) % 16 ||
      (bytes && reinterpret_cast<uintptr_t>(from) % 16) ||
      (bytes != 0 && bytes != 16))
    emu_stop("a copy of %d bytes not between multiples of 16, %s", bytes,
             emu_where(pc, file, line).c_str());
  if (bytes) emu_read_global(from, 16, pc);
  emu_copy_started(to, 16, pc);
  own_queue().copies.push_back({to, from, bytes, pc});
}

void emu_copy_commit() {
  own_queue().ends.push_back(own_queue().copies.size());
}

void emu_copy_wait(int groups) {
  on_its_way &q = own_queue();
  if (waits_for_nothing || (int)q.ends.size() <= groups) return;
  const size_t done = q.ends.size() - (size_t)groups, n = q.ends[done - 1];
  for (size_t i = 0; i < n; i++) {
    const copy &c = q.copies[i];
    emu_copy_landed(c.to, 16, c.pc);
    memset(c.to, 0, 16);
    if (c.bytes) memcpy(c.to, c.from, (size_t)c.bytes);
  }
  q.copies.erase(q.copies.begin(), q.copies.begin() + (ptrdiff_t)n);
  q.ends.erase(q.ends.begin(), q.ends.begin() + (ptrdiff_t)done);
  for (size_t &end : q.ends) end -= n;
}

void emu_copy_forget() {
  for (on_its_way &q : queues) {
    q.copies.clear();
    q.ends.clear();
  }
}
