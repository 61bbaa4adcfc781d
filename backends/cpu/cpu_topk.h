/*
 * cpu_topk.h - the k largest of a row, by counting digits.
 */
#ifndef MLA_CPU_TOPK_H
#define MLA_CPU_TOPK_H

#include <stdint.h>

/*
 * position[topk] = the positions of the k largest of value[n], ascending, -1
 * behind them when n is less than topk. Of equal ones at the border the lowest
 * positions are taken. NaN is less than all.
 */
void mla_cpu_topk(const float *value, int64_t n, int64_t topk,
                  int32_t *position);

#endif
