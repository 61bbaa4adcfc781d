/*
 * sm80_mma.h - matrix products of a warp, and copies into shared memory that
 * go on while it computes: what sm_80 has, and every device after it.
 *
 * D[16][8] += A[16][16] B[16][8], one warp of 32 lanes. With g = lane / 4 and
 * t = lane % 4, two elements of 16 bits a register, a lane holds
 *   A: [g][2t..] [g + 8][2t..] [g][2t + 8..] [g + 8][2t + 8..]
 *   B: [2t..][g] [2t + 8..][g]
 *   D: [g][2t] [g][2t + 1] [g + 8][2t] [g + 8][2t + 1], f32
 *
 * sm80_load4() brings four matrices of 8 x 8 elements: lane i gives row i % 8
 * of matrix i / 8, 16 bytes; register m then holds row g, columns 2t.. of
 * matrix m; turned, rows 2t.. of column g.
 *
 * A copy is seen from sm80_wait() on by the lane that asked for it, and after
 * a barrier by the others. The emulator has models of all (emu_mma.h), so that
 * kernels built on these words run there as they are.
 */
#ifndef MLA_SM80_MMA_H
#define MLA_SM80_MMA_H

#include "gpu_num.h"

/* 16 bytes: eight elements. */
struct alignas(16) sm80_chunk {
  uint32_t word[4];
};

#if defined(MLA_GPU_PLATFORM)

#define SM80_KERNEL(threads, blocks) static void
#define SM80_UNROLL
#define SM80_MMA(type, a, b, d) \
  emu_mma(a, b, d, (type) == MLA_BF16, __FILE__, __LINE__)
#define SM80_LOAD4(row, to) emu_load4(row, to, 0, __FILE__, __LINE__)
#define SM80_LOAD4_TURNED(row, to) emu_load4(row, to, 1, __FILE__, __LINE__)
#define SM80_COPY(to, from, bytes) \
  emu_copy_begin(to, from, bytes, __FILE__, __LINE__)
#define SM80_COMMIT() emu_copy_commit()
#define SM80_WAIT(groups) emu_copy_wait(groups)
#define SM80_ANY_LANE(x) emu_any(x, __FILE__, __LINE__)
#define SM80_BALLOT(x) emu_ballot(x, __FILE__, __LINE__)
#define SM80_COUNT(at) emu_count(at)
#define SM80_MOST(x) emu_most(x, __FILE__, __LINE__)
#define SM80_EXP2(x) exp2f(x)

template <int DT>
MLA_DEV uint32_t sm80_pair(float low, float high) {
  if (DT == MLA_BF16)
    return mla_float_to_bf16(low) | (uint32_t)mla_float_to_bf16(high) << 16;
  return mla_float_to_f16(low) | (uint32_t)mla_float_to_f16(high) << 16;
}

#else

/* A block of so many threads, so many of them on an SM. */
#define SM80_KERNEL(threads, blocks) \
  static __global__ __launch_bounds__(threads, blocks) void
#define SM80_UNROLL _Pragma("unroll")

template <int DT>
MLA_DEV void sm80_mma(const uint32_t (&a)[4], const uint32_t *b, float *d) {
  if (DT == MLA_BF16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#define SM80_MMA(type, a, b, d) sm80_mma<type>(a, b, d)

MLA_DEV uint32_t sm80_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
MLA_DEV void sm80_load4(const void *row, uint32_t (&to)[4]) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(sm80_address(row))
      : "memory");
}
MLA_DEV void sm80_load4_turned(const void *row, uint32_t (&to)[4]) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(sm80_address(row))
      : "memory");
}
#define SM80_LOAD4(row, to) sm80_load4(row, to)
#define SM80_LOAD4_TURNED(row, to) sm80_load4_turned(row, to)

/* 16 bytes into shared memory, of which `bytes` are read and the rest 0. */
MLA_DEV void sm80_copy(void *to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                   sm80_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}
#define SM80_COPY(to, from, bytes) sm80_copy(to, from, bytes)
/* What was asked for since the last is a group... */
#define SM80_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
/* ... and all but so many groups, the last ones, are there. */
#define SM80_WAIT(groups) \
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#define SM80_ANY_LANE(x) __any_sync(0xffffffffu, x)
/* A bit of each lane. */
#define SM80_BALLOT(x) __ballot_sync(0xffffffffu, x)
/* One more, of several lanes at once; what there was before. */
#define SM80_COUNT(at) atomicAdd(at, 1u)
/* The largest of a warp. */
#define SM80_MOST(x) __reduce_max_sync(0xffffffffu, x)

