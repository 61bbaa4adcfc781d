/*
 * mla/backend.h - what a backend of multi-head latent attention (MLA) is.
 *
 * A port includes this header and nothing else of libmla, exports one
 * function, mla_backend_get(), and links with nothing. The header compiles
 * alone as C99, C11 and C++17.
 *
 * The meaning of every operation is in docs/spec.md; this header gives the
 * shapes, units and errors. Names of sizes are the ones model configs use.
 *
 * The rules of the binary interface (docs/abi.md):
 *   - A struct that crosses begins with `size`, its sizeof at the writer. A
 *     reader never touches a member beyond it; an absent member reads as 0,
 *     and 0 always means what it meant before the member existed.
 *   - `major` must match. `minor` only appends members, operations, slots,
 *     formats and flag bits. An unknown flag bit is an error, never ignored.
 *   - mla_tensor is frozen: it grows only with a new major.
 *   - No exception, errno, abort or printing crosses the boundary.
 *   - The caller owns all tensors and the workspace. run() neither allocates
 *     nor synchronises; what it needs is sized by query().
 */
#ifndef MLA_BACKEND_H
#define MLA_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLA_ABI_MAJOR 1
#define MLA_ABI_MINOR 1

/* ---------------------------------------------------------------- status */

/* Values are pinned: they are printed, logged and compared across versions. */
typedef enum mla_status {
  MLA_OK = 0,
  MLA_INVALID_ARGUMENT = 1,    /* the call breaks a rule; nothing was done */
  MLA_UNSUPPORTED = 2,         /* a lawful call this backend cannot serve */
  MLA_WORKSPACE_TOO_SMALL = 3, /* fewer bytes than query() or plan() said */
  MLA_OUT_OF_MEMORY = 4,
  MLA_NOT_AVAILABLE = 5,   /* no such device, driver or library here */
  MLA_DEVICE_ERROR = 6,    /* the device failed; backend_code has its code */
  MLA_VERSION_MISMATCH = 7 /* major differs, or a struct is too short */
} mla_status;

/*
 * Filled by whoever returns a status other than MLA_OK, when the caller gave
 * one. `field` names the argument, `message` is one sentence with the field,
 * the value and the limit. Both are always terminated.
 */
typedef struct mla_error {
  uint32_t size;
  int32_t status;       /* mla_status */
  int64_t backend_code; /* the platform's own code (cudaError_t ...), or 0 */
  char field[32];
  char message[240];
} mla_error;

/* ----------------------------------------------------------------- types */

typedef enum mla_dtype {
  MLA_DTYPE_NONE = 0,
  MLA_F64 = 1,
  MLA_F32 = 2,
  MLA_F16 = 3,
  MLA_BF16 = 4,
  MLA_FP8_E4M3 = 5,     /* OCP e4m3fn: max 448, no infinity, NaN 0x7f/0xff */
  MLA_FP8_E4M3FNUZ = 6, /* max 240, NaN 0x80, no negative zero */
  MLA_FP8_E5M2 = 7,     /* max 57344, infinities and NaN as in IEEE */
  MLA_E8M0 = 8,         /* a power-of-two scale, 2^(code - 127), NaN 0xff */
  MLA_I8 = 9,
  MLA_I4 = 10, /* two a byte, low nibble first */
  MLA_U8 = 11, /* packed cache entries: bytes whose meaning is the format's */
  MLA_I32 = 12,
  MLA_I64 = 13
} mla_dtype;

/*
 * How the bytes of a cache entry are laid out (docs/spec.md, section 2).
 * f64 is for checking only: no fast backend is expected to serve it.
 */
typedef enum mla_cache_format {
  MLA_CACHE_NONE = 0,
  MLA_CACHE_F64 = 1,
  MLA_CACHE_F32 = 2,
  MLA_CACHE_F16 = 3,
  MLA_CACHE_BF16 = 4,
  MLA_CACHE_FP8_E4M3 = 5,
  MLA_CACHE_FP8_E4M3FNUZ = 6,
  MLA_CACHE_FP8_E5M2 = 7,
  MLA_CACHE_FP8_DS_MLA = 8, /* 656 bytes an entry */
  MLA_CACHE_FP8_584 = 9,
  MLA_CACHE_FP8_TOKEN = 10,
  MLA_CACHE_INT8_TOKEN = 11,
  MLA_CACHE_INT4_TOKEN = 12,
  MLA_CACHE_FP8_INDEX = 13 /* index keys: codes and an f32 scale, 132 bytes */
} mla_cache_format;

