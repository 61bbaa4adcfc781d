/*
 * far_backend.h - "far": a device of its own memory, simulated.
 *
 * Its pointers are no addresses of the host's, and its stream does nothing
 * before somebody waits for it: copies, then operations (those of the backend
 * beneath) run in order at stream_sync. Who reads device memory on the host,
 * or overwrites what is on its way to the device, is found out.
 */
#ifndef FAR_BACKEND_H
#define FAR_BACKEND_H

#include "mla/mla.h"

/* Over "cpu" where that is built in, else "ref". Enters it once. */
const mla_backend *far_backend(void);
/* Operations run so far. */
int64_t far_runs(void);

#endif
