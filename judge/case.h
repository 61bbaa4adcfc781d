/*
 * case.h - a test case as data, and its name.
 *
 * A case says everything about one call but the random seed: operation,
 * formats, sizes, lengths of each request, flags, distribution of the data,
 * layout in memory. Its canonical name is what a person types:
 *
 *   decode:bf16:b4,h128,q1,page64,len=65+64+0+1023
 *   op    :format:attributes
 *
 * case_keys.c has the table of attributes of each operation: it drives
 * parsing, printing, checking and the help of `mlacheck list --keys`.
 * Attributes that have their default are left out; order is fixed; so
 * printing what was parsed gives the canonical name back.
 *
 * An invalid case is a valid one with a change appended:
 *   decode:bf16:b1,h1,q1,page16,len=5!seq_lens[0]=-1
 */
#ifndef MLA_CASE_H
#define MLA_CASE_H

#include "mla/mla.h"

typedef enum mla_case_key {
  MLA_K_REQUESTS, /* b */
  MLA_K_HEADS,
  MLA_K_KV_HEADS,
  MLA_K_TOKENS, /* n */
  MLA_K_M,
  MLA_K_N,
  MLA_K_K,
  MLA_K_PARTS,
  MLA_K_BLOCKS,
  MLA_K_SRC_BLOCKS,
  MLA_K_COPIES,
  MLA_K_Q, /* list */
  MLA_K_PAGE,
  MLA_K_LEN,   /* list */
  MLA_K_CTX,   /* list */
  MLA_K_START, /* list */
  MLA_K_LORA,
  MLA_K_ROPE,
  MLA_K_NOPE,
  MLA_K_VHEAD,
  MLA_K_HEAD_DIM,
  MLA_K_V_DIM,
  MLA_K_Q_LORA,
  MLA_K_HIDDEN,
  MLA_K_ACT,
  MLA_K_OUT,
  MLA_K_WEIGHT,
  MLA_K_CACHE,
  MLA_K_K_SCALE,
  MLA_K_V_SCALE,
  MLA_K_POW2,
  MLA_K_SCALE,
  MLA_K_CAP,
  MLA_K_AMP,
  MLA_K_DIST,
  MLA_K_FULL,
  MLA_K_BASE2,
  MLA_K_SINK,
  MLA_K_NOLSE,
  MLA_K_SEPARATE_V,
  MLA_K_INVARIANT,
  MLA_K_FUSED_Q,
  MLA_K_FUSED_O,
  MLA_K_WITHIN,
  MLA_K_SPLITS,
  MLA_K_CHUNK,
  MLA_K_EMPTY,
  MLA_K_SLOTS,
  MLA_K_PAGES,
  MLA_K_STRIDES,
  MLA_K_WIDTH,
  MLA_K_SPARE,
  MLA_K_GAP,
  MLA_K_TAIL,
  MLA_K_LOOSE,
  MLA_K_REPLAY,
  MLA_K_CROWD,
  MLA_K_UNALIGNED,
  MLA_K_LIMIT,
  MLA_K_PREFIX,
  MLA_K_CASCADE,
  MLA_K_RANKS,
  MLA_K_INTERLEAVE,
  MLA_K_CHUNKED,
  MLA_K_TOPK,
  MLA_K_EXTRA,
  MLA_K_EXTRA_PAGE,
  MLA_K_EXTRA_BLOCKS,
  MLA_K_LISTS,
  MLA_K_TOPK_LEN,
  MLA_K_LOGITS,
  MLA_K_ROOM,
  MLA_K_COUNT
} mla_case_key;

typedef enum mla_key_kind {
  MLA_KIND_INT,
  MLA_KIND_FLAG,
  MLA_KIND_REAL,
  MLA_KIND_DTYPE,
  MLA_KIND_FORMAT,
  MLA_KIND_WORD,
  MLA_KIND_LIST /* one value for every request, or one each: 65+64+0 */
} mla_key_kind;

/* MLA_K_DIST. What the numbers are like; generate_real.c makes them. */
typedef enum mla_dist {
  MLA_DIST_BELL,
  MLA_DIST_EXACT,   /* all scores 0, integer values: no rounding anywhere */
  MLA_DIST_ONEHOT,  /* one key has all the weight: out is that key's value */
  MLA_DIST_NEEDLE,  /* each row has a key of its own with most weight */
  MLA_DIST_OUTLIER, /* few columns sixteen times as large */
  MLA_DIST_REPEAT,  /* four distinct tokens, repeated */
  MLA_DIST_EQUAL,   /* one token, repeated: all probabilities the same */
  MLA_DIST_BIG,     /* values near the type's range */
  MLA_DIST_TINY,    /* values near the smallest numbers */
  MLA_DIST_EDGE,    /* writers: ties, zeros of both signs, infinities, NaN */
  MLA_DIST_NAN      /* merge: a NaN among what counts; attention: every
                       other request has nothing but NaN for keys */
} mla_dist;

typedef enum mla_empty { /* MLA_K_EMPTY: which parts hold nothing */
                         MLA_EMPTY_NONE,
                         MLA_EMPTY_SOME, /* about a third, at random, infinities
                                            of both signs */
                         MLA_EMPTY_FIRST, /* the first part of every row */
                         MLA_EMPTY_ROWS,  /* every part of every other row */
                         MLA_EMPTY_ALL
} mla_empty;

