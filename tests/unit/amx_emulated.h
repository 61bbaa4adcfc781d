/*
 * amx_emulated.h - the intrinsics of AMX in plain C, so that kernels written
 * with them are tested on any machine. It is strict where hardware faults: a
 * tile used before it is configured, or after its release, ends the program.
 */
#ifndef MLA_TEST_AMX_EMULATED_H
#define MLA_TEST_AMX_EMULATED_H

#include <stdint.h>

void amx_loadconfig(const void *config);
void amx_release(void);
void amx_zero(int tile);
void amx_loadd(int tile, const void *from, int64_t stride);
void amx_stored(int tile, void *to, int64_t stride);
/* Subnormals, in and out, are zero; odd and even products add up apart. */
void amx_dpbf16ps(int sum, int a, int b);

#define _tile_loadconfig(config) amx_loadconfig(config)
#define _tile_release() amx_release()
#define _tile_zero(tile) amx_zero(tile)
#define _tile_loadd(tile, from, stride) amx_loadd(tile, from, stride)
#define _tile_stored(tile, to, stride) amx_stored(tile, to, stride)
#define _tile_dpbf16ps(sum, a, b) amx_dpbf16ps(sum, a, b)

#endif
