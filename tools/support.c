/*
 * support.c - plain problems of every operation, and what a query says.
 */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "composed.h"
#include "error.h"
#include "mla/batch.h"

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
    {"batch building", "decode:%s:b4,h16,q=1+3+1+0,page64,len=3000+70+9+0"},
};
#define ROWS ((int)(sizeof rows / sizeof rows[0]))

/* A step that was built is written and decoded. */
enum { BATCH_BUILDING = ROWS - 1 };
static const char writes[] = "kv_write:%s:n8,page64,nb52";

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

/* With the splits and limits that batch building takes, to reserve and to run,
   on a device of so many compute units. */
static mla_status query_step(mla_device *device, const mla_case *c,
                             mla_answer *answer, mla_error *err) {
  mla_device_info info = {(uint32_t)sizeof info, 0, 0, 0, 0, "", ""};
  mla_limits plain = mla_case_limits(c), limits = mla_limits_init();
  mla_problem problem = mla_case_problem(c);
  mla_batch_bounds bounds;
  memset(&bounds, 0, sizeof bounds);
  bounds.size = (uint32_t)sizeof bounds;
  bounds.requests = plain.requests;
  bounds.tokens = plain.tokens;
  bounds.max_query_len = plain.max_query_len;
  bounds.max_seq_len = plain.max_seq_len;
  bounds.num_blocks = plain.num_blocks;
  bounds.table_width = plain.table_width;
  mla_status status = mla_device_describe(device, &info, err);
  bounds.compute_units = info.compute_units;
  if (status == MLA_OK) status = mla_batch_limits(&bounds, &limits, err);
  return status == MLA_OK ? mla_query(device, &problem, &limits, answer, err)
                          : status;
}

static int make_case(const char *sample, int32_t format, mla_case *c) {
  char id[200];
  const char *open = strchr(sample, '%');
  snprintf(id, sizeof id, "%.*s%s%s", (int)(open - sample), sample,
           mla_format_name(format), open + 2);
  return mla_case_parse(id, c, NULL) == MLA_OK;
}

static mla_status query_row(mla_device *device, int row, int32_t format,
                            const mla_case *c, mla_answer *answer,
                            mla_error *err) {
  mla_case write;
  if (row != BATCH_BUILDING) return query(device, c, answer, err);
  if (!make_case(writes, format, &write))
    return mla_fail(err, MLA_UNSUPPORTED, "format", "nothing writes it");
  mla_status status = query(device, &write, answer, err);
  if (status != MLA_OK || !answer->supported) return status;
  *answer = mla_answer_init();
  return query_step(device, c, answer, err);
}

support_answer support_ask(mla_device *device, int row, int32_t format,
                           mla_answer *answer) {
  mla_case c;
  mla_error err = mla_error_init();
  *answer = mla_answer_init();
  if (!make_case(rows[row].sample, format, &c)) return SUPPORT_NONE;
  mla_status status = query_row(device, row, format, &c, answer, &err);
  if (status == MLA_OK && answer->supported) return SUPPORT_YES;
  if (status != MLA_OK)
    snprintf(answer->reason, sizeof answer->reason, "query fails: %.130s",
             err.message);
  return SUPPORT_NO;
}

/* The formats of a row that are served, a bit each. */
static uint64_t served(mla_device *device, int row) {
  uint64_t set = 0;
  mla_answer answer;
  for (int32_t f = 1; mla_format_name(f); f++)
    if (support_ask(device, row, f, &answer) == SUPPORT_YES)
      set |= UINT64_C(1) << f;
  return set;
}

static void put_word(char *text, size_t size, const char *word) {
  size_t used = strcmp(text, "-") == 0 ? 0 : strlen(text);
  snprintf(text + used, size - used, "%s%s", used ? ", " : "", word);
}

/* Formats that are mostly served together, so that a table can be read. */
static const struct {
  const char *name;
  int32_t format[4];
} groups[] = {
    {"plain", {MLA_CACHE_F32, MLA_CACHE_F16, MLA_CACHE_BF16}},
    {"fp8", {MLA_CACHE_FP8_E4M3, MLA_CACHE_FP8_E4M3FNUZ, MLA_CACHE_FP8_E5M2}},
    {"packed", {MLA_CACHE_FP8_DS_MLA, MLA_CACHE_FP8_584}},
    {"inline",
     {MLA_CACHE_FP8_TOKEN, MLA_CACHE_INT8_TOKEN, MLA_CACHE_INT4_TOKEN}},
};
#define GROUPS (sizeof groups / sizeof groups[0])

/* The group that begins with a format and is in the set as a whole. */
static const char *whole_group(uint64_t set, int32_t first, uint64_t *bits) {
  for (size_t g = 0; g < GROUPS; g++) {
    *bits = 0;
    for (int i = 0; i < 4 && groups[g].format[i]; i++)
      *bits |= UINT64_C(1) << groups[g].format[i];
    if (groups[g].format[0] == first && (set & *bits) == *bits)
      return groups[g].name;
  }
  return NULL;
}

void support_brief(mla_device *device, int row, char *text, size_t size) {
  uint64_t set = served(device, row), bits;
  snprintf(text, size, "-");
  for (int32_t f = 1; mla_format_name(f); f++) {
    if (!(set >> f & 1)) continue;
    const char *group = whole_group(set, f, &bits);
    put_word(text, size, group ? group : mla_format_name(f));
    if (group) set &= ~bits;
  }
}

void support_legend(char *text, size_t size) {
  *text = '\0';
  for (size_t g = 0; g < GROUPS; g++) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s:", g ? "; " : "", groups[g].name);
    for (int i = 0; i < 4 && groups[g].format[i]; i++) {
      used = strlen(text);
      snprintf(text + used, size - used, "%s %s", i ? "," : "",
               mla_format_name(groups[g].format[i]));
    }
  }
}

void support_list(mla_device *device, int row, char *text, size_t size) {
  uint64_t set = served(device, row);
  snprintf(text, size, "-");
  for (int32_t f = 1; mla_format_name(f); f++)
    if (set >> f & 1) put_word(text, size, mla_format_name(f));
}
