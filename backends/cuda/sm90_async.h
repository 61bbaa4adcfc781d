/*
 * sm90_async.h - barriers in shared memory, the bulk tensor copy engine, and
 * the fences between them and ordinary stores, for sm_90a.
 */
#ifndef MLA_SM90_ASYNC_H
#define MLA_SM90_ASYNC_H

#include <cuda.h>
#include <stdint.h>

#include "sm90_wgmma.h"

MLA_PTX uint32_t smem_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

MLA_PTX float load_shared(uint32_t from) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
  return v;
}
MLA_PTX void store_shared(uint32_t to, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}
MLA_PTX float4 load_shared_4(uint32_t from) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
/* 16 bytes. */
MLA_PTX uint4 load_shared_16(uint32_t from) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
MLA_PTX void store_shared_16(uint32_t to, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
MLA_PTX void store_shared_zeros(uint32_t to) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0)
               : "memory");
}

MLA_PTX void mbar_init(uint32_t bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar),
               "r"(arrivals));
}
MLA_PTX void mbar_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
MLA_PTX void mbar_expect(uint32_t bar, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
      "r"(bytes)
      : "memory");
}
MLA_PTX void mbar_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar)
               : "memory");
}
MLA_PTX void mbar_wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni finished;\n"
      "bra.uni again;\n"
      "finished:\n}\n" ::"r"(bar),
      "r"(parity)
      : "memory");
}

/* Whether a wait would end at once. */
MLA_PTX int mbar_test(uint32_t bar, uint32_t parity) {
  int done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.s32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done;
}

/* Boxes of a tensor map into shared memory; bytes are counted at bar. */
MLA_PTX void tma_load_2d(uint32_t to, const CUtensorMap *map, int x, int y,
                         uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx"
      "::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(bar), "r"(x), "r"(y)
      : "memory");
}
MLA_PTX void tma_load_3d(uint32_t to, const CUtensorMap *map, int x, int y,
                         int z, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx"
      "::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
      "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/* For what is read once: the second-level cache lets it go first. */
MLA_PTX uint64_t l2_goes_first() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
/* As what has no policy. */
MLA_PTX uint64_t l2_stays() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
MLA_PTX void tma_load_3d(uint32_t to, const CUtensorMap *map, int x, int y,
                         int z, uint32_t bar, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx"
      "::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "l"(policy)
      : "memory");
}
MLA_PTX void tma_load_4d(uint32_t to, const CUtensorMap *map, int x, int y,
                         int z, int w, uint32_t bar, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx"
      "::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(
          to),
      "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w), "l"(policy)
      : "memory");
}
/* A line into the second-level cache. */
MLA_PTX void prefetch_line(const void *p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
}
MLA_PTX void tma_prefetch_map(const CUtensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* A box of shared memory into the tensor; done when the group is. */
MLA_PTX void tma_store_3d(const CUtensorMap *map, int x, int y, int z,
                          uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, "
      "%4}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y), "r"(z)
      : "memory");
}
MLA_PTX void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* This thread's groups no longer read shared memory; have written. */
MLA_PTX void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
MLA_PTX void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Four 8 x 8 matrices of 16-bit numbers; lane i has the address of row i % 8
   of matrix i / 8. */
MLA_PTX void store_matrices(uint32_t to, const uint32_t (&m)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
          to),
      "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
      : "memory");
}

/* The same, each matrix turned over. */
MLA_PTX void store_matrices_turned(uint32_t to, const uint32_t (&m)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, "
      "%4};" ::"r"(to),
      "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
      : "memory");
}

/* Ordinary stores before it are seen by products and copies after it. */
MLA_PTX void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Named barriers among part of a block; arrive does not wait. */
MLA_PTX void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
MLA_PTX void bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Registers of the warpgroup from here on. */
template <int N>
MLA_PTX void registers_grow() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
MLA_PTX void registers_shrink() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/* Programmatic dependent launch. */
MLA_PTX void pdl_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
MLA_PTX void pdl_launch() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

#endif
