#!/usr/bin/env bash
# Where smpplib cuts a long short message into parts.
#
# Guess:     a character stands in one part as a whole: the escape of the GSM alphabet and the septet behind it are one character
#            (TS 23.038 §6.2.1), and so are the two halves of one beyond the 16 bits of UCS2.
# Behaviour: parts are cut by length alone. A euro sign at the end of the first part leaves its escape there, and the next part begins with
#            the letter e; an emoji leaves a half in each part. No error, no warning.
# Version:   smpplib 2.2.4 (PyPI), gsm.make_parts.
# Matters:   the message is whole only where all parts arrive and are joined before they are read. A centre, a home router or a firewall that
#            decodes part by part (TP-UD of one SUBMIT or DELIVER) sees another text, and a decoder of UTF-16 that is strict refuses the
#            part: rules about contents have to join parts first, and have to take a lone half for what it is.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q --disable-pip-version-check install smpplib==2.2.4 six==1.17.0
cat >"$dir/parts.py" <<'PY'
from smpplib.gsm import make_parts
HEADER = 6
for name, text in (
    ("152 letters, euro sign", "x" * 152 + "\u20ac" + "y" * 20),
    ("151 letters, euro sign", "x" * 151 + "\u20ac" + "y" * 20),
    ("66 letters, emoji", "\u044f" * 66 + "\U0001f600" + "\u044f" * 20),
    ("65 letters, emoji", "\u044f" * 65 + "\U0001f600" + "\u044f" * 20),
):
    parts, _, _ = make_parts(text)
    first, second = (part[HEADER:] for part in parts)
    print(f"{name}: the first part ends {first[-2:].hex()}, the second begins {second[:2].hex()}")
PY
seen=$("$dir/v/bin/python" "$dir/parts.py")
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
152 letters, euro sign: the first part ends 781b, the second begins 6579
151 letters, euro sign: the first part ends 1b65, the second begins 7979
66 letters, emoji: the first part ends d83d, the second begins de00
65 letters, emoji: the first part ends de00, the second begins 044f
SEEN
