/*
 * html_failure.c - one failure: what is wrong, where, and how to see it again.
 */
#include <stdlib.h>

#include "html_page.h"

#define CELL 9

static void add_cells(text_buffer *b, const cJSON *cells) {
  const cJSON *row;
  int r = 0;
  cJSON_ArrayForEach(row, cells) {
    const char *text = cJSON_IsString(row) ? row->valuestring : "";
    for (int c = 0; text[c]; c++)
      if (text[c] > '0' && text[c] <= '9')
        text_add(b,
                 "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                 "class=\"over\" opacity=\"%.2f\"/>\n",
                 c * CELL, r * CELL, CELL - 1, CELL - 1,
                 text[c] == '9' ? 1.0 : 0.3 + 0.07 * (text[c] - '0'));
    r++;
  }
}

static void add_shape(text_buffer *b, const cJSON *output) {
  const cJSON *axis;
  int first = 1;
  cJSON_ArrayForEach(axis, model_member(output, "shape")) {
    text_add(b, "%s%.0f", first ? "" : " &#215; ",
             cJSON_IsNumber(axis) ? axis->valuedouble : 0);
    first = 0;
  }
}

static void add_map(text_buffer *b, const cJSON *output) {
  const cJSON *map = model_member(output, "map");
  const cJSON *cells = model_member(map, "cells");
  const cJSON *row = cells ? cells->child : NULL;
  int rows = cJSON_GetArraySize(cells);
  int cols = cJSON_IsString(row) ? (int)strlen(row->valuestring) : 0;
  if (rows == 0 || cols == 0) return;
  text_add(b, "<figure><figcaption><b>");
  text_data(b, model_text(output, "tensor"));
  text_add(b, "</b> ");
  add_shape(b, output);
  text_add(b, " (");
  text_data(b, model_text(map, "axes"));
  text_add(b,
           ")</figcaption>\n<div class=\"wide\"><svg class=\"map\" "
           "viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
           "aria-label=\"Map of the wrong values\">\n",
           cols * CELL, rows * CELL, cols * CELL, rows * CELL);
  text_add(b, "<rect width=\"%d\" height=\"%d\" class=\"ground\"/>\n",
           cols * CELL, rows * CELL);
  add_cells(b, cells);
  text_add(b, "</svg></div></figure>\n");
}

void html_failure(text_buffer *b, const cJSON *record, int open) {
  const cJSON *output, *look = model_member(record, "looks_like");
  const cJSON *waived = model_member(record, "waived");
  text_add(b, "<details class=\"failure\"%s><summary><code>",
           open ? " open" : "");
  text_data(b, model_text(record, "id"));
  text_add(b, "</code>");
  if (look) {
    text_add(b, " <span class=\"class\">");
    text_data(b, model_text(look, "class"));
    text_add(b, "</span>");
  }
  text_add(b, "</summary>\n");
  if (waived) {
    text_add(b, "<p class=\"waived\">Waived: ");
    text_data(b, model_text(waived, "reason"));
    text_add(b, " <code>");
    text_data(b, model_text(waived, "link"));
    text_add(b, "</code></p>\n");
  }
  text_add(b, "<pre>");
  text_data(b, model_text(record, "text"));
  if (!*model_text(record, "text")) text_data(b, model_text(record, "reason"));
  text_add(b, "</pre>\n");
  cJSON_ArrayForEach(output, model_member(record, "outputs"))
      add_map(b, output);
  text_add(b, "</details>\n");
}
