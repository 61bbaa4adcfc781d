#!/bin/sh
# hip_device.sh MLACHECK: the smoke profile on an AMD GPU; 77 without one.
set -u
mlacheck=${1:?usage: hip_device.sh MLACHECK}
if ! "$mlacheck" list backends | grep -qx hip; then
  "$mlacheck" info --backend hip
  exit 77
fi
exec "$mlacheck" run --backend hip --profile smoke
