/*
 * invalid.c - making a call that must be refused, and looking at the refusal.
 */
#include "invalid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "fields.h"
#include "place.h"
#include "tensor.h"

/* ---------------------------------------------------------------- reading */

static mla_status no_change(const char *text, const char *why, mla_error *err) {
  return mla_fail(err, MLA_INVALID_ARGUMENT, "case", "change \"%.100s\": %s",
                  text, why);
}

static int32_t status_from_name(const char *name) {
  for (int32_t s = MLA_INVALID_ARGUMENT; s <= MLA_VERSION_MISMATCH; s++)
    if (strcmp(mla_status_name((mla_status)s), name) == 0) return s;
  return -1;
}

static int take(char *to, size_t size, const char *from, size_t n) {
  if (n >= size) return 0;
  memcpy(to, from, n);
  to[n] = '\0';
  return 1;
}

/* "[0]" or "[0,1]" at the end of a path. */
static int read_indices(const char *text, mla_change *c) {
  long long a, b;
  char end;
  c->indices = sscanf(text, "[%lld,%lld%c", &a, &b, &end);
  if (c->indices == 3 && end == ']')
    c->indices = 2;
  else if (sscanf(text, "[%lld%c", &a, &end) == 2 && end == ']')
    c->indices = 1;
  else
    return 0;
  c->index[0] = a;
  c->index[1] = c->indices == 2 ? b : 0;
  return 1;
}

static int read_path(mla_change *c) {
  const char *path = c->path;
  size_t n = strcspn(path, ".[");
  if (!take(c->object, sizeof c->object, path, n)) return 0;
  path += n;
  if (*path == '.') {
    n = strcspn(++path, "[");
    if (!take(c->member, sizeof c->member, path, n)) return 0;
    path += n;
  }
  return *path == '\0' || read_indices(path, c);
}

static int object_is(const mla_change *c, const char *name) {
  return strcmp(c->object, name) == 0;
}

static int is_problem(const mla_change *c) {
  return object_is(c, "problem") || object_is(c, "limits");
}

/* What the specification says of such a change. */
static void set_expectation(mla_change *c) {
  const char *field = is_problem(c) ? c->member : c->object;
  c->status = MLA_INVALID_ARGUMENT;
  if (object_is(c, "workspace")) {
    c->status = MLA_WORKSPACE_TOO_SMALL;
    field = "workspace_bytes";
  }
  snprintf(c->field, sizeof c->field, "%.31s", field);
}

static int read_expectation(const char *text, mla_change *c) {
  char name[40];
  size_t n = strcspn(text, ":");
  if (!take(name, sizeof name, text, n)) return 0;
  c->status = status_from_name(name);
  if (text[n] == ':' &&
      !take(c->field, sizeof c->field, text + n + 1, strlen(text + n + 1)))
    return 0;
  return c->status > 0;
}

static int names_something(const mla_change *c) {
  static const char *const members[] = {"data", "dtype", "rank", "shape",
                                        "stride"};
  if (object_is(c, "problem"))
    return mla_field_find(mla_problem_fields, c->member) && !c->indices;
  if (object_is(c, "limits"))
    return mla_field_find(mla_limits_fields, c->member) && !c->indices;
  if (object_is(c, "workspace")) return !c->member[0] && !c->indices;
  if (mla_slot_from_name(c->object) < 0) return 0;
  if (!c->member[0]) return c->indices > 0;
  for (int i = 0; i < 5; i++)
    if (strcmp(members[i], c->member) == 0)
      return c->indices == (i >= 3) && c->index[0] >= 0 &&
             c->index[0] < MLA_MAX_RANK;
  return 0;
}

mla_status mla_change_parse(const char *text, mla_change *c, mla_error *err) {
  size_t eq = strcspn(text, "="), end;
  memset(c, 0, sizeof *c);
  if (!text[eq]) return no_change(text, "it has no \"=\"", err);
  end = eq + 1 + strcspn(text + eq + 1, ":");
  if (!take(c->path, sizeof c->path, text, eq) ||
      !take(c->value, sizeof c->value, text + eq + 1, end - eq - 1) ||
      !read_path(c))
    return no_change(text, "its left side is no path", err);
  if (!names_something(c))
    return no_change(text, "nothing of that name can be set", err);
  set_expectation(c);
  if (text[end] == ':' && !read_expectation(text + end + 1, c))
    return no_change(text, "behind \":\" stands no status", err);
  return MLA_OK;
}

