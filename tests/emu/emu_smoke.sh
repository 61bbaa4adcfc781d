#!/bin/sh
# emu_smoke.sh MLACHECK PLUGIN WAVE SEED ARCH: the smoke profile on emulated lanes.
# SEED "random" draws one; it is printed, to be given again.
set -u
mlacheck=${1:?mlacheck}
plugin=${2:?plugin}
wave=${3:?wave}
seed=${4:?seed}
arch=${5:?arch}
[ "$seed" != random ] || seed=$(date +%s)
echo "emu_smoke: waves of $wave, seed $seed, $arch"
exec "$mlacheck" run --plugin "$plugin" --profile smoke \
  --options "wave=$wave;seed=$seed;arch=$arch"
