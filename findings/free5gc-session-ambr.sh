#!/usr/bin/env bash
# How the NAS library of free5GC turns a Session-AMBR of TS 29.571 into one of TS 24.501 §9.11.4.14.
#
# Guess:     every BitRate of TS 29.571 §5.5.2 ("1.5 Gbps", "40000 Mbps") becomes its value, or an error.
# Behaviour: the number is read as a signed 16-bit integer. With a fraction, or from 32,768 on (the field of TS 24.501 goes to
#            65,535), the UE is granted an AMBR of 0 in the unit that was given, and only a log line says so. Units that the
#            field has and BitRate has not (4, 16, 64 … kbit/s) are never used, so that "100000 Kbps" becomes 0 as well.
# Version:   github.com/free5gc/nas v1.2.1 (nasConvert/SessionAMBR.go).
# Matters:   the PCF's authSessAmbr passes an SMF as it is. A PCF that writes "2.5 Gbps" or "100000 Kbps" stops the UE behind
#            an SMF on this library; "2500 Mbps" and "100 Mbps" do not.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/free5gc/nas/nasConvert"
	"github.com/free5gc/openapi/models"
)

func main() {
	for _, rate := range []string{"100 Mbps", "2500 Mbps", "32767 Mbps", "32768 Mbps", "40000 Mbps", "1.5 Gbps", "1.0 Gbps", "100000 Kbps"} {
		ambr := nasConvert.ModelsToSessionAMBR(&models.Ambr{Uplink: rate, Downlink: rate})
		value := ambr.GetSessionAMBRForDownlink()
		fmt.Printf("%-11s -> unit %d, value %d\n", rate, ambr.GetUnitForSessionAMBRForDownlink(), int(value[0])<<8|int(value[1]))
	}
}
GO
go get github.com/free5gc/nas@v1.2.1 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
seen=$(go run . 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
100 Mbps    -> unit 6, value 100
2500 Mbps   -> unit 6, value 2500
32767 Mbps  -> unit 6, value 32767
32768 Mbps  -> unit 6, value 0
40000 Mbps  -> unit 6, value 0
1.5 Gbps    -> unit 11, value 0
1.0 Gbps    -> unit 11, value 0
100000 Kbps -> unit 1, value 0
SEEN
