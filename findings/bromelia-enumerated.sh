#!/usr/bin/env bash
# How the Python Diameter stack bromelia reads values of Enumerated AVPs that its lists do not have.
#
# Guess:     an unknown value of an Enumerated AVP is read as its number, or refused with an error that `except Exception` catches,
#            as every error of a library is.
# Behaviour: one such value ends the reading of the whole message, in AVPs without a part in the decision as well. RAT-Type 1005
#            (EUTRAN-NB-IoT) to 1008 (NR-U), Media-Type 0xFFFFFFFF (OTHER, TS 29.214 §5.3.19) and Specific-Action from
#            17 on are such values. The error derives from BaseException, not from Exception: `except Exception` around the
#            reading does not catch it.
# Version:   bromelia 0.3.1 (PyPI).
# Matters:   the answer 5004 that a handler means to send for a message it cannot read is not sent, and a peer waits for its
#            timeout. A CCR of a UE on NB-IoT or NR, an AAR for a data channel (OTHER) are such messages in every network of
#            today; a router's mediation can replace the value or leave the AVP out before a node on this library.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check bromelia==0.3.1 >/dev/null
cat >read.py <<'PY'
from struct import pack

import bromelia.avps
from bromelia import exceptions
from bromelia.base import DiameterMessage


def avp(code, data, vendor=None):
    length = (8 if vendor is None else 12) + len(data)
    head = pack(">IB", code, 0x40 if vendor is None else 0xC0) + length.to_bytes(3, "big")
    return head + (b"" if vendor is None else pack(">I", vendor)) + data + bytes(-len(data) % 4)


def read(*avps):
    body = b"".join(avps)
    head = b"\x01" + (20 + len(body)).to_bytes(3, "big") + b"\xc0" + (272).to_bytes(3, "big")
    try:
        return f"read, {len(DiameterMessage.load(head + pack('>III', 16777238, 1, 2) + body)[0].avps)} AVPs"
    except Exception as error:
        return f"Exception {type(error).__name__}"
    except BaseException as error:
        return f"no Exception, {type(error).__name__}"


for name, code, vendor, values in [
    ("RAT-Type", 1032, 10415, [1004, 1005, 1006, 1007, 1008]),
    ("Media-Type", 520, 10415, [0, 0xFFFFFFFF]),
    ("Specific-Action", 513, 10415, [12, 16, 17]),
    ("Event-Trigger", 1006, 10415, [33, 48]),
]:
    for value in values:
        print(f"{name} {value}: {read(avp(263, b'pcef;1;2'), avp(code, pack('>I', value), vendor))}")
PY
seen=$(env/bin/python read.py)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
RAT-Type 1004: read, 2 AVPs
RAT-Type 1005: no Exception, AVPAttributeValueError
RAT-Type 1006: no Exception, AVPAttributeValueError
RAT-Type 1007: no Exception, AVPAttributeValueError
RAT-Type 1008: no Exception, AVPAttributeValueError
Media-Type 0: read, 2 AVPs
Media-Type 4294967295: no Exception, AVPAttributeValueError
Specific-Action 12: read, 2 AVPs
Specific-Action 16: read, 2 AVPs
Specific-Action 17: no Exception, AVPAttributeValueError
Event-Trigger 33: read, 2 AVPs
Event-Trigger 48: read, 2 AVPs
SEEN
