#!/usr/bin/env bash
# What Scapy makes of Diameter credit control.
#
# Guess:     DiamReq() of a known command sets the R bit, and a Time AVP is shown as the moment it stands for.
# Behaviour: the flags are looked up by Application-Id. Credit-Control is known with application 4 alone, so that a CCR of Gx, of
#            any application of 3GPP, is built with flags 0: an answer. Time (RFC 6733 §4.3.1, seconds since 1900) is shown as if
#            it counted from 1970, 70 years late.
# Version:   scapy 2.6.1, scapy.contrib.diameter.
# Matters:   a peer made with it is answered by nobody, since a message without the R bit is an unexpected answer and is dropped
#            without one; test scripts have to pass drFlags=0xC0. Times in its output are not those on the wire.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q --disable-pip-version-check install scapy==2.6.1
cat >"$dir/ccr.py" <<'PY'
from scapy.all import raw
from scapy.contrib.diameter import AVP, DiamReq

for name, application in (("Gy", 4), ("Gx", 16777238)):
    print(name, "CCR, flags", hex(raw(DiamReq("Credit-Control", drAppId=application))[4]))
print("Gx CCR with drFlags, flags", hex(raw(DiamReq("Credit-Control", drAppId=16777238, drFlags=0xC0))[4]))
moment = 1767225600  # 2026-01-01T00:00:00Z, 3976214400 seconds after 1900
shown = DiamReq("Credit-Control", drAppId=4, avpList=[AVP("Event-Timestamp", val=moment + 2208988800)]).show2(dump=True)
print("Event-Timestamp of 2026:", next(line for line in shown.splitlines() if " val " in line).split("=")[1].strip())
PY
seen=$(TZ=UTC "$dir/v/bin/python" "$dir/ccr.py" 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
Gy CCR, flags 0xc0
Gx CCR, flags 0x0
Gx CCR with drFlags, flags 0xc0
Event-Timestamp of 2026: Sun Jan  1 00:00:00 2096
SEEN
