/*
 * cpu_kernels.h - the shapes of the kernels behind the table.
 *
 * Attention and products are written over *lanes*: MLA_CPU_LANES rows side by
 * side (heads x query tokens in attention, rows of the activations in a
 * product), the last axis of every buffer a kernel works on. A vector register
 * then holds one number of several rows: no kernel ever adds across a vector,
 * and the matrix that all rows share (keys, values, weights) is only ever
 * broadcast, so it needs no packing. A *panel* is [k][LANES].
 *
 * Every kernel computes a lane from that lane alone and in the same order
 * whatever m, n and the other lanes hold: this is what makes results
 * independent of threads and of batch mates.
 *
 * Pointers to f32 need 4-byte alignment only where nothing else is said;
 * panels are aligned to 64 bytes.
 */
#ifndef MLA_CPU_KERNELS_H
#define MLA_CPU_KERNELS_H

#include <stdint.h>

#define MLA_CPU_LANES 16
#define MLA_CPU_BLOCK 64 /* keys of one attention block, at most */

/* n elements of a type to f32, exact. */
typedef void mla_cpu_load_fn(float *to, const void *from, int64_t n);

/* n elements from f32, rounded once to nearest even. */
typedef void mla_cpu_store_fn(void *to, const float *from, int64_t n);

/* panel[k][lane] = scale * rows[lane * ld + k], all LANES rows. */
typedef void mla_cpu_pack_fn(float *panel, const float *rows, int64_t ld,
                             int64_t k, float scale);

/*
 * c[i][lane] = beta[lane] * c[i][lane] + sum over p < k of
 *              a[i * row + p * col] * b[p][lane],   i < m
 * The sum is one chain over p, started at 0. beta NULL: c is only written.
 * k at most MLA_CPU_CHAIN: longer sums are several calls (spec, section 4).
 */
typedef void mla_cpu_product_fn(int64_t m, int64_t k, const float *a,
                                int64_t row, int64_t col, const float *b,
                                const float *beta, float *c);
#define MLA_CPU_CHAIN 512

/*
 * One block of online softmax. s[n][LANES] are scores; on return exp(s - m).
 * m, l: running maximum and denominator; beta: what the accumulator must be
 * multiplied by. visible[lane] (NULL: all n): scores from there on are hidden.
 * A lane that has seen nothing keeps m = -inf, l = 0. NaN scores give l NaN.
 */
typedef void mla_cpu_softmax_fn(int64_t n, float *s, const int32_t *visible,
                                float *m, float *l, float *beta);

/* s = cap * tanh(s / cap) for n * LANES scores. */
typedef void mla_cpu_softcap_fn(int64_t n, float *s, float cap);

/*
 * (m, l, acc) becomes the softmax over the keys of both parts; acc and acc2
 * are [n][LANES]. Parts without keys change nothing.
 */
typedef void mla_cpu_fold_fn(int64_t n, float *m, float *l, float *acc,
                             const float *m2, const float *l2,
                             const float *acc2);

/* Hints that these bytes will be read soon, and are still far away. */
typedef void mla_cpu_fetch_fn(const void *from, int64_t bytes);

/* sum[i] = sum[i] + weight * part[i]. */
typedef void mla_cpu_axpy_fn(int64_t n, float *sum, float weight,
                             const float *part);

#endif
