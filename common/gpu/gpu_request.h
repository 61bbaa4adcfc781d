/*
 * gpu_request.h - whose a token is: requests lie packed behind each other.
 */
#ifndef MLA_GPU_REQUEST_H
#define MLA_GPU_REQUEST_H

#include "gpu_port.h"

/* b with start[b] <= token < start[b + 1]; -1 past the last request. */
MLA_DEV int mla_request_at(const int32_t *start, int64_t step, int requests,
                           int64_t token) {
  int lo = 0, hi = requests;
  if (token >= start[requests * step]) return -1;
  while (hi - lo > 1) {
    const int mid = lo + (hi - lo) / 2;
    if (start[mid * step] <= token)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

#endif
