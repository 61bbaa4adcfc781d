/*
 * cpu_onednn.h - products by oneDNN, where the library is built with it
 * (MLA_ONEDNN) and it is faster. It serves cpu_gemm.c, tile by tile: a tile is
 * always of the same size, worked on by one thread, and its chains are ours, so
 * that a row's bits depend neither on the number of threads nor on its mates.
 */
#ifndef MLA_CPU_ONEDNN_H
#define MLA_CPU_ONEDNN_H

#include "cpu_gemm.h"

/*
 * NULL: not to be used. That is so without oneDNN, with a mask below what this
 * machine runs (oneDNN's own can be set but once in a process), and where it
 * has no kernel that takes its memory from us.
 */
mla_cpu_onednn *mla_cpu_onednn_open(uint32_t mask);
void mla_cpu_onednn_close(mla_cpu_onednn *onednn);

/* Does a matrix unit do them, which takes subnormals for zeros? */
int mla_cpu_onednn_flushes(const mla_cpu_onednn *onednn, int x, int y);

uint64_t mla_cpu_onednn_workspace(const mla_cpu_context *context);

/* 0: done. Else oneDNN had no memory, and `out` is still to be computed. */
int mla_cpu_onednn_run(const mla_cpu_context *context, const mla_cpu_gemm *gemm,
                       void *workspace);

#endif
