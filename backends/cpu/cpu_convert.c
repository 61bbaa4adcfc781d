#include "cpu_convert.h"

#include <string.h>

#include "cpu_internal.h"

#define STEP 256 /* elements on their way through f32 */

void mla_cpu_put(const mla_cpu_table *table, int far, void *to,
                 const void *from, int64_t bytes) {
  if (far)
    table->stream(to, from, bytes);
  else
    memmove(to, from, (size_t)bytes);
}

void mla_cpu_convert(const mla_cpu_table *table, const mla_tensor *from,
                     int64_t from_at, const mla_tensor *to, int64_t to_at,
                     int64_t n, int far) {
  _Alignas(64) float line[STEP];
  _Alignas(64) float codes[STEP];
  int in = mla_cpu_type_of(from->dtype), out = mla_cpu_type_of(to->dtype);
  if (in == out) {
    mla_cpu_put(table, far, mla_cpu_at_mut(to->data, out, to_at),
                mla_cpu_at(from->data, in, from_at),
                n * mla_cpu_type_bytes(in));
    return;
  }
  for (int64_t i = 0; i < n; i += STEP) {
    int64_t here = mla_cpu_min(STEP, n - i);
    void *at = mla_cpu_at_mut(to->data, out, to_at + i);
    table->load[in](line, mla_cpu_at(from->data, in, from_at + i), here);
    table->store[out](far ? codes : at, line, here);
    if (far) table->stream(at, codes, here * mla_cpu_type_bytes(out));
  }
}
