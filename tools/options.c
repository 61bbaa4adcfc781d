/*
 * options.c - reading a command line.
 */
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int usage_error(const char *command, const char *format, ...) {
  va_list args;
  fprintf(stderr, "mlacheck %s: ", command);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\nTry \"mlacheck %s --help\".\n", command);
  return EXIT_USAGE;
}

/* Wherever a command has the long one, it has the short one too. */
static const struct {
  const char *name, *full;
} short_names[] = {{"-h", "--help"}, {"-v", "--verbose"}};

static const option *find(const option *table, const char *word, size_t n) {
  for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++)
    if (n == 2 && memcmp(short_names[i].name, word, n) == 0)
      return find(table, short_names[i].full, strlen(short_names[i].full));
  for (; table->name; table++)
    if (strlen(table->name) == n && memcmp(table->name, word, n) == 0)
      return table;
  return NULL;
}

static int add(text_list *list, const char *value) {
  if (list->count == MOST_VALUES) return 0;
  list->value[list->count++] = value;
  return 1;
}

static int read_count(const char *text, uint64_t *value) {
  char *end;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  *value = strtoull(text, &end, 0);
  return *end == '\0' && errno == 0;
}

static int set(const option *o, const char *value) {
  switch (o->kind) {
    case OPTION_TEXT: *(const char **)o->to = value; return 1;
    case OPTION_COUNT: return read_count(value, o->to);
    default: return add(o->to, value);
  }
}

/* "-" alone is a word: standard output. */
static int is_option(const char *word) {
  return word[0] == '-' && word[1] != '\0';
}

/* Words behind a list's first, up to the next option, are more of it. */
static int more_of_list(const option *o, int argc, char **argv, int i) {
  while (i < argc && !is_option(argv[i]))
    if (!add(o->to, argv[i++])) break;
  return i;
}

int options_read(const char *command, int argc, char **argv,
                 const option *table, text_list *rest) {
  for (int i = 0; i < argc;) {
    char *word = argv[i++];
    if (!is_option(word)) {
      if (rest && add(rest, word)) continue;
      return usage_error(command, "\"%s\" is one word too many", word), 0;
    }
    const char *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    const option *o = find(table, word, n);
    if (!o) return usage_error(command, "%s is no option", word), 0;
    if (o->kind == OPTION_FLAG) {
      if (eq)
        return usage_error(command, "%.*s takes no value", (int)n, word), 0;
      *(int *)o->to = 1;
      continue;
    }
    if (!eq && (i == argc || (is_option(argv[i]))))
      return usage_error(command, "%s needs a value", o->name), 0;
    const char *value = eq ? eq + 1 : argv[i++];
    if (!set(o, value))
      return usage_error(command, "\"%s\" is no value of %s", value, o->name),
             0;
    if (o->kind == OPTION_LIST && !eq) i = more_of_list(o, argc, argv, i);
  }
  return 1;
}
