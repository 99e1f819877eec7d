#!/bin/sh
# CPU of a request that the security application screens: each measure alone, all stateful, all stateless and all of them, at one
# rate, and without the application; the rows of the benchmarking guide's tables 24, 25 and 27.
#   SIGNALBOX=target/dist/signalbox scripts/bench-dsa.sh RATE SECONDS
# RATE is transactions per second; at a low one (1,000) a wake-up brings one message, and costs more than any measure.
# Needs jq. Writes target/bench/dsa.txt.
set -eu

rate=${1:-5000} seconds=${2:-20}
signalbox=${SIGNALBOX:-target/dist/signalbox}
for program in jq "$signalbox"; do
    command -v "$program" > /dev/null || { echo "$program is missing"; exit 1; }
done
stateless="AppIdWL, AppCmdCst, RealmWLScr, OhOrCstChk, DrOrMatch, VplmnORCst, RealmIMSICst, SubsIdenValid, SpecAVPScr, AVPInstChk"
stateful="MsgRateMon, TimeDistChk, PreLocChk, SrcHostValHss, SrcHostValMme"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir -p target/bench
out=target/bench/dsa.txt
printf '%-16s %14s %10s  %s\n' measures us/request success 'checks that failed' | tee "$out"

# The call model with these measures; without any, the router alone.
row() {
    if [ -n "$2" ]; then
        sed '/^    measures:/,$d' callmodels/dsr/dsa.yaml > "$work/$1.yaml"
        echo "    measures: [$2]" >> "$work/$1.yaml"
    else
        sed '/^  dsa:/,$d' callmodels/dsr/dsa.yaml > "$work/$1.yaml"
    fi
    # The report is what counts: a check that failed has its own column.
    "$signalbox" lab run "$work/$1.yaml" --rate "$rate" --duration "${seconds}s" --warmup 5s --out "$work/$1" --json > "$work/$1.json" || true
    jq -r --arg name "$1" '[$name, (.functions[0].cpu_us_per_transaction * 10 | round / 10), (.success_ratio * 10000 | round / 10000),
        ([.checks[] | select((.pass or .of_time) | not) | .name] | join(", "))] | @tsv' "$work/$1.json" |
        while IFS='	' read -r name cpu success failed; do printf '%-16s %14s %10s  %s\n' "$name" "$cpu" "$success" "$failed"; done | tee -a "$out"
}

row relay ""
for measure in $(echo "$stateless, $stateful" | tr -d ,); do
    row "$measure" "$measure"
done
row stateless "$stateless"
row stateful "$stateful"
row all "$stateless, $stateful"
row relay-again ""
