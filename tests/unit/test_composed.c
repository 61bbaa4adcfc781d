/*
 * test_composed.c - cascade, chunked prefill and shards against the one
 * operation they stand for, judged as any backend is: within the budget of
 * what the composition declares, the same bits when run again, in poisoned
 * memory with bands round it; on host memory and on a device's own.
 */
#include <stdio.h>
#include <string.h>

#include "batch_fixture.h"
#include "check_main.h"
#include "far_backend.h"
#include "judge.h"

static const char *const backends[] = {"ref", "cpu", "far"};

/* How many verdicts of each kind the cases of a test had. */
typedef struct tally {
  int passed, refused;
} tally;

static void judge(mla_device *dev, const char *id, uint64_t seed,
                  tally *counts) {
  mla_judge_options options = mla_judge_defaults();
  mla_error err = mla_error_init();
  mla_verdict verdict;
  mla_vector v;
  mla_case c;
  ck_assert_msg(mla_case_parse(id, &c, &err) == MLA_OK, "%s: %s", id,
                err.message);
  ck_assert_msg(mla_generate(&c, seed, MLA_POISON_NAN, &v, &err) == MLA_OK,
                "%s: %s", id, err.message);
  mla_judge_vector(dev, &v, &options, &verdict);
  counts->passed += verdict.kind == MLA_VERDICT_PASS;
  counts->refused += verdict.kind == MLA_VERDICT_UNSUPPORTED;
  ck_assert_msg(verdict.kind == MLA_VERDICT_PASS ||
                    verdict.kind == MLA_VERDICT_UNSUPPORTED,
                "%s on %s, seed %llu: verdict %d, worst %g and %g; %s %s", id,
                mla_device_backend(dev)->name, (unsigned long long)seed,
                verdict.kind, verdict.output[0].worst, verdict.output[1].worst,
                verdict.reason, verdict.fences);
  mla_vector_free(&v);
}

static mla_device *open_backend(const char *name) {
  mla_device *dev = NULL;
  mla_error err = mla_error_init();
  if (strcmp(name, "far") == 0) far_backend();
  if (!mla_backend_find(name)) return NULL;
  ck_assert_msg(mla_open(name, 0, NULL, &dev, &err) == MLA_OK, "%s",
                err.message);
  return dev;
}

/* ------------------------------------------------------------ random cases */

typedef struct text {
  char id[2048];
  size_t n;
} text;

static void say(text *t, const char *format, int value) {
  t->n += (size_t)snprintf(t->id + t->n, sizeof t->id - t->n, format, value);
}

static int one_in(draws *d, int n) {
  return draw(d, 0, n - 1) == 0;
}

static void say_list(text *t, const char *key, const int32_t *list, int n) {
  t->n += (size_t)snprintf(t->id + t->n, sizeof t->id - t->n, ",%s%d", key,
                           list[0]);
  for (int i = 1; i < n; i++) say(t, "+%d", list[i]);
}

static void say_options(text *t, draws *d) {
  static const char *const amps[] = {",amp=0.25", "", ",amp=8"};
  say(t, amps[draw(d, 0, 2)], 0);
  if (one_in(d, 3)) say(t, ",base2", 0);
  if (one_in(d, 3)) say(t, ",sink", 0);
  if (one_in(d, 6)) say(t, ",nolse", 0);
}

static const char *format_of(draws *d, int f64) {
  static const char *const formats[] = {"f32", "bf16", "f16", "f64"};
  return formats[draw(d, 0, f64 ? 3 : 2)];
}