#define MLA_MAX_RANK 5

/*
 * A view of memory in the space of the backend's device. stride[] counts
 * elements of dtype (bytes for MLA_U8), may be larger than dense, and is 1
 * on the last axis; a stride of 0 on an axis of length 1 is allowed. data is
 * NULL when the tensor is absent. Offsets are 64-bit: a tensor may hold more
 * than 2^31 elements.
 */
typedef struct mla_tensor {
  void *data;
  int32_t dtype; /* mla_dtype */
  int32_t rank;
  int64_t shape[MLA_MAX_RANK];
  int64_t stride[MLA_MAX_RANK];
} mla_tensor;

/* ------------------------------------------------------------ operations */

typedef enum mla_op {
  MLA_OP_NONE = 0,
  MLA_OP_KV_WRITE = 1, /* latents and rope keys into cache slots */
  MLA_OP_KV_READ = 2,  /* gather by block table, widen to a dense tensor */
  MLA_OP_KV_COPY = 3,  /* whole blocks, within or between caches */
  MLA_OP_ABSORB = 4,   /* kv_b_proj -> W_UK, W_UV */
  MLA_OP_Q_ABSORB = 5, /* q_nope x W_UK -> q_latent */
  MLA_OP_V_EXPAND = 6, /* o_latent x W_UV -> out */
  MLA_OP_DECODE = 7,   /* attention over a paged cache */
  MLA_OP_PREFILL = 8,  /* up-projected attention, context + new tokens */
  MLA_OP_MERGE = 9,    /* combine partial results by log-sum-exp */
  MLA_OP_MATMUL = 10,  /* out[M,N] = a[M,K] x b[N,K]^T, the layer's products */
  MLA_OP_INDEX = 11,   /* sparse attention: logits of positions, the top k */
  MLA_OP_MAP_INDICES = 12 /* positions of requests to cache slots */
} mla_op;

/*
 * The tensors of the operations. mla_args.tensor[] is indexed by these.
 * Shapes (symbols: docs/spec.md, section 1; B requests, N query tokens of a
 * step packed without padding, NB blocks of BS entries of E elements, W the
 * width of the block table, KVH kv heads):
 *
 * kv_write  kv_c[T,L] k_pe[T,R] slot_mapping[S<=T] -> cache[NB,BS,E]
 * kv_read   cache[NB,BS,E] block_table[B,W] cu_seq_lens[B+1]
 *           seq_starts[B]? -> dst[tokens,L+R]
 * kv_copy   src_cache[NBs,BS,E] block_mapping[M,2] -> cache[NB,BS,E]
 * absorb    kv_b_proj[H*(P+V),L] -> w_uk[H,P,L] w_uv[H,V,L]
 *           (MLA_FUSED_Q: q_b_proj[H*(P+R),Lq] -> w_q_uk[Lq,H,L] w_qr[Lq,H,R]
 *            MLA_FUSED_O: o_proj[hidden,H*V] -> w_uv_o[H,L,hidden])
 * q_absorb  q_nope[N,H,P] w_uk[H,P,L] -> q_latent[N,H,L]
 * v_expand  o_latent[N,H,L] w_uv[H,V,L] -> out[N,H,V]
 * decode    q[N,H,D] cache[NB,BS,E] block_table[B,W] seq_lens[B]
 *           query_start_loc[B+1] sink[H]? -> out[N,H,v_dim] lse[N,H]?
 *           (MLA_SEPARATE_V: cache[NB,BS,KVH,D] v_cache[NB,BS,KVH,v_dim])
 *           (MLA_SPARSE: q[N,H,D] cache[NB,BS,E] indices[N,topk] topk_len[N]?
 *            sink[H]? -> out lse?: the listed slots instead of a table;
 *            MLA_EXTRA_CACHE: also extra_cache[NBx,BSx,E]
 *            extra_indices[N,topkx] extra_topk_len[N]?)
 * prefill   q[N,H,P+R] kv_c[N,L] k_pe[N,R] kv_b_proj[H*(P+V),L] seq_lens[B]
 *           query_start_loc[B+1] sink[H]? -> out[N,H,V] lse[N,H]?
 *           (MLA_CONTEXT: cache[NB,BS,E] block_table[B,W] as in decode)
 * merge     parts[S,N,H,Dv] part_lses[S,N,H] sink[H]?
 *           -> out[N,H,Dv] lse[N,H]?
 * matmul    a[M,K] b[N,K] -> out[M,N]
 * index     q[N,H,D] cache[NB,BS,E] index_weights[N,H] block_table[B,W]
 *           seq_lens[B] query_start_loc[B+1] -> positions[N,topk]
 *           (MLA_RETURN_LOGITS: logits[N,S], those of hidden positions -inf)
 * map_indices  positions[N,topk] block_table[B,W] query_start_loc[B+1]
 *           -> indices[N,topk]
 *
 * With MLA_BLOCK_SCALED (absorb, weights in e4m3) each block of 128 x 128
 * weights has a scale: kv_b_scale[ceil(H*(P+V)/128),ceil(L/128)] and, for the
 * fused forms, q_b_scale and o_scale likewise.
 *
 * Sparse prefill is sparse decode with many rows. Index keys are a cache
 * whose entry is one key: written by kv_write with L = Di and R = 0 (no
 * k_pe).
 *
 * MLA_SCALE_POW2: scales of the 656-byte format are at least 1e-4, and then
 * rounded up to a power of two.
 *
 * Element types: index_weights, logits, scales of blocks f32; lse, part_lses,
 * sink f32; slot_mapping, block_mapping i64; every other index tensor i32;
 * q-like tensors q_dtype; weights weight_dtype; outputs out_dtype (kv_read's
 * dst too); cache by its format. The reference also takes f64 where f32 stands
 * if q_dtype is f64 (lse, part_lses, sink, index_weights, logits).
 */
