#!/usr/bin/env bash
# Sets two hosts up by the blocks of docs/two-hosts.md, as they stand there: two network namespaces, each with an /etc and a /var/lib of its
# own, one MariaDB, one Prometheus. Then things break, and a rolling restart under traffic loses nothing. As root.
#   SIGNALBOX=target/release/signalbox scripts/test-two-hosts.sh
# `sudo` and `systemctl` are stand-ins: the first runs what it is given, the second starts a program, waits until it is ready, and ends it.
set -euo pipefail
cd "$(dirname "$0")/.."

signalbox=$(realpath "${SIGNALBOX:-target/release/signalbox}")
for program in "$signalbox" ip nsenter unshare mariadbd mariadb-install-db mariadb openssl curl promtool prometheus jq; do
  command -v "$program" > /dev/null || { echo "$program is missing" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "run it as root: it makes namespaces" >&2; exit 1; }
page=$PWD/docs/two-hosts.md
work=$(mktemp -d)
passed=0
ok() { passed=$((passed + 1)); echo "ok: $*"; }
die() { echo "FAILED: $*" >&2; tail -n 8 "$work"/log/* >&2 2> /dev/null; exit 1; }
holders=()
finish() {
  for pid in $(cat "$work"/pid/* 2> /dev/null); do kill -9 "$pid" 2> /dev/null || true; done
  for pid in "${holders[@]}"; do kill -9 "$pid" 2> /dev/null || true; done
  wait 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT
mkdir -p "$work"/{bin,log,pid,a,b,private}
ln -s "$signalbox" "$work/bin/signalbox"
printf '#!/bin/sh\nexec "$@"\n' > "$work/bin/sudo"
cat > "$work/bin/systemctl" <<'SH'
#!/bin/bash
# enable --now UNIT | restart UNIT | kill UNIT (SIGKILL)
set -eu
verb=$1
unit=${!#}
name=${unit#signalbox@}
pid=$WORK/pid/$HOST_NAME-$name
end() {
  [ -e "$pid" ] || return 0
  kill "$1" "$(cat "$pid")" 2> /dev/null || true
  while kill -0 "$(cat "$pid")" 2> /dev/null; do sleep 0.02; done
  rm -f "$pid"
}
case $verb in
  kill) end -KILL; exit ;;
  restart) end -TERM ;;
esac
if [ "$unit" = prometheus ]; then
  mkdir -p "$WORK/$HOST_NAME/prometheus"
  setsid prometheus --config.file=/etc/prometheus/prometheus.yml --storage.tsdb.path="$WORK/$HOST_NAME/prometheus" \
    --web.listen-address=127.0.0.1:9099 > "$WORK/log/prometheus" 2>&1 < /dev/null &
  echo $! > "$pid"
  exit
fi
mkdir -p "/var/lib/signalbox/$name"
cd "/var/lib/signalbox/$name"
setsid signalbox run "$name" --config "/etc/signalbox/$name.yaml" >> "$WORK/log/$HOST_NAME-$name" 2>&1 < /dev/null &
echo $! > "$pid"
admin=$(signalbox config show --config "/etc/signalbox/$name.yaml" --json | jq -r ".[\"$name\"].admin")
# As `Type=notify`: it returns when the function is ready.
for _ in $(seq 600); do
  if curl --silent --fail --output /dev/null "http://$admin/readyz"; then exit; fi
  kill -0 "$(cat "$pid")" 2> /dev/null || { echo "$unit has ended: $(tail -3 "$WORK/log/$HOST_NAME-$name")" >&2; exit 1; }
  sleep 0.1
done
echo "$unit is not ready: $(curl --silent "http://$admin/readyz")" >&2
exit 1
SH
chmod +x "$work/bin"/*

# A host: a network and mounts of its own, held by a process that sleeps.
make_host() {
  unshare --net --mount --propagation private sleep infinity &
  holders+=($!)
  eval "$1=\$!"
  sleep 0.2
  nsenter -t "${!1}" -m -n bash -euc "
    mount -t tmpfs tmpfs '$work/private'
    mkdir -p '$work'/private/{etc,etc-work,lib,lib-work}
    mount -t overlay overlay -o 'lowerdir=/etc,upperdir=$work/private/etc,workdir=$work/private/etc-work' /etc
    mount -t overlay overlay -o 'lowerdir=/var/lib,upperdir=$work/private/lib,workdir=$work/private/lib-work' /var/lib
    mount -t tmpfs tmpfs /run
    mkdir -p /run/mysqld /etc/signalbox/tls /etc/prometheus
    getent group signalbox > /dev/null || groupadd --system signalbox
    ip link set lo up"
}

# Runs a script within a host.
on() {
  local host=$1
  shift
  nsenter -t "${!host}" -m -n env "WORK=$work" "HOST_NAME=$host" "PATH=$work/bin:$PATH" bash -euo pipefail -c "$*"
}

# The blocks of a section of the page, for a host: those that say so, and those for both.
blocks() {
  awk -v section="## $1" -v host="host $2" '
    /^## / { here = $0 == section }
    here && /^```sh/ { block = ""; open = 1; next }
    open && /^```/ { open = 0; split(block, lines, "\n"); if (index(lines[1], host) || index(lines[1], "both hosts")) printf "%s", block; next }
    open { block = block $0 "\n" }' "$page"
}

follow() {
  local section=$1 host=$2 text
  text=$(blocks "$section" "$host")
  [ -n "$text" ] || die "no block of '$section' for host $host"
  on "$host" "$text" > "$work/log/page-$host" 2>&1 || die "'$section' on host $host: $(cat "$work/log/page-$host")"
}

until_so() {
  local what=$1
  shift
  for _ in $(seq 300); do
    if "$@" > "$work/log/until" 2>&1; then return; fi
    sleep 0.2
  done
  die "never: $what ($(tail -3 "$work/log/until"))"
}

make_host a
make_host b
nsenter -t "$a" -n ip link add core type veth peer name core netns "$b"
nsenter -t "$a" -n sh -c 'ip addr add 10.77.0.1/24 dev core && ip link set core up'
nsenter -t "$b" -n sh -c 'ip addr add 10.77.0.2/24 dev core && ip link set core up'

database() {
  on a "setsid mariadbd --no-defaults --user=root --datadir='$work/a/db' --socket=/run/mysqld/mysqld.sock --bind-address=10.77.0.1 \
    > '$work/log/mariadb' 2>&1 < /dev/null & echo \$! > '$work/pid/a-mariadb'"
  until_so "MariaDB" on a "mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -e 'SELECT 1'"
}
on a "mariadb-install-db --no-defaults --user=root --datadir='$work/a/db' --auth-root-authentication-method=socket" > "$work/log/install-db" 2>&1 || die "MariaDB"
database

began=$(date +%s)
blocks Certificates a | sed '/^sudo ch/d' > "$work/certificates"
on a "$(cat "$work/certificates")" || die "certificates"
for host in a b; do
  for pair in ca.crt:ca.crt "$host.crt:host.crt" "$host.key:host.key"; do
    on a "cat /etc/signalbox/tls/${pair%%:*}" > "$work/copy"
    on "$host" "cat > /etc/signalbox/tls/${pair##*:}" < "$work/copy"
  done
  on "$host" "$(blocks Certificates "$host" | grep '^sudo ch')"
done
follow Database a
on b "$(blocks Database b)"
for host in a b; do follow Configuration "$host"; done
for host in a b; do follow Start "$host"; done
ok "both hosts serve $(($(date +%s) - began)) s after the first command"

try() { on a "$(blocks 'Try it' a)" && on b "$(blocks 'Try it' b)"; }
until_so "the BSFs to be found by the SCPs" try
ok "a binding of host a is found through host b"
follow 'Watch it' a
asked() { on a "curl --silent --fail --get http://127.0.0.1:9099/api/v1/query --data-urlencode 'query=$1'" | jq -e "$2"; }
until_so "Prometheus to scrape six functions" asked 'sum(up)' '.data.result[0].value[1] == "6"'
ok "Prometheus scrapes the functions of both hosts with the shipped rules"

# Requests through either SCP; the other one where the first fails. Prints how many there were, and how many failed at both.
traffic() {
  on a "count=0 failed=0
    while [ ! -e '$work/enough' ]; do
      count=\$((count + 1)) done=
      for scp in 10.77.0.1 10.77.0.2; do
        if curl --silent --fail --max-time 3 --http2 --cacert /etc/signalbox/tls/ca.crt --output /dev/null \
          -H '3gpp-Sbi-Discovery-target-nf-type: BSF' -H '3gpp-Sbi-Discovery-requester-nf-type: AF' \
          \"https://\$scp:8020/nbsf-management/v1/pcfBindings?ipv4Addr=10.45.0.1\"; then done=1; break; fi
      done
      [ -n \"\$done\" ] || failed=\$((failed + 1))
    done
    echo \"\$count \$failed\""
}
while_traffic() {
  rm -f "$work/enough"
  traffic > "$work/counted" &
  local counting=$!
  "$@"
  touch "$work/enough"
  wait "$counting"
  read -r count failed < "$work/counted"
}
rolling() { for host in a b; do follow 'When something breaks' "$host"; done; }
while_traffic rolling
[ "$failed" = 0 ] && [ "$count" -gt 10 ] || die "$failed of $count requests failed during the upgrade"
ok "an upgrade of both hosts, one function after the other: 0 of $count requests failed"

gone() { on b 'systemctl kill signalbox@bsf' && sleep 3; }
while_traffic gone
[ "$failed" = 0 ] || die "$failed of $count requests failed without a BSF"
ok "a BSF is gone: 0 of $count requests failed"
until_so "the alert" asked 'ALERTS{alertname="SignalboxUnreachable",instance="10.77.0.2:9030"}' '.data.result | length > 0'
ok "Prometheus has the alert SignalboxUnreachable for it"
on b 'systemctl restart signalbox@bsf'

on a 'systemctl kill signalbox@nrf'
until_so "alarm 10512" on b 'curl --silent http://10.77.0.2:9010/alarms | grep -q 10512'
try > /dev/null || die "no request passes without the NRF of host a"
ok "an NRF is gone: the other one has alarm 10512, requests pass"
on a 'systemctl restart signalbox@nrf'

kill -9 "$(cat "$work/pid/a-mariadb")"
# Something is written, which is how the functions notice.
on a "$(blocks 'Try it' a)" > /dev/null 2>&1 && die "a binding was acknowledged without a database"
until_so "alarm 10520" on b 'curl --silent http://10.77.0.1:9030/alarms http://10.77.0.2:9030/alarms | grep -q 10520'
ok "the database is gone: what would be written is refused, alarm 10520"
database
until_so "writes to be taken again" on a "$(blocks 'Try it' a)"
ok "the database is back: bindings are created again"
echo "$passed passed, 0 failed"
