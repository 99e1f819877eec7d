#!/usr/bin/env bash
# What the Node.js package "diameter" sends and reads.
#
# Guess:     a request is proxiable as the commands of 3GPP ask (PXY), and an AVP of type OctetString keeps its octets.
# Behaviour: constructRequest() leaves the P bit clear, so that an agent may not forward it (RFC 6733 §3) and answers
#            with an error, 3008 as a rule. OctetStrings are read and written as UTF-8: each octet of a PLMN, a location, a prefix
#            or a class of charging that is not UTF-8 becomes U+FFFD, three octets, when the AVP is copied into another message.
# Version:   diameter 0.7.0 (npm).
# Matters:   a client made with it works with a server and not behind a router, until the application sets
#            header.flags.proxiable; "3008 only through the DRA" is this. A node that copies AVPs (3GPP-User-Location-Info,
#            Framed-IP-Address, Class) hands on other ones.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund diameter@0.7.0 >/dev/null 2>&1
cat >seen.js <<'JS'
const codec = require('diameter/lib/diameter-codec');
const request = codec.constructRequest('Diameter Credit Control Application', 'Credit-Control', 'pcef;1;2');
request.header.hopByHopId = 1;
console.log('flags of a CCR: 0x' + codec.encodeMessage(request)[4].toString(16));
request.header.flags.proxiable = true;
console.log('flags with proxiable set: 0x' + codec.encodeMessage(request)[4].toString(16));

// A message with one Class (25), read and written again.
const avp = (code, data) => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(code, 0);
  head.writeUInt32BE(8 + data.length, 4);
  head[4] = 0x40;
  return Buffer.concat([head, data, Buffer.alloc((4 - (data.length % 4)) % 4)]);
};
for (const octets of ['0a000001', '0a80ff01', '13f184']) {
  const body = avp(25, Buffer.from(octets, 'hex'));
  const whole = Buffer.concat([codec.encodeMessage({ ...request, body: [] }), body]);
  whole.writeUInt32BE((1 << 24) + whole.length, 0);
  const copied = codec.encodeMessage(codec.decodeMessage(whole));
  const length = copied.readUIntBE(25, 3) - 8;
  console.log('Class', octets, '-> copied as', copied.subarray(28, 28 + length).toString('hex'));
}
JS
seen=$(node --no-deprecation seen.js)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
flags of a CCR: 0x80
flags with proxiable set: 0xc0
Class 0a000001 -> copied as 0a000001
Class 0a80ff01 -> copied as 0aefbfbdefbfbd01
Class 13f184 -> copied as 13efbfbd
SEEN
