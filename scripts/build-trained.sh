#!/usr/bin/env bash
# Builds target/dist/signalbox twice: first with counters, under which the call models of the lab run for some seconds
# each, then optimised for what they counted (profile-guided optimisation). Takes three times as long as a plain build, and
# half an hour on two cores; a relayed request takes a sixth fewer instructions. Arguments go to both builds.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
TARGET=$(rustc -vV | sed -n 's/^host: //p')
LLVM=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
WORK=${TRAINING:-$PWD/target/training}

# The tool must understand the counters of this compiler: its own, or one of the same major version.
profdata() {
  local found
  for found in "${LLVM_PROFDATA:-}" "$(rustc --print sysroot)/lib/rustlib/$TARGET/bin/llvm-profdata" \
    "/usr/lib/llvm-$LLVM/bin/llvm-profdata" "$(command -v "llvm-profdata-$LLVM" || true)"; do
    if [ -x "$found" ]; then
      echo "$found"
      return
    fi
  done
  echo "llvm-profdata of LLVM $LLVM is missing: rustup component add llvm-tools, or apt-get install llvm-$LLVM," \
    "or name it in LLVM_PROFDATA" >&2
  return 1
}
PROFDATA=$(profdata)

# Where it is built: with --target the flags do not reach build scripts and macros.
build() {
  local flags=$1 into=$2
  shift 2
  RUSTFLAGS="$flags" "$CARGO" build --profile dist --locked -p signalbox --target "$TARGET" --target-dir "$into" "$@"
}

mkdir -p "$WORK"
rm -rf "$WORK/counts" "$WORK/runs" "$WORK"/*.profdata
build "-Cprofile-generate=$WORK/counts" "$WORK/counting" "$@"

# A model, and transactions a second that the counting build carries with ease. Its checks of times are not of interest here;
# a run in which the function fails would train its errors.
while read -r model rate; do
  runs="$WORK/runs/${model//\//-}"
  echo "training: $model"
  "$WORK/counting/$TARGET/dist/signalbox" lab run "$model" --rate "$rate" --warmup 1s --duration 6s \
    --out "$runs" > "$WORK/training.log" 2>&1 < /dev/null || true
  if ! grep -Eq '"success_ratio": ?(1|1\.0|0\.9[5-9][0-9]*),?$' "$runs/report.json" 2> /dev/null; then
    cat "$WORK/training.log" >&2
    echo "$model does not serve 95 % of $rate requests/s: nothing is trained" >&2
    exit 1
  fi
done <<MODELS
scp/model-c-1 4000
scp/model-d-1 4000
nrf/5k 3000
bsf/scenario-9 2000
policy/sm-30k 500
policy/am-ue-15k 1000
dsr/da-mp-relay 5000
MODELS

# The compiler is not called again for another profile of the same name.
"$PROFDATA" merge -o "$WORK/merged" "$WORK"/counts/*.profraw
PROFILE=$WORK/$(sha256sum "$WORK/merged" | cut -c1-16).profdata
mv "$WORK/merged" "$PROFILE"
build "-Cprofile-use=$PROFILE" "$WORK/trained" "$@"
mkdir -p target/dist
# A new file: the one there is linked to what a plain build keeps.
install -m 755 "$WORK/trained/$TARGET/dist/signalbox" target/dist/signalbox
echo "target/dist/signalbox is optimised for $(du -h "$PROFILE" | cut -f1) of counts"