/* Lengths about a prefix, or anything; an empty request among them. */
static void decode_case(text *t, draws *d, int f64, int cascade) {
  int b = draw(d, 1, 5), page = draw(d, 1, 24), full = one_in(d, 3);
  int prefix = one_in(d, 4) ? 0 : draw(d, 0, 5) * page + draw(d, 0, page - 1);
  int32_t rows[5], lens[5];
  for (int i = 0; i < b; i++) {
    rows[i] = one_in(d, 3) ? draw(d, 0, 4) : 1;
    lens[i] = prefix +
              (full      ? 0
               : rows[i] ? rows[i] - 1
                         : 0) +
              draw(d, 0, one_in(d, 2) ? 2 : 90);
    if (!cascade && one_in(d, 4)) lens[i] = draw(d, 0, rows[i] + 2);
  }
  t->n = 0;
  t->n = (size_t)snprintf(t->id, sizeof t->id, "decode:%s:b%d,h%d",
                          format_of(d, f64), b, draw(d, 1, 5));
  say_list(t, b > 1 ? "q=" : "q", rows, b);
  say(t, ",page%d", page);
  say_list(t, "len=", lens, b);
  say(t, ",l%d", 8 * draw(d, 1, 5));
  say(t, ",r%d", 8 * draw(d, 1, 2));
  if (full) say(t, ",full", 0);
  say_options(t, d);
  if (one_in(d, 3)) say(t, ",splits=%d", draw(d, 1, 4));
  if (one_in(d, 4)) say(t, ",tail=%d", draw(d, 1, 3));
  if (one_in(d, 4)) say(t, ",width=%d", draw(d, 1, 3));
  if (one_in(d, 4)) say(t, ",loose", 0);
  if (!cascade) return;
  if (one_in(d, 4)) say(t, ",strides=odd", 0);
  if (prefix) say(t, ",prefix=%d", prefix);
  say(t, ",cascade", 0);
}

static void cascade_case(text *t, draws *d, int f64) {
  decode_case(t, d, f64, 1);
}

static void sharded_case(text *t, draws *d, int f64) {
  decode_case(t, d, f64, 0);
  say(t, ",ranks=%d", draw(d, 1, 5));
  say(t, ",interleave=%d", draw(d, 1, one_in(d, 2) ? 3 : 40));
}

static void chunked_case(text *t, draws *d, int f64) {
  int b = draw(d, 1, 4);
  int32_t rows[4], context[4];
  for (int i = 0; i < b; i++) {
    rows[i] = one_in(d, 5) ? 0 : draw(d, 1, 7);
    context[i] = one_in(d, 4) ? 0 : draw(d, 1, one_in(d, 2) ? 12 : 150);
  }
  t->n = (size_t)snprintf(t->id, sizeof t->id, "prefill:%s:b%d,h%d",
                          format_of(d, f64), b, draw(d, 1, 4));
  say_list(t, b > 1 ? "q=" : "q", rows, b);
  say(t, ",page%d", draw(d, 1, 20));
  say_list(t, "ctx=", context, b);
  say(t, ",l%d", 8 * draw(d, 1, 6));
  say(t, ",r%d", 8 * draw(d, 1, 2));
  say(t, ",p%d", 8 * draw(d, 1, 3));
  say(t, ",v%d", 8 * draw(d, 1, 3));
  if (one_in(d, 3)) say(t, ",full", 0);
  say_options(t, d);
  if (!one_in(d, 5)) say(t, ",chunk=%d", draw(d, 1, one_in(d, 2) ? 8 : 100));
  if (one_in(d, 4)) say(t, ",strides=odd", 0);
  if (one_in(d, 4)) say(t, ",tail=%d", draw(d, 1, 3));
  if (one_in(d, 4)) say(t, ",loose", 0);
  say(t, ",chunked", 0);
}

static void (*const makers[])(text *, draws *, int) = {
    cascade_case, sharded_case, chunked_case};

START_TEST(is_the_one_operation) {
  const char *name = backends[_i % 3];
  mla_device *dev = open_backend(name);
  draws d = draws_from((uint64_t)(31 + _i));
  tally counts = {0, 0};
  const int rounds = 16;
  if (!dev) return;
  for (int round = 0; round < rounds; round++) {
    text t = {"", 0};
    makers[_i / 3](&t, &d, strcmp(name, "ref") == 0);
    judge(dev, t.id, (uint64_t)round, &counts);
  }
  ck_assert_int_eq(counts.passed, rounds);
  if (strcmp(name, "far") == 0) ck_assert(far_runs() > 3 * rounds);
  mla_close(dev);
}
END_TEST

