/*
 * sm90_product.h - bf16 products for the operations that are made of them.
 */
#ifndef MLA_SM90_PRODUCT_H
#define MLA_SM90_PRODUCT_H

#include "gpu_host.h"
#include "sm90_tensor_map.h"

/* A matrix in boxes of 64 columns and so many rows. */
mla_status mla_sm90_map_rows(const mla_tensor *t, uint32_t rows,
                             CUtensorMap *map, mla_error *err);
/* Does the copy engine take it? It wants 16-byte steps. */
int mla_sm90_even_walk(const mla_tensor *t);

/*
 * out[M,N] = a[M,K] x b[N,K]^T, all bf16 and of even walk, K a multiple of
 * 64; *counter (or NULL) becomes 0. live (or NULL): whether 128 rows of a are
 * wanted.
 */
mla_status mla_sm90_product(const mla_gpu_call *c, const mla_tensor *a,
                            const mla_tensor *b, const mla_tensor *out,
                            int *counter, const int *live);

#endif
