/* The table of planted faults of batch building. */
#include "planted_batch.h"

static const planted_batch_fault faults[PLANTED_BATCH_COUNT] = {
    {"none", "", 0, 0, 0, 0, "no fault"},
#define X(id, name, cls, least, most, a, a2, what) \
  {name, cls, least, most, a, a2, what},
    PLANTED_BATCH_LIST(X)
#undef X
};

const planted_batch_fault *planted_batch_at(int32_t id) {
  return id > 0 && id < PLANTED_BATCH_COUNT ? &faults[id] : &faults[0];
}
