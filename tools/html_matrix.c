/*
 * html_matrix.c - verdicts by operation, format and backend, as a table.
 */
#include "html_page.h"
#include "mla/mla.h"

typedef struct cell {
  int cases, passed, bad, waived, unsupported;
  double worst; /* of what passed; -1: none */
} cell;

static cell sum_cell(const cJSON *model, const char *op, const char *format) {
  cell c = {0, 0, 0, 0, 0, -1};
  const cJSON *record, *output;
  cJSON_ArrayForEach(record, model_member(model, "cases")) {
    char o[64], f[64];
    model_group(record, o, f, sizeof o);
    if (strcmp(o, op) != 0 || strcmp(f, format) != 0) continue;
    int waived = model_member(record, "waived") != NULL;
    int passed = strcmp(model_text(record, "verdict"), "pass") == 0;
    int bad = model_is_bad(record);
    c.cases++;
    c.passed += passed;
    c.bad += bad;
    c.waived += waived;
    c.unsupported += !passed && !bad && !waived;
    if (!passed) continue;
    cJSON_ArrayForEach(
        output,
        model_member(record, "outputs")) if (model_real(output, "worst") >
                                             c.worst) c.worst =
        model_real(output, "worst");
  }
  return c;
}

/* Is there a case of this operation and format (NULL: any)? */
static int has(const cJSON *const *models, int32_t count, const char *op,
               const char *format) {
  for (int32_t i = 0; i < count; i++) {
    const cJSON *record;
    cJSON_ArrayForEach(record, model_member(models[i], "cases")) {
      char o[64], f[64];
      model_group(record, o, f, sizeof o);
      if ((!op || strcmp(o, op) == 0) && (!format || strcmp(f, format) == 0))
        return 1;
    }
  }
  return 0;
}

static void add_cell(text_buffer *b, const cJSON *model, const char *op,
                     const char *format) {
  cell c = sum_cell(model, op, format);
  const char *kind = c.cases == 0 ? "none"
                     : c.bad      ? "bad"
                     : c.waived   ? "waived"
                     : c.passed   ? "good"
                                  : "no";
  text_add(b, "<td class=\"%s\">", kind);
  if (c.bad)
    text_add(b, "&#10007; %d of %d", c.bad, c.cases);
  else if (c.waived)
    text_add(b, "&#9888; %d waived", c.waived);
  else if (c.passed)
    text_add(b, "&#10003; %d", c.passed);
  else if (c.cases)
    text_add(b, "unsupported");
  if (c.passed && c.unsupported)
    text_add(b, "<small>%d unsupported</small>", c.unsupported);
  if (c.worst >= 0 && c.worst <= 1)
    text_add(b, "<small>worst %.2f</small>", c.worst);
  text_add(b, "</td>");
}

static void add_row(text_buffer *b, const cJSON *const *models, int32_t count,
                    const char *op) {
  text_add(b, "<tr><th scope=\"row\">");
  text_data(b, op);
  text_add(b, "</th>");
  for (int32_t i = 0; i < count; i++)
    for (int32_t f = 1; mla_format_name(f); f++)
      if (has(models, count, NULL, mla_format_name(f)))
        add_cell(b, models[i], op, mla_format_name(f));
  text_add(b, "</tr>\n");
}

static int count_formats(const cJSON *const *models, int32_t count) {
  int n = 0;
  for (int32_t f = 1; mla_format_name(f); f++)
    n += has(models, count, NULL, mla_format_name(f));
  return n;
}

static void add_head(text_buffer *b, const cJSON *const *models,
                     int32_t count) {
  text_add(b, "<thead><tr><td></td>");
  for (int32_t i = 0; i < count; i++) {
    const cJSON *backend = model_member(models[i], "backend");
    const cJSON *device = model_member(models[i], "device");
    text_add(b, "<th colspan=\"%d\" scope=\"colgroup\">",
             count_formats(models, count));
    text_data(b, model_text(backend, "name"));
    text_add(b, "<small>");
    text_data(b, model_text(device, "arch"));
    text_add(b, "</small></th>");
  }
  text_add(b, "</tr><tr><td></td>");
  for (int32_t i = 0; i < count; i++)
    for (int32_t f = 1; mla_format_name(f); f++)
      if (has(models, count, NULL, mla_format_name(f)))
        text_add(b, "<th scope=\"col\">%s</th>", mla_format_name(f));
  text_add(b, "</tr></thead>\n");
}

void html_matrix(text_buffer *b, const cJSON *const *models, int32_t count) {
  if (count_formats(models, count) == 0) {
    text_add(b, "<p>No case was asked.</p>\n");
    return;
  }
  text_add(b, "<div class=\"wide\"><table class=\"matrix\">\n");
  add_head(b, models, count);
  text_add(b, "<tbody>\n");
  for (int32_t op = 1; mla_op_name(op); op++)
    if (has(models, count, mla_op_name(op), NULL))
      add_row(b, models, count, mla_op_name(op));
  text_add(b, "</tbody></table></div>\n");
}
