#!/bin/sh
# emu_profile.sh MLACHECK PLUGIN PROFILE WAVE SEED ARCH: a profile on emulated
# lanes. SEED "random" draws one; it is printed, to be given again.
set -u
mlacheck=${1:?mlacheck}
plugin=${2:?plugin}
profile=${3:?profile}
wave=${4:?wave}
seed=${5:?seed}
arch=${6:?arch}
[ "$seed" != random ] || seed=$(date +%s)
options="wave=$wave;seed=$seed;arch=$arch"
echo "emu_profile: $profile, $options"
exec "$mlacheck" run --plugin "$plugin" --profile "$profile" --timeout 3600 \
  --options "$options"
