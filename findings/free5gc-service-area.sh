#!/usr/bin/env bash
# How the NAS library of free5GC turns a ServiceAreaRestriction of TS 29.571 into the service area list of TS 24.501 §9.11.3.49.
#
# Guess:     the number of elements is that of the tracking areas, less one, as the table of the octet says ("00000: 1 element").
# Behaviour: it is the number of entries in `areas`, whatever each of them holds. One area with one TAC is announced as two
#            elements, with three TACs as two; three areas with one TAC each as four. maxNumOfTAs and areas given by areaCode
#            leave no trace.
# Version:   github.com/free5gc/nas v1.2.1 (nasConvert/ServiceAreaList.go).
# Matters:   the servAreaRes of an AM policy (TS 29.507 §5.6.2.3) reaches the UE through an AMF with this library as a list that
#            is longer or shorter than its octets. It is right only where one area holds two TACs for each entry, one entry: a
#            PCF that wants one TAC restricted has no form that is right.
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
	for _, areas := range [][]models.Area{
		{{Tacs: []string{"000001"}}},
		{{Tacs: []string{"000001", "000002"}}},
		{{Tacs: []string{"000001", "000002", "000003"}}},
		{{Tacs: []string{"000001"}}, {Tacs: []string{"000002"}}, {Tacs: []string{"000003"}}},
		{{AreaCode: "north"}},
	} {
		tacs := 0
		for _, area := range areas {
			tacs += len(area.Tacs)
		}
		list := nasConvert.PartialServiceAreaListToNas(models.PlmnId{Mcc: "001", Mnc: "01"},
			models.ServiceAreaRestriction{RestrictionType: models.RestrictionType_ALLOWED_AREAS, Areas: areas})
		fmt.Printf("%d areas, %d TACs -> %x: %d elements announced, %d sent\n",
			len(areas), tacs, list, int(list[0]&0x1f)+1, (len(list)-4)/3)
	}
}
GO
go get github.com/free5gc/nas@v1.2.1 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
seen=$(go run . 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
1 areas, 1 TACs -> 0100f110000001: 2 elements announced, 1 sent
1 areas, 2 TACs -> 0100f110000001000002: 2 elements announced, 2 sent
1 areas, 3 TACs -> 0100f110000001000002000003: 2 elements announced, 3 sent
3 areas, 3 TACs -> 0300f110000001000002000003: 4 elements announced, 3 sent
1 areas, 0 TACs -> 0100f110: 2 elements announced, 0 sent
SEEN
