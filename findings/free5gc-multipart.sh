#!/usr/bin/env bash
# How the Go models of free5GC read a multipart/related body (TS 29.500 §6.1.2.2.2, RFC 2387).
#
# Guess:     a body that is right by RFC 2046 and RFC 2387 is read whole, or refused with an error.
# Behaviour: a part of more than 1,400 octets ends the reading without an error: what was read until then stands, the rest is
#            empty. A boundary without a blank before it is not found. With the parameter `type="application/json"`, which
#            RFC 2387 §3.1 requires, the whole body is taken for JSON.
# Version:   github.com/free5gc/openapi v1.2.1 (client.go, MultipartDeserialize and Deserialize).
# Matters:   a PCF sends UE policies to an AMF, and an SMF sends N1 and N2 messages, in such bodies. An AMF on these models
#            takes a UE policy section of 1.5 KB for a message without content and answers as if all were well.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"github.com/free5gc/openapi"
	"github.com/free5gc/openapi/models"
)

func read(contentType string, octets int) string {
	body := "--x\r\nContent-Type: application/json\r\n\r\n" +
		`{"n1MessageContainer":{"n1MessageClass":"UPDP","n1MessageContent":{"contentId":"n1"}}}` +
		"\r\n--x\r\nContent-Type: application/vnd.3gpp.5gnas\r\nContent-ID: n1\r\n\r\n" +
		strings.Repeat("N", octets) + "\r\n--x--\r\n"
	var request models.N1N2MessageTransferRequest
	err := openapi.Deserialize(&request, []byte(body), contentType)
	return fmt.Sprintf("error: %v, octets of the N1 message: %d", err, len(request.BinaryDataN1Message))
}

func main() {
	for _, octets := range []int{100, 1399, 1400, 1500} {
		fmt.Printf("%4d sent: %s\n", octets, read("multipart/related; boundary=x", octets))
	}
	fmt.Printf("without a blank before boundary: %s\n", read("multipart/related;boundary=x", 100))
	fmt.Printf("boundary in quotes: %s\n", read(`multipart/related; boundary="x"`, 100))
	fmt.Printf("type before boundary: %s\n", read(`multipart/related; type="application/json"; boundary=x`, 100))
}
GO
go get github.com/free5gc/openapi@v1.2.1 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
seen=$(go run .)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
 100 sent: error: <nil>, octets of the N1 message: 100
1399 sent: error: <nil>, octets of the N1 message: 1399
1400 sent: error: <nil>, octets of the N1 message: 1400
1500 sent: error: <nil>, octets of the N1 message: 0
without a blank before boundary: error: multipart/related need boundary, octets of the N1 message: 0
boundary in quotes: error: <nil>, octets of the N1 message: 100
type before boundary: error: invalid character '-' in numeric literal, octets of the N1 message: 0
SEEN
