/*
 * planted_list.h - the planted faults, a row each:
 *
 *   X(ID, "name", "CLASS", operations, traits, try, a, x, a2, x2, "what")
 *
 * a and x are parameters; a2 and x2 are others that the self-test plants, to
 * see that the mistake is known again whatever its parameters. "what" is said
 * in the words of a failure report: "looks like CLASS: what".
 */
#ifndef MLA_PLANTED_LIST_H
#define MLA_PLANTED_LIST_H

#define PLANTED_LIST(X)                                                        \
  X(LSE_BASE_MERGE, "lse-base-merge", "LSE-BASE",                              \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS | PLANTED_ROWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "parts are merged with weights 2^d where e^d is meant")                    \
  X(LSE_BASE_OUT, "lse-base-out", "LSE-BASE", PLANTED_ATTEND | PLANTED_MERGE,  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "lse is returned in the other base")                                       \
  X(LSE_TRANSPOSED, "lse-transposed", "LSE-LAYOUT",                            \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,  \
    "lse is written as [heads, tokens]")                                       \
  X(LSE_PARTIAL, "lse-partial", "LSE-LAYOUT", PLANTED_ATTEND | PLANTED_MERGE,  \
    PLANTED_SHOWS, PLANTED_TILES, 4, 0, 3, 0,                                  \
    "lse is written for every a-th head only")                                 \
  X(LSE_SCALE, "lse-scale", "LSE-LAYOUT", PLANTED_ATTEND,                      \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_FACTORS, 0, 1.8738, 0, 1.31,         \
    "the row maximum in lse lacks the factor x of the scale")                  \
  X(LSE_PADDING, "lse-padding", "LSE-LAYOUT", PLANTED_ATTEND, PLANTED_SHOWS,   \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "lse is written for rows past query_start_loc's end, too")                 \
  X(EMPTY_MERGE_NAN, "empty-merge-nan", "EMPTY-MERGE",                         \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS | PLANTED_ROWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "merging two empty parts computes -inf minus -inf")                        \
  X(EMPTY_MERGE_INF, "empty-merge-inf", "EMPTY-MERGE", PLANTED_MERGE,          \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a part with lse +inf wins the merge")                                     \
  X(EMPTY_MERGE_READ, "empty-merge-read", "EMPTY-MERGE", PLANTED_MERGE,        \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "an empty part's values are multiplied by 0 and added")                    \
  X(EMPTY_MERGE_FIRST, "empty-merge-first", "EMPTY-MERGE",                     \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS | PLANTED_ROWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "a row whose first part is empty is taken for empty")                      \
  X(EMPTY_ROW_STALE, "empty-row-stale", "EMPTY-ROW",                           \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,  \
    "a row without keys keeps old bytes")                                      \
  X(EMPTY_ROW_FINITE, "empty-row-finite", "EMPTY-ROW",                         \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS | PLANTED_ROWS,              \
    PLANTED_LIMITS, 0, -1e30, 0, -5e4,                                         \
    "rows without keys return the finite lse x")                               \
  X(EMPTY_ROW_NAN, "empty-row-nan", "EMPTY-ROW",                               \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS | PLANTED_ROWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0, "a row without keys divides by its zero sum")   \
  X(EMPTY_ROW_FIRST, "empty-row-first", "EMPTY-ROW", PLANTED_DECODE,           \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                                  \
    "a row without keys takes its first key all the same")                     \
  X(EMPTY_SHIFT, "empty-shift", "EMPTY-ROW", PLANTED_DECODE, PLANTED_SHOWS,    \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "an empty request shifts the rows of the next ones")                       \
  X(EMPTY_SPLIT, "empty-split", "EMPTY-SPLIT", PLANTED_ATTEND,                 \
    PLANTED_SCRATCH | PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                \
    "a split without keys leaves its scratch unwritten, and it is merged")     \
  X(EMPTY_SPLIT_ZERO, "empty-split-zero", "EMPTY-SPLIT", PLANTED_ATTEND,       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a split without keys is merged with value 0 and lse 0")                   \
  X(SPLIT_AVERAGE, "split-average", "SPLIT-REDUCE",                            \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS | PLANTED_ROWS,              \
    PLANTED_AS_IS, 2, 0, 3, 0,                                                 \
    "with a splits or more, parts are averaged, not weighted")                 \
  X(SPLIT_LAST, "split-last", "SPLIT-REDUCE", PLANTED_ATTEND | PLANTED_MERGE,  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the last split is dropped by the reduction")                              \
  X(SPLIT_TYPE, "split-type", "SPLIT-REDUCE", PLANTED_ATTEND,                  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_BITS, 8, 0, 6, 0,                    \
    "partial results pass through types of a bits of mantissa")                \
  X(RESCALE_SUM, "rescale-sum", "SPLIT-REDUCE", PLANTED_ATTEND,                \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 16, 0, 8, 0,                  \
    "the sum so far is not rescaled to the maximum of the next a keys")        \
  X(RESCALE_VALUES, "rescale-values", "SPLIT-REDUCE", PLANTED_ATTEND,          \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 16, 0, 8, 0,                  \
    "the values so far are not rescaled to the maximum of the next a keys")    \
  X(PAD_NAN, "pad-nan", "GRAPH-PAD", PLANTED_ATTEND, PLANTED_SHOWS,            \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "NaN is written into rows past query_start_loc's end")                     \
  X(PAD_ZERO, "pad-zero", "GRAPH-PAD", PLANTED_ATTEND, PLANTED_SHOWS,          \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "zeros are written into rows past query_start_loc's end")                  \
  X(PAD_LAST_BLOCK, "pad-last-block", "GRAPH-PAD", PLANTED_DECODE,             \
    PLANTED_TRACES, PLANTED_AS_IS, 0, 0, 0, 0,                                 \
    "a request of length 0 looks up block -1 of its table")                    \
  X(PAD_FAR, "pad-far", "GRAPH-PAD", PLANTED_DECODE, PLANTED_TRACES,           \
    PLANTED_AS_IS, 65536, 0, 131072, 0,                                        \
    "NaN is written into padding rows under a limit of a keys or more")        \
  X(STALE_LENS, "stale-lens", "STALE-META", PLANTED_SEES, PLANTED_SHOWS,       \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "the lengths seen first are used for every later run of a plan")           \
  X(STALE_MAX, "stale-max", "STALE-META", PLANTED_SEES, PLANTED_SHOWS,         \
    PLANTED_COUNTS, 1, 0, 2, 0,                                                \
    "lengths above the planned maximum over 2^a are cut")                      \
  X(PLAN_SHARED, "plan-shared", "STALE-META", PLANTED_SEES, PLANTED_TRACES,    \
    PLANTED_AS_IS, 0, 0, 0, 0, "plans run by the limits of the newest")        \
  X(PLAN_FIRST, "plan-first", "STALE-META", PLANTED_ATTEND, PLANTED_TRACES,    \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "all plans have the softmax scale of the first")                           \
  X(PLAN_SHAPES, "plan-shapes", "STALE-META", PLANTED_ATTEND, PLANTED_TRACES,  \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "plans of the same shapes have scale, mask and base of the first")         \
  X(TABLE_KEPT, "table-kept", "STALE-META", PLANTED_TABLED, PLANTED_TRACES,    \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "a plan keeps the block table of its first run")                           \
  X(WEIGHTS_KEPT, "weights-kept", "STALE-META",                                \
    PLANTED_PREFILL | PLANTED_Q | PLANTED_V | PLANTED_MATMUL, PLANTED_TRACES,  \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "weights at an address that is known are not read again")                  \
  X(PLAN_RUNS, "plan-runs", "STALE-META", PLANTED_ATTEND, PLANTED_TRACES,      \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "a plan folds ln 2 into its scale again at each run")                      \
  X(CLOSE_ALL, "close-all", "HONESTY", PLANTED_ANY, PLANTED_TRACES,            \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "closing one handle closes the device for others")                         \
  X(THREAD_OPENER, "thread-opener", "HONESTY", PLANTED_ANY, PLANTED_TRACES,    \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "a run fails in another thread than the one that opened")                  \
  X(THREAD_TABLE, "thread-table", "HONESTY", PLANTED_ANY, PLANTED_TRACES,      \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "factors that opening computes are 0 in other threads")                    \
  X(WS_OVERRUN, "ws-overrun", "WORKSPACE", PLANTED_ATTEND, PLANTED_TRACES,     \
    PLANTED_AS_IS, 64, 0, 8, 0,                                                \
    "a bytes are written beyond the declared workspace")                       \
  X(WS_SHORT, "ws-short", "WORKSPACE", PLANTED_ATTEND, PLANTED_TRACES,         \
    PLANTED_AS_IS, 128, 0, 4, 0, "a bytes fewer are declared than are used")   \
  X(WS_ZEROED, "ws-zeroed", "WORKSPACE", PLANTED_ATTEND,                       \
    PLANTED_SCRATCH | PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                \
    "the workspace is assumed to be zero at the start")                        \
  X(WS_KEPT, "ws-kept", "WORKSPACE", PLANTED_ATTEND, PLANTED_TRACES,           \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "later runs of a plan are to find the zeros that the first left")          \
  X(WS_CACHED, "ws-cached", "WORKSPACE", PLANTED_ATTEND, PLANTED_TRACES,       \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "a plan's first run leaves its scale in the workspace for later ones")     \
  X(TAIL_NAN, "tail-nan", "TAIL-NAN", PLANTED_DECODE,                          \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_COUNTS, 1, 0, 3, 0,                  \
    "a rows past seq_len are multiplied by probability 0")                     \
  X(TAIL_V, "tail-v", "TAIL-NAN", PLANTED_DECODE,                              \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the rest of the last page is multiplied by probability 0")                \
  X(TAIL_SEEN, "tail-seen", "TAIL-NAN", PLANTED_DECODE,                        \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_COUNTS, 1, 0, 2, 0,                  \
    "a rows past the visible keys are attended")                               \
  X(TAIL_STALE, "tail-stale", "TAIL-NAN", PLANTED_DECODE, PLANTED_SHOWS,       \
    PLANTED_TILES, 64, 0, 24, 0,                                               \
    "what lay in tiles of a keys before is multiplied by probability 0")       \
  X(TAIL_NEIGHBOUR, "tail-neighbour", "TAIL-NAN", PLANTED_PREFILL,             \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_COUNTS, 1, 0, 3, 0,                  \
    "a rows of the request behind are multiplied by probability 0")            \
  X(OOB_TABLE, "oob-table", "OOB-READ", PLANTED_DECODE, PLANTED_TRACES,        \
    PLANTED_AS_IS, 1, 0, 3, 0,                                                 \
    "a table entries past the last are read and thrown away")                  \
  X(OOB_LENS, "oob-lens", "OOB-READ", PLANTED_DECODE, PLANTED_TRACES,          \
    PLANTED_AS_IS, 1, 0, 6, 0,                                                 \
    "a lengths past the last request's are read and thrown away")              \
  X(OOB_Q, "oob-q", "OOB-READ", PLANTED_DECODE, PLANTED_TRACES, PLANTED_AS_IS, \
    64, 0, 16, 0, "a bytes past the end of q are read and thrown away")        \
  X(OOB_CACHE, "oob-cache", "OOB-READ", PLANTED_DECODE, PLANTED_TRACES,        \
    PLANTED_AS_IS, 64, 0, 16, 0,                                               \
    "a bytes past the end of the cache are read and thrown away")              \
  X(PAGE_TUNED, "page-tuned", "PAGE-SIZE", PLANTED_TABLED,                     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 64, 0, 48, 0,                 \
    "keys are addressed as if blocks held a tokens")                           \
  X(PAGE_TAIL, "page-tail", "PAGE-SIZE", PLANTED_ATTEND,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a last page that is not full is skipped")                                 \
  X(PAGE_EDGE, "page-edge", "PAGE-SIZE", PLANTED_TABLED,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the first token of each page but the first is the one before it")         \
  X(TILE_LOST, "tile-lost", "PAGE-SIZE", PLANTED_ATTEND,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 64, 0, 24, 0,                 \
    "the key before each edge of a keys is lost")                              \
  X(TILE_TWICE, "tile-twice", "PAGE-SIZE", PLANTED_ATTEND,                     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 64, 0, 40, 0,                 \
    "the key behind each edge of a keys is counted twice")                     \
  X(TABLE_CONSECUTIVE, "table-consecutive", "TABLE", PLANTED_TABLED,           \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "pages are assumed to follow the first one")                               \
  X(TABLE_STRIDE, "table-stride", "TABLE", PLANTED_TABLED, PLANTED_SHOWS,      \
    PLANTED_AS_IS, 0, 0, 0, 0, "rows of the table are assumed to be packed")   \
  X(TABLE_ROW, "table-row", "TABLE", PLANTED_TABLED, PLANTED_SHOWS,            \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "every request uses the table row of request 0")                           \
  X(ID_BITS, "id-bits", "TABLE", PLANTED_TABLED, PLANTED_SHOWS | PLANTED_ROWS, \
    PLANTED_BITS, 16, 0, 15, 0, "block ids are narrowed to a bits")            \
  X(ID_FLOAT, "id-float", "TABLE", PLANTED_TABLED,                             \
    PLANTED_SHOWS | PLANTED_ROWS | PLANTED_FULL, PLANTED_AS_IS, 0, 0, 0, 0,    \
    "block ids pass through f32, which holds 24 bits")                         \
  X(TABLE_WINDOW, "table-window", "TABLE", PLANTED_TABLED,                     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 64, 0, 256, 0,                \
    "behind the a-th page of a request its first ones come again")             \
  X(TABLE_SHORT, "table-short", "TABLE", PLANTED_SEES,                         \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 16, 0, 40, 0,                 \
    "requests of fewer than a keys are read as if they had no block table")    \
  X(SLOT_NEGATIVE, "slot-negative", "SLOT-WRITE", PLANTED_WRITE,               \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0, "slot -1 is written as slot 0")  \
  X(SLOT_COMPACT, "slot-compact", "SLOT-WRITE", PLANTED_WRITE, PLANTED_SHOWS,  \
    PLANTED_AS_IS, 0, 0, 0, 0, "tokens are counted without the skipped ones")  \
  X(SLOT_NEIGHBOUR, "slot-neighbour", "SLOT-WRITE", PLANTED_WRITE,             \
    PLANTED_SHOWS, PLANTED_COUNTS, 1, 0, 5, 0,                                 \
    "a elements more than an entry are written")                               \
  X(SLOT_BITS, "slot-bits", "SLOT-WRITE", PLANTED_WRITE, PLANTED_SHOWS,        \
    PLANTED_BITS, 8, 0, 5, 0, "slots are narrowed to a bits")                  \
  X(SLOT_PADDING, "slot-padding", "SLOT-WRITE", PLANTED_WRITE, PLANTED_SHOWS,  \
    PLANTED_AS_IS, 0, 0, 0, 0, "rows without a slot are written to slot 0")    \
  X(POS_BITS, "pos-bits", "INT32", PLANTED_TABLED,                             \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_BITS, 16, 0, 15, 0,                  \
    "positions of keys are narrowed to a bits")                                \
  X(SPARSE_BITS, "sparse-bits", "INT32", PLANTED_DECODE,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_BITS, 16, 0, 15, 0,                  \
    "entries of lists are narrowed to a bits")                                 \
  X(ROWS_MANY, "rows-many", "INT32",                                           \
    PLANTED_ATTEND | PLANTED_MERGE | PLANTED_Q | PLANTED_V,                    \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_LIMITS, 0, 65536, 0, 4096,           \
    "tokens past the first x are left out")                                    \
  X(SLOT_MANY, "slot-many", "SLOT-WRITE", PLANTED_WRITE, PLANTED_SHOWS,        \
    PLANTED_LIMITS, 0, 1024, 0, 65536,                                         \
    "tokens past the first x are not written")                                 \
  X(INT32_OFFSET, "int32-offset", "INT32",                                     \
    PLANTED_PAGED | PLANTED_WRITE | PLANTED_COPY,                              \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_BITS, 31, 0, 16, 0,                  \
    "cache offsets wrap at a bits")                                            \
  X(HEADS_DROP, "heads-drop", "HEADS", PLANTED_HEADED, PLANTED_SHOWS,          \
    PLANTED_TILES, 16, 0, 6, 0,                                                \
    "heads past the last whole group of a are not computed")                   \
  X(HEADS_EXACT, "heads-exact", "HEADS", PLANTED_DECODE,                       \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_AS_IS, 32, 0, 32, 0,                 \
    "with exactly a heads values of scaled caches are 0")                      \
  X(HEADS_WRAP, "heads-wrap", "HEADS", PLANTED_HEADED, PLANTED_SHOWS,          \
    PLANTED_TILES, 16, 0, 5, 0, "head h uses the query of head h mod a")       \
  X(HEADS_GROUP, "heads-group", "HEADS", PLANTED_DECODE,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "head h uses kv head h mod kv_heads")                                      \
  X(HEADS_SHIFT, "heads-shift", "HEADS", PLANTED_DECODE, PLANTED_SHOWS,        \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "heads of a kv head are counted by a power of two")                        \
  X(ROWS_TILE, "rows-tile", "HEADS", PLANTED_DECODE, PLANTED_SHOWS,            \
    PLANTED_TILES, 128, 0, 64, 0,                                              \
    "rows (tokens x heads) of a request past the first a are left out")        \
  X(OVERRUN, "overrun", "HEADS", PLANTED_ANY, PLANTED_TRACES, PLANTED_AS_IS,   \
    64, 0, 2, 0, "a bytes are written past the end of out")                    \
  X(MTP_NO_MASK, "mtp-no-mask", "MTP-MASK", PLANTED_SEES,                      \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "with several query tokens, all see all keys")                             \
  X(MTP_TOP_LEFT, "mtp-top-left", "MTP-MASK", PLANTED_SEES,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the causal mask is aligned to the top left")                              \
  X(MTP_FIRST, "mtp-first", "MTP-MASK", PLANTED_SEES,                          \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "every query token sees what the first one sees")                          \
  X(MTP_OFF_BY, "mtp-off-by", "MTP-MASK", PLANTED_SEES,                        \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_OFFSETS, 1, 0, -2, 0,                \
    "the causal limit is off by a")                                            \
  X(MASK_FINITE, "mask-finite", "MTP-MASK", PLANTED_DECODE,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_LIMITS, 0, 10000, 0, 65504,          \
    "masked keys have the finite score -x")                                    \
  X(NONCAUSAL, "noncausal", "NONCAUSAL", PLANTED_ATTEND,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "rows are masked although all keys were asked for")                        \
  X(FULL_EARLY, "full-early", "NONCAUSAL", PLANTED_DECODE,                     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "rows that a causal mask would leave empty are, although all keys were "   \
    "asked for")                                                               \
  X(CHUNK_LAST, "chunk-last", "CTX-CHUNK", PLANTED_PREFILL,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a last context chunk that is not full is dropped")                        \
  X(CHUNK_ONLY, "chunk-only", "CTX-CHUNK", PLANTED_PREFILL,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "only the last context chunk survives the merge")                          \
  X(CHUNK_SHARED, "chunk-shared", "CTX-CHUNK", PLANTED_PREFILL, PLANTED_SHOWS, \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "every request gets the context length of the longest")                    \
  X(PREFIX_START, "prefix-start", "PREFIX", PLANTED_READ, PLANTED_SHOWS,       \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "reading starts at position 0, whatever start was asked for")              \
  X(PREFIX_ORDER, "prefix-order", "PREFIX", PLANTED_COPY, PLANTED_SHOWS,       \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "copied blocks keep their ids: source and target are mixed up")            \
  X(PREFIX_CONTEXT, "prefix-context", "PREFIX", PLANTED_PREFILL,               \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the cached context is ignored")                                           \
  X(CASCADE_TWICE, "cascade-twice", "PREFIX", PLANTED_DECODE,                  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a common prefix counts once for all and once a request")                  \
  X(CASCADE_LOST, "cascade-lost", "PREFIX", PLANTED_DECODE,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "what the rows see of a common prefix is not merged")                      \
  X(CASCADE_MASK, "cascade-mask", "PREFIX", PLANTED_DECODE,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a common prefix is masked as if all rows were one request's")             \
  X(CP_LOCAL_MASK, "cp-local-mask", "CP-SHARD", PLANTED_DECODE,                \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_COUNTS, 2, 0, 3, 0,                  \
    "with a shards, bounds of rows are local_len - query_len + row")           \
  X(CP_INTERLEAVE, "cp-interleave", "CP-SHARD", PLANTED_DECODE,                \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_COUNTS, 2, 0, 4, 0,                  \
    "with a shards, local lengths ignore that 16 positions go together")       \
  X(CP_LAST_RANK, "cp-last-rank", "CP-SHARD", PLANTED_DECODE,                  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_COUNTS, 2, 0, 3, 0,                  \
    "with a shards, the part of the last is not merged")                       \
  X(SCALE_IGNORED, "scale-ignored", "KV-SCALE", PLANTED_PAGED | PLANTED_WRITE, \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "codes stand for themselves: the scale is left out")                       \
  X(SCALE_INVERTED, "scale-inverted", "KV-SCALE",                              \
    PLANTED_PAGED | PLANTED_WRITE, PLANTED_SHOWS | PLANTED_ROWS,               \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "the scale multiplies where it divides, or divides")                       \
  X(SCALE_OF_K, "scale-of-k", "KV-SCALE", PLANTED_DECODE,                      \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "values have the scale of keys")                                           \
  X(SCALE_OF_PAGE, "scale-of-page", "KV-SCALE", PLANTED_PAGED,                 \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "all tokens of a page have the scale of its first")                        \
  X(SCALE_PLAIN, "scale-plain", "KV-SCALE", PLANTED_PAGED | PLANTED_WRITE,     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "k_scale is applied to a cache of a type that has none")                   \
  X(SCALE_ZERO, "scale-zero", "KV-SCALE", PLANTED_WRITE, PLANTED_SHOWS,        \
    PLANTED_AS_IS, 0, 0, 0, 0, "numbers that are all 0 have the scale 0")      \
  X(TILE_FIRST, "tile-first", "TILE-SCALE", PLANTED_PAGED | PLANTED_WRITE,     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "all tiles of an entry have the scale of its first")                       \
  X(TILE_ROUNDED, "tile-rounded", "TILE-SCALE", PLANTED_PAGED,                 \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "scales of tiles are rounded to bf16 when they are read")                  \
  X(TILE_RULE, "tile-rule", "TILE-SCALE", PLANTED_WRITE, PLANTED_SHOWS,        \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "the writer takes powers of two where it should not, or not")              \
  X(TILE_PLACE, "tile-place", "TILE-SCALE", PLANTED_PAGED | PLANTED_WRITE,     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "scales are thought to follow each row, not all of a block")               \
  X(TILE_STRIDE, "tile-stride", "TILE-SCALE", PLANTED_PAGED | PLANTED_WRITE,   \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the place of scales follows from the shape, not the stride")              \
  X(TILE_LEFT, "tile-left", "TILE-SCALE", PLANTED_COPY, PLANTED_SHOWS,         \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "copies leave the scales that stand behind their rows")                    \
  X(TILE_BLOCK, "tile-block", "TILE-SCALE", PLANTED_ABSORB, PLANTED_SHOWS,     \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "all rows of weights have the scales of the first 128")                    \
  X(TILE_COLUMN, "tile-column", "TILE-SCALE", PLANTED_ABSORB, PLANTED_SHOWS,   \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "all columns of weights have the scales of the first 128")                 \
  X(TILE_TURNED, "tile-turned", "TILE-SCALE", PLANTED_ABSORB, PLANTED_SHOWS,   \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "scales of weights are read with their axes exchanged")                    \
  X(TILE_PARTIAL, "tile-partial", "TILE-SCALE", PLANTED_ABSORB, PLANTED_SHOWS, \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "blocks of weights that are not full have no scale")                       \
  X(DIALECT_SWAPPED, "dialect-swapped", "FP8-DIALECT",                         \
    PLANTED_PAGED | PLANTED_WRITE, PLANTED_SHOWS | PLANTED_ROWS,               \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "codes of one dialect of e4m3 are taken for the other")                    \
  X(DIALECT_NAN, "dialect-nan", "FP8-DIALECT", PLANTED_PAGED,                  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "codes of NaN are read as numbers")                                        \
  X(DIALECT_RANGE, "dialect-range", "FP8-DIALECT", PLANTED_WRITE,              \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0, "codes saturate at 240")         \
  X(DIALECT_OVERFLOW, "dialect-overflow", "FP8-DIALECT", PLANTED_WRITE,        \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                                  \
    "what is beyond the range becomes NaN")                                    \
  X(DIALECT_ZERO, "dialect-zero", "FP8-DIALECT", PLANTED_WRITE, PLANTED_SHOWS, \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "what rounds to -0 is written as such, which is NaN")                      \
  X(ROPE_IGNORED, "rope-ignored", "ROPE-STYLE", PLANTED_ATTEND,                \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the rope part does not enter the score")                                  \
  X(ROPE_PAIRS, "rope-pairs", "ROPE-STYLE", PLANTED_ATTEND,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the query's rope part is taken as half-split, the key's as pairs")        \
  X(YARN_SCALE, "yarn-scale", "YARN", PLANTED_ATTEND,                          \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "scores are scaled by one over the root of the head width")                \
  X(YARN_FACTOR, "yarn-factor", "YARN", PLANTED_ATTEND,                        \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_FACTORS, 0, 1.5896, 0, 0.9,          \
    "the softmax scale is off by a factor x")                                  \
  X(ABSORB_ORDER, "absorb-order", "ABSORB", PLANTED_PREFILL | PLANTED_ABSORB,  \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                                  \
    "kv_b_proj is split with V's rows first")                                  \
  X(ABSORB_FLAT, "absorb-flat", "ABSORB", PLANTED_PREFILL | PLANTED_ABSORB,    \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                                  \
    "kv_b_proj is split once for all heads, K rows then V rows")               \
  X(ABSORB_HEAD, "absorb-head", "ABSORB",                                      \
    PLANTED_PREFILL | PLANTED_ABSORB | PLANTED_Q | PLANTED_V, PLANTED_SHOWS,   \
    PLANTED_COUNTS, 1, 0, 2, 0,                                                \
    "the weights of one head are those of the head a further")                 \
  X(ABSORB_TURNED, "absorb-turned", "ABSORB", PLANTED_Q | PLANTED_V,           \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                                  \
    "the weights are read with their two last axes exchanged")                 \
  X(VDIM_ROPE, "vdim-rope", "VDIM", PLANTED_DECODE,                            \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the value is the last v_dim numbers of the key")                          \
  X(VDIM_STRIDE, "vdim-stride", "VDIM", PLANTED_DECODE,                        \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "value rows are addressed with v_dim as their stride")                     \
  X(VDIM_KEYS, "vdim-keys", "VDIM", PLANTED_DECODE,                            \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "values are taken from keys, though they have a cache of their own")       \
  X(VDIM_NARROW, "vdim-narrow", "VDIM", PLANTED_ATTEND,                        \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "value columns past the keys' width are left 0")                           \
  X(HEADDIM_TAIL, "headdim-tail", "HEADDIM",                                   \
    PLANTED_HEADED | PLANTED_MATMUL | PLANTED_INDEX, PLANTED_SHOWS,            \
    PLANTED_TILES, 32, 0, 20, 0,                                               \
    "widths that are summed over are cut to a multiple of a")                  \
  X(HEADDIM_V, "headdim-v", "HEADDIM", PLANTED_ATTEND,                         \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 32, 0, 20, 0,                 \
    "value columns past the last whole a are left 0")                          \
  X(HEADDIM_ROWS, "headdim-rows", "HEADDIM", PLANTED_DECODE,                   \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_AS_IS, 320, 0, 320, 0,               \
    "keys of a columns and more tokens than requests give values 0")           \
  X(STRIDES_DENSE, "strides-dense", "STRIDES", PLANTED_SEES, PLANTED_SHOWS,    \
    PLANTED_AS_IS, 0, 0, 0, 0, "strides of q are recomputed from its shape")   \
  X(STRIDES_ORDER, "strides-order", "STRIDES", PLANTED_ATTEND, PLANTED_SHOWS,  \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "the larger stride of q is taken for that of tokens")                      \
  X(ADDRESS_BITS, "address-bits", "STRIDES", PLANTED_ANY, PLANTED_TRACES,      \
    PLANTED_AS_IS, 16, 0, 4, 0,                                                \
    "the first input is taken to begin at a multiple of a bytes")              \
  X(STRIDES_OUT, "strides-out", "STRIDES", PLANTED_ATTEND | PLANTED_MERGE,     \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                                  \
    "strides of out are recomputed from its shape")                            \
  X(STRIDES_CACHE, "strides-cache", "STRIDES",                                 \
    PLANTED_PAGED | PLANTED_WRITE | PLANTED_COPY, PLANTED_SHOWS,               \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "the cache's block stride is recomputed from its shape")                   \
  X(STRIDES_WEIGHT, "strides-weight", "STRIDES",                               \
    PLANTED_Q | PLANTED_V | PLANTED_MATMUL, PLANTED_SHOWS, PLANTED_AS_IS, 0,   \
    0, 0, 0, "strides of the weights are recomputed from their shape")         \
  X(SPARSE_FIRST_TILE, "sparse-first-tile", "SPARSE-IDX", PLANTED_DECODE,      \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 8, 0, 5, 0,                   \
    "where the first a entries name no key, the row is NaN")                   \
  X(SPARSE_ZERO, "sparse-zero", "SPARSE-IDX", PLANTED_DECODE,                  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "entry -1 is taken for slot 0")                                            \
  X(SPARSE_WRAPS, "sparse-wraps", "SPARSE-IDX", PLANTED_DECODE,                \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "entry -1 is taken for the last slot of the cache")                        \
  X(SPARSE_CLAMPS, "sparse-clamps", "SPARSE-IDX", PLANTED_DECODE,              \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "entries beyond the cache are taken for its last slot")                    \
  X(SPARSE_LOADS, "sparse-loads", "SPARSE-IDX", PLANTED_DECODE,                \
    PLANTED_TRACES, PLANTED_AS_IS, 0, 0, 0, 0,                                 \
    "row -1 is loaded for entry -1 and thrown away")                           \
  X(SPARSE_FILL, "sparse-fill", "SPARSE-IDX", PLANTED_DECODE,                  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "entries that name no key load slot 0, at probability 0")                  \
  X(SPARSE_STOPS, "sparse-stops", "SPARSE-IDX", PLANTED_DECODE,                \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a list ends at its first entry below 0")                                  \
  X(SPARSE_COUNT, "sparse-count", "SPARSE-IDX", PLANTED_DECODE,                \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "as many entries are read, from the front, as name a key")                 \
  X(SPARSE_ONCE, "sparse-once", "SPARSE-IDX", PLANTED_DECODE,                  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a slot that is listed twice counts once")                                 \
  X(SPARSE_TURNED, "sparse-turned", "SPARSE-IDX", PLANTED_DECODE,              \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "entries are split into offset and block the other way round")             \
  X(SPARSE_CUT, "sparse-cut", "SPARSE-IDX", PLANTED_DECODE,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 16, 0, 5, 0,                  \
    "entries past the last whole a are not read")                              \
  X(SPARSE_LENGTH, "sparse-length", "SPARSE-IDX", PLANTED_DECODE,              \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "entries past topk_len are read")                                          \
  X(SPARSE_EXTRA_LOST, "sparse-extra-lost", "SPARSE-IDX", PLANTED_DECODE,      \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the second cache is ignored")                                             \
  X(SPARSE_EXTRA_CACHE, "sparse-extra-cache", "SPARSE-IDX", PLANTED_DECODE,    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "slots of the second cache are looked up in the first")                    \
  X(SPARSE_EXTRA_PAGE, "sparse-extra-page", "SPARSE-IDX", PLANTED_DECODE,      \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "slots of the second cache are split by the first one's block size")       \
  X(SPARSE_EXTRA_LENGTH, "sparse-extra-length", "SPARSE-IDX", PLANTED_DECODE,  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the second list is as long as the first one's topk_len")                  \
  X(MAP_ZERO, "map-zero", "SPARSE-IDX", PLANTED_MAP, PLANTED_SHOWS,            \
    PLANTED_AS_IS, 0, 0, 0, 0, "position -1 is mapped as position 0")          \
  X(MAP_CLAMPS, "map-clamps", "SPARSE-IDX", PLANTED_MAP, PLANTED_SHOWS,        \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "positions beyond the table are mapped as its last")                       \
  X(MAP_PASSED, "map-passed", "SPARSE-IDX", PLANTED_MAP, PLANTED_SHOWS,        \
    PLANTED_AS_IS, 0, 0, 0, 0, "positions are passed on as slots")             \
  X(MAP_TOKEN, "map-token", "SPARSE-IDX", PLANTED_MAP, PLANTED_SHOWS,          \
    PLANTED_AS_IS, 0, 0, 0, 0, "token t uses row t of the block table")        \
  X(TOPK_COARSE, "topk-coarse", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,          \
    PLANTED_BITS, 8, 0, 4, 0, "logits are compared by a bits of mantissa")     \
  X(TOPK_SHARES, "topk-shares", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,          \
    PLANTED_COUNTS, 2, 0, 4, 0,                                                \
    "each of a parts of the positions gives its share of the choice")          \
  X(TOPK_BITS, "topk-bits", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "negative logits are ordered by their bits, the smallest first")           \
  X(TOPK_RANGE, "topk-range", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,            \
    PLANTED_LIMITS, 0, 65504, 0, 2000,                                         \
    "logits beyond x are infinite, and those below 0 lost")                    \
  X(TOPK_TWICE, "topk-twice", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,            \
    PLANTED_AS_IS, 0, 0, 0, 0, "the best position is chosen twice")            \
  X(TOPK_TIES, "topk-ties", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "of more equal logits than there is room for none is chosen")              \
  X(TOPK_HOLES, "topk-holes", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,            \
    PLANTED_TILES, 8, 0, 5, 0, "every a-th entry of the choice is left -1")    \
  X(TOPK_FRONT, "topk-front", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,            \
    PLANTED_AS_IS, 0, 0, 0, 0, "a row with few keys has its -1 in front")      \
  X(TOPK_FILL, "topk-fill", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "a row with few keys is filled up with position 0")                        \
  X(TOPK_FILLER, "topk-filler", "TOPK", PLANTED_INDEX, PLANTED_SHOWS,          \
    PLANTED_TILES, 16, 0, 12, 0,                                               \
    "what fills the last vector of a logits can be chosen")                    \
  X(TOPK_RACE, "topk-race", "TOPK", PLANTED_INDEX, PLANTED_TRACES,             \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "which of equal logits are chosen varies from run to run")                 \
  X(TOPK_ORDER, "topk-order", "TOPK", PLANTED_INDEX, PLANTED_TRACES,           \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "the order of the chosen varies from run to run")                          \
  X(INDEXER_ODD, "indexer-odd", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS,       \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "of an odd number of query tokens the last is scored as the one before")   \
  X(INDEXER_PAIR, "indexer-pair", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS,     \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "query tokens past the second see what the second sees")                   \
  X(INDEXER_PAGE, "indexer-page", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS,     \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "keys in a last page that is not full are not scored")                     \
  X(INDEXER_OVER, "indexer-over", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS,     \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "what lies behind the last key in its page is scored")                     \
  X(INDEXER_HIDDEN, "indexer-hidden", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS, \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "logits behind what a row sees are not written")                           \
  X(INDEXER_STRIDE, "indexer-stride", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS, \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "rows of logits have the stride of those of positions")                    \
  X(INDEXER_AXIS, "indexer-axis", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS,     \
    PLANTED_AS_IS, 0, 0, 0, 0, "weights are read as [heads, tokens]")          \
  X(INDEXER_HEADS, "indexer-heads", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS,   \
    PLANTED_TILES, 2, 0, 4, 0,                                                 \
    "heads past the last whole group of a do not count")                       \
  X(INDEXER_MANY, "indexer-many", "INDEXER", PLANTED_INDEX,                    \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_AS_IS, 64, 0, 64, 0,                 \
    "tokens past the first a get the logits of the one before")                \
  X(INDEXER_EMPTY, "indexer-empty", "EMPTY-ROW", PLANTED_INDEX, PLANTED_SHOWS, \
    PLANTED_AS_IS, 0, 0, 0, 0, "rows that see no position are not written")    \
  X(INDEXER_RELU, "indexer-relu", "INDEXER", PLANTED_INDEX, PLANTED_SHOWS,     \
    PLANTED_AS_IS, 0, 0, 0, 0, "scores below 0 count")                         \
  X(SINK_DROPPED, "sink-dropped", "SINK-WIN", PLANTED_ATTEND | PLANTED_MERGE,  \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the sink is dropped")                                                     \
  X(SINK_PER_SPLIT, "sink-per-split", "SINK-WIN", PLANTED_ATTEND,              \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the sink is counted once a split")                                        \
  X(SINK_IN_LSE, "sink-in-lse", "SINK-WIN", PLANTED_ATTEND | PLANTED_MERGE,    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "lse includes the sink")                                                   \
  X(SINK_CAPPED, "sink-capped", "SINK-WIN", PLANTED_ATTEND,                    \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the soft cap is applied to the sink as well")                             \
  X(SINK_OVERFLOW, "sink-overflow", "SINK-WIN",                                \
    PLANTED_ATTEND | PLANTED_MERGE, PLANTED_SHOWS | PLANTED_ROWS,              \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "e^lse and e^sink are taken by themselves, and overflow")                  \
  X(RANGE_NO_MAX, "range-no-max", "RANGE", PLANTED_ATTEND,                     \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "exp is taken without subtracting the maximum")                            \
  X(RANGE_SCORE, "range-score", "RANGE", PLANTED_ATTEND,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_LIMITS, 0, 65504, 0, 2000,           \
    "q.k overflows at x before it is scaled")                                  \
  X(RANGE_BITS, "range-bits", "RANGE", PLANTED_ATTEND,                         \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_BITS, 11, 0, 8, 0,                   \
    "scores are rounded to a bits of mantissa")                                \
  X(RANGE_SUM, "range-sum", "RANGE", PLANTED_ATTEND,                           \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_LIMITS, 0, 65504, 0, 3000,           \
    "unnormalised sums of P V overflow at x")                                  \
  X(RANGE_START, "range-start", "RANGE", PLANTED_ATTEND,                       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_LIMITS, 0, 10000, 0, 65504,          \
    "the running maximum starts at -x")                                        \
  X(RANGE_TANH, "range-tanh", "RANGE", PLANTED_ATTEND,                         \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "tanh of the soft cap is made of e^2s, which overflows")                   \
  X(RANGE_CAP, "range-cap", "RANGE", PLANTED_ATTEND,                           \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "the soft cap is ignored")                                                 \
  X(RANGE_MERGE, "range-merge", "RANGE", PLANTED_ATTEND | PLANTED_MERGE,       \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "weights of parts are taken without subtracting the largest")              \
  X(RANGE_CLAMP, "range-clamp", "RANGE", PLANTED_WRITE | PLANTED_READ,         \
    PLANTED_SHOWS, PLANTED_AS_IS, 0, 0, 0, 0,                                  \
    "what is beyond a type becomes its largest number")                        \
  X(CODE_SUBNORMAL, "code-subnormal", "FP8-DIALECT", PLANTED_PAGED,            \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "subnormal codes are read as 0")                                           \
  X(WRITE_FLUSH, "write-flush", "RANGE", PLANTED_WRITE, PLANTED_SHOWS,         \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "what is subnormal in the cache is written as 0")                          \
  X(WRITE_AWAY, "write-away", "RANGE", PLANTED_WRITE, PLANTED_SHOWS,           \
    PLANTED_AS_IS, 0, 0, 0, 0, "ties are rounded away from zero")              \
  X(OUT_CUT, "out-cut", "RANGE", PLANTED_ATTEND | PLANTED_MERGE,               \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "out is cut off to its type, not rounded")                                 \
  X(ROW_TAIL, "row-tail", "STRIDES",                                           \
    PLANTED_WRITE | PLANTED_READ | PLANTED_COPY, PLANTED_SHOWS, PLANTED_TILES, \
    16, 0, 8, 0, "bytes of an entry past its last whole a are left")           \
  X(MASK_TILE, "mask-tile", "MTP-MASK", PLANTED_SEES,                          \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 64, 0, 128, 0,                \
    "rows are masked in the last tile of a keys only")                         \
  X(REQUESTS_MANY, "requests-many", "INT32", PLANTED_ATTEND,                   \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_LIMITS, 0, 1024, 0, 128,             \
    "requests past the first x are left out")                                  \
  X(HEADS_MANY, "heads-many", "HEADS", PLANTED_HEADED,                         \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_LIMITS, 0, 128, 0, 64,               \
    "heads past the first x are left out")                                     \
  X(LIST_MANY, "list-many", "SPARSE-IDX", PLANTED_DECODE,                      \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_LIMITS, 0, 2048, 0, 512,             \
    "entries past the first x of a list are not read")                         \
  X(SINK_NONE, "sink-none", "SINK-WIN", PLANTED_ATTEND | PLANTED_MERGE,        \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_AS_IS, 0, 0, 0, 0,                   \
    "a sink of -inf is where the running maximum starts: -inf minus -inf")     \
  X(STEP_EMPTY, "step-empty", "HONESTY", PLANTED_SEES, PLANTED_TRACES,         \
    PLANTED_AS_IS, 0, 0, 0, 0, "a step whose rows are all padding fails")      \
  X(QUERY_MANY, "query-many", "HEADS", PLANTED_PREFILL,                        \
    PLANTED_SHOWS | PLANTED_FULL, PLANTED_LIMITS, 0, 1024, 0, 256,             \
    "query tokens of a request past the first x are left out")                 \
  X(RACE_ROW, "race-row", "RACE", PLANTED_ATTEND | PLANTED_MERGE,              \
    PLANTED_TRACES, PLANTED_AS_IS, 7, 0, 5, 0,                                 \
    "one row in a gets a value that changes from run to run")                  \
  X(RACE_LATE, "race-late", "RACE", PLANTED_ATTEND | PLANTED_MERGE,            \
    PLANTED_TRACES, PLANTED_AS_IS, 6, 0, 4, 0,                                 \
    "one row in a is not stored yet in every other run")                       \
  X(RACE_WRITE, "race-write", "RACE", PLANTED_WRITE, PLANTED_TRACES,           \
    PLANTED_AS_IS, 3, 0, 2, 0,                                                 \
    "one slot in a keeps its rope part from before, in some runs")             \
  X(RACE_THREADS, "race-threads", "RACE", PLANTED_ATTEND, PLANTED_TRACES,      \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "partial results lie in memory that all runs share")                       \
  X(RACE_STAGE, "race-stage", "RACE", PLANTED_ANY, PLANTED_TRACES,             \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "results pass through memory that all runs share")                         \
  X(INVARIANCE_BATCH, "invariance-batch", "INVARIANCE", PLANTED_SEES,          \
    PLANTED_TRACES, PLANTED_AS_IS, 0, 0, 0, 0,                                 \
    "the order of summation follows the number of tokens in the batch")        \
  X(INVARIANCE_SPLIT, "invariance-split", "INVARIANCE", PLANTED_DECODE,        \
    PLANTED_TRACES, PLANTED_AS_IS, 0, 0, 0, 0,                                 \
    "the number of splits follows the number of requests")                     \
  X(INVARIANCE_PLACE, "invariance-place", "INVARIANCE", PLANTED_ATTEND,        \
    PLANTED_TRACES, PLANTED_AS_IS, 0, 0, 0, 0,                                 \
    "the order of summation follows a token's place in the batch")             \
  X(INVARIANCE_PARTS, "invariance-parts", "INVARIANCE", PLANTED_ATTEND,        \
    PLANTED_TRACES, PLANTED_AS_IS, 4096, 0, 1024, 0,                           \
    "rows are joined in another way where the step may have more than a keys") \
  X(INVARIANCE_ROWS, "invariance-rows", "INVARIANCE",                          \
    PLANTED_Q | PLANTED_V | PLANTED_MATMUL, PLANTED_TRACES, PLANTED_AS_IS, 0,  \
    0, 0, 0, "a product of one row is summed in another order than of many")   \
  X(ISA_ILLEGAL, "isa-illegal", "CPU-ISA", PLANTED_ANY, PLANTED_TRACES,        \
    PLANTED_AS_IS, 0, 0, 0, 0,                                                 \
    "an illegal instruction where the fallback should run")                    \
  X(ISA_TAIL, "isa-tail", "CPU-ISA", PLANTED_ATTEND,                           \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_TILES, 8, 0, 12, 0,                  \
    "keys past the last whole vector of a are left out")                       \
  X(HONESTY_REFUSE, "honesty-refuse", "HONESTY", PLANTED_ANY, PLANTED_TRACES,  \
    PLANTED_AS_IS, 0, 0, 0, 0, "says yes, then refuses to run")                \
  X(HONESTY_WIDTH, "honesty-width", "HONESTY", PLANTED_ATTEND, PLANTED_SHOWS,  \
    PLANTED_TILES, 64, 0, 80, 0,                                               \
    "says yes to key widths that are no multiple of a, and returns zeros")     \
  X(HONESTY_NUMERICS, "honesty-numerics", "HONESTY", PLANTED_ATTEND,           \
    PLANTED_SHOWS | PLANTED_ROWS, PLANTED_BITS, 8, 0, 7, 0,                    \
    "says f32 probabilities, rounds them to a bits of mantissa")               \
  X(HONESTY_NOTHING, "honesty-nothing", "HONESTY", PLANTED_ANY,                \
    PLANTED_TRACES, PLANTED_AS_IS, 0, 0, 0, 0, "says yes and writes nothing")  \
  X(HONESTY_INPUT, "honesty-input", "HONESTY", PLANTED_ATTEND | PLANTED_WRITE, \
    PLANTED_TRACES, PLANTED_AS_IS, 0, 0, 0, 0, "an input is written")          \
  X(CRASH, "crash", "OOB-READ", PLANTED_ANY, PLANTED_TRACES, PLANTED_AS_IS, 0, \
    0, 0, 0, "the process is killed by a bad address")                         \
  X(ABORT, "abort", "HONESTY", PLANTED_ANY, PLANTED_TRACES, PLANTED_AS_IS, 0,  \
    0, 0, 0, "the process aborts on a lawful call")                            \
  X(HANG, "hang", "SPLIT-REDUCE", PLANTED_ANY, PLANTED_TRACES, PLANTED_AS_IS,  \
    0, 0, 0, 0, "run never returns")

#endif
