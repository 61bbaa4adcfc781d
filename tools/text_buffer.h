/*
 * text_buffer.h - text that grows, for files of markup.
 */
#ifndef MLA_TOOL_TEXT_BUFFER_H
#define MLA_TOOL_TEXT_BUFFER_H

#include <stddef.h>

typedef struct text_buffer {
  char *text; /* terminated; NULL: empty, or no memory */
  size_t used, room;
  int failed;
} text_buffer;

/* Markup, as it is. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void text_add(text_buffer *b, const char *format, ...);
/*
 * Data between or inside of tags: & < > " ' are escaped, and every byte comes
 * out as XML 1.0 and HTML allow it. What is no UTF-8, and characters that XML
 * has no place for, become U+FFFD; tabs and line ends of attributes become
 * references, so that they are kept.
 */
void text_data(text_buffer *b, const char *data);
void text_attribute(text_buffer *b, const char *data);
/* The text, to be freed; NULL when memory was short. */
char *text_take(text_buffer *b);

/* A copy in which what is no UTF-8 is U+FFFD, and so is U+0000; NULL: no
   memory. */
char *text_utf8(const char *bytes);

#endif
