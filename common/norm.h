/*
 * norm.h - RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight, row by row; and
 * LayerNorm: y = (x - mean) / sqrt(variance + eps) * weight + bias.
 */
#ifndef MLA_NORM_H
#define MLA_NORM_H

#include "mla/mla.h"

/*
 * x[N,K], weight[K] -> y[N,K], any element types and strides, in host memory;
 * y may be x. Binary64 in the order of the row with one rounding to y's type
 * (model code in 16 bits also rounds before the weight; f32 code rounds each
 * step).
 */
void mla_rms_norm(const mla_tensor *x, const mla_tensor *weight, double eps,
                  const mla_tensor *y);

/* The same with weight[K] and bias[K]; the variance is that of the row. */
void mla_layer_norm(const mla_tensor *x, const mla_tensor *weight,
                    const mla_tensor *bias, double eps, const mla_tensor *y);

/* x[N,K] times a factor, in place, rounded to x's type. */
void mla_scale_rows(const mla_tensor *x, double factor);

#endif