typedef enum mla_slots { /* MLA_K_SLOTS: the pattern of slot_mapping */
                         MLA_SLOTS_RANDOM,
                         MLA_SLOTS_INORDER,
                         MLA_SLOTS_HOLES, /* a third is -1: first, last and runs
                                             among them */
                         MLA_SLOTS_NONE,  /* all -1 */
                         MLA_SLOTS_SHORT  /* fewer slots than tokens: padding
                                             rows at the end */
} mla_slots;

typedef enum mla_pages { /* MLA_K_PAGES: physical order */
                         MLA_PAGES_RANDOM,
                         MLA_PAGES_INORDER,
                         MLA_PAGES_REVERSED
} mla_pages;

typedef enum mla_lists { /* MLA_K_LISTS: the pattern of indices, positions */
                         MLA_LISTS_FRONT,  /* as a selector leaves them: keys,
                                              -1 behind them */
                         MLA_LISTS_HOLES,  /* -1 in front and between, values
                                              out of range on either side */
                         MLA_LISTS_LATE,   /* -1 but for the last quarter */
                         MLA_LISTS_REPEAT, /* each key twice, or three times */
                         MLA_LISTS_ROWS,   /* every other row all -1 */
                         MLA_LISTS_NONE    /* no row names a key */
} mla_lists;

typedef enum mla_strides { /* MLA_K_STRIDES */
                           MLA_STRIDES_DENSE,
                           MLA_STRIDES_PADDED, /* gaps of 8 elements on every
                                                  inner axis */
                           MLA_STRIDES_ODD,    /* gaps of 3 */
                           MLA_STRIDES_TURNED  /* a head's tokens together:
                                                  what a product for each head
                                                  leaves behind */
} mla_strides;

#define MLA_CASE_LIST_MAX 256
#define MLA_CASE_LISTS 4
#define MLA_CASE_EDIT_MAX 160
#define MLA_CASE_ID_MAX 4096

typedef struct mla_case_list {
  int32_t count; /* 0 absent, 1 the same for all, else one a request */
  int32_t value[MLA_CASE_LIST_MAX];
} mla_case_list;

typedef struct mla_case {
  int32_t op;
  int32_t format;           /* mla_cache_format; for operations without a
                               cache the plain format of the same name */
  int64_t num[MLA_K_COUNT]; /* integers, flags, types, words */
  double real[MLA_K_COUNT];
  mla_case_list list[MLA_CASE_LISTS];
  char edit[MLA_CASE_EDIT_MAX]; /* what follows "!", or "" */
} mla_case;

/* One attribute, and what it is to one operation. */
typedef struct mla_key_spec {
  const char *name;
  const char *help;
  int8_t kind;
  int8_t bare;              /* printed "b4", not "b=4" */
  int8_t list;              /* which of mla_case.list */
  const char *const *words; /* NULL-terminated; index is the value */
} mla_key_spec;

typedef struct mla_key_use {
  int8_t key;
  int8_t always; /* printed even when it has its default */
  int64_t min, max;
  int64_t def;
} mla_key_use;

const mla_key_spec *mla_key_spec_of(int key);
/* Attributes of an operation, in order of printing; NULL: unknown op. */
const mla_key_use *mla_key_uses(int32_t op, int32_t *count);
/* NULL when the operation has no such attribute. */
const mla_key_use *mla_key_use_of(int32_t op, int key);

/* A case with every default. */
void mla_case_init(mla_case *c, int32_t op, int32_t format);
/*
 * INVALID_ARGUMENT with the character's position for text that is no case,
 * or one whose attributes contradict each other.
 */
mla_status mla_case_parse(const char *id, mla_case *c, mla_error *err);
/* The canonical name; returns its length, as snprintf does. */
int mla_case_print(const mla_case *c, char *id, size_t size);
/* Do the attributes agree? mla_case_parse has asked already. */
mla_status mla_case_check(const mla_case *c, mla_error *err);

/* Value of a list for request b; 0 when the list is absent. */
int32_t mla_case_at(const mla_case *c, int key, int64_t b);
int mla_case_list_given(const mla_case *c, int key);
/* seq_len of request b: len, or for prefill ctx + q. */
int64_t mla_case_seq_len(const mla_case *c, int64_t b);
/* Entries of request b that lie in the cache: len, or for prefill ctx. */
int64_t mla_case_cached(const mla_case *c, int64_t b);
/* Keys of request b that are those of the first request with any. */
int64_t mla_case_shared(const mla_case *c, int64_t b);
/* That request. */
int64_t mla_case_first(const mla_case *c);
/* Is it a composition over the backend's operations (composed.h)? */
int mla_case_composed(const mla_case *c);
/* Entries a block of the second cache. */
int32_t mla_case_extra_page(const mla_case *c);
/* Rows of the packed step, tail included; and without it. */
int64_t mla_case_tokens(const mla_case *c);
int64_t mla_case_live_tokens(const mla_case *c);

/* The described problem and the limits of this one step. */
mla_problem mla_case_problem(const mla_case *c);
mla_limits mla_case_limits(const mla_case *c);
/* Free symbols of op_table.h. */
int64_t mla_case_sym(const mla_case *c, int sym);

/* Floating-point operations of a plain implementation. */
double mla_case_flops(const mla_case *c);
/* Bytes of all tensors, roughly. */
double mla_case_bytes(const mla_case *c);

#endif
