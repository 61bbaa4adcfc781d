/*
 * limits_check.c - the rules for limits and their hints.
 */
#include "args_check.h"
#include "error.h"
#include "problem_check.h"

enum { BOUNDS = 7 };
typedef struct bound {
  const char *name;
  int64_t value;
  int used;
} bound;

static int has_slot(const mla_op_spec *spec, const mla_problem *p, int slot) {
  for (int32_t i = 0; i < spec->slot_count; i++)
    if (spec->slots[i].slot == slot && mla_slot_applies(&spec->slots[i], p))
      return 1;
  return 0;
}

static int has_symbol(const mla_op_spec *spec, const mla_problem *p, int sym) {
  for (int32_t i = 0; i < spec->slot_count; i++)
    for (int axis = 0; axis < spec->slots[i].rank; axis++)
      if (spec->slots[i].dim[axis] == sym &&
          mla_slot_applies(&spec->slots[i], p))
        return 1;
  return 0;
}

static void list_bounds(const mla_op_spec *spec, const mla_problem *p,
                        const mla_limits *l, bound list[BOUNDS]) {
  int rows = has_symbol(spec, p, MLA_S_N) ||
             has_symbol(spec, p, MLA_S_COPIES) ||
             has_symbol(spec, p, MLA_S_GATHERED);
  int lengths =
      has_slot(spec, p, MLA_T_SEQ_LENS) || has_slot(spec, p, MLA_T_CU_SEQ_LENS);
  list[0] = (bound){"requests", l->requests, has_symbol(spec, p, MLA_S_B)};
  list[1] = (bound){"tokens", l->tokens, rows};
  list[2] = (bound){"max_query_len", l->max_query_len,
                    has_slot(spec, p, MLA_T_QUERY_START_LOC)};
  list[3] = (bound){"max_seq_len", l->max_seq_len, lengths};
  list[4] = (bound){"num_blocks", l->num_blocks, has_symbol(spec, p, MLA_S_NB)};
  list[5] =
      (bound){"table_width", l->table_width, has_symbol(spec, p, MLA_S_W)};
  list[6] = (bound){"parts", l->parts, has_symbol(spec, p, MLA_S_PARTS)};
}

static mla_status check_bounds(const mla_op_spec *spec, const mla_problem *p,
                               const mla_limits *l, mla_error *err) {
  bound list[BOUNDS];
  list_bounds(spec, p, l, list);
  for (int i = 0; i < BOUNDS; i++)
    if (list[i].used && list[i].value < 1)
      return mla_fail(err, MLA_INVALID_ARGUMENT, list[i].name,
                      "limits.%s is %lld, at least 1 for %s", list[i].name,
                      (long long)list[i].value, mla_op_name(p->op));
  if (l->num_splits < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "num_splits",
                    "limits.num_splits is %d, at least 0", l->num_splits);
  if (l->context_chunk < 0)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "context_chunk",
                    "limits.context_chunk is %lld, at least 0",
                    (long long)l->context_chunk);
  return MLA_OK;
}

/* One symbol, B, stands for requests and may be INT64_MAX. */
static mla_status check_products(const mla_problem *p, const mla_limits *l,
                                 mla_error *err) {
  int64_t value[MLA_S_COUNT] = {0};
  value[MLA_S_N] = value[MLA_S_SLOTS] = value[MLA_S_COPIES] = l->tokens;
  value[MLA_S_GATHERED] = l->tokens;
  value[MLA_S_B] = l->requests;
  value[MLA_S_B1] = l->requests + (l->requests < INT64_MAX);
  value[MLA_S_W] = l->table_width;
  value[MLA_S_NB] = value[MLA_S_NBS] = value[MLA_S_NBX] = l->num_blocks;
  value[MLA_S_LOGITS] = l->max_seq_len;
  value[MLA_S_PARTS] = l->parts;
  return mla_products_check(p, value, err);
}

static mla_status check_hints(const mla_op_spec *spec, const mla_problem *p,
                              const mla_limits *l, mla_error *err) {
  if (!has_slot(spec, p, MLA_T_QUERY_START_LOC) ||
      !has_slot(spec, p, MLA_T_SEQ_LENS))
    return MLA_OK;
  if (!l->seq_lens && !l->query_start_loc) return MLA_OK;
  if (!l->seq_lens || !l->query_start_loc)
    return mla_fail(err, MLA_INVALID_ARGUMENT,
                    l->seq_lens ? "query_start_loc" : "seq_lens",
                    "limits.%s is NULL while %s is given; they are hints "
                    "together or not at all",
                    l->seq_lens ? "query_start_loc" : "seq_lens",
                    l->seq_lens ? "seq_lens" : "query_start_loc");
  return mla_lengths_check(p, l, l->query_start_loc, l->seq_lens, l->requests,
                           l->tokens, err);
}

mla_status mla_limits_check(const mla_problem *problem,
                            const mla_limits *limits, mla_error *err) {
  const mla_op_spec *spec = mla_op_spec_of(problem->op);
  mla_status st = check_bounds(spec, problem, limits, err);
  if (st == MLA_OK) st = check_products(problem, limits, err);
  if (st == MLA_OK) st = check_hints(spec, problem, limits, err);
  return st;
}
