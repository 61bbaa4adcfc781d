/*
 * html_roofline.c - measurements as one page: where each case lies under the
 * machine's two limits, and the table.
 */
#include <math.h>

#include "bench.h"
#include "html_page.h"

enum { LEFT = 60, TOP = 16, WIDE = 640, HIGH = 320 };

/* Powers of two that the picture spans. */
typedef struct roofline {
  double x0, x1; /* log2 of FLOP a byte */
  double y0, y1; /* log2 of FLOP per second */
} roofline;

static double intensity(const bench_result *r) {
  return r->bytes > 0 ? r->flops / r->bytes : 0;
}

static int has_place(const bench_result *r) {
  return r->state == BENCH_TIMED && r->flops > 0 && r->bytes > 0 &&
         r->seconds_min > 0;
}

static void widen(double *low, double *high, double value) {
  if (value < *low) *low = value;
  if (value > *high) *high = value;
}

static roofline span(const bench_run *run) {
  roofline s = {0, 1, 1e9, 0};
  const peaks *p = &run->peak;
  if (p->flops > 0) widen(&s.y0, &s.y1, log2(p->flops));
  if (p->flops > 0 && p->bytes > 0)
    widen(&s.x0, &s.x1, log2(p->flops / p->bytes));
  for (int i = 0; i < run->count; i++) {
    const bench_result *r = &run->result[i];
    if (!has_place(r)) continue;
    widen(&s.x0, &s.x1, log2(intensity(r)));
    widen(&s.y0, &s.y1, log2(r->flops / r->seconds_min));
  }
  s.x0 = floor(s.x0) - 1, s.x1 = ceil(s.x1) + 1;
  s.y0 = floor(s.y0) - 1, s.y1 = ceil(s.y1) + 1;
  return s;
}

static double at_x(const roofline *s, double x) {
  return LEFT + (log2(x) - s->x0) / (s->x1 - s->x0) * WIDE;
}
static double at_y(const roofline *s, double y) {
  return TOP + (s->y1 - log2(y)) / (s->y1 - s->y0) * HIGH;
}

static void add_line(text_buffer *b, const roofline *s, double x0, double y0,
                     double x1, double y1) {
  text_add(b,
           "<line class=\"limit\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
           "y2=\"%.1f\"/>\n",
           at_x(s, x0), at_y(s, y0), at_x(s, x1), at_y(s, y1));
}

/* Memory's slope up to the ridge, then the flat of arithmetic. */
static void add_limits(text_buffer *b, const roofline *s, const peaks *p) {
  double left = exp2(s->x0), right = exp2(s->x1);
  if (p->flops <= 0) return;
  double ridge = p->bytes > 0 ? p->flops / p->bytes : left;
  if (ridge < left) ridge = left;
  if (ridge < right) add_line(b, s, ridge, p->flops, right, p->flops);
  double start = p->bytes > 0 ? exp2(s->y0) / p->bytes : ridge;
  if (start < left) start = left;
  if (start < ridge) add_line(b, s, start, start * p->bytes, ridge, p->flops);
}

static void add_axes(text_buffer *b, const roofline *s) {
  text_add(b,
           "<rect class=\"ground\" x=\"%d\" y=\"%d\" width=\"%d\" "
           "height=\"%d\"/>\n",
           LEFT, TOP, WIDE, HIGH);
  for (double x = s->x0; x <= s->x1; x += s->x1 - s->x0 > 12 ? 2 : 1)
    text_add(b, "<text x=\"%.1f\" y=\"%d\">%g</text>\n", at_x(s, exp2(x)),
             TOP + HIGH + 16, exp2(x));
  for (double y = s->y0; y <= s->y1; y += s->y1 - s->y0 > 12 ? 2 : 1)
    text_add(b, "<text x=\"%d\" y=\"%.1f\">%.3g</text>\n", LEFT - 28,
             at_y(s, exp2(y)) + 4, exp2(y) * 1e-9);
  text_add(b, "<text x=\"%d\" y=\"%d\">FLOP a byte</text>\n", LEFT + WIDE / 2,
           TOP + HIGH + 34);
  text_add(b, "<text x=\"%d\" y=\"%d\">GFLOP/s</text>\n", LEFT, TOP - 4);
}

static void add_points(text_buffer *b, const roofline *s,
                       const bench_run *run) {
  for (int i = 0; i < run->count; i++) {
    const bench_result *r = &run->result[i];
    if (!has_place(r)) continue;
    double flops = r->flops / r->seconds_min;
    text_add(b,
             "<rect class=\"out\" x=\"%.1f\" y=\"%.1f\" width=\"6\" "
             "height=\"6\"><title>",
             at_x(s, intensity(r)) - 3, at_y(s, flops) - 3);
    text_data(b, r->id);
    text_add(b, ": %.1f GFLOP/s</title></rect>\n", flops * 1e-9);
  }
}

static void add_row(text_buffer *b, const bench_run *run,
                    const bench_result *r) {
  text_add(b, "<tr><th><code>");
  text_data(b, r->id);
  text_add(b, "</code></th>");
  if (r->state != BENCH_TIMED) {
    text_add(b, "<td colspan=\"6\" class=\"%s\">",
             r->state == BENCH_UNSUPPORTED ? "no" : "bad");
    text_data(b, r->reason);
    text_add(b, "</td></tr>\n");
    return;
  }
  text_add(b, "<td>");
  text_data(b, r->kernel);
  text_add(b,
           "</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>"
           "<td>%.0f %%</td></tr>\n",
           r->seconds_min * 1e6, r->seconds_median * 1e6,
           r->flops / r->seconds_min * 1e-9, r->bytes / r->seconds_min * 1e-9,
           100 * bench_peak_share(r, &run->peak));
}

static void add_table(text_buffer *b, const bench_run *run) {
  text_add(b,
           "<h2>Cases</h2>\n<div class=\"wide\"><table><thead><tr><th>case"
           "</th><th>kernel</th><th>min us</th><th>median us</th>"
           "<th>GFLOP/s</th><th>GB/s</th><th>of the peak</th></tr></thead>\n"
           "<tbody>\n");
  for (int i = 0; i < run->count; i++) add_row(b, run, &run->result[i]);
  text_add(b, "</tbody></table></div>\n");
}

char *bench_html(const bench_run *run) {
  text_buffer b = {0};
  roofline s = span(run);
  html_begin(&b, "mlacheck bench");
  text_add(&b, "<h1>");
  text_data(&b, run->backend);
  text_add(&b, " on ");
  text_data(&b, run->device);
  text_add(&b,
           "</h1>\n<h2>Roofline</h2>\n<figure><div class=\"wide\">"
           "<svg width=\"%d\" height=\"%d\" role=\"img\">\n",
           LEFT + WIDE + 20, TOP + HIGH + 44);
  add_axes(&b, &s);
  add_limits(&b, &s, &run->peak);
  add_points(&b, &s, run);
  text_add(&b,
           "</svg></div>\n<figcaption>The lines are this machine's limits, "
           "measured in the same run: %.1f GFLOP/s (",
           run->peak.flops * 1e-9);
  text_data(&b, run->peak.flops_by);
  text_add(&b, "), %.1f GB/s (", run->peak.bytes * 1e-9);
  text_data(&b, run->peak.bytes_by);
  text_add(&b,
           "); the larger of what was measured before and behind the cases, "
           "which differ by %.1f %%.</figcaption></figure>\n",
           100 * bench_peaks_moved(run));
  add_table(&b, run);
  html_end(&b);
  return text_take(&b);
}
