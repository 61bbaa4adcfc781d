/* Zones: where tensors lie in them, and what is said of who leaves them. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_main.h"
#include "generate.h"
#include "guard.h"
#include "place.h"
#include "registry.h"

static int to_parent;

/* s390x tells the page of a fault, not the byte. */
#ifdef __s390x__
#define BYTE_IS_TOLD 0
#else
#define BYTE_IS_TOLD 1
#endif

static void tell(const mla_touch *touch) {
  if (write(to_parent, touch, sizeof *touch) != (ssize_t)sizeof *touch)
    _exit(9);
}

/* A child does that to a tensor; -1: it lived, else the signal. */
static int outcome(void (*act)(mla_zone *zone, unsigned char *tensor),
                   uint64_t size, mla_side side, int locked, mla_touch *touch) {
  int ends[2], status = 0;
  memset(touch, 0, sizeof *touch);
  ck_assert_int_eq(pipe(ends), 0);
  pid_t pid = fork();
  if (pid == 0) {
    mla_zone z;
    to_parent = ends[1];
    signal(SIGSEGV, SIG_DFL);
    mla_guard_listen(tell);
    if (mla_zone_take(size, 8, 1, &z, NULL) != MLA_OK) _exit(8);
    unsigned char *tensor =
        side == MLA_SIDE_START ? z.at : z.at + z.bytes - (size + 7) / 8 * 8;
    mla_zone_watch(&z, MLA_T_Q, tensor, size);
    mla_zone_lock(&z, locked);
    act(&z, tensor);
    mla_zone_give(&z);
    _exit(0);
  }
  close(ends[1]);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ssize_t n = read(ends[0], touch, sizeof *touch);
  close(ends[0]);
  if (WIFEXITED(status)) {
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    return -1;
  }
  return n == (ssize_t)sizeof *touch ? WTERMSIG(status) : 0;
}

static void fill_all(mla_zone *z, unsigned char *tensor) {
  memset(tensor, 1, 96);
  memset(z->at, 1, (size_t)z->bytes);
}

static void read_behind(mla_zone *z, unsigned char *tensor) {
  (void)z;
  (void)*(volatile unsigned char *)(tensor + 96);
}

static void read_far_behind(mla_zone *z, unsigned char *tensor) {
  (void)z;
  (void)*(volatile unsigned char *)(tensor + 96 + 70000);
}

static void write_before(mla_zone *z, unsigned char *tensor) {
  (void)z;
  *(volatile unsigned char *)(tensor - 3) = 1;
}

static void write_inside(mla_zone *z, unsigned char *tensor) {
  (void)z;
  *(volatile unsigned char *)(tensor + 5) = 1;
}

static void read_inside(mla_zone *z, unsigned char *tensor) {
  (void)*(volatile unsigned char *)(tensor + 5);
  mla_zone_lock(z, 0);
  tensor[5] = 1;
}

START_TEST(who_leaves_a_closed_zone_is_named) {
  mla_touch touch;
  char text[160];
  if (!mla_guard_is_possible()) return;
  ck_assert_int_eq(outcome(fill_all, 96, MLA_SIDE_END, 0, &touch), -1);
  ck_assert_int_eq(outcome(read_behind, 96, MLA_SIDE_END, 0, &touch), SIGSEGV);
  ck_assert_int_eq(touch.slot, MLA_T_Q);
  ck_assert_int_eq(touch.side, 1);
  ck_assert_int_eq(touch.bytes, 1);
  mla_touch_print(&touch, "read", text, sizeof text);
  ck_assert_str_eq(text, "memory behind q was read, 1 byte past its end");
  ck_assert_int_eq(outcome(read_far_behind, 96, MLA_SIDE_END, 0, &touch),
                   SIGSEGV);
  if (BYTE_IS_TOLD)
    ck_assert_int_eq(touch.bytes, 70001);
  else
    ck_assert(touch.bytes <= 70001 && touch.bytes > 70001 - 4096);
  ck_assert_int_eq(outcome(write_before, 96, MLA_SIDE_START, 0, &touch),
                   SIGSEGV);
  ck_assert_int_eq(touch.side, -1);
  if (!BYTE_IS_TOLD) return;
  ck_assert_int_eq(touch.bytes, 3);
  mla_touch_print(&touch, "touched", text, sizeof text);
  ck_assert_str_eq(text, "memory before q was touched, 3 bytes ahead of it");
}
END_TEST

/* A size that is no multiple of the alignment leaves a gap up to the page. */
START_TEST(a_gap_at_the_end_is_ordinary_memory) {
  mla_touch touch;
  if (!mla_guard_is_possible()) return;
  ck_assert_int_eq(outcome(read_behind, 93, MLA_SIDE_END, 0, &touch), SIGSEGV);
  ck_assert_int_eq(touch.bytes, 4);
  ck_assert_int_eq(outcome(read_behind, 96, MLA_SIDE_START, 0, &touch), -1);
}
END_TEST

START_TEST(locked_zones_are_read_only) {
  mla_touch touch;
  char text[160];
  if (!mla_guard_is_possible()) return;
  ck_assert_int_eq(outcome(read_inside, 96, MLA_SIDE_END, 1, &touch), -1);
  ck_assert_int_eq(outcome(write_inside, 96, MLA_SIDE_END, 1, &touch), SIGSEGV);
  ck_assert_int_eq(touch.side, 0);
  if (!BYTE_IS_TOLD) return;
  mla_touch_print(&touch, "touched", text, sizeof text);
  ck_assert_str_eq(text, "input q was written, at byte 5");
}
END_TEST