/* --------------------------------------------------------------- changing */

/* A call on its way to be refused. */
typedef struct refusal {
  mla_device *device;
  const mla_vector *v;
  const mla_change *c;
  mla_verdict *verdict;
  mla_problem problem;
  mla_limits limits;
  mla_answer answer;
  mla_plan *plan;
  mla_place place;
  mla_error err;
} refusal;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int
end(refusal *r, int32_t kind, const char *format, ...) {
  va_list args;
  r->verdict->kind = kind;
  va_start(args, format);
  vsnprintf(r->verdict->reason, sizeof r->verdict->reason, format, args);
  va_end(args);
  return 0;
}

static int bad_value(refusal *r) {
  return end(r, MLA_VERDICT_ERROR, "\"%s\" is no value of %s", r->c->value,
             r->c->path);
}

static int set_element(refusal *r, const mla_tensor *t) {
  char *stop;
  int64_t value = strtoll(r->c->value, &stop, 0), at = 0;
  if (*stop || t->rank != r->c->indices) return bad_value(r);
  for (int a = 0; a < r->c->indices; a++) {
    if (r->c->index[a] < 0 || r->c->index[a] >= t->shape[a])
      return end(r, MLA_VERDICT_ERROR, "%s lies outside the tensor",
                 r->c->path);
    at += r->c->index[a] * t->stride[a];
  }
  mla_put_int(t->data, t->dtype, at, value);
  return 1;
}

static int set_tensor(refusal *r, mla_tensor *t) {
  const mla_change *c = r->c;
  char *stop;
  int64_t value = strtoll(c->value, &stop, 0);
  int number = *stop == '\0';
  if (strcmp(c->member, "data") == 0 && strcmp(c->value, "null") == 0)
    t->data = NULL;
  else if (strcmp(c->member, "data") == 0 && number)
    t->data = (char *)t->data + value;
  else if (strcmp(c->member, "dtype") == 0)
    t->dtype = number ? (int32_t)value : mla_dtype_from_name(c->value);
  else if (!number)
    return bad_value(r);
  else if (strcmp(c->member, "rank") == 0)
    t->rank = (int32_t)value;
  else if (strcmp(c->member, "shape") == 0)
    t->shape[c->index[0]] = value;
  else
    t->stride[c->index[0]] = value;
  return 1;
}

/* --------------------------------------------------------------- refusals */

static int check_refusal(refusal *r, mla_status status, const char *where) {
  const mla_change *c = r->c;
  if ((int32_t)status != c->status)
    return end(r, MLA_VERDICT_FAIL, "%s returns %s, %s was to be expected",
               where, mla_status_name(status),
               mla_status_name((mla_status)c->status));
  if (!r->err.message[0])
    return end(r, MLA_VERDICT_FAIL, "%s refuses without a sentence", where);
  if (strcmp(r->err.field, c->field) != 0)
    return end(r, MLA_VERDICT_FAIL,
               "%s blames \"%s\", but \"%s\" was wrong: %s", where,
               r->err.field, c->field, r->err.message);
  return 1;
}

static int check_untouched(refusal *r) {
  if (mla_place_fetch(&r->place, &r->err) != MLA_OK)
    return end(r, MLA_VERDICT_FAIL, "after the refusal: %s", r->err.message);
  for (int s = 0; s < MLA_T_COUNT; s++) {
    if (!(r->v->role[s] & MLA_ROLE_OUT)) continue;
    size_t n = (size_t)mla_tensor_extent(&r->v->tensor[s]);
    if (memcmp(mla_place_bytes(&r->place, s), r->v->tensor[s].data, n) == 0)
      continue;
    return end(r, MLA_VERDICT_FAIL, "the call is refused, but %s was written",
               mla_slot_name(s));
  }
  return 1;
}

