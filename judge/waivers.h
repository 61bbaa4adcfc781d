/*
 * waivers.h - failures that are known, each with a link to where.
 *
 * A waiver never makes a failure a pass: it is counted and shown as waived. A
 * file (golden/schema/waivers-1.schema.json):
 *
 *   {"format": "mla-waivers", "version": 1, "waivers": [
 *     {"case": "decode:bf16:*", "class": "SINK-WIN", "backend": "port",
 *      "link": "https://example.org/issues/7", "reason": "sinks come later",
 *      "until": "2027-06-30"}]}
 *
 * "*" in `case` stands for any text. An entry needs a link, and a case or a
 * class (what the failure looks like); an absent member stands for any. After
 * the day of `until` the entry waives nothing.
 */
#ifndef MLA_WAIVERS_H
#define MLA_WAIVERS_H

#include "mla/mla.h"

typedef struct mla_waiver {
  char pattern[1024]; /* of case ids; "*" when any */
  char cls[24];       /* "" any */
  char backend[64];   /* "" any */
  char link[320];
  char reason[240];
  char until[11]; /* "2027-06-30", or "" */
  int expired;
} mla_waiver;

typedef struct mla_waivers {
  int32_t count;
  mla_waiver *entry;
} mla_waivers;

/*
 * today: "2026-11-29"; NULL: of this machine (or of SOURCE_DATE_EPOCH, where
 * that is set). Free it, whatever is returned.
 * Errors: NOT_AVAILABLE (no file), INVALID_ARGUMENT (a sentence naming the
 * entry and its member).
 */
mla_status mla_waivers_load(const char *path, const char *today,
                            mla_waivers *waivers, mla_error *err);
mla_status mla_waivers_parse(const char *text, const char *today,
                             mla_waivers *waivers, mla_error *err);
void mla_waivers_free(mla_waivers *waivers);

/* The first entry in force that waives this failure, or -1. */
int32_t mla_waiver_for(const mla_waivers *waivers, const char *backend,
                       const char *id, const char *cls);
/* Is an entry about this backend at all? */
int mla_waiver_concerns(const mla_waiver *waiver, const char *backend);
/* Does text match the pattern, "*" standing for any text? */
int mla_pattern_matches(const char *pattern, const char *text);

#endif
