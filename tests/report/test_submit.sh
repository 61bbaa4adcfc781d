#!/bin/sh
# test_submit.sh MLACHECK PLUGIN SOURCE [PYTHON]: conformance claims, and what
# is found when one is not what it says.
set -u
mlacheck=$1
plugin=$2
source=$3
python=${4-}
. "$source/tests/cli/cli.sh"

report() { # CODE NAME WORDS...
  code=$1
  name=$2
  shift 2
  expect "$code" run --json "$work/$name.json" --no-shrink "$@"
}
no_claim() { # NAME SENTENCE
  expect 1 submit "$work/$1.json"
  has err "no claim: "
  has err "$2"
  empty out
}

# ---- a claim that holds
report 0 good --backend ref --only merge kv_copy
expect 0 submit "$work/good.json" --out "$work/claim.json"
empty out
expect 0 submit --check "$work/claim.json"
has out 'HOLDS  ref '
has out 'on part of profile smoke'
cp "$work/claim.json" "$work/first.json"
report 0 good --backend ref --only merge kv_copy
expect 0 submit "$work/good.json"
cmp -s "$work/out" "$work/first.json" || fail 'two claims of one run differ'
if [ -n "$python" ]; then
  "$python" -B "$source/tests/cli/check_schema.py" \
    "$source/golden/schema/claim-1.schema.json" "$work/claim.json" ||
    fail 'the claim breaks its schema'
fi

# ---- a plugin by its path, with options: nothing of the machine in it
report 0 port --plugin "$plugin" --options fault=none --only merge:f32
expect 0 submit "$work/port.json" --out "$work/port-claim.json"
grep -q 'conforms' "$work/port-claim.json" || fail 'no verdict'
for word in "$work" "$plugin" "$source" "$(uname -n)" "$(id -un)@" "$HOME" \
  'fault=none' wayward.so; do
  ! grep -qF -- "$word" "$work/port-claim.json" || fail "the claim says $word"
done

# ---- runs that give no claim
report 1 failed --plugin "$plugin" --options fault=value --only merge:f32
no_claim failed 'it does not conform: '
report 1 absent --plugin "$plugin" --options fault=nothing --only merge:f32
no_claim absent 'required ones unsupported'
printf '# no case\n' >"$work/empty.txt"
report 77 none --backend ref --profile "$work/empty.txt"
no_claim none 'that everybody has'
# whoever refuses all that may be refused has not passed by that
report 77 refuses --plugin "$plugin" --options fault=only-decode --only index
no_claim refuses 'no case was judged but refusals'
report 1 part --plugin "$plugin" --options fault=only-decode --only \
  kv_copy:bf16 merge
no_claim part 'required ones unsupported'
report 0 seed --backend ref --only merge --seed 7
no_claim seed 'was run with another seed'
report 0 one --backend ref --case 'merge:f32:n5,h3,s2'
no_claim one 'no profile'
printf 'merge:f32:n5,h3,s2\n' >"$work/own.txt"
report 0 own --backend ref --profile "$work/own.txt"
no_claim own 'no profile that everybody has'
report 0 more --backend ref --profile smoke --only merge \
  --case 'merge:f32:n2,h1,s2'
no_claim more 'cases, and the profile has'

# ---- waived failures are said, and let only on request
cat >"$work/known.json" <<'X'
{"format": "mla-waivers", "version": 1, "waivers": [
  {"case": "merge:*", "link": "https://example.org/issues/7"}]}
X
report 0 waived --plugin "$plugin" --options fault=value --only merge \
  --waivers "$work/known.json"
expect 0 submit "$work/waived.json" --out "$work/waived-claim.json"
grep -q '"conforms with waivers"' "$work/waived-claim.json" ||
  fail 'waivers are not said'
expect 1 submit --check "$work/waived-claim.json"
has out 'failures are waived'
expect 0 submit --check --waived "$work/waived-claim.json"
has out 'HOLDS WITH WAIVERS  wayward'

# ---- what is found: any change, and one that is sealed anew
spoil() { # SED SENTENCE; @ stands for a tab
  sed "$(echo "$1" | tr '@' '\t')" "$work/claim.json" >"$work/spoilt.json"
  ! cmp -s "$work/spoilt.json" "$work/claim.json" || fail "$1 changes nothing"
  expect 1 submit --check "$work/spoilt.json"
  has out "FAIL  $work/spoilt.json: "
  has out "$2"
}
spoil 's/"libmla":@"/&9/' 'the digest of the content is'
spoil 's/"worst":@0.0*[1-9]/&1/' 'the digest of the content is'
spoil 's/"name":@"ref"/"name":@"best"/' 'the digest of the content is'
spoil '0,/"seed":@42/s//"seed":@43/' 'the digest of the content is'
spoil 's/"verdict":@"conforms"/"verdict":@"perfect"/' 'digest'
spoil 's/"format":@"mla-claim"/"format":@"mla-clam"/' 'is not mla-claim'
spoil 's/"reference":@/"refer":@/' 'reference is missing'
spoil 's/"profile":@"smoke"/"profile":@7/' 'profile is of the wrong kind'
spoil 's/"machine":@"/"host":@"/' 'host is no member'
reseal() { # PYTHON SENTENCE: an edit, with a new digest by the tool's own hand
  "$python" -B - "$work/claim.json" "$work/spoilt.json" "$1" <<'X'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    claim = json.load(file)
exec(sys.argv[3])
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(claim, file)
X
  expect 1 submit --check "$work/spoilt.json"
  digest=$(sed -n 's/.*the digest of the content is \([0-9a-f]*\),.*/\1/p' \
    "$work/out")
  [ -z "$digest" ] ||
    sed -i "s/\"digest\": \"[0-9a-f]*\"}\$/\"digest\": \"$digest\"}/" \
      "$work/spoilt.json"
  expect 1 submit --check "$work/spoilt.json"
  has out "$2"
}
if [ -n "$python" ]; then
  reseal 'claim["sums"]["passed"] += 1' 'the sums are not those of the cases'
  reseal 'claim["cases"][0]["verdict"] = "fail"' 'the sums are not'
  reseal 'del claim["cases"][0]' 'cases, and the profile has'
  reseal 'claim["cases"][0]["id"] += ",nolse"' 'the profile has another case'
  reseal 'claim["cases"][0]["required"] = False' 'is required by the profile'
  reseal 'claim["cases"][0]["outputs"] = []' 'are none, and yet it passed'
  reseal 'claim["cases"][0]["outputs"][0]["worst"] = 1.5' 'over its budget'
  reseal 'claim["cases"][0]["outputs"][0]["worst"] = "nan"' 'over its budget'
  reseal 'claim["only"] = []' 'cases, and the profile has'
  reseal 'claim["profile"] = "easy"' 'no profile that everybody has'
  reseal 'claim["verdict"] = "conforms with waivers"' 'the verdict is "conforms"'
  reseal 'claim["backend"]["description"] = "from /opt/x/lib"' 'holds a path'
  reseal 'claim["cases"][0]["waived"] = {"link": "https://e.org/1"}' \
    'waived stands at a case that passed'
fi

# ---- usage
expect 2 submit
expect 2 submit "$work/own.txt"
expect 2 submit "$work/claim.json"
expect 2 submit "$work/good.json" "$work/port.json"
expect 3 submit "$work/nowhere.json"
expect 3 submit --check "$work/nowhere.json"
expect 3 submit "$work/good.json" --out "$work/no/such/place.json"
expect 1 submit --check "$work/claim.json" "$work/spoilt.json"
expect 0 submit --help
finish
