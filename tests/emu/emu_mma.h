/*
 * emu_mma.h - what sm_80's warps do beyond shuffling, for sm80_mma.h, whose
 * words say how registers lie.
 */
#ifndef EMU_MMA_H
#define EMU_MMA_H

#include <stdint.h>

/* D += A B, 16 x 8 x 16. Products are added in f32, k ascending; the order and
   rounding of the hardware are not known. */
void emu_mma(const uint32_t a[4], const uint32_t b[2], float d[4], int is_bf16,
             const char *file, int line);
/* Four matrices of 8 x 8 from shared memory. */
void emu_load4(const void *row, uint32_t to[4], int turned, const char *file,
               int line);

/*
 * A copy of 16 bytes into shared memory, of which so many (0 or 16) are read:
 * until the lane waits for its group the place is NaN, and to touch it is
 * reported; then it is written, as if by that lane.
 */
void emu_copy_begin(void *to, const void *from, int bytes, const char *file,
                    int line);
void emu_copy_commit();
/* All but the last `groups` of this lane. */
void emu_copy_wait(int groups);
/* A bit of each lane of the warp: does x hold? */
uint32_t emu_ballot(int x, const char *file, int line);
/* The largest of the warp. */
uint32_t emu_most(uint32_t x, const char *file, int line);
/* One more in shared memory, of several lanes at once. What else lanes do
   there between the same barriers is not seen. */
uint32_t emu_count(uint32_t *at);
/* A new block: nothing is on its way. */
void emu_copy_forget();

/* Planted: D[g][2t + 1] and D[g + 8][2t] exchanged. */
void emu_mma_plant(bool wrong_layout);
/* Planted: waits that do not wait. */
void emu_copy_plant(bool no_wait);

#endif
