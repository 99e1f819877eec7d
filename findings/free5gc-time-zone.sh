#!/usr/bin/env bash
# Which TimeZone of TS 29.571 the NAS library of free5GC writes for a moment in daylight saving time.
#
# Guess:     the offset is that of the clock on the wall, with the adjustment behind it: "+02:00+1" for Berlin in July
#            (TS 29.571 §5.2.2: time-numoffset is "adjusted for daylight saving time"; so is the octet of TS 24.008 §10.5.3.8).
# Behaviour: the adjustment is taken out of the offset, and is an hour wherever the Go library says that daylight saving time is in
#            use: "+01:00+1" for Berlin in July, "+10:00+1" for Lord Howe in January, which has half an hour. Ireland has standard
#            time in summer and a daylight saving time of minus one hour in winter: "-01:00+1" in January, "+01:00" in July;
#            Morocco likewise during Ramadan. The encoder of the library for the UE adds the hour again, so that the UE has the
#            right offset, but a daylight saving time in the Irish winter.
# Version:   github.com/free5gc/nas v1.2.1 (nasConvert/Time.go).
# Matters:   the text goes to SMF, PCF and CHF as ueTimeZone. What reads it by TS 29.571, such as a PCF that writes
#            3GPP-MS-TimeZone for an AF, is an hour off in summer, in Ireland in winter.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/free5gc/nas/nasConvert"
)

func main() {
	for _, name := range []string{"Europe/Berlin", "Europe/Dublin", "Africa/Casablanca", "Australia/Lord_Howe"} {
		location, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		for _, month := range []time.Month{time.January, time.March, time.July} {
			at := time.Date(2026, month, 15, 12, 0, 0, 0, location)
			zone := nasConvert.GetTimeZone(at)
			octet := nasConvert.EncodeLocalTimeZoneToNas(zone)
			saving := nasConvert.EncodeDaylightSavingTimeToNas(zone)
			fmt.Printf("%-19s %s -> %-10q to the UE %s, daylight saving %d\n", name, at.Format("Jan, UTC-07:00"),
				zone, nasConvert.DecodeLocalTimeZone(octet), saving.Getvalue())
		}
	}
}
GO
go get github.com/free5gc/nas@v1.2.1 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
# The time zones that the Go distribution has, not those of this machine.
zones="$(go env GOROOT)/lib/time/zoneinfo.zip"
[ -e "$zones" ]
seen=$(ZONEINFO="$zones" go run . 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
Europe/Berlin       Jan, UTC+01:00 -> "+01:00"   to the UE +01:00, daylight saving 0
Europe/Berlin       Mar, UTC+01:00 -> "+01:00"   to the UE +01:00, daylight saving 0
Europe/Berlin       Jul, UTC+02:00 -> "+01:00+1" to the UE +02:00, daylight saving 1
Europe/Dublin       Jan, UTC+00:00 -> "-01:00+1" to the UE +00:00, daylight saving 1
Europe/Dublin       Mar, UTC+00:00 -> "-01:00+1" to the UE +00:00, daylight saving 1
Europe/Dublin       Jul, UTC+01:00 -> "+01:00"   to the UE +01:00, daylight saving 0
Africa/Casablanca   Jan, UTC+01:00 -> "+01:00"   to the UE +01:00, daylight saving 0
Africa/Casablanca   Mar, UTC+00:00 -> "-01:00+1" to the UE +00:00, daylight saving 1
Africa/Casablanca   Jul, UTC+01:00 -> "+01:00"   to the UE +01:00, daylight saving 0
Australia/Lord_Howe Jan, UTC+11:00 -> "+10:00+1" to the UE +11:00, daylight saving 1
Australia/Lord_Howe Mar, UTC+11:00 -> "+10:00+1" to the UE +11:00, daylight saving 1
Australia/Lord_Howe Jul, UTC+10:30 -> "+10:30"   to the UE +10:30, daylight saving 0
SEEN
