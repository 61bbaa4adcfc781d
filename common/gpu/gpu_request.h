/*
 * gpu_request.h - whose a token is: requests lie packed behind each other; and
 * how many entries of a list are its.
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

/* Entries of list i that are to be read; lengths NULL: all `width`. */
MLA_DEV int mla_list_entries(const int32_t *lengths, int64_t step, int width,
                             int64_t i) {
  if (!lengths || !width) return width;
  const int n = lengths[i * step];
  return n < 0 ? 0 : (n < width ? n : width);
}

#endif
