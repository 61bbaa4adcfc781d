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
#define MLA_CPU_BLOCK 64       /* keys of one attention block: decode, lists */
#define MLA_CPU_WIDE_BLOCK 128 /* the same where a key is narrow: prefill */
#define MLA_CPU_ONE_BLOCK 32   /* of one head, values stay in L1: decode */

/* Element types that kernels convert to and from f32. */
typedef enum mla_cpu_type {
  MLA_CPU_F32 = 0,
  MLA_CPU_F16 = 1,
  MLA_CPU_BF16 = 2,
  MLA_CPU_TYPES = 3
} mla_cpu_type;

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

/*
 * sum[c] = (sum over i < parts of weight[i] * part[i][c]), c < n, one chain
 * started at 0; on top of what is there if `add`. Each part is read once. What
 * lies `ahead` bytes behind it comes next: a hint.
 */
typedef void mla_cpu_blend_fn(int64_t n, int64_t parts, const void *const *part,
                              const float *weight, int64_t ahead, int add,
                              float *sum);

/*
 * Copies bytes past the caches, where the machine can: what is not read again
 * soon need not be fetched before it is overwritten, nor drive out what is.
 * The two may be the same memory, and else do not overlap. Other threads may
 * look only after `settle` on the thread that wrote.
 */
typedef void mla_cpu_stream_fn(void *to, const void *from, int64_t bytes);
typedef void mla_cpu_settle_fn(void);

/* x[i][lane] *= times[lane] for n rows. */
typedef void mla_cpu_scale_fn(int64_t n, float *x, const float *times);

/* ----------------------------------------------------------- few rows
 *
 * Where fewer rows than lanes share their keys, vectors lie along a key's
 * columns, and keys are read where and as they lie. Rows come 8, 4, 2 or 1 at a
 * time. Columns of acc are in this order: of bf16 and each whole 16 columns,
 * first the even ones, then the odd ones; of other types, as they are. Those of
 * q are in whatever order `spread` gives them; without it, as they are.
 */

/* q = scale * line, n columns. */
typedef void mla_cpu_spread_fn(float *q, const float *line, int64_t n,
                               float scale);

/* scores[row][j] = key j x q[row], j < n; q aligned to 32 bytes. next, here and
   below: n keys that will be read soon, or NULL: a hint (x86/few_rows.h). */
typedef void mla_cpu_dots_fn(int64_t n, int64_t k, const void *const *keys,
                             int rows, const float *const *q,
                             float *const *scores, const void *const *next);

/* acc[row][c] = beta[row] * acc[row][c] + sum over j of weight j of the row x
   value j, each sum one chain started at 0, c < columns; a row's weights lie
   MLA_CPU_BLOCK behind those of the row before. */
typedef void mla_cpu_mix_fn(int64_t columns, int64_t n,
                            const void *const *values, int rows,
                            const float *weights, const float *beta,
                            float *const *acc, const void *const *next);

/* As softmax, for one row of n scores in a room of MLA_CPU_BLOCK; returns
   beta. */
typedef float mla_cpu_softmax_row_fn(int64_t n, float *s, float *m, float *l);

/* ----------------------------------------------------------- int8 codes
 *
 * c[i][lane] = key_scale[i] * times * q_scale[lane] * (key i x q of the lane),
 * i < m, the product exact. keys [m][row] and q [pairs][LANES][2] hold codes of
 * -128 to 127 in 16 bits, so that sums of pairs fit 32 bits.
 */
typedef void mla_cpu_codes_fn(int64_t m, int64_t pairs, const int16_t *keys,
                              int64_t row, const float *key_scale,
                              const int16_t *q, const float *q_scale,
                              float times, float *c);

/* n int8 codes to 16 bits. */
typedef void mla_cpu_widen_codes_fn(int16_t *to, const void *from, int64_t n);

/* The largest magnitude in each tile of n numbers of a type, NaN passed over; 0
   where there is no other. The last tile may be short. */
typedef void mla_cpu_amax_fn(float *top, const void *x, int type, int64_t n,
                             int64_t tile);

/* n numbers of a type over their tile's scale, each rounded as a quotient and
   then as a code, to codes from a whole byte on, as each tile is. next: n
   numbers that will be read soon, or NULL: a hint. */
typedef void mla_cpu_encode_fn(void *codes, const void *x, int type, int64_t n,
                               int64_t tile, const float *scale,
                               const void *next);

/* n codes to f32, each times the scale. */
typedef void mla_cpu_decode_fn(float *to, const void *codes, int64_t n,
                               float scale);

