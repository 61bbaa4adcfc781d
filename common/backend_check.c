/*
 * backend_check.c - is a backend's table one that libmla can call?
 *
 * All that is known of a table before it passes is its size, so nothing past
 * that is read.
 */
#include <string.h>

#include "error.h"
#include "registry.h"

/* Every member function by its place in the table, with its group; run_prefix
   has none: it is there or not. */
enum { REQUIRED, MEMORY, STREAM, GRAPH, EVENT, GROUPS };
static const char *const group_names[GROUPS] = {"required", "memory", "stream",
                                                "graph", "event"};
typedef struct member {
  const char *name;
  size_t offset;
  int group;
} member;
#define MEMBER(name, group) \
  { #name, offsetof(mla_backend, name), group }
static const member members[] = {
    MEMBER(device_count, REQUIRED), MEMBER(device_info, REQUIRED),
    MEMBER(open, REQUIRED),         MEMBER(close, REQUIRED),
    MEMBER(query, REQUIRED),        MEMBER(plan, REQUIRED),
    MEMBER(run, REQUIRED),          MEMBER(plan_free, REQUIRED),
    MEMBER(mem_alloc, MEMORY),      MEMBER(mem_free, MEMORY),
    MEMBER(mem_to_device, MEMORY),  MEMBER(mem_to_host, MEMORY),
    MEMBER(stream_create, STREAM),  MEMBER(stream_destroy, STREAM),
    MEMBER(stream_sync, STREAM),    MEMBER(capture_begin, GRAPH),
    MEMBER(capture_end, GRAPH),     MEMBER(graph_launch, GRAPH),
    MEMBER(graph_free, GRAPH),      MEMBER(event_create, EVENT),
    MEMBER(event_record, EVENT),    MEMBER(event_elapsed, EVENT),
    MEMBER(event_free, EVENT),
};
#define MEMBERS (sizeof members / sizeof members[0])

/* Function pointers have one size and NULL is all zero bits on every platform
   with shared objects. */
static int has_member(const mla_backend *table, const member *m) {
  void (*function)(void) = NULL;
  if (m->offset + sizeof function > table->size) return 0;
  memcpy(&function, (const char *)table + m->offset, sizeof function);
  return function != NULL;
}

static mla_status check_version(const mla_backend *table, const char *origin,
                                mla_error *err) {
  if (table->size >= offsetof(mla_backend, name) &&
      table->major != MLA_ABI_MAJOR)
    return mla_fail(err, MLA_VERSION_MISMATCH, "major",
                    "%s has interface %u.%u, this libmla needs major %d",
                    origin, table->major, table->minor, MLA_ABI_MAJOR);
  if (table->size < offsetof(mla_backend, mem_alloc))
    return mla_fail(err, MLA_VERSION_MISMATCH, "size",
                    "the table of %s has %u bytes, the required members take "
                    "%u",
                    origin, table->size,
                    (unsigned)offsetof(mla_backend, mem_alloc));
  return MLA_OK;
}

static mla_status check_name(const mla_backend *table, const char *origin,
                             mla_error *err) {
  const char *name = table->name;
  if (!name || !*name)
    return mla_fail(err, MLA_INVALID_ARGUMENT, "name",
                    "the name in the table of %s is %s", origin,
                    name ? "empty" : "NULL");
  if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")])
    return mla_fail(err, MLA_INVALID_ARGUMENT, "name",
                    "%s calls itself \"%s\"; a name is of a-z, 0-9, _ and -",
                    origin, name);
  return MLA_OK;
}

/* Counts the members of each group; a required one must be there. */
static mla_status count_groups(const mla_backend *table, const char *origin,
                               int have[GROUPS], int want[GROUPS],
                               const char *missing[GROUPS], mla_error *err) {
  for (size_t i = 0; i < MEMBERS; i++) {
    int group = members[i].group;
    want[group]++;
    if (has_member(table, &members[i]))
      have[group]++;
    else
      missing[group] = members[i].name;
  }
  if (have[REQUIRED] < want[REQUIRED])
    return mla_fail(err, MLA_INVALID_ARGUMENT, missing[REQUIRED],
                    "%s has no %s, which is required", origin,
                    missing[REQUIRED]);
  return MLA_OK;
}

static mla_status check_groups(const mla_backend *table, const char *origin,
                               mla_error *err) {
  int have[GROUPS] = {0}, want[GROUPS] = {0};
  const char *missing[GROUPS] = {0};
  mla_status st = count_groups(table, origin, have, want, missing, err);
  if (st != MLA_OK) return st;
  for (int g = MEMORY; g < GROUPS; g++) {
    if (have[g] && have[g] < want[g])
      return mla_fail(err, MLA_INVALID_ARGUMENT, missing[g],
                      "%s has %d of the %d %s members, %s is missing; a group "
                      "is whole or absent",
                      origin, have[g], want[g], group_names[g], missing[g]);
    if (g > MEMORY && have[g] && !have[MEMORY])
      return mla_fail(err, MLA_INVALID_ARGUMENT, "mem_alloc",
                      "%s has %s members, but no memory members", origin,
                      group_names[g]);
  }
  return MLA_OK;
}

mla_status mla_backend_check(const mla_backend *table, const char *origin,
                             mla_error *err) {
  if (!table)
    return mla_fail(err, MLA_VERSION_MISMATCH, "major",
                    "%s has no table for interface %d.%d", origin,
                    MLA_ABI_MAJOR, MLA_ABI_MINOR);
  mla_status st = check_version(table, origin, err);
  if (st == MLA_OK) st = check_name(table, origin, err);
  if (st == MLA_OK) st = check_groups(table, origin, err);
  return st;
}
