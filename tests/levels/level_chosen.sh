#!/bin/sh
# level_chosen.sh "EMULATOR..." MLACHECK CPU=LEVEL...: on an emulated processor
# of that kind the backend runs at that level, and what it runs there is right:
# an instruction that the processor lacks would end it.
set -u
emulator=${1:?emulator}
mlacheck=${2:?mlacheck}
shift 2
small=l64,r8,p16,v32
status=0
said=$(mktemp)
trap 'rm -f "$said"' EXIT
for wanted; do
  cpu=${wanted%=*} level=${wanted#*=}
  run() { $emulator -cpu "$cpu" "$mlacheck" "$@"; }
  run info --backend cpu | grep "^  device 0 .*, $level," || {
    echo "$cpu: not at level $level" && status=1
  }
  run run --backend cpu --no-fork --case \
    decode:bf16:b2,h20,q1,page16,len=70+33,l64,r8 \
    decode:f16:b1,h3,q2,page7,len=40,l64,r8 \
    decode:int8_token:b1,h4,q1,page16,len=40 \
    decode:f32:b1,h2,q1,page16,len=33,l64,r8 \
    prefill:bf16:b2,h2,q=20+3,page16,ctx=17+40,$small \
    prefill:f16:b1,h1,q9,$small merge:bf16:n2,h3,s4,v64 \
    kv_write:fp8_ds_mla:n3,page4,nb2 kv_read:bf16:b1,page4,len=9 \
    absorb:bf16:h2,lq32,hid48 index:bf16:b1,h4,q2,page16,len=60,topk=8 \
    >"$said" 2>&1 || {
    echo "$cpu:" && cat "$said" && status=1
  }
  tail -n 1 "$said"
done
exit $status
