#!/usr/bin/env bash
# What the mobile network codes of the npm package mcc-mnc-list are.
#
# Guess:     `mcc` has three digits and `mnc` two or three, a pair occurs once, and `find({mccmnc})` finds the network of the
#            first five or six digits of an IMSI.
# Behaviour: MNCs of five digits (six of 208), a range as text and `?` are among them; 48 records have a pair that was there
#            before, with another country, operator or state. find() takes all that follows the third digit as MNC: six digits of an
#            IMSI of a network with a two-digit MNC find nothing (`undefined`, no error).
# Version:   mcc-mnc-list 1.1.11 (npm).
# Matters:   the length of the MNC is what separates the networks of an IMSI (TS 23.003 §2.2). A list of networks for screening
#            (MCC_MNC_List), or PLMN ids of profiles (TS 29.571 §5.4.4.3: ^\d{2,3}$), made from the package without a check
#            has entries that never match or that a schema refuses.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --no-save mcc-mnc-list@1.1.11 >/dev/null
cat >codes.js <<'JS'
const list = require("mcc-mnc-list");
const all = list.all();
console.log("records", all.length);
const odd = all.filter((one) => !/^\d{2,3}$/.test(one.mnc));
console.log("no MNC of TS 29.571:", odd.map((one) => `${one.mcc} ${JSON.stringify(one.mnc)}`).join(", "));
const pairs = new Set(all.map((one) => `${one.mcc}-${one.mnc}`));
console.log("records of a pair that was there before:", all.length - pairs.size);
for (const digits of ["26201", "262010", "310410", "31041"]) {
  const found = list.find({ mccmnc: digits });
  console.log(digits, found ? `${found.mcc}-${found.mnc}` : String(found));
}
JS
seen=$(node codes.js)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
records 3094
no MNC of TS 29.571: 208 "50144", 208 "50164", 208 "50168", 208 "50169", 208 "50176", 208 "50194", 314 "100 - 190", 704 "?", 704 "?"
records of a pair that was there before: 48
26201 262-01
262010 undefined
310410 310-410
31041 undefined
SEEN
