/*
 * explain_words.c - what a failure looks like, as a sentence.
 */
#include <stdio.h>
#include <string.h>

#include "dmath.h"
#include "explain.h"

int mla_look_set(mla_look *look, const char *cls, const char *what) {
  snprintf(look->cls, sizeof look->cls, "%s", cls);
  snprintf(look->what, sizeof look->what, "%s", what);
  return 1;
}

/* The parameter that stands in a fault's sentence: "a", "a-th", "2^a", "x". */
static int put_word(const mla_look *look, const char *word, size_t n,
                    char *text, size_t size) {
  int has_a = look->a != 0, last = n && word[n - 1] == ',' ? 1 : 0;
  size_t m = n - (size_t)last;
  const char *comma = last ? "," : "";
  if (has_a && m == 1 && word[0] == 'a')
    return snprintf(text, size, "%d%s", (int)look->a, comma);
  if (has_a && m == 4 && memcmp(word, "a-th", 4) == 0)
    return snprintf(text, size, "%d-th%s", (int)look->a, comma);
  if (has_a && m == 3 && memcmp(word, "2^a", 3) == 0)
    return snprintf(text, size, "%g%s", mla_ldexp(1, (int)look->a), comma);
  if (look->x != 0 && m == 1 && word[0] == 'x')
    return snprintf(text, size, "%.5g%s", look->x, comma);
  return snprintf(text, size, "%.*s", (int)n, word);
}

static void put_sentence(const mla_look *look, char *text, size_t size) {
  const char *at = look->what;
  size_t used = 0;
  while (*at && used + 1 < size) {
    size_t n = strcspn(at, " ");
    int k = put_word(look, at, n, text + used, size - used);
    used += k > 0 ? (size_t)k : 0;
    at += n;
    if (*at && used + 1 < size) text[used++] = *at++;
  }
  text[used < size ? used : size - 1] = '\0';
}

int mla_look_print(const mla_look *look, char *text, size_t size) {
  char what[200], also[48] = "";
  if (size) text[0] = '\0';
  if (!look->cls[0]) return 0;
  put_sentence(look, what, sizeof what);
  if (look->also[0]) snprintf(also, sizeof also, ", as %s does", look->also);
  if (!look->of) return snprintf(text, size, "%s: %s", look->cls, what);
  return snprintf(text, size, "%s: %s (reproduces %lld of %lld%s)", look->cls,
                  what, (long long)look->reproduced, (long long)look->of, also);
}
