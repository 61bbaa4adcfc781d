/*
 * sm90_cluster.h - CTAs of a cluster and each other's shared memory.
 */
#ifndef MLA_SM90_CLUSTER_H
#define MLA_SM90_CLUSTER_H

#include "sm90_wgmma.h"

MLA_PTX int cluster_rank() {
  int v;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(v));
  return v;
}
MLA_PTX int cluster_size() {
  int v;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(v));
  return v;
}

/* All threads of all CTAs; what they stored before is seen behind it. */
MLA_PTX void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

/* The same place in a CTA's shared memory. */
MLA_PTX uint32_t cluster_address(uint32_t at, int rank) {
  uint32_t v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(v)
               : "r"(at), "r"(rank));
  return v;
}
MLA_PTX float4 cluster_load(uint32_t from) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
MLA_PTX uint32_t cluster_load_u32(uint32_t from) {
  uint32_t v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];"
               : "=r"(v)
               : "r"(from)
               : "memory");
  return v;
}
MLA_PTX uint2 cluster_load_u32x2(uint32_t from) {
  uint2 v;
  asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "r"(from)
               : "memory");
  return v;
}

#endif
