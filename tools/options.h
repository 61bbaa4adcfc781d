/*
 * options.h - the command line of a command, by a table.
 */
#ifndef MLA_TOOL_OPTIONS_H
#define MLA_TOOL_OPTIONS_H

#include <stdint.h>

enum {
  EXIT_SATISFIED = 0,
  EXIT_FAILED = 1,
  EXIT_USAGE = 2,
  EXIT_ENVIRONMENT = 3,
  EXIT_NOTHING = 77
};

#define MOST_VALUES 256

typedef enum option_kind {
  OPTION_FLAG,  /* int *: set to 1 */
  OPTION_TEXT,  /* const char ** */
  OPTION_COUNT, /* uint64_t * */
  OPTION_LIST   /* text_list *: may stand several times, with several words */
} option_kind;

typedef struct text_list {
  int32_t count;
  const char *value[MOST_VALUES];
} text_list;

typedef struct option {
  const char *name; /* "--backend" */
  int kind;
  void *to;
} option;

/*
 * Reads argv[0, argc) by a table that ends with a NULL name; words that are
 * no options go to `rest` (may be NULL: an error). "-h" and "-v" stand for
 * "--help" and "--verbose" of the table. 0: a usage error, said on stderr.
 */
int options_read(const char *command, int argc, char **argv,
                 const option *table, text_list *rest);

/* A usage error: a sentence on stderr; returns EXIT_USAGE. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int usage_error(const char *command, const char *format, ...);

#endif
