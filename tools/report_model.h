/*
 * report_model.h - a run as one JSON document
 * (golden/schema/report-1.schema.json), and what is made of such documents.
 *
 * JUnit and HTML are made from the document alone, so that reports of several
 * runs, on several machines, can be shown together: `mlacheck report`.
 */
#ifndef MLA_TOOL_REPORT_MODEL_H
#define MLA_TOOL_REPORT_MODEL_H

#include <cjson/cJSON.h>

#include "report.h"

/* NULL: no memory. All text in it is UTF-8, whatever a backend says. */
cJSON *report_model(const run_state *run);

/* Texts to be freed with free(); NULL: no memory. */
char *report_json_text(const cJSON *model);
char *report_junit_text(const cJSON *const *models, int32_t count);
char *report_html_text(const cJSON *const *models, int32_t count);

/* Writes a text ("-": to stdout) and frees it; 0 with a sentence on stderr
   when that fails. */
int report_file_write(const char *command, const char *path, char *text);

/* Members by name, with what an absent one means. */
const char *model_text(const cJSON *object, const char *name);
double model_number(const cJSON *object, const char *name);
/* A number as an int, from 0 to a million: files may say anything. */
int model_count(const cJSON *object, const char *name);
/* The exit code of a report; what is none is an error. */
int model_exit(const cJSON *model);
int model_true(const cJSON *object, const char *name);
const cJSON *model_member(const cJSON *object, const char *name);
/* A number, or one of "nan", "inf", "-inf"; 0 when absent. */
double model_real(const cJSON *object, const char *name);
/* Does the record fail, and no waiver covers it? An unsupported one that the
   claim requires is a failure too. */
int model_is_bad(const cJSON *record);
/* "decode" and "bf16" of an id; "" for what is no case. */
void model_group(const cJSON *record, char *op, char *format, size_t size);

#endif
