#!/bin/sh
# test_diff_faults.sh MLACHECK: random cases find planted faults, and name them.
set -u
mlacheck=$1
. "$(dirname "$0")/cli.sh"

finds() { # OPTIONS CLASS ONLY [CASES]
  expect 1 diff --backend planted --options "$1" --only "$3" \
    --cases "${4-32}" --no-shrink
  has out "looks like  $2"
}
# Each failure is explained, which takes its time: as many as show it thrice.
finds 'fault=yarn-factor;x=1.03' YARN decode 6
finds 'fault=tail-v;head=1' TAIL-NAN decode 6
finds fault=mtp-top-left MTP-MASK decode 12
finds 'fault=heads-drop;a=16' HEADS decode
finds fault=sink-dropped SINK-WIN merge
finds fault=slot-negative SLOT-WRITE kv_write
finds fault=prefix-start PREFIX kv_read
finds fault=strides-weight STRIDES matmul
finds fault=chunk-last CTX-CHUNK prefill 90
finish
