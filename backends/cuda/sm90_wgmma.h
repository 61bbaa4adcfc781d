/*
 * sm90_wgmma.h - the warpgroup products of sm_90a that the kernels use.
 *
 * Accumulators: thread t of a warpgroup holds rows 16 * (t / 32) + t % 32 / 4
 * and that plus 8; d[4 * j + i] is column 8 * j + 2 * (t % 4) + i % 2 of the
 * first (i < 2) or second row. Tiles in shared memory are 64 elements (128
 * bytes) wide, rows one after another, 16-byte chunks swizzled by row mod 8.
 */
#ifndef MLA_SM90_WGMMA_H
#define MLA_SM90_WGMMA_H

#include <stdint.h>

#include "sm90_type.h"

#define MLA_PTX static __device__ __forceinline__

MLA_PTX void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
MLA_PTX void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N>
MLA_PTX void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/* Keeps the compiler from moving uses of d across a wait. */
template <int N>
MLA_PTX void wgmma_hold(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/*
 * Matrix descriptors, 128-byte swizzle. Rows of 128 bytes run along the
 * product's inner axis (keys of Q K^T; P): groups of 8 rows are 1024 apart.
 */
MLA_PTX uint64_t wgmma_rows(uint32_t address) {
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 |
         (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}
/*
 * Rows of 128 bytes run along the outer axis (V: a row is a key, its columns
 * are outputs): `next` bytes to the tile with the next 64 outputs.
 */
MLA_PTX uint64_t wgmma_columns(uint32_t address, uint32_t next) {
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(next >> 4) << 16 |
         (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* As many bytes on; the address is a descriptor's low half, and goes no further
   than that. */
MLA_PTX uint64_t wgmma_at(uint64_t descriptor, int bytes) {
  uint32_t lo, hi;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(lo), "=r"(hi) : "l"(descriptor));
  lo += (uint32_t)bytes >> 4;
  asm("mov.b64 %0, {%1, %2};" : "=l"(descriptor) : "r"(lo), "r"(hi));
  return descriptor;
}

/*
 * The accumulators of one instruction: its operands by number, and bound to
 * d[i], d[i + 1] ...
 */
#define WGMMA_D8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define WGMMA_D16 WGMMA_D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_D32                            \
  "%0, %1, %2, %3, %4, %5, %6, %7, "         \
  "%8, %9, %10, %11, %12, %13, %14, %15, "   \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_D64                            \
  WGMMA_D32                                  \
  ", "                                       \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_D128                                   \
  WGMMA_D64                                          \
  ", "                                               \
  "%64, %65, %66, %67, %68, %69, %70, %71, "         \
  "%72, %73, %74, %75, %76, %77, %78, %79, "         \
  "%80, %81, %82, %83, %84, %85, %86, %87, "         \
  "%88, %89, %90, %91, %92, %93, %94, %95, "         \
  "%96, %97, %98, %99, %100, %101, %102, %103, "     \
  "%104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, " \
  "%120, %121, %122, %123, %124, %125, %126, %127"
#define WGMMA_TO4(d, i) \
  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define WGMMA_TO8(d, i) WGMMA_TO4(d, i), WGMMA_TO4(d, (i) + 4)
#define WGMMA_TO16(d, i) WGMMA_TO8(d, i), WGMMA_TO8(d, (i) + 8)
#define WGMMA_TO32(d, i) WGMMA_TO16(d, i), WGMMA_TO16(d, (i) + 16)
#define WGMMA_TO64(d, i) WGMMA_TO32(d, i), WGMMA_TO32(d, (i) + 32)
#define WGMMA_TO128(d, i) WGMMA_TO64(d, i), WGMMA_TO64(d, (i) + 64)
/* The predicate: does it add to d? */
#define WGMMA_IF(operand) "{\n.reg .pred p;\nsetp.ne.b32 p, " operand ", 0;\n"
#define WGMMA_OP(shape)                                       \
  "wgmma.mma_async.sync.aligned." shape ".f32." MLA_SM90_TEXT \
  "." MLA_SM90_TEXT " {"

/* d (+)= A[64,16] B[16,16]^T, B rows along k; A too, or columns. */
template <int Columns>
MLA_PTX void wgmma_m64_ss(float (&d)[8], uint64_t a, uint64_t b,
                          int accumulate) {
  asm volatile(WGMMA_IF("%10") WGMMA_OP("m64n16k16") WGMMA_D8
               "}, %8, %9, p, 1, 1, %11, 0;\n}\n"
               : WGMMA_TO8(d, 0)
               : "l"(a), "l"(b), "r"(accumulate), "n"(Columns));
}

/* The same, B[32,16]. */
template <int Columns>
MLA_PTX void wgmma_m64_ss(float (&d)[16], uint64_t a, uint64_t b,
                          int accumulate) {
  asm volatile(WGMMA_IF("%18") WGMMA_OP("m64n32k16") WGMMA_D16
               "}, %16, %17, p, 1, 1, %19, 0;\n}\n"
               : WGMMA_TO16(d, 0)
               : "l"(a), "l"(b), "r"(accumulate), "n"(Columns));
}

/* B[64,16]; B[128,16]. */
template <int Columns>
MLA_PTX void wgmma_m64_ss(float (&d)[32], uint64_t a, uint64_t b,
                          int accumulate) {
  asm volatile(WGMMA_IF("%34") WGMMA_OP("m64n64k16") WGMMA_D32
               "}, %32, %33, p, 1, 1, %35, 0;\n}\n"
               : WGMMA_TO32(d, 0)
               : "l"(a), "l"(b), "r"(accumulate), "n"(Columns));
}
template <int Columns>
MLA_PTX void wgmma_m64_ss(float (&d)[64], uint64_t a, uint64_t b,
                          int accumulate) {
  asm volatile(WGMMA_IF("%66") WGMMA_OP("m64n128k16") WGMMA_D64
               "}, %64, %65, p, 1, 1, %67, 0;\n}\n"
               : WGMMA_TO64(d, 0)
               : "l"(a), "l"(b), "r"(accumulate), "n"(Columns));
}

/* d (+)= A[64,16] B[64,16]^T, both rows along k. */
MLA_PTX void wgmma_m64n64k16_ss(float (&d)[32], uint64_t a, uint64_t b,
                                int accumulate) {
  asm volatile(WGMMA_IF("%34") WGMMA_OP("m64n64k16") WGMMA_D32
               "}, %32, %33, p, 1, 1, 0, 0;\n}\n"
               : WGMMA_TO32(d, 0)
               : "l"(a), "l"(b), "r"(accumulate));
}

/* The same with A in registers. */
MLA_PTX void wgmma_m64n64k16_rs(float (&d)[32], const uint32_t (&a)[4],
                                uint64_t b, int accumulate) {
  asm volatile(WGMMA_IF("%37") WGMMA_OP("m64n64k16") WGMMA_D32
               "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"
               : WGMMA_TO32(d, 0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),
                 "r"(accumulate));
}

/* d (+)= A[64,16] B[128,16]^T, both rows along k. */
MLA_PTX void wgmma_m64n128k16_ss(float (&d)[64], uint64_t a, uint64_t b,
                                 int accumulate) {
  asm volatile(WGMMA_IF("%66") WGMMA_OP("m64n128k16") WGMMA_D64
               "}, %64, %65, p, 1, 1, 0, 0;\n}\n"
               : WGMMA_TO64(d, 0)
               : "l"(a), "l"(b), "r"(accumulate));
}

/* d (+)= A[64,16] B[16,128], A in registers, B columns. */
MLA_PTX void wgmma_m64n128k16_rs(float (&d)[64], const uint32_t (&a)[4],
                                 uint64_t b, int accumulate) {
  asm volatile(WGMMA_IF("%69") WGMMA_OP("m64n128k16") WGMMA_D64
               "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
               : WGMMA_TO64(d, 0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),
                 "r"(accumulate));
}

/* d (+)= A[64,16] B[16,256], A rows along k, B columns (else rows too). */
template <int Columns = 1>
MLA_PTX void wgmma_m64n256k16_ss(float (&d)[128], uint64_t a, uint64_t b,
                                 int accumulate) {
  asm volatile(WGMMA_IF("%130") WGMMA_OP("m64n256k16") WGMMA_D128
               "}, %128, %129, p, 1, 1, 0, %131;\n}\n"
               : WGMMA_TO128(d, 0)
               : "l"(a), "l"(b), "r"(accumulate), "n"(Columns));
}

/* The same with A in registers. */
MLA_PTX void wgmma_m64n256k16_rs(float (&d)[128], const uint32_t (&a)[4],
                                 uint64_t b, int accumulate) {
  asm volatile(WGMMA_IF("%133") WGMMA_OP("m64n256k16") WGMMA_D128
               "}, {%128, %129, %130, %131}, %132, p, 1, 1, 1;\n}\n"
               : WGMMA_TO128(d, 0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),
                 "r"(accumulate));
}

#endif
