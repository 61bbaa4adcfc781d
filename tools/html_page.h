/*
 * html_page.h - the pieces of the page that report_html.c puts together.
 */
#ifndef MLA_TOOL_HTML_PAGE_H
#define MLA_TOOL_HTML_PAGE_H

#include <string.h>

#include "report_model.h"
#include "text_buffer.h"

/* Everything up to and with <body>; no script, nothing from elsewhere. */
void html_begin(text_buffer *b, const char *title);
void html_end(text_buffer *b);

/* html_matrix.c: operation x format x backend. */
void html_matrix(text_buffer *b, const cJSON *const *models, int32_t count);
/* html_histogram.c: error / budget of all outputs of a run. */
void html_histogram(text_buffer *b, const cJSON *model);
/* html_failure.c: one failure with its maps; html_map: one output's. */
void html_failure(text_buffer *b, const cJSON *record, int open);

#endif
