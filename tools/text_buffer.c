/*
 * text_buffer.c - building and escaping text.
 */
#include "text_buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

static int reserve(text_buffer *b, size_t more) {
  if (b->failed) return 0;
  if (b->used + more + 1 <= b->room) return 1;
  size_t room = (b->used + more + 1) * 2;
  char *grown = realloc(b->text, room);
  if (!grown) {
    b->failed = 1;
    return 0;
  }
  b->text = grown;
  b->room = room;
  return 1;
}

static void add_bytes(text_buffer *b, const char *bytes, size_t n) {
  if (!reserve(b, n)) return;
  memcpy(b->text + b->used, bytes, n);
  b->used += n;
  b->text[b->used] = '\0';
}

static void add_word(text_buffer *b, const char *word) {
  add_bytes(b, word, strlen(word));
}

void text_add(text_buffer *b, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  if (n < 0) b->failed = 1;
  if (n >= 0 && reserve(b, (size_t)n)) {
    vsnprintf(b->text + b->used, (size_t)n + 1, format, again);
    b->used += (size_t)n;
  }
  va_end(again);
  va_end(args);
}

char *text_take(text_buffer *b) {
  if (!b->text) add_bytes(b, "", 0);
  char *text = b->text;
  if (b->failed) {
    free(text);
    text = NULL;
  }
  memset(b, 0, sizeof *b);
  return text;
}

/* ------------------------------------------------------------------ UTF-8 */

/* The length of the character that stands at s, and its code; 0: it is none
   (too long a form, a surrogate, beyond U+10FFFF, cut short). */
static size_t character(const unsigned char *s, uint32_t *code) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = s[0] < 0x80   ? 1
             : s[0] < 0xC2 ? 0
             : s[0] < 0xE0 ? 2
             : s[0] < 0xF0 ? 3
             : s[0] < 0xF5 ? 4
                           : 0;
  if (n == 0) return 0;
  *code = n == 1 ? s[0] : s[0] & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0; /* stops at a terminator too */
    *code = *code << 6 | (s[i] & 0x3Fu);
  }
  if (*code < least[n] || (*code >= 0xD800 && *code <= 0xDFFF) ||
      *code > 0x10FFFF)
    return 0;
  return n;
}

static int has_place_in_xml(uint32_t c) {
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
  return c < 0x7F || (c > 0x9F && c != 0xFFFE && c != 0xFFFF);
}

static const char *escape_of(uint32_t c, int attribute) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\r': return "&#13;"; /* a parser would read a line end */
    case '\t': return attribute ? "&#9;" : NULL;
    case '\n': return attribute ? "&#10;" : NULL;
    default: return NULL;
  }
}

static void add_data(text_buffer *b, const char *data, int attribute) {
  const unsigned char *s = (const unsigned char *)data;
  while (*s) {
    uint32_t code = 0;
    size_t n = character(s, &code);
    const char *escape = n ? escape_of(code, attribute) : NULL;
    if (escape)
      add_word(b, escape);
    else if (n && has_place_in_xml(code))
      add_bytes(b, (const char *)s, n);
    else
      add_word(b, REPLACEMENT);
    s += n ? n : 1;
  }
}

void text_data(text_buffer *b, const char *data) {
  add_data(b, data, 0);
}

void text_attribute(text_buffer *b, const char *data) {
  add_data(b, data, 1);
}

char *text_utf8(const char *bytes) {
  const unsigned char *s = (const unsigned char *)bytes;
  text_buffer b = {NULL, 0, 0, 0};
  while (*s) {
    uint32_t code = 0;
    size_t n = character(s, &code);
    if (n)
      add_bytes(&b, (const char *)s, n);
    else
      add_word(&b, REPLACEMENT);
    s += n ? n : 1;
  }
  return text_take(&b);
}
