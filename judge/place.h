/*
 * place.h - a vector's tensors where a backend can work on them.
 *
 * Every tensor gets memory of its own, on the device or the host, with a band
 * of poison before and behind it. A vector itself is never touched, so that
 * after a run every byte that should not have changed can be compared.
 */
#ifndef MLA_PLACE_H
#define MLA_PLACE_H

#include "vector.h"

#define MLA_BAND 256 /* bytes before and behind each tensor */

typedef struct mla_placed {
  unsigned char *base;  /* on the device; or the image itself */
  unsigned char *image; /* what the host sees after mla_place_fetch */
  uint64_t bytes;       /* band, tensor, band */
  uint64_t lead;        /* where the tensor begins */
} mla_placed;

typedef struct mla_place {
  mla_device *device;
  int on_host;
  const mla_vector *vector;
  mla_tensor tensor[MLA_T_COUNT];
  mla_placed slot[MLA_T_COUNT];
  mla_placed workspace;
} mla_place;

/* Takes the memory; fills nothing. Free it, whatever is returned. */
mla_status mla_place_new(mla_device *device, const mla_vector *v,
                         const mla_answer *answer, mla_place *place,
                         mla_error *err);
void mla_place_free(mla_place *place);

/* Before each run: the vector's bytes; bands and workspace get `poison`. */
mla_status mla_place_fill(mla_place *place, unsigned char poison,
                          mla_error *err);
/* Other bytes, as many as the tensor has, in place of the vector's. */
mla_status mla_place_put(mla_place *place, int32_t slot, const void *bytes,
                         mla_error *err);
mla_args mla_place_args(const mla_place *place);
void *mla_place_workspace(const mla_place *place);

/* After a run: waits for it, and brings everything to the images. */
mla_status mla_place_fetch(mla_place *place, mla_error *err);
/* The tensor's memory as it is now; as long as in the vector. */
const unsigned char *mla_place_bytes(const mla_place *place, int32_t slot);
/*
 * The first byte changed in the bands round a slot (or the workspace, with
 * slot -1), relative to the tensor: negative before it, from its size on
 * behind it. 0: none.
 */
int64_t mla_place_band_hit(const mla_place *place, int32_t slot,
                           unsigned char poison);

#endif