/* ------------------------------------------------------- tiles of bf16
 *
 * Where a matrix unit multiplies bf16 into f32, tile by tile of 16 rows and 32
 * numbers. What it takes, n and k rounded up with zeros (n16: to 16):
 *
 *   keys     [n16 / 16] tiles of 16 rows, k32 wide, where they lie
 *   queries  [k32 / 2][LANES][2]           pairs of columns, lane by lane
 *   scores   [n16][LANES]
 *   weights  [n32 / 32][LANES][32]         a lane's weights, tile by tile
 *   values   [columns / 32][n32 / 32][2][16][16][2]  pairs of keys
 *   acc      [columns / 16][LANES][16]
 *
 * Columns of values and acc come 32 at a time, as two keys are interleaved
 * without crossing quarters of a register: of each eight, the first four are in
 * the first 16, the others in the second.
 */
#define MLA_CPU_TILE_DEPTH 32
#define MLA_CPU_TILE_BLOCK 256 /* keys of one block, at most */

/* Where column c lies among those of values and acc. */
#define MLA_CPU_TILE_COLUMN(c) \
  ((c) / 32 * 32 + (c) / 4 % 2 * 16 + (c) / 8 % 4 * 4 + (c) % 4)

/* Sixteen rows, ld numbers apart. */
typedef struct mla_cpu_tile_rows {
  const uint16_t *at;
  int64_t ld;
} mla_cpu_tile_rows;

/* One panel's queries from its rows of k numbers. */
typedef void mla_cpu_tile_queries_fn(uint16_t *queries,
                                     const uint16_t *const *rows, int64_t k);

/* Values of n keys from tiles of rows: columns first .. first + 31 of them.
   Rows from n on are not looked at. */
typedef void mla_cpu_tile_values_fn(uint16_t *values,
                                    const mla_cpu_tile_rows *rows, int64_t n,
                                    int64_t first);

/*
 * As softmax, of scale times s, with a scale above 0; s stays. Weights are
 * rounded to nearest even, l is not.
 */
typedef void mla_cpu_tile_softmax_fn(int64_t n, const float *s, float scale,
                                     const int32_t *visible, float *m, float *l,
                                     float *beta, uint16_t *weights);

/* As fold, of m and l alone: what acc and acc2 must be multiplied by. */
typedef void mla_cpu_tile_join_fn(float *m, float *l, const float *m2,
                                  const float *l2, float *a, float *b);

/*
 * sum = acc[0]; sum = a[k][lane] * sum + b[k][lane] * acc[k] for 0 < k < parts,
 * of acc's tiles of sixteen columns; a and b are [parts][LANES]. sum may be
 * acc[0]. What lies `ahead` floats behind each acc comes next: a hint; 0: none.
 */
typedef void mla_cpu_tile_blend_fn(int64_t tiles, int64_t parts,
                                   const float *const *acc, const float *a,
                                   const float *b, int64_t ahead, float *sum);

/* Each lane's row of acc times its number. */
typedef void mla_cpu_tile_scale_fn(int64_t tiles, float *acc,
                                   const float *times);

/* A lane's first n columns, a multiple of 32, in their own order, times a
   number. */
typedef void mla_cpu_tile_line_fn(float *line, const float *acc, int64_t lane,
                                  int64_t n, float times);

/* Products c[n][LANES], n a multiple of 32, rounded to nearest even: to rows ld
   numbers apart; to every other 16 columns of values, 32 keys after another. */
typedef void mla_cpu_tile_narrow_fn(uint16_t *rows, int64_t ld, const float *c,
                                    int64_t n);
typedef void mla_cpu_tile_pairs_fn(uint16_t *values, const float *c, int64_t n);

/* Is there no infinity and no NaN among n numbers? */
typedef int mla_cpu_tile_finite_fn(const uint16_t *x, int64_t n);

/* Before the next two on a thread, and after them. */
typedef void mla_cpu_tile_begin_fn(void);
typedef void mla_cpu_tile_end_fn(void);

/* scores = keys x queries of some panels, one behind the other: queries
   k32 * LANES numbers, scores TILE_BLOCK * LANES. n16: of each; more of it may
   be written, up to the most of all. */
typedef void mla_cpu_tile_scores_fn(int64_t k32, const mla_cpu_tile_rows *keys,
                                    int panels, const int64_t *n16,
                                    const uint16_t *queries, float *scores);

/* acc = weights x values of one panel, 32 columns, on top of what is there if
   `add`. */
typedef void mla_cpu_tile_product_fn(int64_t n32, const uint16_t *values,
                                     const uint16_t *weights, int add,
                                     float *acc);

#endif
