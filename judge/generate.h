/*
 * generate.h - from a case and a seed to the vector.
 *
 * Data is a function of the request and the position in it, never of where a
 * page lies: the same requests in other pages, batches or strides have the
 * same numbers, so that regrouped cases must give the same answers.
 */
#ifndef MLA_GENERATE_H
#define MLA_GENERATE_H

#include "cache_rows.h"
#include "rng.h"
#include "vector.h"

/*
 * What fills the memory that a call must not read: every byte of it. 0xff is
 * NaN in every floating type, 0x7b large and finite in each, 0 zero. Unused
 * entries of block tables are out of range, wrong but lawful, or 0.
 */
typedef enum mla_poison {
  MLA_POISON_NAN = 0xff,
  MLA_POISON_LARGE = 0x7b,
  MLA_POISON_ZERO = 0
} mla_poison;

/* The vector is to be freed, whatever is returned. */
mla_status mla_generate(const mla_case *c, uint64_t seed, mla_poison poison,
                        mla_vector *v, mla_error *err);

/*
 * The same case with numbers that repeat, and no poison in what is read: made
 * in seconds where the other takes minutes. For measuring; the reference
 * judges it like any other.
 */
mla_status mla_generate_large(const mla_case *c, uint64_t seed, mla_vector *v,
                              mla_error *err);

/* ------------------------------------------- between the generator's files */

typedef struct mla_gen {
  const mla_case *c;
  uint64_t seed;
  mla_poison poison;
  mla_vector *v;
  int64_t blocks; /* of the cache: asking a case takes all its requests */
  int64_t *order; /* order[k]: physical page of the k-th used page */
  double *row;    /* scratch for one row */
  double *key;
  double *scale;               /* scratch for an entry's scales */
  mla_cache_rows rows, v_rows; /* of the caches */
  mla_cache_rows x_rows;       /* of the second one */
} mla_gen;

/* The stream of a tensor; of one request's tensor. */
mla_rng mla_gen_stream(const mla_gen *g, const char *name);
mla_rng mla_gen_stream_of(const mla_gen *g, const char *name, int64_t request);
/* Writes values[0, n) at element offset of a slot. */
void mla_gen_put_row(mla_gen *g, int32_t slot, int64_t offset,
                     const double *values, int64_t n);
/* A random order of 0 .. n-1, from a stream. */
void mla_gen_shuffle(mla_rng rng, int64_t *order, int64_t n);
/* 2^e near 1 / sqrt(n). */
double mla_gen_weight_scale(int64_t n);
/* A stream's value under the case's distribution; column for outliers. */
double mla_gen_value(const mla_gen *g, mla_rng rng, int64_t i, int64_t column);
/* How much dist=big and dist=tiny multiply by. */
double mla_gen_range(const mla_gen *g);

/* Any bytes, wherever the tensor's memory is looked at. */
void mla_gen_bytes(mla_rng rng, mla_tensor *t);
/* A number of the list of edges: ties, limits, zeros, no NaN. */
double mla_gen_edge_number(uint64_t bits);
/* Or NaN, or an infinity. */
double mla_gen_edge_any(uint64_t bits);

/* Describes the caches, once they have memory. */
void mla_gen_caches(mla_gen *g);
/*
 * Writes a key (or with MLA_T_V_CACHE a value) of `token` into the entry of a
 * slot of the cache: quantised as its format wants.
 */
void mla_gen_put_entry(mla_gen *g, int32_t slot, int64_t slot_at,
                       int64_t kv_head, int64_t token, const double *values);
/* Any bytes that are an entry, for readers. */
void mla_gen_edge_entry(mla_gen *g, int64_t slot_at, mla_rng rng,
                        int64_t token);
/* What a column of a token's numbers is multiplied by. */
double mla_gen_amplitude(const mla_gen *g, int32_t slot, int64_t token,
                         int64_t column);
/* A number of a token for a writer that scales. */
double mla_gen_edge_value(const mla_gen *g, mla_rng rng, int64_t token,
                          int64_t column);

/* Where there is no table: the slot of position j of request b. */
int64_t mla_gen_listed_slot(const mla_gen *g, int64_t b, int64_t j);
/* The position of the k-th key in the main list of row t of request b. */
int64_t mla_gen_listed(const mla_gen *g, int64_t b, int64_t t, int64_t k);
/* Queries and weights of an indexer: rows of request b, from `token` on. */
void mla_gen_indexer(mla_gen *g, int64_t b, int64_t token);

void mla_gen_lists(mla_gen *g);     /* indices, their lengths, positions */
void mla_gen_index(mla_gen *g);     /* lengths, tables, slots, mappings */
void mla_gen_attention(mla_gen *g); /* caches, kv_c, k_pe, q, sink */
void mla_gen_large(mla_gen *g);     /* real inputs, repeated */
void mla_gen_plain(mla_gen *g);     /* weights, rows, parts, caches to copy */

#endif