START_TEST(zones_are_as_asked) {
  static const uint64_t sizes[] = {0, 1, 96, 4095, 4096, 4097, 70000};
  static const uint64_t units[] = {1, 8, 64, 4096, 65536};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++)
      for (int closed = 0; closed < 2; closed++) {
        mla_zone z;
        ck_assert_int_eq(mla_zone_take(sizes[i], units[k], closed, &z, NULL),
                         MLA_OK);
        ck_assert_uint_eq((uintptr_t)z.at % units[k], 0);
        ck_assert_uint_ge(z.bytes, sizes[i] + 2 * z.margin);
        ck_assert(closed || z.margin >= 4096);
        ck_assert_uint_eq(z.margin % units[k], 0);
        memset(z.at, 0x5a, (size_t)z.bytes);
        mla_zone_give(&z);
      }
  mla_zone z;
  ck_assert_int_eq(mla_zone_take(UINT64_MAX - 5, 1, 1, &z, NULL),
                   MLA_OUT_OF_MEMORY);
  mla_zone_give(&z);
}
END_TEST

/* What lies in the bands is found, whichever side a tensor is on. */
START_TEST(bands_are_where_the_tensor_ends) {
  mla_case c;
  mla_vector v;
  mla_place p;
  mla_device *device;
  mla_answer answer = mla_answer_init();
  ck_assert_int_eq(mla_open("ref", 0, NULL, &device, NULL), MLA_OK);
  ck_assert_int_eq(mla_case_parse("merge:f32:n3,h3,s2", &c, NULL), MLA_OK);
  ck_assert_int_eq(mla_generate(&c, 42, MLA_POISON_NAN, &v, NULL), MLA_OK);
  answer.tensor_alignment = 16;
  answer.workspace_bytes = 20;
  for (int closed = 0; closed < 2; closed++) {
    ck_assert_int_eq(mla_place_new(device, &v, &answer, closed, &p, NULL),
                     MLA_OK);
    for (int side = 0; side < 2; side++) {
      ck_assert_int_eq(mla_place_fill(&p, 0x7e, (mla_side)side, NULL), MLA_OK);
      unsigned char *out = p.tensor[MLA_T_OUT].data;
      int64_t n = (int64_t)p.slot[MLA_T_OUT].size;
      ck_assert_uint_eq((uintptr_t)out % 16, 0);
      ck_assert_int_eq(mla_place_band_hit(&p, MLA_T_OUT, 0x7e), 0);
      ck_assert_mem_eq(out, v.tensor[MLA_T_OUT].data, (size_t)n);
      if (!closed || side == MLA_SIDE_START) {
        out[n] = 0;
        ck_assert_int_eq(mla_place_band_hit(&p, MLA_T_OUT, 0x7e), n);
        out[n] = 0x7e;
      }
      if (!closed || side == MLA_SIDE_END) {
        out[-1] = 0;
        ck_assert_int_eq(mla_place_band_hit(&p, MLA_T_OUT, 0x7e), -1);
      }
      ck_assert_int_eq(mla_place_band_hit(&p, -1, 0x7e), 0);
    }
    mla_place_free(&p);
  }
  mla_vector_free(&v);
  mla_close(device);
}
END_TEST

/* As badly as is allowed: at a multiple of what each needs, and of no more. */
static void expect_awry(mla_device *device, const mla_vector *v, int closed) {
  mla_place p;
  mla_answer answer = mla_answer_init();
  answer.workspace_bytes = 256;
  answer.workspace_alignment = 64;
  ck_assert_int_eq(mla_place_new(device, v, &answer, closed, &p, NULL), MLA_OK);
  for (int side = 0; side < 2; side++) {
    ck_assert_int_eq(mla_place_fill(&p, 0x7e, (mla_side)side, NULL), MLA_OK);
    for (int s = 0; s < MLA_T_COUNT; s++) {
      uintptr_t unit = (uintptr_t)p.slot[s].unit;
      if (!p.slot[s].image) continue;
      ck_assert_uint_eq((uintptr_t)p.tensor[s].data % (2 * unit), unit);
      ck_assert_int_eq(mla_place_band_hit(&p, s, 0x7e), 0);
      ck_assert_mem_eq(p.tensor[s].data, v->tensor[s].data,
                       (size_t)p.slot[s].size);
    }
    ck_assert_uint_eq((uintptr_t)mla_place_workspace(&p) % 128, 64);
  }
  ck_assert_uint_eq(p.slot[MLA_T_Q].unit, 2);
  ck_assert_uint_eq(p.slot[MLA_T_CACHE].unit, 4); /* its scales are f32 */
  mla_place_free(&p);
}

START_TEST(tensors_lie_awry_when_asked) {
  mla_case c;
  mla_vector v;
  mla_device *device;
  ck_assert_int_eq(mla_open("ref", 0, NULL, &device, NULL), MLA_OK);
  ck_assert_int_eq(
      mla_case_parse("decode:fp8_ds_mla:b2,h4,page4,len=5,l128,r8,unaligned",
                     &c, NULL),
      MLA_OK);
  ck_assert_int_eq(mla_generate(&c, 42, MLA_POISON_NAN, &v, NULL), MLA_OK);
  for (int closed = 0; closed < 2; closed++) expect_awry(device, &v, closed);
  mla_vector_free(&v);
  mla_close(device);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("guard");
  TCase *tcase = tcase_create("zones");
  tcase_add_test(tcase, who_leaves_a_closed_zone_is_named);
  tcase_add_test(tcase, a_gap_at_the_end_is_ordinary_memory);
  tcase_add_test(tcase, locked_zones_are_read_only);
  tcase_add_test(tcase, zones_are_as_asked);
  tcase_add_test(tcase, bands_are_where_the_tensor_ends);
  tcase_add_test(tcase, tensors_lie_awry_when_asked);
  suite_add_tcase(suite, tcase);
  return check_main(suite);
}
