/* Which backends there are, and which tables are refused. */
#include <string.h>

#include "check_main.h"
#include "registry.h"
#include "witness.h"

static mla_status add(const mla_backend *table, const mla_backend **found,
                      mla_error *err) {
  *err = mla_error_init();
  return mla_registry_add(table, "a table", found, err);
}

/* Refused, with field and a word of the sentence; nothing is entered. */
static void refused(const mla_backend *table, mla_status status,
                    const char *field, const char *says) {
  const mla_backend *found = NULL;
  size_t before = mla_backend_count();
  mla_error err;
  mla_status st = add(table, &found, &err);
  ck_assert_msg(st == status, "%s: %s %s", field, mla_status_name(st),
                err.message);
  ck_assert_str_eq(err.field, field);
  ck_assert_msg(strstr(err.message, says) != NULL, "\"%s\" is not in: %s", says,
                err.message);
  ck_assert_ptr_nonnull(strstr(err.message, "a table"));
  ck_assert_uint_eq(mla_backend_count(), before);
}

START_TEST(ref_is_always_there) {
  ck_assert_uint_ge(mla_backend_count(), 1);
  const mla_backend *ref = mla_backend_find("ref");
  ck_assert_ptr_nonnull(ref);
  ck_assert_str_eq(ref->name, "ref");
  ck_assert_uint_eq(ref->major, MLA_ABI_MAJOR);
  ck_assert_ptr_null(mla_backend_find("no-such"));
  ck_assert_ptr_null(mla_backend_find(NULL));
  ck_assert_ptr_null(mla_backend_at(mla_backend_count()));
  for (size_t i = 0; i < mla_backend_count(); i++) {
    mla_error err = mla_error_init();
    const mla_backend *b = mla_backend_at(i);
    ck_assert_msg(mla_backend_check(b, "built in", &err) == MLA_OK, "%s",
                  err.message);
    ck_assert_ptr_eq(mla_backend_find(b->name), b);
  }
}
END_TEST

START_TEST(a_table_is_entered_once) {
  static mla_backend table;
  const mla_backend *found = NULL, *again = NULL;
  mla_error err;
  table = witness_table("once", 1);
  size_t before = mla_backend_count();
  ck_assert_int_eq(add(&table, &found, &err), MLA_OK);
  ck_assert_uint_eq(mla_backend_count(), before + 1);
  ck_assert_ptr_eq(mla_backend_find("once"), found);
  ck_assert_ptr_eq(mla_backend_at(before), found);
  ck_assert_ptr_ne(found, &table);
  ck_assert_int_eq(add(&table, &again, &err), MLA_OK);
  ck_assert_ptr_eq(again, found);
  ck_assert_uint_eq(mla_backend_count(), before + 1);
}
END_TEST

START_TEST(names_are_unique) {
  static mla_backend first, second, ref;
  const mla_backend *found = NULL;
  mla_error err;
  first = witness_table("twin", 0);
  second = witness_table("twin", 0);
  ref = witness_table("ref", 0);
  ck_assert_int_eq(add(&first, &found, &err), MLA_OK);
  refused(&second, MLA_INVALID_ARGUMENT, "name", "twin");
  refused(&ref, MLA_INVALID_ARGUMENT, "name", "\"ref\"");
}
END_TEST

START_TEST(names_have_a_charset) {
  static const char *const bad[] = {"Big", "a b", "a.b", "\xc3\xa4", "a/b"};
  mla_backend table = witness_table(NULL, 0);
  refused(&table, MLA_INVALID_ARGUMENT, "name", "NULL");
  table.name = "";
  refused(&table, MLA_INVALID_ARGUMENT, "name", "empty");
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    table.name = bad[i];
    refused(&table, MLA_INVALID_ARGUMENT, "name", bad[i]);
  }
}
END_TEST

START_TEST(versions_must_match) {
  mla_backend table = witness_table("version", 1);
  refused(NULL, MLA_VERSION_MISMATCH, "major", "1.1");
  table.major = MLA_ABI_MAJOR + 1;
  refused(&table, MLA_VERSION_MISMATCH, "major", "2.1");
  table.size = 8; /* too short for the rest, long enough to tell why */
  refused(&table, MLA_VERSION_MISMATCH, "major", "2.1");
  table.major = MLA_ABI_MAJOR;
  refused(&table, MLA_VERSION_MISMATCH, "size", "8 bytes");
  table.size = 0;
  refused(&table, MLA_VERSION_MISMATCH, "size", "0 bytes");
  table.size = offsetof(mla_backend, mem_alloc) - 1;
  refused(&table, MLA_VERSION_MISMATCH, "size", "required");
}
END_TEST

/* A newer minor is welcome, its table longer or not. */
START_TEST(a_newer_minor_is_taken) {
  static struct {
    mla_backend table;
    void (*more)(void);
  } newer;
  const mla_backend *found = NULL;
  mla_error err;
  newer.table = witness_table("newer", 1);
  newer.table.minor = MLA_ABI_MINOR + 7;
  newer.table.size = (uint32_t)sizeof newer;
  ck_assert_int_eq(add(&newer.table, &found, &err), MLA_OK);
  ck_assert_uint_eq(found->size, sizeof *found);
  ck_assert_uint_eq(found->minor, MLA_ABI_MINOR + 7);
}
END_TEST

