/*
 * bench_sweeps.c - what is measured when nobody says what.
 */
#include <string.h>

#include "bench.h"

static const char *const decode[] = {
    "decode:bf16:b1,h1,q1,page64,len=4096",
    "decode:bf16:b1,h4,q1,page64,len=4096",
    "decode:bf16:b1,h8,q1,page64,len=4096",
    "decode:bf16:b1,h16,q1,page64,len=1024",
    "decode:bf16:b1,h16,q1,page64,len=4096",
    "decode:bf16:b1,h16,q1,page64,len=16384",
    "decode:f16:b1,h16,q1,page64,len=4096",
    "decode:f32:b1,h16,q1,page64,len=4096",
    "decode:bf16:b1,h20,q1,page64,len=4096",
    "decode:bf16:b1,h64,q1,page64,len=4096",
    "decode:bf16:b1,h128,q1,page64,len=1024",
    "decode:bf16:b1,h128,q1,page64,len=4096",
    "decode:bf16:b1,h128,q1,page64,len=16384",
    "decode:f16:b1,h128,q1,page64,len=4096",
    "decode:f32:b1,h128,q1,page64,len=4096",
    "decode:bf16:b4,h128,q2,page64,len=1024",
    "decode:bf16:b4,h16,q1,page64,len=1+17+100+5000",
    NULL};

#define LENGTHS(head)                         \
  "decode:bf16:" head ",page64,len=1024",     \
      "decode:bf16:" head ",page64,len=4096", \
      "decode:bf16:" head ",page64,len=8192", \
      "decode:bf16:" head ",page64,len=32768"
#define BATCHES(rest)                                             \
  LENGTHS("b1," rest), LENGTHS("b8," rest), LENGTHS("b32," rest), \
      LENGTHS("b128," rest)
static const char *const batches[] = {BATCHES("h16,q1"),
                                      BATCHES("h16,q2"),
                                      BATCHES("h64,q1"),
                                      BATCHES("h64,q2"),
                                      BATCHES("h128,q1"),
                                      BATCHES("h128,q2"),
                                      NULL};

/* One request, then as many keys in all at each length as in the longest: a
   machine is full of short ones when there are many. */
static const char *const lengths[] = {
    "decode:bf16:b1,h128,q1,page64,len=1024",
    "decode:bf16:b1,h128,q1,page64,len=4096",
    "decode:bf16:b1,h128,q1,page64,len=16384",
    "decode:bf16:b1,h128,q1,page64,len=65536",
    "decode:bf16:b1,h128,q1,page64,len=131072",
    "decode:bf16:b2,h128,q1,page64,len=65536",
    "decode:bf16:b8,h128,q1,page64,len=16384",
    "decode:bf16:b32,h128,q1,page64,len=4096",
    "decode:bf16:b128,h128,q1,page64,len=1024",
    NULL};

/* Pairs of as many keys, in 32 requests of four lengths and in 8 of one: how
   much later the last thread ends. */
#define RAGGED(head)                                              \
  "decode:bf16:b32," head                                         \
  ",q1,page64,len=1+17+100+5000+1+17+100"                         \
  "+5000+1+17+100+5000+1+17+100+5000+1+17+100+5000+1+17+100+5000" \
  "+1+17+100+5000+1+17+100+5000",                                 \
      "decode:bf16:b8," head ",q1,page64,len=5118"
static const char *const ragged[] = {RAGGED("h16"), RAGGED("h128"), NULL};

static const char *const prefill[] = {"prefill:bf16:b1,h16,q=1024,page64",
                                      "prefill:bf16:b1,h16,q=4096,page64",
                                      "prefill:bf16:b1,h128,q=1024,page64",
                                      "prefill:bf16:b1,h128,q=4096,page64",
                                      "prefill:bf16:b1,h128,q=8192,page64",
                                      "prefill:f32:b1,h16,q=1024,page64",
                                      NULL};

#define LISTED(head)                                          \
  "decode:fp8_ds_mla:b1," head, "decode:fp8_ds_mla:b8," head, \
      "decode:fp8_ds_mla:b32," head, "decode:fp8_ds_mla:b128," head
