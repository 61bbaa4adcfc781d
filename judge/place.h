/*
 * place.h - a vector's tensors where a backend can work on them.
 *
 * Every tensor gets memory of its own, on the device or the host, with a band
 * of poison before and behind it; on the host also pages that must not be
 * touched, when asked for (guard.h). A vector itself is never touched, so that
 * after a run every byte that should not have changed can be compared.
 */
#ifndef MLA_PLACE_H
#define MLA_PLACE_H

#include "guard.h"
#include "vector.h"

#define MLA_BAND 256 /* bytes before and behind each tensor on a device */

/* Which end of a tensor is at the end of its pages; on devices neither. A case
   that is "unaligned" has its tensors beside that end where they would lie at a
   multiple of more than they were promised. */
typedef enum mla_side {
  MLA_SIDE_END = 0,
  MLA_SIDE_START = 1,
  MLA_SIDE_EVEN = 2 /* at a multiple of 256 bytes, whatever the case asks */
} mla_side;

/* What fills the workspace before a run, but for one byte over and over. */
#define MLA_SCRATCH_POISON (-1)
#define MLA_SCRATCH_LEFT (-2) /* nothing: it keeps what the last run left */

typedef struct mla_placed {
  unsigned char *base;  /* on the device; or the image itself */
  unsigned char *image; /* what the host sees after mla_place_fetch */
  uint64_t bytes;       /* band, tensor, band */
  uint64_t lead;        /* where the tensor begins */
  uint64_t size;        /* of the tensor */
  uint64_t unit;        /* its address is a multiple of that */
  mla_zone zone;        /* on the host: its memory */
} mla_placed;

typedef struct mla_place {
  mla_device *device;
  int on_host;
  const mla_vector *vector; /* whose bytes are copied and compared */
  mla_tensor tensor[MLA_T_COUNT];
  mla_placed slot[MLA_T_COUNT];
  mla_placed workspace;
  int scratch; /* a byte, or MLA_SCRATCH_ */
} mla_place;

/*
 * Takes the memory; fills nothing. Free it, whatever is returned. closed: a
 * process that touches what is no tensor's shall die (host memory only).
 */
mla_status mla_place_new(mla_device *device, const mla_vector *v,
                         const mla_answer *answer, int closed, mla_place *place,
                         mla_error *err);
void mla_place_free(mla_place *place);

/* Before each run: the bytes of place->vector; bands and workspace get
   `poison`. Tensors move to that side of their pages. */
mla_status mla_place_fill(mla_place *place, unsigned char poison, mla_side side,
                          mla_error *err);
/* Other bytes, as many as the tensor has, in place of the vector's. */
mla_status mla_place_put(mla_place *place, int32_t slot, const void *bytes,
                         mla_error *err);
mla_args mla_place_args(const mla_place *place);
void *mla_place_workspace(const mla_place *place);
/* While locked, who writes to an input dies (closed places only). */
void mla_place_lock(mla_place *place, int locked);

/* After a run: waits for it, and brings everything to the images; undefined
   rows of outputs get a value of their own (spoiled.h). */
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
