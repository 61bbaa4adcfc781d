/*
 * cmd_info.c - mlacheck info.
 */
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "commands.h"
#include "options.h"
#include "target.h"

static const char help[] =
    "mlacheck info - backends and devices here, and what they support\n"
    "\n"
    "usage: mlacheck info [--backend NAME] [--plugin PATH] [--cpu-mask LEVEL]"
    " [-v]\n"
    "                     [--cpu-mask LEVEL]\n"
    "\n"
    "The table says what a backend's query answers to a plain problem of each\n"
    "operation and format; -v adds the kernel's name, or the reason of a no.\n"
    "--cpu-mask asks the cpu backend with kernels up to a level only.\n";

/* A problem that nobody should find exotic. */
static const char *const samples[] = {"kv_write:%s:n8,page64,nb2",
                                      "kv_read:%s:b2,page64,len=70",
                                      "kv_copy:%s:nb4,copies2,page64",
                                      "absorb:%s:h16",
                                      "q_absorb:%s:n4,h16",
                                      "v_expand:%s:n4,h16",
                                      "decode:%s:b2,h16,q1,page64,len=70",
                                      "prefill:%s:b2,h16,q8",
                                      "merge:%s:n4,h16,s2",
                                      "matmul:%s:m4,n64,k64"};
#define SAMPLES ((int)(sizeof samples / sizeof samples[0]))
static const int32_t formats[] = {MLA_CACHE_BF16, MLA_CACHE_F16, MLA_CACHE_F32,
                                  MLA_CACHE_F64};
#define FORMATS ((int)(sizeof formats / sizeof formats[0]))

static int ask(mla_device *device, const char *sample, int32_t format,
               mla_answer *answer) {
  char id[200];
  mla_case c;
  mla_error err = mla_error_init();
  *answer = mla_answer_init();
  snprintf(id, sizeof id, "%.*s%s%s", (int)strcspn(sample, "%"), sample,
           mla_format_name(format), strchr(sample, '%') + 2);
  if (mla_case_parse(id, &c, &err) != MLA_OK) return 0;
  mla_problem problem = mla_case_problem(&c);
  mla_limits limits = mla_case_limits(&c);
  mla_status status = mla_query(device, &problem, &limits, answer, &err);
  if (status != MLA_OK)
    snprintf(answer->reason, sizeof answer->reason, "query fails: %.130s",
             err.message);
  return status == MLA_OK && answer->supported;
}

static void print_matrix(mla_device *device, int verbose) {
  printf("    %-10s", "");
  for (int f = 0; f < FORMATS; f++) printf(" %5s", mla_format_name(formats[f]));
  printf("\n");
  for (int s = 0; s < SAMPLES; s++) {
    printf("    %-10.*s", (int)strcspn(samples[s], ":"), samples[s]);
    for (int f = 0; f < FORMATS; f++) {
      mla_answer answer;
      printf(" %5s",
             ask(device, samples[s], formats[f], &answer) ? "yes" : "-");
    }
    printf("\n");
    for (int f = 0; f < FORMATS && verbose; f++) {
      mla_answer answer;
      int yes = ask(device, samples[s], formats[f], &answer);
      printf("      %-5s %s\n", mla_format_name(formats[f]),
             yes ? answer.kernel : answer.reason);
    }
  }
}

/* What to show, and how much of it. */
typedef struct info_request {
  const char *name;    /* of a backend; NULL: all */
  const char *options; /* for opening it; NULL: none */
  int verbose;
} info_request;

/* 0: it does not open. */
static int print_device(const mla_backend *b, int32_t index,
                        const info_request *r) {
  mla_device_info info;
  mla_error err = mla_error_init();
  mla_device *device = NULL;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  if (mla_open(b->name, index, r->options, &device, &err) != MLA_OK) {
    printf("  device %d  does not open: %s\n", (int)index, err.message);
    return 0;
  }
  if (mla_device_describe(device, &info, &err) == MLA_OK)
    printf("  device %d  %s, %s, %d compute units\n", (int)index, info.name,
           info.arch, (int)info.compute_units);
  print_matrix(device, r->verbose);
  mla_close(device);
  return 1;
}

static int print_backend(const mla_backend *b, const info_request *r) {
  mla_error err = mla_error_init();
  int opened = 0;
  int32_t count = b->device_count(&err);
  printf("%s %s  %s\n", b->name, b->version ? b->version : "",
         b->description ? b->description : "");
  if (count <= 0)
    printf("  no device: %s\n", err.message[0] ? err.message : "no reason");
  for (int32_t i = 0; i < count; i++) opened += print_device(b, i, r);
  return opened;
}

int cmd_info(int argc, char **argv) {
  const char *plugin = NULL, *mask = NULL;
  const mla_backend *loaded = NULL;
  mla_error err = mla_error_init();
  info_request r = {NULL, NULL, 0};
  char options[64];
  int want_help = 0, shown = 0, opened = 0;
  const option table[] = {{"--backend", OPTION_TEXT, &r.name},
                          {"--plugin", OPTION_TEXT, &plugin},
                          {"--cpu-mask", OPTION_TEXT, &mask},
                          {"-v", OPTION_FLAG, &r.verbose},
                          {"--help", OPTION_FLAG, &want_help},
                          {"-h", OPTION_FLAG, &want_help},
                          {NULL, 0, NULL}};
  if (!options_read("info", argc, argv, table, NULL)) return EXIT_USAGE;
  if (want_help) return fputs(help, stdout), EXIT_SATISFIED;
  if (mask && ((r.name && strcmp(r.name, "cpu") != 0) || plugin))
    return usage_error("info", "--cpu-mask is for the backend \"cpu\"");
  if (!target_load_environment("info")) return EXIT_ENVIRONMENT;
  if (plugin && mla_plugin_load(plugin, &loaded, &err) != MLA_OK) {
    fprintf(stderr, "mlacheck info: %s\n", err.message);
    return EXIT_ENVIRONMENT;
  }
  if (loaded && !r.name) r.name = loaded->name;
  if (mask) {
    r.name = "cpu";
    r.options = options;
    snprintf(options, sizeof options, "isa=%s", mask);
  }
  printf("mlacheck %s, interface %d.%d\n", mla_version(), MLA_ABI_MAJOR,
         MLA_ABI_MINOR);
  for (size_t i = 0; i < mla_backend_count(); i++) {
    const mla_backend *b = mla_backend_at(i);
    if (r.name && strcmp(r.name, b->name) != 0) continue;
    opened += print_backend(b, &r);
    shown++;
  }
  if (!shown)
    fprintf(stderr, "mlacheck info: there is no backend \"%s\"\n", r.name);
  return shown && (opened || !mask) ? EXIT_SATISFIED : EXIT_ENVIRONMENT;
}
