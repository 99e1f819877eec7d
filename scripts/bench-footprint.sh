#!/usr/bin/env bash
# Size of the program, and for each function the time from its start to its first answer and its memory at rest, as a table.
#   SIGNALBOX=target/dist/signalbox scripts/bench-footprint.sh
#   OTHERS='open5gs-nrf=127.0.0.10:7777=open5gs-nrfd -c nrf.yaml' measures other programs in the same way: name, the address that they
#   listen at, command; several are separated by lines.
# As root: each program is in a network of its own. Writes target/bench/footprint.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

signalbox=$(realpath "${SIGNALBOX:-target/dist/signalbox}")
for program in "$signalbox" unshare jq; do
  command -v "$program" > /dev/null || { echo "$program is missing" >&2; exit 1; }
done
if [ -z "${FOOTPRINT_WORK:-}" ]; then
  FOOTPRINT_WORK=$(mktemp -d)
  export FOOTPRINT_WORK
  trap 'rm -rf "$FOOTPRINT_WORK"' EXIT
  mkdir -p target/bench
  unshare --net --fork "$0" | tee target/bench/footprint.txt
  exit
fi
ip link set lo up
etc=$PWD/deploy/package/etc
ROUNDS=${ROUNDS:-5}
# Memory is read when a program has had nothing to do for this long.
REST=${REST:-3}

# Whether an address answers: an admin endpoint with 200, another program by taking a connection.
answers() {
  local host=${1%:*} port=${1##*:} status
  (
    exec 3<> "/dev/tcp/$host/$port" || exit 1
    [ -n "$2" ] || exit 0
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$2" >&3
    IFS= read -r -t 2 status <&3 && [[ $status == *" 200"* ]]
  ) 2> /dev/null
}

# Tenths of milliseconds to the first answer, and KiB of memory at rest, of a command.
measure() {
  local address=$1 page=$2 folder pid began
  shift 2
  folder=$(mktemp -d -p "$FOOTPRINT_WORK")
  began=$(date +%s%N)
  (cd "$folder" && exec "$@") > "$folder/log" 2>&1 &
  pid=$!
  until answers "$address" "$page"; do
    kill -0 "$pid" 2> /dev/null || { echo "it has ended: $(tail -5 "$folder/log")" >&2; exit 1; }
    sleep 0.001
  done
  echo "ready $((($(date +%s%N) - began) / 100000))"
  sleep "$REST"
  # Programs that become daemons are those of the same command.
  awk '/^VmRSS/ { print "memory " $2 } /^RssAnon/ { print "own " $2 }' "/proc/$pid/status"
  kill -TERM "$pid"
  wait "$pid" || true
}

row() {
  local name=$1 ready=() memory=() own=()
  shift
  for _ in $(seq "$ROUNDS"); do
    measured=$(measure "$@")
    ready+=("$(sed -n 's/^ready //p' <<< "$measured")")
    memory+=("$(sed -n 's/^memory //p' <<< "$measured")")
    own+=("$(sed -n 's/^own //p' <<< "$measured")")
  done
  median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }
  awk -v name="$name" -v ready="$(median "${ready[@]}")" -v memory="$(median "${memory[@]}")" \
    -v own="$(median "${own[@]}")" 'BEGIN { printf "| %s | %.1f | %.1f | %.1f |\n", name, ready / 10, memory / 1024, own / 1024 }'
}

"$signalbox" --version | head -1
printf 'program: %.1f MB, %s\n' "$(stat -c %s "$signalbox" | awk '{ print $1 / 1e6 }')" \
  "$(file -b "$signalbox" 2> /dev/null | grep -oE 'statically|dynamically|static-pie|stripped|not stripped' | paste -sd' ' || true)"
if [ -d target/image ]; then du -sm target/image | awk '{ print "image: " $1 " MB" }'; fi
printf 'median of %s starts, memory %s s after the first answer, %s cores\n\n' "$ROUNDS" "$REST" "$(nproc)"
echo '| program | ms to the first answer | MB at rest | of it not of files |'
echo '|---|--:|--:|--:|'
for file in "$etc"/*.yaml; do
  name=$(basename "$file" .yaml)
  admin=$("$signalbox" config show --config "$file" --json | jq -r ".[\"$name\"].admin")
  row "$name" "$admin" /livez "$signalbox" run "$name" --config "$file"
done
while IFS='=' read -r name address command; do
  [ -n "$name" ] || continue
  read -ra words <<< "$command"
  row "$name" "$address" '' "${words[@]}"
done <<< "${OTHERS:-}"