/* Pages and prefixes at their edges, the sizes of a model, long and short. */
static const char *const edges[] = {
    "decode:bf16:b1,h16,q1,page64,len=64,prefix=64,cascade",
    "decode:bf16:b3,h16,q1,page64,len=64+65+128,prefix=64,cascade",
    "decode:bf16:b3,h16,q1,page64,len=64+65+128,prefix=63,cascade",
    "decode:bf16:b3,h4,q=2+0+3,page16,len=34+0+35,l64,r16,prefix=33,cascade",
    "decode:f32:b2,h3,q1,page1,len=40+41,l32,r8,prefix=40,cascade,base2,sink",
    "decode:f16:b2,h2,q2,page8,len=5,l32,r8,cascade",
    "decode:bf16:b2,h16,q1,page64,len=300+17,ranks=4,interleave=1",
    "decode:bf16:b2,h16,q1,page64,len=300+17,ranks=3,interleave=64",
    "decode:bf16:b2,h4,q4,page16,len=3+64,l64,r16,ranks=2,interleave=16",
    "decode:f32:b1,h2,q1,page16,len=5,l32,r8,ranks=8,interleave=16,sink",
    "prefill:bf16:b2,h16,q=3+1,ctx=200+0,chunk=64,chunked",
    "prefill:bf16:b3,h2,q=0+2+5,page8,ctx=9+0+31,l64,r16,p32,v16,sink,chunked",
    "prefill:f32:b1,h2,q1,page16,ctx=33,l32,r8,p16,v16,chunk=1,chunked",
    "prefill:f32:b1,h2,q4,page16,ctx=0,l32,r8,p16,v16,chunked",
};

START_TEST(edges_hold) {
  mla_device *dev = open_backend(backends[_i]);
  tally counts = {0, 0};
  int n = (int)(sizeof edges / sizeof edges[0]);
  if (!dev) return;
  for (int i = 0; i < n; i++) judge(dev, edges[i], 5, &counts);
  ck_assert_int_eq(counts.passed, n);
  mla_close(dev);
}
END_TEST

/* What cannot be kept is refused before, with the part and the reason. */
START_TEST(refusals) {
  mla_device *dev = open_backend("ref");
  tally counts = {0, 0};
  judge(dev, "decode:f32:b2,h1,q1,page16,len=5,l32,r8,invariant,cascade", 1,
        &counts);
  ck_assert_int_eq(counts.refused, 1);
  judge(dev, "decode:f32:b2,h1,q1,page16,len=5,l32,r8,invariant,ranks=2", 1,
        &counts);
  judge(dev, "prefill:f32:b2,h1,q1,ctx=9,l32,r8,invariant,chunk=4,chunked", 1,
        &counts);
  ck_assert_int_eq(counts.passed, 2);
  mla_close(dev);
}
END_TEST

START_TEST(contradictions) {
  static const struct {
    const char *id, *says;
  } bad[] = {
      {"decode:f32:b2,h1,q1,page16,len=5,prefix=6", "sees 5 keys"},
      {"decode:f32:b2,h1,q2,page16,len=6,prefix=6", "sees 5 keys"},
      {"decode:f32:b1,h1,q1,page16,len=5,prefix=2,dist=exact", "dist=exact"},
      {"decode:f32:b1,h1,q1,page16,len=5,cascade,ranks=2", "two compositions"},
      {"decode:f32:b1,h1,q1,page16,len=5,ranks=2,crowd", "once at a time"},
      {"decode:f32:b1,h1,q1,page16,len=5,interleave=2", "needs ranks"},
      {"decode:f32:b1,h1,q1,page16,len=5,gap=3,ranks=2", "dense"},
      {"prefill:f32:b1,h1,q1,chunked", "needs ctx"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    mla_error err = mla_error_init();
    mla_case c;
    ck_assert_int_eq(mla_case_parse(bad[i].id, &c, &err), MLA_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, bad[i].says) != NULL, "%s: %s", bad[i].id,
                  err.message);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("composed");
  TCase *tcase = tcase_create("judged");
  tcase_set_timeout(tcase, 60);
  tcase_add_loop_test(tcase, is_the_one_operation, 0, 9);
  tcase_add_loop_test(tcase, edges_hold, 0, 3);
  tcase_add_test(tcase, refusals);
  tcase_add_test(tcase, contradictions);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
