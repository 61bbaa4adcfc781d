#include <string.h>

#include "planted.h"

static const planted_fault faults[PLANTED_COUNT] = {
    {"none", "", 0, 0, "no fault"},
#define X(id, name, cls, a, x, what) {name, cls, a, x, what},
    PLANTED_LIST(X)
#undef X
};

const planted_fault *planted_fault_at(int32_t id) {
  return id > 0 && id < PLANTED_COUNT ? &faults[id] : &faults[0];
}

int32_t planted_fault_find(const char *name) {
  for (int32_t i = 1; i < PLANTED_COUNT; i++)
    if (!strcmp(faults[i].name, name)) return i;
  return PLANTED_NONE;
}