/* What lies past a short table is not part of it. */
START_TEST(a_short_table_is_filled_up) {
  static mla_backend table;
  const mla_backend *found = NULL;
  mla_error err;
  table = witness_table("short", 1);
  table.size = offsetof(mla_backend, mem_alloc);
  table.version = table.description = NULL;
  ck_assert_int_eq(add(&table, &found, &err), MLA_OK);
  ck_assert_uint_eq(found->size, sizeof *found);
  ck_assert(found->run == table.run);
  ck_assert(found->mem_alloc == NULL);
  ck_assert(found->event_free == NULL);
  ck_assert_str_eq(found->version, "");
  ck_assert_str_eq(found->description, "");
}
END_TEST

START_TEST(every_required_member_is_required) {
  static const struct {
    const char *name;
    size_t offset;
  } required[] = {
      {"device_count", offsetof(mla_backend, device_count)},
      {"device_info", offsetof(mla_backend, device_info)},
      {"open", offsetof(mla_backend, open)},
      {"close", offsetof(mla_backend, close)},
      {"query", offsetof(mla_backend, query)},
      {"plan", offsetof(mla_backend, plan)},
      {"run", offsetof(mla_backend, run)},
      {"plan_free", offsetof(mla_backend, plan_free)},
  };
  for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
    mla_backend table = witness_table("lacking", 0);
    memset((char *)&table + required[i].offset, 0, sizeof table.run);
    refused(&table, MLA_INVALID_ARGUMENT, required[i].name, required[i].name);
  }
}
END_TEST

/* Any function will do where none is called. */
static void fill(mla_backend *table, size_t offset) {
  memcpy((char *)table + offset, (char *)table + offsetof(mla_backend, plan),
         sizeof table->plan);
}

START_TEST(groups_are_whole) {
  mla_backend table = witness_table("half", 1);
  table.mem_to_host = NULL;
  refused(&table, MLA_INVALID_ARGUMENT, "mem_to_host", "3 of the 4 memory");
  table = witness_table("half", 0);
  fill(&table, offsetof(mla_backend, mem_free));
  refused(&table, MLA_INVALID_ARGUMENT, "mem_to_host", "1 of the 4 memory");
  table = witness_table("half", 1);
  fill(&table, offsetof(mla_backend, stream_sync));
  refused(&table, MLA_INVALID_ARGUMENT, "stream_destroy", "1 of the 3 stream");
  table = witness_table("half", 1);
  fill(&table, offsetof(mla_backend, graph_free));
  refused(&table, MLA_INVALID_ARGUMENT, "graph_launch", "1 of the 4 graph");
  table = witness_table("half", 1);
  fill(&table, offsetof(mla_backend, event_free));
  refused(&table, MLA_INVALID_ARGUMENT, "event_elapsed", "1 of the 4 event");
}
END_TEST

START_TEST(streams_need_memory) {
  mla_backend table = witness_table("no-memory", 0);
  fill(&table, offsetof(mla_backend, stream_create));
  fill(&table, offsetof(mla_backend, stream_destroy));
  fill(&table, offsetof(mla_backend, stream_sync));
  refused(&table, MLA_INVALID_ARGUMENT, "mem_alloc", "stream members");
}
END_TEST

START_TEST(files_that_are_no_plugins) {
  mla_error err = mla_error_init();
  const mla_backend *found = (const mla_backend *)&err;
  ck_assert_int_eq(mla_plugin_load("./no/such/file.so", &found, &err),
                   MLA_NOT_AVAILABLE);
  ck_assert_ptr_null(found);
  ck_assert_ptr_nonnull(strstr(err.message, "no/such/file.so"));
  ck_assert_int_eq(mla_plugin_load("libc.so.6", NULL, &err),
                   MLA_NOT_AVAILABLE); /* the loader's path is not searched */
  ck_assert_ptr_nonnull(strstr(err.message, "libc.so.6 does not load"));
  ck_assert_int_eq(mla_plugin_load(NULL, NULL, &err), MLA_INVALID_ARGUMENT);
  ck_assert_int_eq(mla_plugin_load("", NULL, &err), MLA_INVALID_ARGUMENT);
  char endless[5000];
  memset(endless, 'a', sizeof endless);
  endless[sizeof endless - 1] = 0;
  ck_assert_int_eq(mla_plugin_load(endless, NULL, &err), MLA_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(err.message, "4999"));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("registry");
  TCase *tests = tcase_create("registry");
  tcase_add_test(tests, ref_is_always_there);
  tcase_add_test(tests, a_table_is_entered_once);
  tcase_add_test(tests, names_are_unique);
  tcase_add_test(tests, names_have_a_charset);
  tcase_add_test(tests, versions_must_match);
  tcase_add_test(tests, a_newer_minor_is_taken);
  tcase_add_test(tests, a_short_table_is_filled_up);
  tcase_add_test(tests, every_required_member_is_required);
  tcase_add_test(tests, groups_are_whole);
  tcase_add_test(tests, streams_need_memory);
  tcase_add_test(tests, files_that_are_no_plugins);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