/* Results below 2^-126 are 0. */
MLA_DEV float sm80_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#define SM80_EXP2(x) sm80_exp2(x)

/* Two rounded into a register. */
template <int DT>
MLA_DEV uint32_t sm80_pair(float low, float high) {
  uint32_t v;
  if (DT == MLA_BF16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
}

#endif

/*
 * Rows in shared memory begin an odd number of chunks apart: eight rows of a
 * column of chunks then lie in eight different groups of banks, and neither
 * sm80_load4() nor a copy waits for another lane. (An exchange of chunks does
 * the same without padding, for an instruction more at each address.)
 */
#define SM80_STRIDE(chunks) ((chunks) | 1)

/* Where lane i's row begins of a 16 x 16 part of A at (row, column). */
MLA_DEV const sm80_chunk *sm80_a_row(const sm80_chunk *tile, int stride,
                                     int row, int column) {
  const int i = MLA_LANE;
  return tile + (row + i % 16) * stride + column / 8 + i / 16;
}
/* Of B, whose columns are rows of the tile: 16 of them, 16 deep. Registers 0
   and 1 are the first eight columns', 2 and 3 the others'. */
MLA_DEV const sm80_chunk *sm80_b_row(const sm80_chunk *tile, int stride,
                                     int row, int column) {
  const int i = MLA_LANE;
  return tile + (row + i / 16 * 8 + i % 8) * stride + column / 8 + i / 8 % 2;
}
/* Eight of them, 32 deep: registers 0 and 1 are the first 16. */
MLA_DEV const sm80_chunk *sm80_b8_row(const sm80_chunk *tile, int stride,
                                      int row, int column) {
  const int i = MLA_LANE;
  return tile + (row + i % 8) * stride + column / 8 + i / 8;
}
/* Of B as it lies, turned: 16 rows, 16 columns; registers as in sm80_b_row. */
MLA_DEV const sm80_chunk *sm80_turned_row(const sm80_chunk *tile, int stride,
                                          int row, int column) {
  const int i = MLA_LANE;
  return tile + (row + i % 16) * stride + column / 8 + i / 16;
}

/* Eight elements from `from` on into a chunk of shared memory, those from
   `left` on 0. whole: eight or none, at a multiple of 16 bytes; then the copy
   goes on by itself. */
MLA_DEV void sm80_bring(sm80_chunk *to, const uint16_t *from, int left,
                        int whole) {
  if (whole) {
    SM80_COPY(to, from, left > 0 ? 16 : 0);
    return;
  }
  uint32_t e[8];
  for (int i = 0; i < 8; i++) e[i] = i < left ? from[i] : 0;
  sm80_chunk c;
  for (int i = 0; i < 4; i++) c.word[i] = e[2 * i] | e[2 * i + 1] << 16;
  *to = c;
}

struct alignas(8) sm80_two {
  float v[2];
};
struct alignas(16) sm80_four {
  float v[4];
};

/* Four neighbours of a row in memory, of which there are `left`. */
MLA_DEV void sm80_put4(void *to, int dtype, int64_t at, int left,
                       const float *v) {
  const int bytes = dtype == MLA_F32 ? 16 : 8;
  if (left < 4 || ((uintptr_t)to + at * (bytes / 4)) % bytes != 0) {
    for (int i = 0; i < 4 && i < left; i++)
      mla_store_any(to, dtype, at + i, v[i]);
  } else if (dtype == MLA_F32) {
    *(sm80_four *)((float *)to + at) = sm80_four{{v[0], v[1], v[2], v[3]}};
  } else {
    struct alignas(8) pairs {
      uint32_t word[2];
    } p;
    for (int i = 0; i < 2; i++)
      p.word[i] = dtype == MLA_BF16
                      ? sm80_pair<MLA_BF16>(v[2 * i], v[2 * i + 1])
                      : sm80_pair<MLA_F16>(v[2 * i], v[2 * i + 1]);
    *(pairs *)((uint16_t *)to + at) = p;
  }
}

/* Of four lanes that share a row of D. */
MLA_DEV float sm80_max4(float v) {
  v = fmaxf(v, MLA_SHFL_XOR(v, 1));
  return fmaxf(v, MLA_SHFL_XOR(v, 2));
}
MLA_DEV float sm80_sum4(float v) {
  v += MLA_SHFL_XOR(v, 1);
  return v + MLA_SHFL_XOR(v, 2);
}

/* log2 of what P is multiplied by: of f16, what is below 2^-24 is lost. */
template <int DT>
MLA_DEV float sm80_lift() {
  return DT == MLA_F16 ? 12.0f : 0.0f;
}

#endif