static const char *const sparse[] = {
    "decode:bf16:b1,h128,q1,page64,len=32768,topk=2048",
    "decode:bf16:b32,h128,q1,page64,len=32768,topk=2048",
    LISTED("h64,q1,page64,len=32768,topk=2048"),
    LISTED("h128,q1,page64,len=32768,topk=2048"), NULL};

static const char *const formats[] = {
    "decode:f32:b1,h128,q1,page64,len=4096",
    "decode:f16:b1,h128,q1,page64,len=4096",
    "decode:bf16:b1,h128,q1,page64,len=4096",
    "decode:fp8_e4m3:b1,h128,q1,page64,len=4096",
    "decode:fp8_ds_mla:b1,h128,q1,page64,len=4096",
    "decode:fp8_token:b1,h128,q1,page64,len=4096",
    "decode:int8_token:b1,h16,q1,page64,len=4096",
    "decode:int8_token:b1,h128,q1,page64,len=4096",
    "decode:int4_token:b1,h128,q1,page64,len=4096",
    NULL};

/* Caches are filled whole, so that all of them counts as moved; 75 MB and more
   each way are beyond any last-level cache of today. */
static const char *const memory[] = {
    "kv_write:bf16:n65536,page64,nb1024,slots=inorder",
    "kv_write:bf16:n65536,page64,nb1024",
    "kv_write:bf16:n65536,page64,nb1024,act=f32,slots=inorder",
    "kv_write:bf16:n65536,page64,nb1024,act=f32",
    "kv_write:fp8_ds_mla:n16384,page64,nb256",
    "kv_read:bf16:b4,page64,len=16384",
    "kv_read:bf16:b4,page64,len=16384,out=f32",
    "kv_copy:bf16:nb1024,nbs1024,copies1024",
    "merge:f32:n128,h128,s8,v512",
    "merge:bf16:n128,h128,s8,v512",
    "merge:bf16:n256,h128,s2,v512",
    NULL};

static const char *const products[] = {"matmul:bf16:m1,n7168,k2048",
                                       "matmul:bf16:m128,n7168,k2048",
                                       "matmul:bf16:m4096,n7168,k2048",
                                       "matmul:f32:m1024,n4096,k1536",
                                       "q_absorb:bf16:n128,h128",
                                       "v_expand:bf16:n128,h128",
                                       NULL};

/* Of DeepSeek-V3, in the order that a step asks for them. */
#define LAYER(n)                                                        \
  "matmul:bf16:m" n ",n1536,k7168", "matmul:bf16:m" n ",n576,k7168",    \
      "matmul:bf16:m" n ",n24576,k1536", "kv_write:bf16:n" n ",page64", \
      "q_absorb:bf16:n" n ",h128",                                      \
      "decode:bf16:b" n ",h128,q1,page64,len=4096",                     \
      "v_expand:bf16:n" n ",h128", "matmul:bf16:m" n ",n7168,k16384"
static const char *const layer[] = {LAYER("1"), LAYER("8"), LAYER("32"),
                                    LAYER("128"), NULL};

static const bench_sweep sweeps[] = {
    {"decode", "one request, few heads to many", decode},
    {"batches", "heads x queries x batch x length, dense bf16", batches},
    {"lengths", "128 heads, 1k to 128k keys, one request and many", lengths},
    {"ragged", "lengths 1, 17, 100, 5000, eight of each, and one", ragged},
    {"prefill", "causal, keys 192 wide, values 128", prefill},
    {"sparse", "2048 listed entries a row", sparse},
    {"formats", "every kind of cache", formats},
    {"memory", "what only moves data", memory},
    {"products", "the layer's products", products},
    {"layer", "what 128 heads ask of a step of 1, 8, 32, 128 tokens", layer},
};

const bench_sweep *bench_sweep_at(int i) {
  int count = (int)(sizeof sweeps / sizeof sweeps[0]);
  return i >= 0 && i < count ? &sweeps[i] : NULL;
}

const bench_sweep *bench_sweep_named(const char *name) {
  const bench_sweep *s;
  for (int i = 0; (s = bench_sweep_at(i)) != NULL; i++)
    if (strcmp(s->name, name) == 0) return s;
  return NULL;
}
