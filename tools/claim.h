/*
 * claim.h - a conformance claim: what a backend passed, in one document that
 * others can check (golden/schema/claim-1.schema.json, docs/conformance.md).
 *
 * It is made from the report of a run, and holds nothing of the machine's
 * owner: no path, no host, no user, no time. Its digest shows damage and
 * carelessness; it is no signature.
 */
#ifndef MLA_TOOL_CLAIM_H
#define MLA_TOOL_CLAIM_H

#include <cjson/cJSON.h>

#include "mla/mla.h"

/*
 * Of a report as `mlacheck run --profile P --json` writes it. Freed by the
 * caller; NULL with a sentence: the profile is not a built-in one, or was not
 * run as it is (cases missing, another seed); the run is not satisfied;
 * no memory.
 */
cJSON *claim_make(const cJSON *report, mla_error *err);

/*
 * MLA_OK: everything in it agrees. INVALID_ARGUMENT: it is no claim of this
 * version, a member is missing, unknown or of the wrong kind; a path stands
 * in it; the digest, the sums, the verdict or the cases are not what follows
 * from the rest. A run of which nothing was judged is a failure.
 */
mla_status claim_check(const cJSON *claim, mla_error *err);

/* Waived failures of a claim that holds. */
int claim_waived(const cJSON *claim);

/* claim_sums.c: XXH64 of the document without its digest. 0: no memory. */
uint64_t claim_digest(const cJSON *claim);
/* Sums over the cases, as an object; and the verdict they give. */
cJSON *claim_sums(const cJSON *claim);
const char *claim_verdict(const cJSON *sums);
/* Are the cases, in order, those of the profile here, with their seeds? */
mla_status claim_cases(const cJSON *claim, mla_error *err);
/* claim_text.c: does an absolute path stand in the text? */
int claim_has_path(const char *text);
/* A copy in which each path is "(path)"; to be freed. */
char *claim_without_paths(const char *text);

#endif
