/* The tables of planted faults and of classes, and looking things up. */
#include <string.h>

#include "planted.h"

static const planted_fault faults[PLANTED_COUNT] = {
    {"none", "", 0, 0, 0, 0, 0, 0, 0, "no fault"},
#define X(id, name, cls, ops, traits, tries, a, x, a2, x2, what) \
  {name, cls, ops, traits, tries, a, x, a2, x2, what},
    PLANTED_LIST(X)
#undef X
};

static const planted_class classes[] = {
    {"LSE-BASE", "log2 and ln of sums mixed up", NULL},
    {"LSE-LAYOUT", "lse's axes, extent or scale", NULL},
    {"EMPTY-MERGE", "merging parts that hold nothing", NULL},
    {"EMPTY-ROW", "a row that sees no key", NULL},
    {"EMPTY-SPLIT", "a KV split without keys", NULL},
    {"SPLIT-REDUCE", "the combination of KV splits", NULL},
    {"GRAPH-PAD", "padding rows and requests of length 0", NULL},
    {"STALE-META", "plans that do not match the launch", NULL},
    {"WORKSPACE", "size and contents of scratch", NULL},
    {"TAIL-NAN", "what lies behind a sequence in its page", NULL},
    {"OOB-READ", "reads past an array, thrown away", NULL},
    {"PAGE-SIZE", "pages and tiles of another size", NULL},
    {"TABLE", "order, stride and extent of block tables", NULL},
    {"SLOT-WRITE", "cache writes through slot_mapping", NULL},
    {"INT32", "cache offsets beyond 32 bits", NULL},
    {"HEADS", "numbers of heads that fill no tile", NULL},
    {"MTP-MASK", "the causal mask of several query tokens", NULL},
    {"NONCAUSAL", "all keys asked for, some masked", NULL},
    {"CTX-CHUNK", "context processed in chunks", NULL},
    {"PREFIX", "cache read, copied or continued", NULL},
    {"CP-SHARD", "keys sharded over ranks", NULL},
    {"KV-SCALE", "scales of a quantised cache", NULL},
    {"TILE-SCALE", "scales of packed entries", NULL},
    {"FP8-DIALECT", "dialects, NaN and saturation of e4m3", NULL},
    {"ROPE-STYLE", "pairing of rotated columns", NULL},
    {"YARN", "factors of the softmax scale", NULL},
    {"ABSORB", "split and repacking of kv_b_proj", NULL},
    {"VDIM", "values that are part of keys", NULL},
    {"HEADDIM", "widths off the tuned ones", NULL},
    {"STRIDES", "views that are not dense", NULL},
    {"SPARSE-IDX", "index lists with holes", NULL},
    {"TOPK", "selection with ties and short rows", NULL},
    {"INDEXER", "bounds of the sparse scorer", NULL},
    {"SINK-WIN", "sinks and windows", NULL},
    {"RANGE", "intermediates beyond a type's range", NULL},
    {"RACE", "a missing fence, two writers", NULL},
    {"INVARIANCE", "bits that depend on batch mates", NULL},
    {"CPU-ISA", "levels of a CPU's instructions", NULL},
    {"BUILD", "toolchains and targets", "the build matrix"},
    {"HONESTY", "promises of query, and checks", NULL},
};

const planted_fault *planted_fault_at(int32_t id) {
  return id > 0 && id < PLANTED_COUNT ? &faults[id] : &faults[0];
}

int32_t planted_fault_find(const char *name) {
  for (int32_t i = 1; i < PLANTED_COUNT; i++)
    if (!strcmp(faults[i].name, name)) return i;
  return PLANTED_NONE;
}

int planted_has_variant(int32_t id) {
  const planted_fault *f = planted_fault_at(id);
  return f->a2 != f->a || f->x2 != f->x;
}

const planted_class *planted_class_at(int32_t i) {
  int32_t n = (int32_t)(sizeof classes / sizeof classes[0]);
  return i >= 0 && i < n ? &classes[i] : NULL;
}

int planted_class_known(const char *name) {
  const planted_class *c;
  for (int32_t i = 0; (c = planted_class_at(i)) != NULL; i++)
    if (!strcmp(c->name, name)) return 1;
  return 0;
}
