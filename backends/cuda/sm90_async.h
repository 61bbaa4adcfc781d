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

/* Programmatic dependent launch. */
MLA_PTX void pdl_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
MLA_PTX void pdl_launch() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

#endif
