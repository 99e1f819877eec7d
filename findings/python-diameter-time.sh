#!/usr/bin/env bash
# Which moments python-diameter and bromelia write and read in AVPs of type Time from 7 February 2036 on.
#
# Guess:     the 32 bits of a Time AVP that begin again on 7 February 2036 at 06:28:16 UTC are read by the rule of SNTP
#            (RFC 6733 §4.3.1), as the documentation of python-diameter says, and a value that is written and read by the same
#            stack shows whether the stack is right.
# Behaviour: python-diameter begins the second era 3,600 s too early. Times from then on are written 3,600 too high and read
#            an hour too early, so that what it writes it reads back unchanged, while any other stack reads another hour. In the hour
#            before the change it writes a value of the second era for a time of the first. bromelia raises an error.
# Version:   python-diameter 0.9.0, bromelia 0.3.1 (PyPI).
# Matters:   Revalidation-Time, Rule-Deactivation-Time and Monitoring-Duration carry moments of the far future where an
#            operator means "without an end" (2038, 2040, 2099). A test in which both ends are this stack passes; a rule that a
#            peer ends by such a moment ends an hour off.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check python-diameter==0.9.0 bromelia==0.3.1 >/dev/null
cat >moments.py <<'PY'
from datetime import datetime, timezone

from bromelia.avps import EventTimestampAVP
from diameter.message.avp import Avp, AvpTime

MOMENTS = [
    datetime(2036, 2, 7, 5, 28, 15, tzinfo=timezone.utc),
    datetime(2036, 2, 7, 6, 28, 15, tzinfo=timezone.utc),
    datetime(2036, 2, 7, 6, 28, 16, tzinfo=timezone.utc),
    datetime(2040, 1, 1, tzinfo=timezone.utc),
]


def right(moment):
    return (int(moment.timestamp()) + 2208988800) % (1 << 32)


def bromelia(moment):
    try:
        return EventTimestampAVP(moment.replace(tzinfo=None)).data.hex()
    except Exception as error:
        return type(error).__name__


for moment in MOMENTS:
    wire = right(moment)
    written = AvpTime(55)
    written.value = moment
    read = Avp.from_bytes(bytes.fromhex(f"000000374000000c{wire:08x}"))
    print(
        f"{moment:%Y-%m-%d %H:%M:%S}: RFC {wire:08x}; python-diameter writes {written.payload.hex()},"
        f" reads {wire:08x} as {read.value:%Y-%m-%d %H:%M:%S}; bromelia writes {bromelia(moment)}"
    )
PY
seen=$(TZ=UTC env/bin/python moments.py)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
2036-02-07 05:28:15: RFC fffff1ef; python-diameter writes fffff1ef, reads fffff1ef as 2036-02-07 05:28:15; bromelia writes fffff1ef
2036-02-07 06:28:15: RFC ffffffff; python-diameter writes 00000e0f, reads ffffffff as 2036-02-07 06:28:15; bromelia writes ffffffff
2036-02-07 06:28:16: RFC 00000000; python-diameter writes 00000e10, reads 00000000 as 2036-02-07 05:28:16; bromelia writes error
2040-01-01 00:00:00: RFC 0754fd00; python-diameter writes 07550b10, reads 0754fd00 as 2039-12-31 23:00:00; bromelia writes error
SEEN
