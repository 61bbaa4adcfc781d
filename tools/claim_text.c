/*
 * claim_text.c - paths are nobody's business.
 */
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "text_buffer.h"

static int is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || (c && strchr("_.-+~@%,:=", c));
}

/* The length of an absolute path of two names or more that begins here, or of
   one with a drive; 0: there is none. */
static size_t path_length(const char *text) {
  size_t n = 0, names = 0;
  int drive = ((text[0] | 32) >= 'a' && (text[0] | 32) <= 'z') &&
              text[1] == ':' && (text[2] == '\\' || text[2] == '/');
  int home = text[0] == '~' && text[1] == '/';
  if (drive) n = 2;
  if (home) n = 1;
  if (text[n] != '/' && text[n] != '\\') return 0;
  char slash = text[n];
  while (text[n] == slash && is_name(text[n + 1])) {
    names++;
    for (n++; is_name(text[n]); n++) continue;
  }
  return names > 1 || (names && (drive || home)) ? n : 0;
}

/* A path begins a word; in the middle of one ("bf16/f32", a link) it is no
   path. */
static int may_begin(const char *text, const char *at) {
  return at == text || strchr(" \t\n'\"(<[{=,;:|", at[-1]) != NULL;
}

static const char *next_path(const char *text, size_t *length) {
  for (const char *at = text; *at; at++) {
    int link = at > text && at[-1] == ':' && at[0] == '/' && at[1] == '/';
    *length = may_begin(text, at) && !link ? path_length(at) : 0;
    if (*length) return at;
  }
  return NULL;
}

int claim_has_path(const char *text) {
  size_t length;
  return next_path(text, &length) != NULL;
}

char *claim_without_paths(const char *text) {
  text_buffer b = {NULL, 0, 0, 0};
  const char *at;
  size_t length;
  while ((at = next_path(text, &length)) != NULL) {
    text_add(&b, "%.*s(path)", (int)(at - text), text);
    text = at + length;
  }
  text_add(&b, "%s", text);
  return text_take(&b);
}