/* The description is wrong: query and plan must both say so. */
static int refuse_description(refusal *r) {
  int limits = object_is(r->c, "limits");
  const mla_field *f = mla_field_find(
      limits ? mla_limits_fields : mla_problem_fields, r->c->member);
  void *object = limits ? (void *)&r->limits : (void *)&r->problem;
  if (!mla_field_set(f, object, r->c->value)) return bad_value(r);
  mla_status status =
      mla_query(r->device, &r->problem, &r->limits, &r->answer, &r->err);
  if (r->c->status == MLA_UNSUPPORTED) {
    if (status != MLA_OK || r->answer.supported)
      return end(r, MLA_VERDICT_FAIL, "query does not say no, but %s",
                 status == MLA_OK ? "yes" : r->err.message);
    if (!r->answer.reason[0])
      return end(r, MLA_VERDICT_FAIL, "query says no without a reason");
  } else if (!check_refusal(r, status, "query")) {
    return 0;
  }
  r->err = mla_error_init();
  status =
      mla_plan_create(r->device, &r->problem, &r->limits, &r->plan, &r->err);
  if (r->c->status != MLA_UNSUPPORTED) return check_refusal(r, status, "plan");
  return status == MLA_UNSUPPORTED && r->err.message[0]
             ? 1
             : end(r, MLA_VERDICT_FAIL, "plan returns %s after a no",
                   mla_status_name(status));
}

/* The valid call, up to the run. */
static int prepare(refusal *r) {
  mla_status status =
      mla_query(r->device, &r->problem, &r->limits, &r->answer, &r->err);
  if (status == MLA_OK && !r->answer.supported)
    return end(r, MLA_VERDICT_UNSUPPORTED, "%s", r->answer.reason);
  if (status == MLA_OK)
    status =
        mla_plan_create(r->device, &r->problem, &r->limits, &r->plan, &r->err);
  if (status != MLA_OK)
    return end(r, MLA_VERDICT_FAIL, "the valid call is refused with %s: %s",
               mla_status_name(status), r->err.message);
  status = mla_place_new(r->device, r->v, &r->answer, 0, &r->place, &r->err);
  if (status == MLA_OK)
    status = mla_place_fill(&r->place, MLA_POISON_NAN, MLA_SIDE_END, &r->err);
  if (status != MLA_OK) return end(r, MLA_VERDICT_ERROR, "%s", r->err.message);
  return 1;
}

static int is_content(const mla_change *c) {
  return !is_problem(c) && !object_is(c, "workspace") && !c->member[0];
}

/* Rows of logits are too short by the contents of seq_lens. */
static int follows_content(const mla_change *c) {
  return is_content(c) ||
         (object_is(c, "logits") && strcmp(c->member, "shape") == 0);
}

/* Contents that lie on a device cannot be seen, and so not refused. */
static int contents_are_seen(refusal *r) {
  mla_device_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  if (mla_device_describe(r->device, &info, &r->err) == MLA_OK &&
      info.memory_space == MLA_MEMORY_HOST)
    return 1;
  r->verdict->excused = 1;
  return end(r, MLA_VERDICT_UNSUPPORTED,
             "contents on the device cannot be checked");
}

static int refuse_arguments(refusal *r) {
  uint64_t bytes;
  int32_t slot = mla_slot_from_name(r->c->object);
  if (follows_content(r->c) && !contents_are_seen(r)) return 0;
  if (!prepare(r)) return 0;
  bytes = r->answer.workspace_bytes;
  if (object_is(r->c, "workspace")) {
    r->verdict->excused = !bytes;
    if (!bytes)
      return end(r, MLA_VERDICT_UNSUPPORTED, "this kernel needs no workspace");
    bytes -= 1;
  } else if (is_content(r->c)) {
    if (!set_element(r, &r->place.tensor[slot])) return 0;
  } else if (!set_tensor(r, &r->place.tensor[slot])) {
    return 0;
  }
  mla_args args = mla_place_args(&r->place);
  r->err = mla_error_init();
  mla_status status = mla_run(r->plan, &args, mla_place_workspace(&r->place),
                              bytes, NULL, &r->err);
  return check_refusal(r, status, "run") && check_untouched(r);
}

void mla_judge_invalid(mla_device *device, const mla_vector *v,
                       const mla_change *change, mla_verdict *verdict) {
  refusal r;
  memset(&r, 0, sizeof r);
  memset(verdict, 0, sizeof *verdict);
  r.device = device;
  r.v = v;
  r.c = change;
  r.verdict = verdict;
  r.problem = v->problem;
  /* With hints, a wrong limit would be blamed on them. */
  r.limits = is_problem(change) ? v->limits : mla_vector_limits(v);
  r.answer = mla_answer_init();
  r.err = mla_error_init();
  if (is_problem(change))
    refuse_description(&r);
  else
    refuse_arguments(&r);
  snprintf(verdict->kernel, sizeof verdict->kernel, "%s", r.answer.kernel);
  mla_place_free(&r.place);
  mla_plan_free(r.plan);
}
