#!/usr/bin/env python3
"""Makes crates/dsr-dsa/data/countries.csv and networks.csv from named public data.

    pip download --no-deps countryinfo==1.0.1 && unzip -d countryinfo countryinfo-*.whl
    apt-get download mobile-broadband-provider-info && dpkg-deb -x mobile-*.deb providers
    pip download --no-deps tzdata==2026.6 && unzip -d tzdata tzdata-*.whl
    scripts/dsa-data.py countryinfo tzdata/tzdata/zoneinfo/zone.tab MccTable.java \\
        providers/usr/share/mobile-broadband-provider-info/serviceproviders.xml

MccTable.java is src/java/com/android/internal/telephony/MccTable.java of the Android Open Source Project's
frameworks/opt/telephony. Versions and licences: crates/dsr-dsa/data/README.md.
"""

import glob
import json
import math
import os
import re
import sys

CONTINENTS = {
    "Africa": "africa",
    "Asia": "asia",
    "Europe": "europe",
    "Oceania": "oceania",
}
# A capital further than this from each place of its country in the time zone data was geocoded to a namesake.
NAMESAKE_KM = 1500


def degrees(text):
    """Degrees of ISO 6709 text such as +1703 or -0614803."""
    digits = text[1:]
    whole = 2 if len(digits) in (4, 6) else 3
    value = int(digits[:whole]) + int(digits[whole : whole + 2]) / 60
    value += int(digits[whole + 2 :] or 0) / 3600
    return -value if text[0] == "-" else value


def zones(path):
    """Places of each country, the principal one first."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                country, place = line.split("\t")[:2]
                north, east = re.fullmatch(r"([+-]\d+)([+-]\d+)", place).groups()
                found.setdefault(country.lower(), []).append((degrees(north), degrees(east)))
    return found


def kilometres(one, other):
    (north, east), (north2, east2) = [map(math.radians, place) for place in (one, other)]
    cosine = math.sin(north) * math.sin(north2) + math.cos(north) * math.cos(north2) * math.cos(east - east2)
    return 6371 * math.acos(min(1, cosine))


def countries(folder, places):
    rows, by_alpha3 = {}, {}
    for path in glob.glob(os.path.join(folder, "countryinfo", "data", "*.json")):
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        iso = found.get("ISO", {})
        alpha2, place = iso.get("alpha2", "").lower(), found.get("capital_latlng") or []
        if alpha2 not in places or len(place) != 2:
            continue
        if min(kilometres(place, zone) for zone in places[alpha2]) > NAMESAKE_KM:
            print(f"{found['name']}: {place} replaced by {places[alpha2][0]}")
            place = places[alpha2][0]
        by_alpha3[iso.get("alpha3", "")] = alpha2
        continent = CONTINENTS.get(found.get("region"))
        if continent is None:
            is_north = found.get("subregion") == "Northern America"
            continent = "north-america" if is_north else "latin-america"
        rows[alpha2] = (found["name"], place, continent, found.get("borders") or [])
    return rows, by_alpha3


def codes(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return {
        mcc: (country.lower(), int(digits))
        for mcc, country, digits in re.findall(r'MccEntry\((\d{3}), *"([a-zA-Z]{2})", *(\d)', text)
    }


def operators(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = {}
    for mcc, mnc in re.findall(r'network-id mcc="(\d{3})" mnc="(\d{2,3})"', text):
        found.setdefault(mcc, set()).add(mnc)
    return found


def main():
    folder, zone_table, table, providers = sys.argv[1:]
    out = os.path.join(os.path.dirname(__file__), "..", "crates", "dsr-dsa", "data")
    rows, by_alpha3 = countries(folder, zones(zone_table))
    near = {alpha2: {by_alpha3.get(code) for code in row[3]} & set(rows) for alpha2, row in rows.items()}
    mobile, networks = codes(table), operators(providers)
    with open(os.path.join(out, "countries.csv"), "w", encoding="utf-8") as file:
        file.write("Country,Name,Latitude,Longitude,Continent,Neighbours\n")
        for alpha2, (name, place, continent, _) in sorted(rows.items()):
            # A border has two sides, even where the source names one.
            borders = sorted(near[alpha2] | {other for other in rows if alpha2 in near[other]})
            name = name.replace(",", "")
            file.write(f"{alpha2},{name},{place[0]:.4f},{place[1]:.4f},{continent},{';'.join(borders)}\n")
    with open(os.path.join(out, "networks.csv"), "w", encoding="utf-8") as file:
        file.write("MCC,Country,MNC_Digits,MNC_List\n")
        for mcc in sorted(set(mobile) | set(networks)):
            country, digits = mobile.get(mcc, ("", 0))
            known = sorted(networks.get(mcc, ()))
            lengths = {len(mnc) for mnc in known} | ({digits} if digits else set())
            lengths = ";".join(str(length) for length in sorted(lengths))
            file.write(f"{mcc},{country if country in rows else ''},{lengths},{';'.join(known)}\n")


main()
