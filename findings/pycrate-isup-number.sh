#!/usr/bin/env bash
# What pycrate makes of a called number that ends with ST, and of a number that is written over another.
#
# Guess:     get_num() of a called party number gives the digits that were dialled, with or without the end-of-pulsing signal behind
#            them (address signal 1111, Q.763 §3.9 d); set_num() writes a number that get_num() gives back.
# Behaviour: ST ends the reading, as the filler of MAP does, and where the count of signals is odd the last digit is cut off as well, for
#            the filler that Q.763 has in its place: 4366 and ST is read as 436. set_num() sets the odd/even indicator for an odd number
#            and leaves it for an even one: 123456, written over 12345, goes to the wire as 12345 with 6 for a filler.
# Version:   pycrate 0.8.1; the global titles of its SCCP (get_addr, set_addr) have the same code.
# Matters:   exchanges that have the whole number send ST with it, so that every number of even length loses a digit in such an analysis;
#            a program that puts routing numbers into IAMs it has read cuts the routing numbers of even length.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q --disable-pip-version-check install pycrate==0.8.1
cat >"$dir/numbers.py" <<'PY'
from pycrate_mobile.ISUP import CalledPartyNum

number = CalledPartyNum()
for name, octets in (
    ("4366, even", "04103466"),
    ("4366 ST, odd", "841034660f"),
    ("43660, odd", "8410346600"),
    ("43660 ST, even", "04103466f0"),
):
    number.from_bytes(bytes.fromhex(octets))
    print(f"{name}: {octets} reads {number.get_num()}")
for digits in ("123456", "12345", "123456"):
    number.set_num(digits)
    print(f"{digits} written: {number.to_bytes().hex()} reads {number.get_num()}")
for digits in ("12345", "123456"):
    number = CalledPartyNum()
    number.set_num(digits)
    print(f"{digits} written anew: {number.to_bytes().hex()} reads {number.get_num()}")
PY
seen=$("$dir/v/bin/python" "$dir/numbers.py")
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
4366, even: 04103466 reads 4366
4366 ST, odd: 841034660f reads 436
43660, odd: 8410346600 reads 43660
43660 ST, even: 04103466f0 reads 43660
123456 written: 0410214365 reads 123456
12345 written: 8410214305 reads 12345
123456 written: 8410214365 reads 12345
12345 written anew: 8100214305 reads 12345
123456 written anew: 0100214365 reads 123456
SEEN
