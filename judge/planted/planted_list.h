/*
 * planted_list.h - the planted faults: id, name, class, parameters, what.
 *
 * a and x are the parameters that a probe uses; the self-test plants the same
 * mistake with others. Kinds of `what` are said in the words of a failure
 * report: "looks like CLASS: what".
 */
#ifndef MLA_PLANTED_LIST_H
#define MLA_PLANTED_LIST_H

#define PLANTED_LIST(X)                                                        \
  X(LSE_BASE_MERGE, "lse-base-merge", "LSE-BASE", 0, 0,                        \
    "parts are merged with weights 2^d where e^d is meant")                    \
  X(LSE_BASE_OUT, "lse-base-out", "LSE-BASE", 0, 0,                            \
    "lse is returned in the other base")                                       \
  X(LSE_TRANSPOSED, "lse-transposed", "LSE-LAYOUT", 0, 0,                      \
    "lse is written as [heads, tokens]")                                       \
  X(LSE_PARTIAL, "lse-partial", "LSE-LAYOUT", 4, 0,                            \
    "lse is written for every a-th head only")                                 \
  X(LSE_SCALE, "lse-scale", "LSE-LAYOUT", 0, 1.8738,                           \
    "the row maximum in lse lacks a factor of the softmax scale")              \
  X(EMPTY_MERGE_NAN, "empty-merge-nan", "EMPTY-MERGE", 0, 0,                   \
    "merging two empty parts computes -inf minus -inf")                        \
  X(EMPTY_MERGE_INF, "empty-merge-inf", "EMPTY-MERGE", 0, 0,                   \
    "a part with lse +inf wins the merge")                                     \
  X(EMPTY_MERGE_READ, "empty-merge-read", "EMPTY-MERGE", 0, 0,                 \
    "an empty part's values are multiplied by 0 and added")                    \
  X(EMPTY_ROW_STALE, "empty-row-stale", "EMPTY-ROW", 0, 0,                     \
    "a row without keys keeps old bytes")                                      \
  X(EMPTY_ROW_FINITE, "empty-row-finite", "EMPTY-ROW", 0, -1e30,               \
    "a row without keys returns a finite lse")                                 \
  X(EMPTY_ROW_NAN, "empty-row-nan", "EMPTY-ROW", 0, 0,                         \
    "a row without keys divides by its zero sum")                              \
  X(EMPTY_SHIFT, "empty-shift", "EMPTY-ROW", 0, 0,                             \
    "an empty request shifts the rows of the next ones")                       \
  X(EMPTY_SPLIT, "empty-split", "EMPTY-SPLIT", 0, 0,                           \
    "a split without keys leaves its scratch unwritten, and it is merged")     \
  X(SPLIT_AVERAGE, "split-average", "SPLIT-REDUCE", 2, 0,                      \
    "with a splits or more, parts are averaged, not weighted")                 \
  X(SPLIT_LAST, "split-last", "SPLIT-REDUCE", 0, 0,                            \
    "the last split is dropped by the reduction")                              \
  X(SPLIT_F16, "split-f16", "SPLIT-REDUCE", 0, 0,                              \
    "partial results pass through 8 bits of mantissa")                         \
  X(PAD_NAN, "pad-nan", "GRAPH-PAD", 0, 0,                                     \
    "NaN is written into rows past query_start_loc's end")                     \
  X(PAD_ZERO, "pad-zero", "GRAPH-PAD", 0, 0,                                   \
    "zeros are written into rows past query_start_loc's end")                  \
  X(PAD_LAST_BLOCK, "pad-last-block", "GRAPH-PAD", 0, 0,                       \
    "a request of length 0 looks up block -1 of its table")                    \
  X(STALE_LENS, "stale-lens", "STALE-META", 0, 0,                              \
    "the lengths seen first are used for every later run of a plan")           \
  X(STALE_MAX, "stale-max", "STALE-META", 1, 0,                                \
    "lengths above half of the planned maximum are cut")                       \
  X(WS_OVERRUN, "ws-overrun", "WORKSPACE", 64, 0,                              \
    "a bytes are written beyond the declared workspace")                       \
  X(WS_ZEROED, "ws-zeroed", "WORKSPACE", 0, 0,                                 \
    "the workspace is assumed to be zero at the start")                        \
  X(TAIL_NAN, "tail-nan", "TAIL-NAN", 1, 0,                                    \
    "a rows past seq_len are multiplied by probability 0")                     \
  X(TAIL_V, "tail-v", "TAIL-NAN", 0, 0,                                        \
    "the rest of the last page is multiplied by probability 0")                \
  X(TAIL_SEEN, "tail-seen", "TAIL-NAN", 1, 0,                                  \
    "a rows past the visible keys are attended")                               \
  X(OOB_TABLE, "oob-table", "OOB-READ", 1, 0,                                  \
    "a table entries past the last are read and thrown away")                  \
  X(OOB_Q, "oob-q", "OOB-READ", 64, 0,                                         \
    "a bytes past the end of q are read and thrown away")                      \
  X(PAGE_TUNED, "page-tuned", "PAGE-SIZE", 64, 0,                              \
    "keys are addressed as if a block held a tokens")                          \
  X(PAGE_TAIL, "page-tail", "PAGE-SIZE", 0, 0,                                 \
    "a last page that is not full is skipped")                                 \
  X(PAGE_EDGE, "page-edge", "PAGE-SIZE", 0, 0,                                 \
    "the first token of each page but the first is the one before it")         \
  X(TABLE_CONSECUTIVE, "table-consecutive", "TABLE", 0, 0,                     \
    "pages are assumed to follow the first one")                               \
  X(TABLE_STRIDE, "table-stride", "TABLE", 0, 0,                               \
    "rows of the table are assumed to be packed")                              \
  X(TABLE_ROW, "table-row", "TABLE", 0, 0,                                     \
    "every request uses the table row of request 0")                           \
  X(SLOT_NEGATIVE, "slot-negative", "SLOT-WRITE", 0, 0,                        \
    "slot -1 is written as slot 0")                                            \
  X(SLOT_COMPACT, "slot-compact", "SLOT-WRITE", 0, 0,                          \
    "tokens are counted without the skipped ones")                             \
  X(SLOT_NEIGHBOUR, "slot-neighbour", "SLOT-WRITE", 1, 0,                      \
    "a elements more than an entry are written")                               \
  X(SLOT_BITS, "slot-bits", "SLOT-WRITE", 8, 0,                                \
    "slots are narrowed to a bits")                                            \
  X(INT32_OFFSET, "int32-offset", "INT32", 32, 0,                              \
    "cache offsets wrap at a bits")                                            \
  X(HEADS_DROP, "heads-drop", "HEADS", 16, 0,                                  \
    "heads past the last whole group of a are not computed")                   \
  X(HEADS_WRAP, "heads-wrap", "HEADS", 16, 0,                                  \
    "head h past a uses the query of head h mod a")                            \
  X(HEADS_GROUP, "heads-group", "HEADS", 0, 0,                                 \
    "head h uses kv head h mod kv_heads")                                      \
  X(MTP_NO_MASK, "mtp-no-mask", "MTP-MASK", 0, 0,                              \
    "with several query tokens, all see all keys")                             \
  X(MTP_TOP_LEFT, "mtp-top-left", "MTP-MASK", 0, 0,                            \
    "the causal mask is aligned to the top left")                              \
  X(MTP_FIRST, "mtp-first", "MTP-MASK", 0, 0,                                  \
    "every query token sees what the first one sees")                          \
  X(MTP_OFF_BY, "mtp-off-by", "MTP-MASK", 1, 0,                                \
    "the causal limit is off by a")                                            \
  X(NONCAUSAL, "noncausal", "NONCAUSAL", 0, 0,                                 \
    "rows are masked although all keys were asked for")                        \
  X(CHUNK_LAST, "chunk-last", "CTX-CHUNK", 0, 0,                               \
    "a last context chunk that is not full is dropped")                        \
  X(CHUNK_ONLY, "chunk-only", "CTX-CHUNK", 0, 0,                               \
    "only the last context chunk survives the merge")                          \
  X(CHUNK_SHARED, "chunk-shared", "CTX-CHUNK", 0, 0,                           \
    "every request gets the context length of the longest")                    \
  X(PREFIX_START, "prefix-start", "PREFIX", 0, 0,                              \
    "reading starts at position 0, whatever start was asked for")              \
  X(PREFIX_ORDER, "prefix-order", "PREFIX", 0, 0,                              \
    "copied blocks keep their ids: source and target are mixed up")            \
  X(PREFIX_CONTEXT, "prefix-context", "PREFIX", 0, 0,                          \
    "the cached context is ignored")                                           \
  X(ROPE_IGNORED, "rope-ignored", "ROPE-STYLE", 0, 0,                          \
    "the rope part does not enter the score")                                  \
  X(ROPE_PAIRS, "rope-pairs", "ROPE-STYLE", 0, 0,                              \
    "the query's rope part is taken as half-split, the key's as pairs")        \
  X(YARN_SCALE, "yarn-scale", "YARN", 0, 0,                                    \
    "scores are scaled by one over the root of the head width")                \
  X(YARN_FACTOR, "yarn-factor", "YARN", 0, 1.5896,                             \
    "the softmax scale is off by a factor x")                                  \
  X(ABSORB_ORDER, "absorb-order", "ABSORB", 0, 0,                              \
    "kv_b_proj is split with V's rows first")                                  \
  X(ABSORB_FLAT, "absorb-flat", "ABSORB", 0, 0,                                \
    "kv_b_proj is split once for all heads, K rows then V rows")               \
  X(ABSORB_HEAD, "absorb-head", "ABSORB", 1, 0,                                \
    "the weights of a head are those of the head a further")                   \
  X(VDIM_ROPE, "vdim-rope", "VDIM", 0, 0,                                      \
    "the value is the last v_dim numbers of the key")                          \
  X(VDIM_STRIDE, "vdim-stride", "VDIM", 0, 0,                                  \
    "value rows are addressed with v_dim as their stride")                     \
  X(HEADDIM_TAIL, "headdim-tail", "HEADDIM", 32, 0,                            \
    "key widths are cut to a multiple of a")                                   \
  X(HEADDIM_V, "headdim-v", "HEADDIM", 32, 0,                                  \
    "value columns past the last whole a are left out")                        \
  X(STRIDES_DENSE, "strides-dense", "STRIDES", 0, 0,                           \
    "strides of q are recomputed from its shape")                              \
  X(STRIDES_OUT, "strides-out", "STRIDES", 0, 0,                               \
    "strides of out are recomputed from its shape")                            \
  X(STRIDES_CACHE, "strides-cache", "STRIDES", 0, 0,                           \
    "the cache's block stride is recomputed from its shape")                   \
  X(SINK_DROPPED, "sink-dropped", "SINK-WIN", 0, 0, "the sink is dropped")     \
  X(SINK_PER_SPLIT, "sink-per-split", "SINK-WIN", 0, 0,                        \
    "the sink is counted once a split")                                        \
  X(SINK_IN_LSE, "sink-in-lse", "SINK-WIN", 0, 0, "lse includes the sink")     \
  X(SINK_OVERFLOW, "sink-overflow", "SINK-WIN", 0, 0,                          \
    "exp(sink - max) overflows")                                               \
  X(RANGE_NO_MAX, "range-no-max", "RANGE", 0, 0,                               \
    "exp is taken without subtracting the maximum")                            \
  X(RANGE_F16_SCORE, "range-f16-score", "RANGE", 0, 65504,                     \
    "q.k overflows at x before it is scaled")                                  \
  X(RANGE_F16_SUM, "range-f16-sum", "RANGE", 0, 65504,                         \
    "unnormalised sums of P V overflow at x")                                  \
  X(RANGE_CAP, "range-cap", "RANGE", 0, 0, "the soft cap is ignored")          \
  X(RACE_ROW, "race-row", "RACE", 7, 0,                                        \
    "one row in a gets a value that changes from run to run")                  \
  X(INVARIANCE_BATCH, "invariance-batch", "INVARIANCE", 0, 0,                  \
    "the order of summation follows the number of tokens in the batch")        \
  X(ISA_ZERO_SUM, "isa-zero-sum", "CPU-ISA", 0, 0,                             \
    "an illegal instruction where the fallback should run")                    \
  X(ISA_TAIL, "isa-tail", "CPU-ISA", 8, 0,                                     \
    "keys past the last whole vector of a are left out")                       \
  X(HONESTY_REFUSE, "honesty-refuse", "HONESTY", 0, 0,                         \
    "says yes, then refuses to run")                                           \
  X(HONESTY_RUBBISH, "honesty-rubbish", "HONESTY", 0, 0,                       \
    "says yes to a soft cap and head counts it computes wrongly")              \
  X(HONESTY_NUMERICS, "honesty-numerics", "HONESTY", 0, 0,                     \
    "says f32 probabilities, rounds them to bf16")                             \
  X(HONESTY_NOTHING, "honesty-nothing", "HONESTY", 0, 0,                       \
    "says yes and writes nothing")                                             \
  X(DROP_KEY, "drop-key", "RACE", 5, 0,                                        \
    "key a of long rows is lost between two blocks")                           \
  X(DUPLICATE_KEY, "duplicate-key", "PAGE-SIZE", 3, 0,                         \
    "key a of a row is counted twice")                                         \
  X(CRASH, "crash", "HONESTY", 0, 0, "the process is killed by a bad address") \
  X(HANG, "hang", "SPLIT-REDUCE", 0, 0, "run never returns")                   \
  X(OVERRUN, "overrun", "HEADS", 64, 0,                                        \
    "a bytes are written past the end of out")                                 \
  X(WRITE_INPUT, "write-input", "HONESTY", 0, 0, "an input is written")        \
  X(ABORT, "abort", "HONESTY", 0, 0, "the process aborts on a lawful call")

#endif
