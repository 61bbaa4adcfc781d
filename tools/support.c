/*
 * support.c - plain problems of every operation, and what a query says.
 */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "composed.h"

/* Problems that nobody should find exotic. */
static const struct {
  const char *name, *sample;
} rows[] = {
    {"kv_write", "kv_write:%s:n8,page64,nb2"},
    {"kv_read", "kv_read:%s:b2,page64,len=70"},
    {"kv_copy", "kv_copy:%s:nb4,copies2,page64"},
    {"absorb", "absorb:%s:h16"},
    {"absorb, scaled weights", "absorb:%s:h16,w=fp8_e4m3"},
    {"q_absorb", "q_absorb:%s:n4,h16"},
    {"v_expand", "v_expand:%s:n4,h16"},
    {"decode", "decode:%s:b2,h16,q1,page64,len=70"},
    {"decode, several tokens", "decode:%s:b2,h16,q3,page64,len=70"},
    {"decode, sink", "decode:%s:b2,h16,q1,page64,len=70,sink"},
    {"decode, K and V apart",
     "decode:%s:b2,h16,kvh4,q1,page64,len=70,d128,dv128,sepv"},
    {"decode, sparse", "decode:%s:b2,h64,q1,page64,len=300,topk=128"},
    {"decode, sparse, two caches",
     "decode:%s:b2,h64,q1,page64,len=300,topk=128,extra=64"},
    {"prefill", "prefill:%s:b2,h16,q8"},
    {"prefill over context", "prefill:%s:b2,h16,q8,page64,ctx=70"},
    {"merge", "merge:%s:n4,h16,s2"},
    {"index", "index:%s:b2,h64,q1,page64,len=300,topk=128"},
    {"map_indices", "map_indices:%s:b2,q1,page64,len=300,topk=128"},
    {"matmul", "matmul:%s:m4,n64,k64"},
    {"cascade", "decode:%s:b2,h16,q1,page64,len=200,prefix=128,cascade"},
    {"context parallel", "decode:%s:b2,h16,q1,page64,len=200,ranks=4"},
    {"chunked prefill", "prefill:%s:b2,h16,q8,page64,ctx=200,chunked"},
};
#define ROWS ((int)(sizeof rows / sizeof rows[0]))

const char *support_row(int row) {
  return row >= 0 && row < ROWS ? rows[row].name : NULL;
}

/* Cascades and the like are asked of what is composed over the device. */
static mla_status query(mla_device *device, const mla_case *c,
                        mla_answer *answer, mla_error *err) {
  mla_vector v;
  mla_device *over = NULL;
  mla_limits limits = mla_case_limits(c);
  mla_vector_init(&v);
  v.has_recipe = 1;
  v.recipe = *c;
  v.problem = mla_case_problem(c);
  mla_status status = mla_composed_device(device, &v, &over, err);
  if (status == MLA_OK)
    status = mla_query(over, &v.problem, &limits, answer, err);
  mla_composed_close(over, device);
  return status;
}

support_answer support_ask(mla_device *device, int row, int32_t format,
                           mla_answer *answer) {
  const char *sample = rows[row].sample, *open = strchr(sample, '%');
  char id[200];
  mla_case c;
  mla_error err = mla_error_init();
  *answer = mla_answer_init();
  snprintf(id, sizeof id, "%.*s%s%s", (int)(open - sample), sample,
           mla_format_name(format), open + 2);
  if (mla_case_parse(id, &c, &err) != MLA_OK) return SUPPORT_NONE;
  mla_status status = query(device, &c, answer, &err);
  if (status == MLA_OK && answer->supported) return SUPPORT_YES;
  if (status != MLA_OK)
    snprintf(answer->reason, sizeof answer->reason, "query fails: %.130s",
             err.message);
  return SUPPORT_NO;
}

void support_list(mla_device *device, int row, char *text, size_t size) {
  size_t used = 0;
  mla_answer answer;
  snprintf(text, size, "-");
  for (int32_t f = 1; mla_format_name(f); f++) {
    if (support_ask(device, row, f, &answer) != SUPPORT_YES) continue;
    int n = snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                     mla_format_name(f));
    if (n > 0 && (size_t)n < size - used) used += (size_t)n;
  }
}