typedef enum mla_slot {
  MLA_T_Q = 0,
  MLA_T_KV_C = 1,
  MLA_T_K_PE = 2,
  MLA_T_SLOT_MAPPING = 3,
  MLA_T_CACHE = 4,
  MLA_T_V_CACHE = 5,
  MLA_T_BLOCK_TABLE = 6,
  MLA_T_SEQ_LENS = 7,
  MLA_T_QUERY_START_LOC = 8,
  MLA_T_CU_SEQ_LENS = 9,
  MLA_T_SEQ_STARTS = 10,
  MLA_T_DST = 11,
  MLA_T_SRC_CACHE = 12,
  MLA_T_BLOCK_MAPPING = 13,
  MLA_T_KV_B_PROJ = 14,
  MLA_T_W_UK = 15,
  MLA_T_W_UV = 16,
  MLA_T_Q_NOPE = 17,
  MLA_T_Q_LATENT = 18,
  MLA_T_O_LATENT = 19,
  MLA_T_OUT = 20,
  MLA_T_LSE = 21,
  MLA_T_SINK = 22,
  MLA_T_PARTS = 23,
  MLA_T_PART_LSES = 24,
  MLA_T_A = 25,
  MLA_T_B = 26,
  MLA_T_Q_B_PROJ = 27,
  MLA_T_O_PROJ = 28,
  MLA_T_W_Q_UK = 29,
  MLA_T_W_QR = 30,
  MLA_T_W_UV_O = 31,
  MLA_T_INDICES = 32,
  MLA_T_TOPK_LEN = 33,
  MLA_T_EXTRA_CACHE = 34,
  MLA_T_EXTRA_INDICES = 35,
  MLA_T_EXTRA_TOPK_LEN = 36,
  MLA_T_INDEX_WEIGHTS = 37,
  MLA_T_LOGITS = 38,
  MLA_T_POSITIONS = 39,
  MLA_T_KV_B_SCALE = 40,
  MLA_T_Q_B_SCALE = 41,
  MLA_T_O_SCALE = 42
} mla_slot;
#define MLA_T_COUNT 43 /* of this minor; grows */

