/*
 * planted_batch_list.h - the planted faults of batch building, a row each:
 *
 *   X(ID, "name", "CLASS", least, most, a, a2, "what")
 *
 * a is a parameter, tried from least to most when a failure is explained; a2
 * is another that the self-test plants.
 */
#ifndef MLA_PLANTED_BATCH_LIST_H
#define MLA_PLANTED_BATCH_LIST_H

#define PLANTED_BATCH_LIST(X)                                             \
  X(POSITION_ZERO, "batch-position-zero", "PREFIX", 0, 0, 0, 0,           \
    "positions of a continued request begin at 0")                        \
  X(POSITION_OFF, "batch-position-off", "PREFIX", -4, 4, 1, -1,           \
    "positions, and the slots that follow from them, are off by a")       \
  X(SLOT_CONTEXT, "batch-slot-context", "PREFIX", 0, 0, 0, 0,             \
    "slots are counted from the step's first row, over what is cached")   \
  X(SLOT_EDGE, "batch-slot-edge", "PAGE-SIZE", 0, 0, 0, 0,                \
    "the first row of a block gets the slot behind the block before")     \
  X(SLOT_BEFORE, "batch-slot-before", "PAGE-SIZE", 0, 0, 0, 0,            \
    "the first row of a block is put at the front of the block before")   \
  X(SLOT_PAGE, "batch-slot-page", "PAGE-SIZE", 1, 256, 64, 48,            \
    "slots are counted as if blocks held a tokens")                       \
  X(SLOT_CONSECUTIVE, "batch-slot-consecutive", "TABLE", 0, 0, 0, 0,      \
    "blocks are assumed to follow a request's first one")                 \
  X(SLOT_BITS, "batch-slot-bits", "INT32", 8, 40, 32, 16,                 \
    "slots are narrowed to a bits")                                       \
  X(PAD_SLOT, "batch-pad-slot", "SLOT-WRITE", 0, 0, 0, 0,                 \
    "padding rows point at slot 0")                                       \
  X(PAD_STALE, "batch-pad-stale", "SLOT-WRITE", 0, 0, 0, 0,               \
    "padding rows keep the slots of the step before")                     \
  X(PAD_LENGTH, "batch-pad-length", "GRAPH-PAD", 0, 0, 0, 0,              \
    "padding requests have length 1")                                     \
  X(PAD_ENDED, "batch-pad-ended", "GRAPH-PAD", 0, 0, 0, 0,                \
    "requests that ended keep their length")                              \
  X(PAD_START, "batch-pad-start", "GRAPH-PAD", 0, 0, 0, 0,                \
    "padding rows belong to the last padding request")                    \
  X(START_ZERO, "batch-start-zero", "STALE-META", 0, 0, 0, 0,             \
    "query_start_loc lacks its leading 0: it holds ends")                 \
  X(LENS_CONTEXT, "batch-lens-context", "SLOT-WRITE", 0, 0, 0, 0,         \
    "seq_lens lack the step's own tokens")                                \
  X(LENS_SHORT, "batch-lens-short", "SLOT-WRITE", 0, 0, 0, 0,             \
    "lengths lack the step's own tokens, and positions follow from them") \
  X(ORDER_THRESHOLD, "batch-order-threshold", "STALE-META", -4, 4, -1, 1, \
    "the threshold of decodes is off by a")                               \
  X(ORDER_SWAPPED, "batch-order-swapped", "STALE-META", 0, 0, 0, 0,       \
    "decodes come first by swaps, and no longer in their order")          \
  X(ORDER_TABLE, "batch-order-table", "TABLE", 0, 0, 0, 0,                \
    "tables keep the order that the requests came in")                    \
  X(ORDER_TOKENS, "batch-order-tokens", "STALE-META", 0, 0, 0, 0,         \
    "token ids keep the order that the requests came in")                 \
  X(NEXT_PAGE, "batch-next-page", "PAGE-SIZE", 0, 0, 0, 0,                \
    "the next step's slot is the last one and 1, in a new block too")     \
  X(NEXT_ONE, "batch-next-one", "STALE-META", 0, 0, 0, 0,                 \
    "after a step contexts grow by 1, whatever rows it had")              \
  X(NEXT_REJECTED, "batch-next-rejected", "PREFIX", 0, 0, 0, 0,           \
    "rejected drafts count as cached")                                    \
  X(NEXT_LENS, "batch-next-lens", "STALE-META", 0, 0, 0, 0,               \
    "seq_lens stay those of the step before")                             \
  X(NEXT_STARTS, "batch-next-starts", "STALE-META", 0, 0, 0, 0,           \
    "query_start_loc stays that of the step before")                      \
  X(NEXT_TOKENS, "batch-next-tokens", "STALE-META", 0, 0, 0, 0,           \
    "sampled tokens are not copied in")                                   \
  X(NEXT_DECODES, "batch-next-decodes", "STALE-META", 0, 0, 0, 0,         \
    "prefills never become decodes")                                      \
  X(NEXT_WIDTH, "batch-next-width", "STALE-META", 0, 0, 0, 0,             \
    "tables are as wide as the first step needs")                         \
  X(ROW_FIRST, "batch-row-first", "MTP-MASK", 0, 0, 0, 0,                 \
    "every row of a request sees what its first one sees")                \
  X(ROW_ALL, "batch-row-all", "MTP-MASK", 0, 0, 0, 0,                     \
    "every row of a request sees all its keys")                           \
  X(ROW_TOP_LEFT, "batch-row-top-left", "MTP-MASK", 0, 0, 0, 0,           \
    "the causal mask is aligned to the top left")                         \
  X(ROW_OFF, "batch-row-off", "MTP-MASK", -4, 4, -1, 1,                   \
    "the causal limit is off by a")                                       \
  X(ROW_MASKED, "batch-row-masked", "NONCAUSAL", 0, 0, 0, 0,              \
    "rows are masked although all keys were asked for")                   \
  X(SPLITS_RESERVED, "batch-splits-reserved", "WORKSPACE", 0, 0, 0, 0,    \
    "fewer splits are reserved than a run takes: no power of two")        \
  X(SPLITS_EDGE, "batch-splits-edge", "WORKSPACE", 0, 0, 0, 0,            \
    "a length that fills its splits takes one more")                      \
  X(SPLITS_UNITS, "batch-splits-units", "WORKSPACE", 1, 8, 1, 4,          \
    "splits are capped at a times the compute units")                     \
  X(SPLITS_CAP, "batch-splits-cap", "WORKSPACE", 0, 0, 0, 0,              \
    "a run takes more splits than twice the compute units")               \
  X(SPLITS_MATES, "batch-splits-mates", "INVARIANCE", 0, 0, 0, 0,         \
    "the number of splits follows the number of requests")                \
  X(SPLITS_INVARIANT, "batch-splits-invariant", "INVARIANCE", 0, 0, 0, 0, \
    "keys are split although batch invariance is asked for")              \
  X(RANK_MASK, "batch-rank-mask", "CP-SHARD", 0, 0, 0, 0,                 \
    "bounds of rows are local_len - query_len + row")                     \
  X(RANK_INTERLEAVE, "batch-rank-interleave", "CP-SHARD", 0, 0, 0, 0,     \
    "local lengths ignore the interleave")                                \
  X(RANK_SHARE, "batch-rank-share", "CP-SHARD", 0, 0, 0, 0,               \
    "a rank's share of the last turn is not cut to the interleave")       \
  X(RANK_INDEX, "batch-rank-index", "CP-SHARD", 0, 0, 0, 0,               \
    "a rank writes its tokens at their positions, not at local indices")  \
  X(RANK_ALL, "batch-rank-all", "CP-SHARD", 0, 0, 0, 0,                   \
    "a rank writes the tokens of the others too")                         \
  X(RANK_MASKED, "batch-rank-masked", "NONCAUSAL", 0, 0, 0, 0,            \
    "local lengths are masked although all keys were asked for")

#endif
