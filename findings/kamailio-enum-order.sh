#!/usr/bin/env bash
# Which NAPTR Kamailio's module enum takes first.
#
# Guess:     the records of a number are tried by order, lowest first, then by preference; an order has 16 bits without a sign (RFC 3403
#            §4.1): 10 comes before 40000.
# Behaviour: orders from 32768 on come before all others, the lowest of them first: with 10, 20 and 40000 the Request-URI is that of 40000,
#            and those of 10 and 20 are the branches behind it.
# Version:   Kamailio 5.6.3-2 (Debian 12).
# Matters:   a record of last resort (order 65535) of a number becomes its first destination; whoever gives orders by time (seconds of a
#            day) has calls change their route at 09:06:08. An ENUM server that gives all records of a number one order is not concerned.
# Needs a mount and a network namespace: root, or a user who may make them.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances kamailio |
    grep '^[a-z]' | grep -vE '^(kamailio|libc6|libc-bin|libcrypt1|debconf.*|dpkg|perl.*|tar|python3.*|adduser|passwd)(:|$)' | sort -u)
# shellcheck disable=SC2086 # one argument a package
apt-get download -qq kamailio=5.6.3-2 $packages 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
cat >names.py <<'PY'
"""A name server at port 53 that answers every question with three NAPTR."""
import socket
import struct


def text(value):
    return bytes([len(value)]) + value


def naptr(order, target):
    data = struct.pack(">HH", order, 10) + text(b"u") + text(b"E2U+sip") + text(b"!^.*$!sip:" + target + b"!") + b"\0"
    return b"\xc0\x0c" + struct.pack(">HHIH", 35, 1, 60, len(data)) + data


records = naptr(20, b"order-20@example.net") + naptr(40000, b"order-40000@example.net") + naptr(10, b"order-10@example.net")
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    query, client = server.recvfrom(4096)
    end = query.index(b"\0", 12) + 5
    server.sendto(query[:2] + b"\x85\x80\0\1\0\3\0\0\0\0" + query[12:end] + records, client)
PY
cat >ask.py <<'PY'
"""Asks the proxy until it answers, and prints what it has made of the number."""
import socket

request = (
    "OPTIONS sip:+436601234567@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:5070;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n"
    "From: <sip:a@example.net>;tag=a\r\nTo: <sip:b@example.net>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
)
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.bind(("127.0.0.1", 5070))
client.settimeout(0.2)
for _ in range(150):
    client.sendto(request.encode(), ("127.0.0.1", 5060))
    try:
        answer = client.recv(65536).decode()
        break
    except OSError:
        continue
print("\n".join(line for line in answer.split("\r\n") if line.startswith("X-")))
PY
cat >kamailio.cfg <<CFG
#!KAMAILIO
debug=0
log_stderror=yes
children=1
disable_tcp=yes
auto_aliases=no
use_dns_cache=off
listen=udp:127.0.0.1:5060
mpath="$(dirname "$(find "$dir/root" -name enum.so)")/"
loadmodule "kex.so"
loadmodule "sl.so"
loadmodule "pv.so"
loadmodule "textops.so"
loadmodule "enum.so"
request_route {
    if (!enum_query("e164enum.net.")) {
        sl_send_reply("404", "Not found");
        exit;
    }
    append_to_reply("X-Target: \$ru\r\n");
    append_to_reply("X-Branch: \$(branch(uri)[0])\r\n");
    append_to_reply("X-Branch: \$(branch(uri)[1])\r\n");
    sl_send_reply("300", "Resolved");
}
CFG
echo "nameserver 127.0.0.1" >resolv.conf
LD_LIBRARY_PATH=$(find root -name '*.so*' -printf "$dir/%h\n" | sort -u | paste -sd:)
export LD_LIBRARY_PATH
namespaces=(--mount --net)
[ "$(id -u)" = 0 ] || namespaces+=(--map-root-user)
seen=$(unshare "${namespaces[@]}" bash -c '
    set -euo pipefail
    ip link set lo up
    mount --bind resolv.conf /etc/resolv.conf
    python3 names.py >names.log & names=$!
    until grep -q ready names.log; do sleep 0.1; done
    root/usr/sbin/kamailio -DD -E -f kamailio.cfg -P pid -Y . >kamailio.log 2>&1 & kamailio=$!
    trap "kill $names $kamailio 2>/dev/null" EXIT
    python3 ask.py')
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
X-Target: sip:order-40000@example.net
X-Branch: sip:order-10@example.net
X-Branch: sip:order-20@example.net
SEEN
