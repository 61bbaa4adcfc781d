#include "cpu_convert.h"

#include <string.h>

#include "cpu_internal.h"

#define STEP 256 /* elements on their way through f32 */

void mla_cpu_convert(const mla_cpu_table *table, const mla_tensor *from,
                     int64_t from_at, const mla_tensor *to, int64_t to_at,
                     int64_t n) {
  float line[STEP];
  int in = mla_cpu_type_of(from->dtype), out = mla_cpu_type_of(to->dtype);
  if (in == out) {
    memmove(mla_cpu_at_mut(to->data, out, to_at),
            mla_cpu_at(from->data, in, from_at),
            (size_t)(n * mla_cpu_type_bytes(in)));
    return;
  }
  for (int64_t i = 0; i < n; i += STEP) {
    int64_t here = mla_cpu_min(STEP, n - i);
    table->load[in](line, mla_cpu_at(from->data, in, from_at + i), here);
    table->store[out](mla_cpu_at_mut(to->data, out, to_at + i), line, here);
  }
}
