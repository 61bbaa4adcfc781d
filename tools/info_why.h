/*
 * info_why.h - mlacheck info --why: which backend serves a case, and why not
 * the others.
 */
#ifndef MLA_TOOL_INFO_WHY_H
#define MLA_TOOL_INFO_WHY_H

/* What is wanted beside; texts of the command line, or NULL. */
typedef struct why_wish {
  const char *memory;      /* host, cuda, rocm */
  const char *determinism; /* none, run-to-run, batch-invariant */
  int capture;
} why_wish;

/* An exit code: 0 one can serve it, 1 none can. */
int info_why(const char *id, const why_wish *wish);

#endif