/* Flag bits of mla_problem.flags. */
#define MLA_CAUSAL ((uint64_t)1 << 0)     /* bottom-right aligned mask */
#define MLA_RETURN_LSE ((uint64_t)1 << 1) /* write MLA_T_LSE */
#define MLA_LSE_BASE2 ((uint64_t)1 << 2)  /* lse is log2, not ln */
#define MLA_HAS_SINK ((uint64_t)1 << 3)   /* MLA_T_SINK is given */
#define MLA_SEPARATE_V ((uint64_t)1 << 4) /* K and V in caches of their own */
#define MLA_CONTEXT ((uint64_t)1 << 5)    /* prefill: part of it is cached */
#define MLA_BATCH_INVARIANT ((uint64_t)1 << 6) /* a row's bits: mates aside */
#define MLA_FUSED_Q ((uint64_t)1 << 7)         /* absorb: also w_q_uk, w_qr */
#define MLA_FUSED_O ((uint64_t)1 << 8)         /* absorb: also w_uv_o */
#define MLA_ALIBI ((uint64_t)1 << 9) /* known; every backend refuses it */
#define MLA_OUTPUT_SCALE ((uint64_t)1 << 10)  /* likewise */
#define MLA_SPARSE ((uint64_t)1 << 11)        /* decode: MLA_T_INDICES decide */
#define MLA_EXTRA_CACHE ((uint64_t)1 << 12)   /* sparse: a second cache */
#define MLA_SCALE_POW2 ((uint64_t)1 << 13)    /* kv_write: powers of two */
#define MLA_RETURN_LOGITS ((uint64_t)1 << 14) /* index: write MLA_T_LOGITS */
#define MLA_BLOCK_SCALED ((uint64_t)1 << 15)  /* absorb: weights have scales */
#define MLA_COMMON_PREFIX ((uint64_t)1 << 16) /* decode: run_prefix follows */
#define MLA_ALL_FLAGS ((((uint64_t)1 << 17) - 1))

/*
 * An operation on described data: formats, sizes, flags. What is the same
 * for every step of a model stands here; what changes stands in mla_limits
 * and mla_args. Sizes an operation does not use are ignored and should be 0.
 */
typedef struct mla_problem {
  uint32_t size;
  int32_t op; /* mla_op */
  uint64_t flags;
  int32_t q_dtype;          /* queries and activations; the compute type */
  int32_t out_dtype;        /* outputs */
  int32_t weight_dtype;     /* kv_b_proj, w_uk, w_uv, matmul's b */
  int32_t cache_format;     /* mla_cache_format; kv_copy: of both caches */
  int32_t num_heads;        /* H, after sharding */
  int32_t num_kv_heads;     /* 0 reads as 1; divides num_heads */
  int32_t kv_lora_rank;     /* L */
  int32_t qk_nope_head_dim; /* P */
  int32_t qk_rope_head_dim; /* R */
  int32_t v_head_dim;       /* V; merge: the width of the parts */
  int32_t head_dim;         /* decode: width of q and of a key; 0: L + R */
  int32_t v_dim;            /* decode: width of a value; 0: L */
  int32_t q_lora_rank;      /* Lq, for MLA_FUSED_Q; matmul: K */
  int32_t hidden_size;      /* for MLA_FUSED_O; matmul: N */
  int32_t block_size;       /* entries a cache block */
  int32_t window;           /* sliding window; 0 none; else refused */
  double scale;             /* softmax scale; > 0, finite */
  double logits_soft_cap;   /* 0 none; c > 0: c * tanh(score / c) */
  double k_scale;     /* 8-bit caches with one scale: real = code * k_scale;
                         > 0, finite. Ignored for all others */
  double v_scale;     /* MLA_SEPARATE_V: that of v_cache */
  int32_t topk;       /* sparse decode, index, map_indices: width of the list */
  int32_t extra_topk; /* MLA_EXTRA_CACHE: of its list */
  int32_t extra_block_size; /* MLA_EXTRA_CACHE: entries a block of it */
  int32_t reserved;         /* 0 */
} mla_problem;

/*
 * Upper bounds of the steps that one plan will serve; run() is right for any
 * contents within them. A backend sizes its workspace by these. Bounds that
 * an operation does not use are ignored. The host arrays are hints (both or
 * none; requests [+1] entries; not kept after the call).
 */
typedef struct mla_limits {
  uint32_t size;
  int32_t num_splits;      /* KV splits wanted; 0: the backend chooses */
  int64_t requests;        /* B */
  int64_t tokens;          /* N or T or M: rows of the packed step */
  int64_t max_query_len;   /* of one request */
  int64_t max_seq_len;     /* of one request */
  int64_t num_blocks;      /* NB, the larger of two caches */
  int64_t table_width;     /* W */
  int64_t parts;           /* merge: S */
  int64_t context_chunk;   /* prefill: context tokens up-projected at once;
                              0: the backend chooses */
  const int32_t *seq_lens; /* hint, in host memory, or NULL */
  const int32_t *query_start_loc; /* hint, in host memory, or NULL */
} mla_limits;

typedef struct mla_args {
  uint32_t size;
  uint32_t count;           /* entries of tensor[] (MLA_T_COUNT) */
  const mla_tensor *tensor; /* tensor[slot]; data NULL: absent */
} mla_args;

/* --------------------------------------------------- what a yes promises */

