/*
 * cmd_info.c - mlacheck info.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "info_matrix.h"
#include "info_why.h"
#include "options.h"
#include "support.h"
#include "target.h"

static const char help[] =
    "mlacheck info - backends and devices here, and what they support\n"
    "\n"
    "usage: mlacheck info [--backend NAME] [--plugin PATH] [--cpu-mask LEVEL]"
    " [-v]\n"
    "       mlacheck info --matrix [--backend NAME] [--plugin PATH]\n"
    "       mlacheck info --why CASE [--plugin PATH] [--memory SPACE]\n"
    "                     [--determinism WORD] [--capture]\n"
    "\n"
    "The list says for which formats a backend's query answers yes to a plain\n"
    "problem of each operation; -v adds the kernel's name, or the reason of a\n"
    "no. --cpu-mask asks the cpu backend with kernels up to a level only.\n"
    "--matrix is the same as a Markdown table, backends beside each other.\n"
    "--why names every backend for a case, the best first, and why it was\n"
    "refused; SPACE is host, cuda or rocm, WORD none, run-to-run or\n"
    "batch-invariant, --capture wants a run that can be captured.\n";

static void print_details(mla_device *device, int row) {
  mla_answer answer;
  for (int32_t f = 1; mla_format_name(f); f++) {
    support_answer said = support_ask(device, row, f, &answer);
    if (said != SUPPORT_NONE)
      printf("      %-12s %s\n", mla_format_name(f),
             said == SUPPORT_YES ? answer.kernel : answer.reason);
  }
}

#define NAME_COLUMNS 32
#define COLUMNS 79

/* "f32, f16, ..." behind a name, on as many lines as it takes. */
static void print_list(const char *text) {
  size_t column = NAME_COLUMNS;
  while (*text) {
    size_t n = strcspn(text, " ");
    if (column + n + 1 > COLUMNS) {
      printf("\n%*s", NAME_COLUMNS, "");
      column = NAME_COLUMNS;
    }
    printf("%s%.*s", column > NAME_COLUMNS ? " " : "", (int)n, text);
    column += n + 1;
    text += n;
    text += strspn(text, " ");
  }
  printf("\n");
}

static void print_support(mla_device *device, int verbose) {
  char formats[320];
  for (int row = 0; support_row(row); row++) {
    support_list(device, row, formats, sizeof formats);
    printf("    %-27s ", support_row(row));
    print_list(formats);
    if (verbose) print_details(device, row);
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
  print_support(device, r->verbose);
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
  const char *plugin = NULL, *mask = NULL, *why = NULL;
  const mla_backend *loaded = NULL;
  mla_error err = mla_error_init();
  info_request r = {NULL, NULL, 0};
  char options[64];
  why_wish wish = {NULL, NULL, 0};
  int want_help = 0, matrix = 0, shown = 0, opened = 0;
  const option table[] = {{"--backend", OPTION_TEXT, &r.name},
                          {"--plugin", OPTION_TEXT, &plugin},
                          {"--cpu-mask", OPTION_TEXT, &mask},
                          {"--matrix", OPTION_FLAG, &matrix},
                          {"--why", OPTION_TEXT, &why},
                          {"--memory", OPTION_TEXT, &wish.memory},
                          {"--determinism", OPTION_TEXT, &wish.determinism},
                          {"--capture", OPTION_FLAG, &wish.capture},
                          {"--verbose", OPTION_FLAG, &r.verbose},
                          {"--help", OPTION_FLAG, &want_help},
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
  if (why) return info_why(why, &wish);
  if (loaded && !r.name) r.name = loaded->name;
  if (matrix) return info_matrix(r.name);
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
