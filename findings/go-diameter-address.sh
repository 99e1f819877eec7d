#!/usr/bin/env bash
# What go-diameter writes for an AVP of type Address with an E.164 number that it has read.
#
# Guess:     an Address of a family that the stack does not interpret (RFC 6733 §4.3.1: 8 is E.164) is written as it was read:
#            the decoder keeps family and number.
# Behaviour: the value is taken for an IP address by its length when it is written. A number of 14 digits (16 octets with the
#            family) becomes an IPv6 address whose octets are the former family and the digits. Numbers of 11, 12, 13 and 15 digits
#            are written as they were read.
# Version:   github.com/fiorix/go-diameter/v4 v4.1.0 (diam/datatype/address.go).
# Matters:   SMSC-Address, Originator-SCCP-Address and Recipient-SCCP-Address (TS 32.299) carry numbers so. An agent or a
#            charging function on this stack that reads and writes such a message changes the number for subscribers and nodes
#            of numbering plans with 14 digits, and the length of the AVP; tests with 12 digits pass.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/fiorix/go-diameter/v4/diam/datatype"
)

func main() {
	for _, number := range []string{"43660123456", "436601234567", "4917112345678", "49171123456789", "491711234567890"} {
		read, err := datatype.DecodeAddress(append([]byte{0, 8}, number...))
		if err != nil {
			panic(err)
		}
		written := read.Serialize()
		fmt.Printf("%2d digits: family 8, %q -> family %d, %q\n", len(number), number, written[1], written[2:])
	}
}
GO
go get github.com/fiorix/go-diameter/v4@v4.1.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
seen=$(go run . 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
11 digits: family 8, "43660123456" -> family 8, "43660123456"
12 digits: family 8, "436601234567" -> family 8, "436601234567"
13 digits: family 8, "4917112345678" -> family 8, "4917112345678"
14 digits: family 8, "49171123456789" -> family 2, "\x00\b49171123456789"
15 digits: family 8, "491711234567890" -> family 8, "491711234567890"
SEEN
