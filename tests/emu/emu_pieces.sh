#!/bin/sh
# emu_pieces.sh MLACHECK PLUGIN PROFILE OPTIONS FOLDER [JOBS] [MAX_MFLOP]
# A profile on emulated lanes case by case, JOBS at a time, each case's verdict
# a line of FOLDER/verdicts. What has one there is not run again: stop it and
# go on, on several machines if need be (their verdicts joined by cat). With
# MAX_MFLOP larger cases are left for another time. Ends with the verdict on
# what there is; exit 0 when every case of the profile has passed or may be
# unsupported.
set -u
export mlacheck=${1:?mlacheck} plugin=${2:?plugin} options=${4:?options}
export folder=${5:?folder}
profile=${3:?profile} jobs=${6:-1} most=${7:-1000000000}
mkdir -p "$folder"
touch "$folder/verdicts"

one() { # CASE: "passed|unsupported|FAILED SECONDS CASE"
  begin=$(date +%s)
  log=$folder/log.$$
  "$mlacheck" run --plugin "$plugin" --options "$options" --timeout 7200 \
    --case "$1" >"$log" 2>&1
  case $? in
    0) word=passed ;;
    77) word=unsupported ;;
    *) word=FAILED && cat "$log" >>"$folder/failures" ;;
  esac
  rm -f "$log"
  echo "$word $(($(date +%s) - begin)) $1" >>"$folder/verdicts"
}
if [ "$profile" = --one ]; then
  one "$8"
  exit 0
fi

# Costly cases first, so that none of them is last and alone.
"$mlacheck" list cases --profile "$profile" | sort -rn |
  sed -n 's/^ *\([0-9.]*\) MFLOP  *?* *\([^ ]*\).*/\1 \2/p' >"$folder/cases"
awk -v most="$most" 'FILENAME == ARGV[1] { done[$3] = 1; next }
  !($2 in done) && $1 <= most { print $2 }' "$folder/verdicts" \
  "$folder/cases" | xargs -P "$jobs" -I '{}' sh "$0" "$mlacheck" "$plugin" \
  --one "$options" "$folder" 1 1 '{}'

awk -v profile="$profile" 'FILENAME == ARGV[1] { verdict[$3] = $1; next }
  { n++; count[$2 in verdict ? verdict[$2] : "left"]++ }
  END { printf "%d of %d cases of %s passed, %d unsupported, %d failed, " \
          "%d not yet run\n", count["passed"], n, profile,
          count["unsupported"], count["FAILED"], count["left"]
        exit count["FAILED"] + count["left"] > 0 }' \
  "$folder/verdicts" "$folder/cases"
