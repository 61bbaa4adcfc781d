/*
 * html_histogram.c - how much of their budgets the outputs of a run used.
 *
 * One bar for each factor of two of error / budget, stacked: out and the like
 * below, lse above. Right of the line nothing may stand.
 */
#include "html_page.h"

#define BINS 13 /* 0; to 2^-10; ... to 1/2; to 1; above 1 */
#define WIDTH 46
#define HEIGHT 150
#define TOP 24

typedef struct histogram {
  int count[2][BINS]; /* [is lse] */
  int most;
} histogram;

static int bin_of(double worst) {
  double edge = 1.0 / 1024;
  if (!(worst <= 1)) return BINS - 1; /* NaN too */
  if (worst <= 0) return 0;
  for (int bin = 1; bin < BINS - 1; bin++, edge *= 2)
    if (worst <= edge) return bin;
  return BINS - 2;
}

static void collect(histogram *h, const cJSON *model) {
  const cJSON *record, *output;
  cJSON_ArrayForEach(record, model_member(model, "cases")) {
    cJSON_ArrayForEach(output, model_member(record, "outputs")) {
      const char *compare = model_text(output, "compare");
      int lse = strcmp(model_text(output, "tensor"), "lse") == 0;
      if (strcmp(compare, "budget") != 0 && strcmp(compare, "choice") != 0)
        continue;
      if (model_number(output, "checked") < 1) continue;
      h->count[lse][bin_of(model_real(output, "worst"))]++;
    }
  }
  for (int i = 0; i < BINS; i++)
    if (h->count[0][i] + h->count[1][i] > h->most)
      h->most = h->count[0][i] + h->count[1][i];
}

static void add_label(text_buffer *b, int bin) {
  int x = bin * WIDTH + WIDTH / 2, y = TOP + HEIGHT + 16;
  text_add(b, "<text x=\"%d\" y=\"%d\" class=\"tick\">", x, y);
  if (bin == 0)
    text_add(b, "0");
  else if (bin == BINS - 1)
    text_add(b, "over 1");
  else if (bin == BINS - 2)
    text_add(b, "to 1");
  else
    text_add(b, "1/%d", 1 << (BINS - 2 - bin));
  text_add(b, "</text>\n");
}

static void add_bar(text_buffer *b, const histogram *h, int bin) {
  int x = bin * WIDTH + 5, base = TOP + HEIGHT;
  int all = h->count[0][bin] + h->count[1][bin];
  for (int lse = 0; lse < 2; lse++) {
    int n = h->count[lse][bin];
    int high = (int)((double)n * HEIGHT / h->most + 0.5);
    if (n && high < 2) high = 2;
    if (!n) continue;
    base -= high;
    text_add(b,
             "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
             "class=\"%s\"><title>%d of %s</title></rect>\n",
             x, base, WIDTH - 10, high,
             bin == BINS - 1 ? "over"
             : lse           ? "lse"
                             : "out",
             n, lse ? "lse" : "out and other outputs");
  }
  if (all)
    text_add(b, "<text x=\"%d\" y=\"%d\" class=\"tick\">%d</text>\n",
             x + WIDTH / 2 - 5, base - 5, all);
  add_label(b, bin);
}

void html_histogram(text_buffer *b, const cJSON *model) {
  histogram h = {{{0}, {0}}, 0};
  collect(&h, model);
  if (h.most == 0) {
    text_add(b, "<p>No output was compared by a budget.</p>\n");
    return;
  }
  text_add(b,
           "<div class=\"wide\"><svg viewBox=\"0 0 %d %d\" width=\"%d\" "
           "height=\"%d\" role=\"img\" aria-label=\"Histogram of error over "
           "budget\">\n",
           BINS * WIDTH, TOP + HEIGHT + 24, BINS * WIDTH, TOP + HEIGHT + 24);
  for (int bin = 0; bin < BINS; bin++) add_bar(b, &h, bin);
  text_add(b,
           "<line x1=\"0\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"axis\"/>\n"
           "<line x1=\"%d\" y1=\"4\" x2=\"%d\" y2=\"%d\" class=\"limit\"/>\n"
           "</svg></div>\n",
           TOP + HEIGHT, BINS * WIDTH, TOP + HEIGHT, (BINS - 1) * WIDTH,
           (BINS - 1) * WIDTH, TOP + HEIGHT);
  text_add(b,
           "<p class=\"key\">Each output of each case, by its worst error over "
           "budget:<span class=\"box out\"></span>out and other outputs<span "
           "class=\"box lse\"></span>lse<span class=\"box over\"></span>over "
           "the budget</p>\n");
}