typedef enum mla_determinism {
  MLA_DETERMINISM_NONE = 0,
  MLA_DETERMINISM_RUN_TO_RUN = 1,     /* same call, same bits */
  MLA_DETERMINISM_BATCH_INVARIANT = 2 /* and a row's bits: its own data only */
} mla_determinism;

/* How a quantised value code x scale becomes an operand of the product. */
typedef enum mla_dequant {
  MLA_DEQUANT_ROUND_PRODUCT = 0, /* round(f32(code * scale)) */
  MLA_DEQUANT_ROUND_SCALE = 1,   /* round(code * round(scale)) */
  MLA_DEQUANT_F32 = 2,           /* f32(code * scale), not rounded further */
  MLA_DEQUANT_SCALE_AFTER = 3    /* scale applied after the product */
} mla_dequant;

typedef enum mla_q_round {
  MLA_Q_ROUND_NONE = 0,
  MLA_Q_ROUND_INT8_ROW = 1 /* q row to int8 with scale amax / 127 */
} mla_q_round;

/*
 * The arithmetic a backend admits to. The judge derives the error budget
 * from it (docs/tolerance.md); whatever is understated fails. A roundoff of
 * 0 reads as 2^-24 (f32).
 */
typedef struct mla_numerics {
  double u_acc;    /* accumulator; at most 2^-24 */
  double u_p;      /* softmax probabilities before the product with V */
  double u_mid;    /* prefill: up-projected K and V */
  int32_t dequant; /* mla_dequant */
  int32_t q_round; /* mla_q_round */
  int32_t flushes_subnormals;  /* nonzero: inputs or results may be flushed */
  int32_t rounded_denominator; /* nonzero: sums P after rounding it */
  int32_t lse_empty_positive;  /* nonzero: an empty row's lse is +infinity */
  int32_t reserved;
} mla_numerics;

typedef struct mla_answer {
  uint32_t size;
  int32_t supported;            /* 1 yes, 0 no */
  uint64_t workspace_bytes;     /* enough for any step within the limits */
  uint64_t workspace_alignment; /* power of two; 0 reads as 1 */
  uint64_t tensor_alignment;    /* bytes every data pointer needs; 0: its
                                   element size */
  int32_t determinism;          /* mla_determinism */
  int32_t capture_safe;         /* run() may be captured into a graph */
  mla_numerics numerics;
  char kernel[64];  /* name of the code path a yes would run */
  char reason[160]; /* why not, one sentence naming the field */
} mla_answer;

/* ---------------------------------------------------------------- device */

/* Values are DLPack's device types. */
typedef enum mla_memory_space {
  MLA_MEMORY_HOST = 1,
  MLA_MEMORY_CUDA = 2,
  MLA_MEMORY_ROCM = 10
} mla_memory_space;

typedef struct mla_device_info {
  uint32_t size;
  int32_t memory_space;  /* mla_memory_space */
  int32_t compute_units; /* cores, SMs, CUs */
  int32_t reserved;
  uint64_t memory_bytes; /* 0: unknown */
  char name[64];         /* as the driver says */
  char arch[32];         /* "avx2", "sm_90", "gfx942" */
} mla_device_info;

typedef struct mla_handle mla_handle;             /* an opened device */
typedef struct mla_backend_plan mla_backend_plan; /* immutable */
typedef struct mla_stream_opaque *mla_stream;     /* NULL: the default stream */
typedef struct mla_graph mla_graph;               /* a captured sequence */
typedef struct mla_event mla_event;               /* a point in a stream */

/*
 * The table a backend returns; static storage, valid for ever. Members up to
 * plan_free are required. Memory members: all or none (none: tensors live in
 * host memory, run() returns when done). Streams, graphs and events: each
 * group all or none, and none without memory members. `err` may be NULL.
 */
