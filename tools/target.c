/*
 * target.c - opening the backend that is asked for.
 */
#include "target.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "planted.h"
#include "registry.h"

static int environment_error(const char *command, const mla_error *err) {
  fprintf(stderr, "mlacheck %s: %s\n", command, err->message);
  return EXIT_ENVIRONMENT;
}

int target_load_environment(const char *command) {
  mla_error err = mla_error_init();
  if (mla_plugins_from_env(&err) == MLA_OK) return 1;
  environment_error(command, &err);
  return 0;
}

static const char *default_backend(void) {
  return mla_backend_find("cpu") ? "cpu" : "ref";
}

/* The model kernel of the self-test, to see what a failure looks like. */
static mla_status enter_planted(const char *name, mla_error *err) {
  const mla_backend *entered;
  if (!name || strcmp(name, "planted") != 0) return MLA_OK;
  return mla_registry_add(mla_planted_backend(MLA_ABI_MAJOR, MLA_ABI_MINOR),
                          "the self-test", &entered, err);
}

/* A mask is one more option of the cpu backend; nobody else knows it. */
static int join_mask(const char *command, target *t) {
  if (!t->cpu_mask) return EXIT_SATISFIED;
  if (strcmp(t->backend, "cpu") != 0)
    return usage_error(command, "--cpu-mask is for the backend \"cpu\"");
  const char *rest = t->options ? t->options : "";
  int n = snprintf(t->joined, sizeof t->joined, "%s%sisa=%s", rest,
                   *rest ? ";" : "", t->cpu_mask);
  if (n < 0 || (size_t)n >= sizeof t->joined)
    return usage_error(command, "--options is too long");
  t->options = t->joined;
  return EXIT_SATISFIED;
}

int target_find(const char *command, target *t) {
  mla_error err = mla_error_init();
  const mla_backend *plugin = NULL;
  if (!target_load_environment(command)) return EXIT_ENVIRONMENT;
  if (t->plugin && mla_plugin_load(t->plugin, &plugin, &err) != MLA_OK)
    return environment_error(command, &err);
  if (!t->backend) t->backend = plugin ? plugin->name : default_backend();
  if (enter_planted(t->backend, &err) != MLA_OK)
    return environment_error(command, &err);
  if (t->index > INT32_MAX)
    return usage_error(command, "--device is out of range");
  t->table = mla_backend_find(t->backend);
  if (!t->table && (!strcmp(t->backend, "cuda") || !strcmp(t->backend, "hip")))
    fprintf(stderr,
            "mlacheck %s: \"%s\" is not in this build: configuring said why "
            "(docs/building.md)\n",
            command, t->backend);
  return join_mask(command, t);
}

int target_open(const char *command, target *t) {
  mla_error err = mla_error_init();
  int code = target_find(command, t);
  if (code != EXIT_SATISFIED) return code;
  if (mla_open(t->backend, (int32_t)t->index, t->options, &t->device, &err) !=
      MLA_OK)
    return environment_error(command, &err);
  memset(&t->info, 0, sizeof t->info);
  t->info.size = (uint32_t)sizeof t->info;
  t->described = mla_device_describe(t->device, &t->info, &err) == MLA_OK;
  return EXIT_SATISFIED;
}

void target_close(target *t) {
  mla_close(t->device);
  t->device = NULL;
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void
append(char *text, size_t size, const char *format, ...) {
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, size - used, format, args);
  va_end(args);
}

void target_rerun(const target *t, char *text, size_t size) {
  const char *options = t->options;
  text[0] = '\0';
  append(text, size, "mlacheck run");
  if (t->plugin)
    append(text, size, " --plugin %s", t->plugin);
  else
    append(text, size, " --backend %s", t->backend);
  if (t->index)
    append(text, size, " --device %llu", (unsigned long long)t->index);
  if (options) append(text, size, " --options '%s'", options);
}
