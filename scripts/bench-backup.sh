#!/usr/bin/env bash
# What a backup costs the requests beside it: a BSF under a load of 5,000 requests/s, in turns without and with backups of its store one
# after another. The 99th percentile may be 1.5 times as long. Bindings that were acknowledged before a backup are in it: it is restored,
# and a BSF on it is asked for each.
#   SIGNALBOX=target/dist/signalbox scripts/bench-backup.sh [RATE] [SECONDS] [ROUNDS]
# Writes target/bench/backup.txt; needs jq and curl with HTTP/2.
set -euo pipefail
cd "$(dirname "$0")/.."

rate=${1:-5000} seconds=${2:-20} rounds=${3:-3}
signalbox=$(realpath "${SIGNALBOX:-target/dist/signalbox}")
for program in "$signalbox" jq curl taskset; do
  command -v "$program" > /dev/null || { echo "$program is missing" >&2; exit 1; }
done
mkdir -p target/bench
report=$PWD/target/bench/backup.txt
: > "$report"
work=$(mktemp -d)
pid='' copies=''
finish() {
  # Of shells that have ended, too.
  for running in $(cat "$work"/*.pid 2> /dev/null); do kill "$running" 2> /dev/null || true; done
  wait 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT
say() { echo "$*" | tee -a "$report"; }
die() { echo "FAILED: $*" >&2; tail -n 5 "$work"/*.log >&2; exit 1; }
sbi=127.0.0.1:18030 admin=127.0.0.1:19030
KNOWN=200

# Starts a BSF with its store in a directory.
start() {
  echo "bsf: {listen: [\"$sbi\"], admin: \"$admin\", rx: {enabled: false}, store: {embedded: {directory: $1}}}" > "$work/bsf.yaml"
  "$signalbox" check --elsewhere "$work/bsf.yaml" > "$work/check.log" 2>&1 || die "the configuration: $(cat "$work/check.log")"
  (cd "$work" && exec taskset -c 0 "$signalbox" run bsf --config "$work/bsf.yaml") > "$work/bsf.log" 2>&1 &
  pid=$!
  echo "$pid" > "$work/bsf.pid"
  for _ in $(seq 200); do
    if curl --silent --fail -o /dev/null "http://$admin/readyz"; then return; fi
    kill -0 "$pid" 2> /dev/null || die "the BSF has ended"
    sleep 0.1
  done
  die "the BSF is not ready"
}

stop() {
  kill -TERM "$pid" && wait "$pid" || true
  rm -f "$work/bsf.pid"
}

# Bindings that a reader can find again.
known() {
  local body
  for number in $(seq "$KNOWN"); do
    body="{\"supi\":\"imsi-99970000000$((1000 + number))\",\"ipv4Addr\":\"192.0.2.$number\",\"dnn\":\"backup\",\"snssai\":{\"sst\":1},\"pcfFqdn\":\"pcf.example.org\"}"
    curl --silent --fail --http2-prior-knowledge -o /dev/null -H 'content-type: application/json' -d "$body" \
      "http://$sbi/nbsf-management/v1/pcfBindings" || die "a binding was not created"
  done
}

found() {
  local count=0
  for number in $(seq "$KNOWN"); do
    status=$(curl --silent --http2-prior-knowledge -o /dev/null -w '%{http_code}' "http://$sbi/nbsf-management/v1/pcfBindings?ipv4Addr=192.0.2.$number")
    [ "$status" != 200 ] || count=$((count + 1))
  done
  echo "$count"
}

# The 99th percentile in ms of a run under load; with backups beside it where a folder for them is given.
run() {
  local name=$1 backups=$2
  start "$work/$name"
  known
  if [ -n "$backups" ]; then
    mkdir -p "$backups"
    (
      number=0
      # After the warming up, one after another, not more often than each second.
      sleep 5
      while :; do
        number=$((number + 1))
        rm -rf "$backups/$((number - 2))"
        "$signalbox" store backup bsf "$backups/$number" --config "$work/bsf.yaml" >> "$work/copies.log" 2>&1 || exit 1
        echo "$number" > "$backups/newest"
        sleep 1
      done
    ) &
    copies=$!
    echo "$copies" > "$work/copies.pid"
  fi
  (cd "$work" && taskset -c "$(($(nproc) - 1))" "$signalbox" lab run bsf/scenario-2 --target "$sbi" --rate "$rate" --duration "${seconds}s" \
    --sessions "${SESSIONS:-50000}" --out "$work/report-$name" --json) > "$work/$name.json" 2> "$work/lab.log" || [ -s "$work/$name.json" ] || die "the load"
  if [ -n "$copies" ]; then
    kill "$copies" 2> /dev/null || true
    wait "$copies" 2> /dev/null || true
    copies=''
    rm -f "$work/copies.pid"
  fi
  stop
  jq -r '"\(.latency_ms.p99) \(.achieved_tps | round) \(.success_ratio)"' "$work/$name.json"
}

without=() with=()
say "BSF, $rate requests/s for $seconds s, ${SESSIONS:-50000} bindings; p99 in ms, answered rightly/s, share"
for round in $(seq "$rounds"); do
  plain=$(run "plain-$round" '')
  beside=$(run "beside-$round" "$work/backups-$round")
  say "round $round: without $plain, with $beside, $(cat "$work/backups-$round/newest" 2> /dev/null || echo 0) backups"
  without+=("${plain%% *}") with+=("${beside%% *}")
done
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }
ratio=$(awk -v a="$(median "${with[@]}")" -v b="$(median "${without[@]}")" 'BEGIN { printf "%.2f", a / b }')
say "p99 with backups by p99 without: $ratio (medians; at most 1.5)"

# The newest copy of the last round: what was acknowledged before it is in it.
newest=$work/backups-$rounds/$(cat "$work/backups-$rounds/newest")
"$signalbox" store verify "$newest" > "$work/verify.log" 2>&1 || die "the copy is damaged"
"$signalbox" store restore "$newest" "$work/restored" > "$work/restore.log" 2>&1 || die "the copy was not restored"
start "$work/restored"
count=$(found)
stop
say "restored: $count of $KNOWN bindings that were acknowledged before the backup"
[ "$count" = "$KNOWN" ] || die "bindings are missing"
awk -v ratio="$ratio" 'BEGIN { exit !(ratio <= 1.5) }' || die "the 99th percentile is $ratio times as long"
echo "ok"
