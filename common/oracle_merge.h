/*
 * oracle_merge.h - partial results of one row combined by log-sum-exp.
 */
#ifndef MLA_ORACLE_MERGE_H
#define MLA_ORACLE_MERGE_H

#include <stdint.h>

/*
 * out[dv] and the returned lse of parts[i * part_stride + d], i < count, with
 * log-sum-exps lse[i]; all logarithms natural times 1 / ln_base, so ln_base
 * is 1 for natural ones and ln 2 for base 2. A part whose lse is infinite, of
 * either sign, is never read. weight[count] receives the parts' weights,
 * e^(lse - max), 0 for dead ones; *largest the largest live lse.
 */
double mla_merge_row(int64_t count, int64_t dv, const double *parts,
                     int64_t part_stride, const double *lse, double ln_base,
                     double *weight, double *out, double *largest);

#endif
