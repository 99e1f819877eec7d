#!/bin/sh
# CPU of an ENUM query: Signalbox and NSD with the same numbers under dnsperf, in turns on one machine.
#   SIGNALBOX=target/dist/signalbox scripts/bench-enum.sh NUMBERS SECONDS TURNS
# Needs nsd, dnsperf and curl. Writes target/bench/enum.txt.
set -eu

numbers=${1:-1000000} seconds=${2:-10} turns=${3:-3}
signalbox=${SIGNALBOX:-target/dist/signalbox}
for program in nsd dnsperf curl "$signalbox"; do
    command -v "$program" > /dev/null || { echo "$program is missing (apt-get install nsd dnsperf curl)"; exit 1; }
done
work=$(mktemp -d)
ours='' theirs=''
finish() {
    [ -z "$ours" ] || kill "$ours" 2> /dev/null || true
    [ -z "$theirs" ] || kill "$theirs" 2> /dev/null || true
    wait 2> /dev/null || true
    rm -rf "$work"
}
trap finish EXIT INT TERM
port_ours=${ENUM_PORT:-15301} port_theirs=$((${ENUM_PORT:-15301} + 1))

echo "making $numbers numbers"
# Spread by a multiplier that is prime to 10: numbers of 12 digits below 43, no two alike. %d of mawk ends at 2147483647.
awk -v n="$numbers" -v work="$work" 'BEGIN {
    zone = work "/zone"; list = work "/numbers.csv"; queries = work "/queries"
    print "$ORIGIN e164enum.net.\n$TTL 3600\n@ SOA ns1.example.net. hostmaster.e164enum.net. 1 86400 7200 3600000 300\n@ NS ns1.example.net." > zone
    for (i = 0; i < n; i++) {
        number = sprintf("43%010.0f", (i * 7919) % 10000000000)
        name = ""
        for (at = 12; at > 0; at--) name = name substr(number, at, 1) "."
        printf "%s NAPTR 10 10 \"u\" \"E2U+sip\" \"!^.*$!sip:+%s@ims.example.net!\" .\n", substr(name, 1, length(name) - 1), number > zone
        printf "msisdn,%s,ims\n", number > list
        # Half of the queries ask for a number that is not there.
        if (i % (n > 200000 ? int(n / 200000) : 1) == 0) {
            print name "e164enum.net NAPTR" > queries
            print (substr(name, 1, 1) + 1) % 10 substr(name, 2) "e164enum.net NAPTR" > queries
        }
    }
}'
"$signalbox" numbers import "$work/numbers.csv" --sort --output "$work/numbers.num" > "$work/import.log" 2>&1 || { cat "$work/import.log"; exit 1; }
cat > "$work/enum.yaml" << YAML
enum:
  admin: "127.0.0.1:$((port_ours + 2))"
  workers: 1
  listen: "127.0.0.1:$port_ours"
  numbers: $work/numbers.num
  trees: [{apex: e164enum.net, nameServers: [ns1.example.net]}]
  profiles: [{name: ims, records: [{service: "E2U+sip", regexp: "!^.*\$!sip:+{number}@ims.example.net!"}]}]
YAML
cat > "$work/nsd.conf" << CONF
server:
    server-count: 1
    ip-address: 127.0.0.1@$port_theirs
    username: ""
    chroot: ""
    zonesdir: "$work"
    pidfile: "$work/nsd.pid"
    database: ""
    xfrdfile: "$work/xfrd.state"
    zonelistfile: "$work/zone.list"
    rrl-ratelimit: 0
remote-control:
    control-enable: no
zone:
    name: e164enum.net
    zonefile: zone
CONF
"$signalbox" run enum --config "$work/enum.yaml" > "$work/ours.log" 2>&1 &
ours=$!
nsd -d -c "$work/nsd.conf" > "$work/theirs.log" 2>&1 &
theirs=$!

# A process and all below it.
family() {
    echo "$1"
    for child in $(pgrep -P "$1" || true); do family "$child"; done
}
# Their clock ticks. The name of a process, in parentheses, may have blanks.
ticks() {
    for process in $(family "$1"); do
        sed 's/.*) //' "/proc/$process/stat" 2> /dev/null || true
    done | awk '{ sum += $12 + $13 } END { print sum + 0 }'
}
# Their memory in MB; pages that several share count once.
memory() {
    for process in $(family "$1"); do
        awk '/^Pss:/ { print $2 }' "/proc/$process/smaps_rollup" 2> /dev/null || true
    done | awk '{ sum += $1 } END { print int(sum / 1024) }'
}
answers() {
    dnsperf -s 127.0.0.1 -p "$1" -d "$work/first" -n 1 -t 1 2> /dev/null | awk '/Queries completed/ { print $3 }'
}
head -n 1 "$work/queries" > "$work/first"
for port in "$port_ours" "$port_theirs"; do
    tries=0
    until [ "$(answers "$port")" = 1 ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "no server at $port"; cat "$work/ours.log" "$work/theirs.log"; exit 1; }
        sleep 1
    done
done

turn() { # NAME PORT PROCESS
    before=$(ticks "$3")
    dnsperf -s 127.0.0.1 -p "$2" -d "$work/queries" -l "$seconds" -c 4 > "$work/perf" 2>&1
    after=$(ticks "$3")
    awk -v name="$1" -v ticks="$((after - before))" -v hertz="$(getconf CLK_TCK)" '
        /Queries completed/ { done = $3 } /Queries lost/ { lost = $3 } /Queries per second/ { rate = $4 } /Response codes/ { sub(/^ +/, ""); codes = $0 }
        END { printf "%-10s %8.0f queries/s  %6.2f us of CPU a query  %d lost  %s\n", name, rate, ticks / hertz * 1e6 / done, lost, codes }' "$work/perf"
}
mkdir -p target/bench
{
    echo "$numbers numbers, $seconds s a turn; one worker each"
    for _ in $(seq "$turns"); do
        turn signalbox "$port_ours" "$ours"
        turn nsd "$port_theirs" "$theirs"
    done
    echo "memory: signalbox $(memory "$ours") MB, nsd $(memory "$theirs") MB"
} | tee target/bench/enum.txt