typedef struct mla_backend {
  uint32_t size;
  uint16_t major, minor;   /* MLA_ABI_MAJOR, MLA_ABI_MINOR of its header */
  const char *name;        /* unique, [a-z0-9_-]+ */
  const char *version;     /* the backend's own */
  const char *description; /* one line */

  /* Number of devices; 0 with the reason in err when there is none. */
  int32_t (*device_count)(mla_error *err);
  mla_status (*device_info)(int32_t device, mla_device_info *info,
                            mla_error *err);
  /* options: "key=value;key=value" or NULL; an unknown key is an error. */
  mla_status (*open)(int32_t device, const char *options, mla_handle **handle,
                     mla_error *err);
  void (*close)(mla_handle *handle);

  /*
   * Yes or no to a problem within limits; pure, cheap, never touches data.
   * A yes is a promise: to refuse or to be wrong after it is a failure. A
   * "no" is MLA_OK with supported 0 and a reason.
   */
  mla_status (*query)(mla_handle *handle, const mla_problem *problem,
                      const mla_limits *limits, mla_answer *answer,
                      mla_error *err);
  mla_status (*plan)(mla_handle *handle, const mla_problem *problem,
                     const mla_limits *limits, mla_backend_plan **plan,
                     mla_error *err);
  /*
   * Enqueues on the stream. libmla has checked the arguments before (every
   * rule of docs/spec.md, section 6 that the host can see), so a port need
   * not repeat that. A step without rows is not passed on: no tensor that
   * arrives here is empty.
   */
  mla_status (*run)(const mla_backend_plan *plan, const mla_args *args,
                    void *workspace, uint64_t workspace_bytes,
                    mla_stream stream, mla_error *err);
  void (*plan_free)(mla_backend_plan *plan);

  /* Memory. Copies and fills are ordered on the stream; the host side of a
     copy may be reused once the stream is synchronised. */
  mla_status (*mem_alloc)(mla_handle *handle, uint64_t bytes, void **memory,
                          mla_error *err);
  void (*mem_free)(mla_handle *handle, void *memory);
  mla_status (*mem_to_device)(mla_handle *handle, void *to, const void *from,
                              uint64_t bytes, mla_stream stream,
                              mla_error *err);
  mla_status (*mem_to_host)(mla_handle *handle, void *to, const void *from,
                            uint64_t bytes, mla_stream stream, mla_error *err);

  mla_status (*stream_create)(mla_handle *handle, mla_stream *stream,
                              mla_error *err);
  void (*stream_destroy)(mla_handle *handle, mla_stream stream);
  /* Waits; reports what failed on the stream since the last wait. */
  mla_status (*stream_sync)(mla_handle *handle, mla_stream stream,
                            mla_error *err);

  mla_status (*capture_begin)(mla_handle *handle, mla_stream stream,
                              mla_error *err);
  mla_status (*capture_end)(mla_handle *handle, mla_stream stream,
                            mla_graph **graph, mla_error *err);
  mla_status (*graph_launch)(mla_graph *graph, mla_stream stream,
                             mla_error *err);
  void (*graph_free)(mla_graph *graph);

  mla_status (*event_create)(mla_handle *handle, mla_event **event,
                             mla_error *err);
  mla_status (*event_record)(mla_event *event, mla_stream stream,
                             mla_error *err);
  /* Milliseconds from a to b, both reached (waits for b). */
  mla_status (*event_elapsed)(mla_event *a, mla_event *b, double *ms,
                              mla_error *err);
  void (*event_free)(mla_event *event);

  /*
   * Since 1.1; NULL: none, and a cascade is made of decodes and a merge.
   * run() of a decode that was planned with MLA_COMMON_PREFIX: the first
   * prefix_len keys of all requests with a row lie in the same blocks, and
   * every row sees them. A multiple of block_size; 0: nothing is said. The
   * result is that of run().
   */
  mla_status (*run_prefix)(const mla_backend_plan *plan, const mla_args *args,
                           int64_t prefix_len, void *workspace,
                           uint64_t workspace_bytes, mla_stream stream,
                           mla_error *err);
} mla_backend;

#if defined(_WIN32)
#define MLA_BACKEND_EXPORT __declspec(dllexport)
#else
#define MLA_BACKEND_EXPORT __attribute__((visibility("default")))
#endif

/*
 * The one symbol a plugin exports. Gets the host's version; returns NULL when
 * the major differs (the host then reports MLA_VERSION_MISMATCH).
 */
MLA_BACKEND_EXPORT const mla_backend *mla_backend_get(uint32_t host_major,
                                                      uint32_t host_minor);
typedef const mla_backend *(*mla_backend_get_fn)(uint32_t host_major,
                                                 uint32_t host_minor);
#define MLA_BACKEND_SYMBOL "mla_backend_get"

/* tensor[slot], or NULL when the caller does not give it. */
static inline const mla_tensor *mla_arg(const mla_args *args, int slot) {
  if ((uint32_t)slot >= args->count || !args->tensor[slot].data) return NULL;
  return &args->tensor[slot];
}

#ifdef __cplusplus
}
#endif
#endif
