/*
 * bench_report.c - measurements as a table, CSV, JSON, and a page with their
 * roofline.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "text_buffer.h"

static const char *word_of(int state) {
  static const char *const words[] = {"timed", "unsupported", "wrong", "error"};
  return words[state];
}

static double rate(double work, double seconds) {
  return seconds > 0 ? work / seconds * 1e-9 : 0;
}

/* ------------------------------------------------------------------- text */

void bench_print_begin(const bench_run *run) {
  const peaks *p = &run->peak;
  printf("mlacheck %s  bench of %s %s on %s (%s)\n", mla_version(),
         run->backend, run->version, run->device, run->arch);
  if (p->flops > 0)
    printf("peak  %10.1f GFLOP/s  %s\n", p->flops * 1e-9, p->flops_by);
  if (p->bytes > 0)
    printf("peak  %10.1f GB/s     %s\n", p->bytes * 1e-9, p->bytes_by);
  printf("\n%-54s %10s %10s %10s %9s %6s\n", "case", "min us", "median us",
         "GFLOP/s", "GB/s", "peak");
}

void bench_print_result(const bench_run *run, const bench_result *r) {
  double share = bench_peak_share(r, &run->peak);
  if (r->state != BENCH_TIMED) {
    printf("%-54s %s: %s\n", r->id, word_of(r->state), r->reason);
    return;
  }
  printf("%-54s %10.1f %10.1f %10.1f %9.1f", r->id, r->seconds_min * 1e6,
         r->seconds_median * 1e6, rate(r->flops, r->seconds_min),
         rate(r->bytes, r->seconds_min));
  if (share > 0) printf(" %4.0f %%", 100 * share);
  printf("\n");
  fflush(stdout);
}

/* -------------------------------------------------------------------- CSV */

char *bench_csv(const bench_run *run) {
  text_buffer b = {0};
  text_add(&b,
           "case,state,kernel,runs,seconds_min,seconds_median,gflops,"
           "gbytes_per_s,peak_share,error_budget,peaks_moved\n");
  for (int i = 0; i < run->count; i++) {
    const bench_result *r = &run->result[i];
    text_add(&b, "\"%s\",%s,%s,%d,%.9g,%.9g,%.6g,%.6g,%.4f,%.4f,%.4f\n", r->id,
             word_of(r->state), r->kernel, r->runs, r->seconds_min,
             r->seconds_median, rate(r->flops, r->seconds_min),
             rate(r->bytes, r->seconds_min), bench_peak_share(r, &run->peak),
             r->ratio, bench_peaks_moved(run));
  }
  return text_take(&b);
}

/* ------------------------------------------------------------------- JSON */

static cJSON *json_machine(const bench_run *run) {
  cJSON *m = cJSON_CreateObject();
  cJSON_AddStringToObject(m, "tool", mla_version());
  cJSON_AddStringToObject(m, "backend", run->backend);
  cJSON_AddStringToObject(m, "backend_version", run->version);
  cJSON_AddStringToObject(m, "device", run->device);
  cJSON_AddStringToObject(m, "arch", run->arch);
  if (run->threads) cJSON_AddNumberToObject(m, "threads", run->threads);
  return m;
}

static cJSON *json_peaks(const bench_run *run) {
  const peaks *p = &run->peak;
  const struct {
    const char *key;
    double value;
  } parts[] = {{"gflops_before", run->first.flops * 1e-9},
               {"gflops_behind", run->again.flops * 1e-9},
               {"gbytes_per_s_before", run->first.bytes * 1e-9},
               {"gbytes_per_s_behind", run->again.bytes * 1e-9},
               {"moved", bench_peaks_moved(run)}};
  cJSON *j = cJSON_CreateObject();
  cJSON_AddNumberToObject(j, "gflops", p->flops * 1e-9);
  cJSON_AddStringToObject(j, "gflops_by", p->flops_by);
  cJSON_AddNumberToObject(j, "gbytes_per_s", p->bytes * 1e-9);
  cJSON_AddStringToObject(j, "gbytes_per_s_by", p->bytes_by);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    cJSON_AddNumberToObject(j, parts[i].key, parts[i].value);
  return j;
}

static cJSON *json_result(const bench_run *run, const bench_result *r) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "case", r->id);
  cJSON_AddStringToObject(j, "state", word_of(r->state));
  if (r->state != BENCH_TIMED) {
    cJSON_AddStringToObject(j, "reason", r->reason);
    return j;
  }
  cJSON_AddStringToObject(j, "kernel", r->kernel);
  cJSON_AddNumberToObject(j, "runs", r->runs);
  cJSON_AddNumberToObject(j, "seconds_min", r->seconds_min);
  cJSON_AddNumberToObject(j, "seconds_median", r->seconds_median);
  cJSON_AddNumberToObject(j, "gflops", rate(r->flops, r->seconds_min));
  cJSON_AddNumberToObject(j, "gbytes_per_s", rate(r->bytes, r->seconds_min));
  cJSON_AddNumberToObject(j, "peak_share", bench_peak_share(r, &run->peak));
  cJSON_AddNumberToObject(j, "error_budget", r->ratio);
  return j;
}

char *bench_json(const bench_run *run) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddItemToObject(root, "machine", json_machine(run));
  cJSON_AddItemToObject(root, "peaks", json_peaks(run));
  cJSON *list = cJSON_AddArrayToObject(root, "results");
  for (int i = 0; i < run->count; i++)
    cJSON_AddItemToArray(list, json_result(run, &run->result[i]));
  char *printed = cJSON_Print(root), *text = NULL;
  if (printed && (text = malloc(strlen(printed) + 2)) != NULL)
    sprintf(text, "%s\n", printed);
  cJSON_free(printed);
  cJSON_Delete(root);
  return text;
}
