#!/bin/sh
# emu_profile.sh MLACHECK PLUGIN PROFILE OPTIONS SEED [ARGUMENT...]: a profile
# on emulated lanes, with these options of the backend and arguments of the
# judge. SEED "random" draws one; it is printed, to be given again.
set -u
mlacheck=${1:?mlacheck}
plugin=${2:?plugin}
profile=${3:?profile}
options=${4:?options}
seed=${5:?seed}
shift 5
[ "$seed" != random ] || seed=$(date +%s)
options="$options;seed=$seed"
echo "emu_profile: $profile, $options"
exec "$mlacheck" run --plugin "$plugin" --profile "$profile" --timeout 3600 \
  --options "$options" "$@"
