#!/usr/bin/env bash
# Where the terminal of osmo-stp listens.
#
# Guess:     `bind ADDRESS PORT` under `line vty`, which the configuration takes and `show running-config` shows again, is where the
#            terminal listens; two signal transfer points of one host need another port, or another address.
# Behaviour: the address counts, the port does not: it is 4239 with and without one. Two at one address cannot run, whatever their
#            ports; the log alone says 4239.
# Version:   osmo-stp 1.6.0+dfsg1-3, libosmovty9 1.7.0-3 (Debian 12).
# Matters:   whoever runs a pair beside a signalling core (a mate, a test with a gateway and a client) and monitors the ports of
#            the configuration asks the wrong process, or none. A test of ours that runs two gives each an address of its own.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    osmo-stp=1.6.0+dfsg1-3 | grep -E '^lib(osmo|talloc|sctp)' | sort -u)
# shellcheck disable=SC2086 # one argument a package
apt-get download -qq osmo-stp=1.6.0+dfsg1-3 libosmovty9=1.7.0-3 $packages 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(find root -name '*.so*' -printf "$dir/%h\n" | sort -u | paste -sd:)
export LD_LIBRARY_PATH
seen=$(
    stp=
    trap 'if [ -n "$stp" ]; then kill "$stp" 2>/dev/null || true; fi' EXIT
    for bind in "127.77.1.1" "127.77.1.1 4300" "127.77.1.2 4301"; do
        printf 'log stderr\nline vty\n no login\n bind %s\ncs7 instance 0\n' "$bind" >stp.cfg
        root/usr/bin/osmo-stp -c stp.cfg >log 2>&1 &
        stp=$!
        python3 - "$bind" "$stp" <<'PY'
import glob
import os
import socket
import sys
import time

bind, process = sys.argv[1], sys.argv[2]
address = bind.split()[0]


def listening():
    own = {os.readlink(fd) for fd in glob.glob(f"/proc/{process}/fd/*") if os.path.islink(fd)}
    rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    at = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
    return [int(one.split(":")[1], 16) for one in at]


for _ in range(100):
    ports = listening()
    if ports:
        break
    time.sleep(0.1)
with socket.create_connection((address, ports[0])) as terminal:
    terminal.sendall(b"enable\r\nterminal length 0\r\nshow running-config\r\n")
    text = b""
    while b"cs7 instance" not in text:
        text += terminal.recv(65536)
shown = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip().startswith("bind ")]
print(f"configured: bind {bind}; shown: {shown[0] if shown else 'nothing'}; listens at port {ports[0]}")
PY
        kill "$stp"
        wait "$stp" || true
        stp=
    done
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
configured: bind 127.77.1.1; shown: bind 127.77.1.1; listens at port 4239
configured: bind 127.77.1.1 4300; shown: bind 127.77.1.1 4300; listens at port 4239
configured: bind 127.77.1.2 4301; shown: bind 127.77.1.2 4301; listens at port 4239
SEEN
