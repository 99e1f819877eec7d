#!/usr/bin/env bash
# Where the package countryinfo puts the capitals of countries.
#
# Guess:     the coordinates of a capital are those of the capital, to within its suburbs.
# Behaviour: some are those of a place of the same name in another country, up to half the Earth away, since the data were made
#            by geocoding names. Ten lie more than 1,500 km from every place of their country
#            in the time zone database.
# Version:   countryinfo 1.0.1 with tzdata 2026.6 (zone.tab) as the other source, both from PyPI.
# Matters:   a check whether a subscriber can have travelled from one country to the next in the time between two registrations
#            (FS.19 category 3) takes distances of capitals. From such data an honest roamer is refused, or an impossible one
#            passes, for these countries alone: compare any list of coordinates with a second one before it blocks traffic.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check countryinfo==1.0.1 tzdata==2026.6 >/dev/null
cat >far.py <<'PY'
import glob
import json
import math
import os
import re

import countryinfo
import tzdata


def degrees(text):
    number = text[1:]
    size = 2 if len(number) in (4, 6) else 3
    value = int(number[:size]) + int(number[size:size + 2]) / 60
    return -value if text[0] == "-" else value


def km(one, other):
    (a, b), (c, d) = [tuple(map(math.radians, point)) for point in (one, other)]
    return 6371 * math.acos(min(1, math.sin(a) * math.sin(c) + math.cos(a) * math.cos(c) * math.cos(b - d)))


places = {}
for line in open(os.path.join(os.path.dirname(tzdata.__file__), "zoneinfo", "zone.tab"), encoding="utf-8"):
    if not line.startswith("#"):
        code, where = line.split("\t")[:2]
        places.setdefault(code, []).append(tuple(map(degrees, re.match(r"([+-]\d+)([+-]\d+)", where).groups())))
far = []
for path in glob.glob(os.path.join(os.path.dirname(countryinfo.__file__), "data", "*.json")):
    country = json.load(open(path, encoding="utf-8"))
    code, capital = country.get("ISO", {}).get("alpha2"), country.get("capital_latlng")
    if code in places and capital and len(capital) == 2:
        least = min(km(capital, place) for place in places[code])
        if least > 1500:
            far.append((code, country.get("capital"), round(least, -2)))
for code, capital, least in sorted(far):
    print(f"{code} {capital}: {least:.0f} km from the nearest place of its country")
PY
seen=$(env/bin/python far.py)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
AG Saint John's: 3500 km from the nearest place of its country
AI The Valley: 4300 km from the nearest place of its country
GD St. George's: 7400 km from the nearest place of its country
IM Douglas: 6200 km from the nearest place of its country
MS Plymouth: 6300 km from the nearest place of its country
NF Kingston: 13400 km from the nearest place of its country
PM Saint-Pierre: 4600 km from the nearest place of its country
RE Saint-Denis: 9400 km from the nearest place of its country
SH Jamestown: 9500 km from the nearest place of its country
TL Dili: 6600 km from the nearest place of its country
SEEN
