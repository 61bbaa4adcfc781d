/*
 * wayward.h - the reference behind a table that misbehaves on request, to see
 * what the judge makes of it.
 *
 * options "fault=NAME": one of
 *   none            behaves
 *   query-error     query fails with INVALID_ARGUMENT
 *   no-reason       query says no, and not why
 *   nothing         query says no to everything
 *   only-decode     query says no to all but decode in f32 and bf16
 *   u-acc, u-p, u-mid   numbers beyond the rules are declared
 *   dequant, q-round, determinism   words that nobody knows are
 *   plan, run       fail after a yes
 *   idle            run does nothing
 *   value           one value of the first output is wrong by a quarter
 *   nan             one value of it is NaN
 *   lse             one lse is off by 0.01
 *   byte            one byte of a cache is flipped
 *   input           the first input's first byte is flipped
 *   before, behind  a byte next to the first output is written
 *   workspace       a byte behind the workspace is written
 *   gap             padding of the first output is written
 *   flicker         every second run has a last bit flipped
 *   zero            the workspace, read as it comes, leaks into an output
 *   splits          one value is wrong, when splits are asked for
 *   peek-before     a byte before the first input is read, for nothing
 *   peek-behind     a byte behind it
 *   crash, abort, exit, hang   no return from run
 *   crash-merge, hang-merge    likewise, but for merge only
 *   empty-positive  lse of an empty row is +infinity, declared
 *   empty-silent    likewise, not declared
 * A second table, "wayward-device", has memory of its own.
 */
#ifndef MLA_WAYWARD_H
#define MLA_WAYWARD_H

#include "mla/backend.h"

const mla_backend *wayward_backend(void);
const mla_backend *wayward_device_backend(void);

#endif
