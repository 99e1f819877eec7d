#!/usr/bin/env bash
# What the field Regexp of a NAPTR is in the Go package dns.
#
# Guess:     the field has the expression as the wire has it, `!^\+43(.*)$!sip:\1@example.com!` (RFC 3403 §4.1); what a program puts into
#            it goes to the wire.
# Behaviour: the field has the escapes of a zone file, each backslash twice, from a message as well. An expression that is put in as
#            RFC 3403 writes it loses its backslashes on the wire, without an error: `\1` becomes the digit 1, `^\+43` becomes `^+43`.
# Version:   github.com/miekg/dns v1.1.68.
# Matters:   an ENUM client on it that applies the field builds an address with a backslash in it, or finds no match; a server that
#            builds records from templates sends every number to one address. Both see what they expect when they print their
#            own records. Unescape after reading, escape before writing, and compare octets in a capture.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"bytes"
	"fmt"

	"github.com/miekg/dns"
)

// wire is the expression in the octets of a record: a length before it, the root as replacement behind it.
func wire(record dns.RR) string {
	octets := make([]byte, 512)
	end, err := dns.PackRR(record, octets, 0, nil, false)
	if err != nil {
		return err.Error()
	}
	return string(octets[bytes.IndexByte(octets, '!') : end-1])
}

func main() {
	zone := `4.3.e164.arpa. 300 IN NAPTR 100 10 "u" "E2U+sip" "!^\\+43(.*)$!sip:\\1@example.com!" .`
	record, _ := dns.NewRR(zone)
	naptr := record.(*dns.NAPTR)
	fmt.Println("zone file:", naptr.Regexp, "on the wire:", wire(naptr))
	octets := make([]byte, 512)
	end, _ := dns.PackRR(naptr, octets, 0, nil, false)
	back, _, _ := dns.UnpackRR(octets[:end], 0)
	fmt.Println("from the wire:", back.(*dns.NAPTR).Regexp)
	naptr.Regexp = `!^\+43(.*)$!sip:\1@example.com!`
	fmt.Println("put in:", naptr.Regexp, "on the wire:", wire(naptr))
}
GO
export GOPATH="$dir/go" GOFLAGS=-modcacherw
go get github.com/miekg/dns@v1.1.68 >/dev/null 2>&1
seen=$(go run .)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
zone file: !^\\+43(.*)$!sip:\\1@example.com! on the wire: !^\+43(.*)$!sip:\1@example.com!
from the wire: !^\\+43(.*)$!sip:\\1@example.com!
put in: !^\+43(.*)$!sip:\1@example.com! on the wire: !^+43(.*)$!sip:1@example.com!
SEEN
