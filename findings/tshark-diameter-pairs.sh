#!/usr/bin/env bash
# Which request tshark takes a Diameter answer for.
#
# Guess:     an answer belongs to the request of the other direction with its Hop-by-Hop Identifier (RFC 6733 §3): each side
#            of a connection numbers its own requests.
# Behaviour: one table for both directions, by Hop-by-Hop Identifier alone. Where both sides have a request with the same
#            identifier in flight, both answers are taken for answers to the later request: fields answer_to and resp_time are
#            wrong, and `-z diameter,srt` and `-z diameter,avp` count a Cancel-Location twice and no Update-Location.
# Version:   tshark 4.0.17-0+deb12u3 (Debian 12).
# Matters:   stacks that count from 0 or 1 on both sides meet all the time on a connection with traffic both ways (S6a, Gx).
#            A response time or a count from tshark is no proof there; compare direction, command and End-to-End Identifier.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances tshark |
    grep '^[a-z]' | grep -vE '^(tshark|libc6|libc-bin|libcrypt1|debconf.*|dpkg|perl.*|tar)(:|$)' | sort -u)
# shellcheck disable=SC2086 # one argument a package
apt-get download -qq tshark=4.0.17-0+deb12u3 $packages 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
cat >capture.py <<'PY'
import struct

A, B = (bytes([10, 0, 0, 1]), 40000), (bytes([10, 0, 0, 2]), 3868)
sent, frames = {A: 1000, B: 5000}, []

def avp(code, data):
    return struct.pack("!IB3s", code, 0x40, (8 + len(data)).to_bytes(3, "big")) + data + bytes(-len(data) % 4)

def message(flags, command, hop_by_hop, end_to_end, *avps):
    body = b"".join(avps)
    return struct.pack("!B3sB3sIII", 1, (20 + len(body)).to_bytes(3, "big"), flags, command.to_bytes(3, "big"), 16777251,
                       hop_by_hop, end_to_end) + body

def send(source, target, at, data):
    tcp = struct.pack("!HHIIBBHHH", source[1], target[1], sent[source], sent[target], 0x50, 0x18, 65535, 0, 0) + data
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, source[0], target[0])
    frames.append((at, bytes(12) + b"\x08\x00" + ip + tcp))
    sent[source] += len(data)

session, success = avp(263, b"mme1;1;1"), avp(268, struct.pack("!I", 2001))
send(A, B, 1.0, message(0xC0, 316, 7, 100, session))            # Update-Location, Hop-by-Hop 7
send(B, A, 1.5, message(0xC0, 317, 7, 500, session))            # Cancel-Location of the other side, its Hop-by-Hop 7
send(B, A, 1.6, message(0x40, 316, 7, 100, session, success))
send(A, B, 1.9, message(0x40, 317, 7, 500, session, success))
with open("capture.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for at, frame in frames:
        file.write(struct.pack("<IIII", int(at), round(at % 1 * 1e6), len(frame), len(frame)) + frame)
PY
python3 capture.py
tshark() {
    LD_LIBRARY_PATH=$(find root -name '*.so*' -printf '%h\n' | sort -u | paste -sd:) WIRESHARK_DATA_DIR=root/usr/share/wireshark \
        root/usr/bin/tshark -r capture.pcap "$@" 2>/dev/null
}
seen=$(
    tshark -T fields -e frame.number -e ip.src -e diameter.cmd.code -e diameter.hopbyhopid -e diameter.answer_to -e diameter.resp_time
    tshark -q -z diameter,srt | grep '3GPP'
)
echo "$seen"
diff <(echo "$seen" | tr -s ' \t' ' ' | sed 's/ $//') - <<'SEEN'
1 10.0.0.1 316 0x00000007
2 10.0.0.2 317 0x00000007
3 10.0.0.2 316 0x00000007 2 0.100000000
4 10.0.0.1 317 0x00000007 2 0.400000000
 1 3GPP-Cancel-Location 2 0.100000 0.400000 0.250000 0.500000
SEEN
