/*
 * emu_mfma.h - what CDNA's waves of 64 do beyond shuffling, for hip_mfma.h.
 */
#ifndef EMU_MFMA_H
#define EMU_MFMA_H

#include <stdint.h>

/*
 * D += A B, 16 x 16 x 16, by registers as hip_mfma.h says: give holds this
 * lane's two registers of A and two of B, d its four of D. Products are added
 * in f32, k ascending; the order and rounding of the hardware are not known.
 * As gfx90a has it, subnormal operands and results are zero.
 */
void emu_mfma_16(const uint32_t give[4], float d[4], int is_bf16,
                 const char *file, int line);
/* The same, 32 x 32 x 8: d are sixteen. */
void emu_mfma_32(const uint32_t give[4], float d[16], int is_bf16,
                 const char *file, int line);
/* Whether x holds in any lane of the wave. */
int emu_any(int x, const char *file, int line);

/* Element j of registers that hold two each. */
float emu_element(const uint32_t *registers, int j, int is_bf16);

/* Whether it is as gfx90a has it; else subnormals count. */
void emu_mfma_flushes(bool flushes);
/* Planted: D with its rows in another order, r * 4 + g for 4g + r; of 32 rows,
   those of a lane one after another. */
void emu_mfma_plant(bool wrong_layout);

#endif
