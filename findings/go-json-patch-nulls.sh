#!/usr/bin/env bash
# What the Go package json-patch makes of null and of numbers.
#
# Guess:     an array in a merge patch replaces the one before as it is, nulls within its objects included (RFC 7396 §2); a test for
#            null fails where the member is absent (RFC 6902 §4.6: the target location has to exist); 1 and 1.0 are equal, since
#            numbers are compared by their value; -1 is not an index (RFC 6901 §4).
# Behaviour: objects in an array lose their members with null; a test for null passes on an absent member; 1 and 1.0 differ, and so
#            do, in version 4, a letter and its \u escape; -1 is the last element.
# Version:   github.com/evanphx/json-patch v5.9.11 and v4.12.0.
# Matters:   data of 3GPP have members that may be null (`nullable`) within arrays, such as the rules of subscribed data; behind a
#            function on this package they are absent after a PATCH, and absent means no change where null means removal. A test
#            operation as a guard decides another way than elsewhere: let two stacks agree on each before it is relied on.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"

	v4 "github.com/evanphx/json-patch"
	v5 "github.com/evanphx/json-patch/v5"
)

func main() {
	for _, c := range [][2]string{{`{"a":1}`, `{"a":[{"b":null}]}`}, {`{"a":[{"b":null}]}`, `{"c":1}`}} {
		five, _ := v5.MergePatch([]byte(c[0]), []byte(c[1]))
		four, _ := v4.MergePatch([]byte(c[0]), []byte(c[1]))
		fmt.Printf("merge %s into %s: %s, %s\n", c[1], c[0], five, four)
	}
	for _, c := range [][2]string{
		{`{}`, `[{"op":"test","path":"/a","value":null}]`},
		{`{}`, `[{"op":"test","path":"/a","value":1}]`},
		{`{"a":1}`, `[{"op":"test","path":"/a","value":1.0}]`},
		{`{"a":"é"}`, `[{"op":"test","path":"/a","value":"\u00e9"}]`},
		{`{"a":[1,2]}`, `[{"op":"remove","path":"/a/-1"}]`},
	} {
		five, _ := v5.DecodePatch([]byte(c[1]))
		four, _ := v4.DecodePatch([]byte(c[1]))
		out5, err5 := five.Apply([]byte(c[0]))
		out4, err4 := four.Apply([]byte(c[0]))
		fmt.Printf("%s of %s: %s, %s\n", c[1], c[0], shown(out5, err5), shown(out4, err4))
	}
}

func shown(out []byte, err error) string {
	if err != nil {
		return "refused"
	}
	return string(out)
}
GO
export GOPATH="$dir/go" GOFLAGS=-modcacherw
go get github.com/evanphx/json-patch/v5@v5.9.11 github.com/evanphx/json-patch@v4.12.0+incompatible >/dev/null 2>&1
seen=$(go run .)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
merge {"a":[{"b":null}]} into {"a":1}: {"a":[{}]}, {"a":[{}]}
merge {"c":1} into {"a":[{"b":null}]}: {"a":[{"b":null}],"c":1}, {"a":[{"b":null}],"c":1}
[{"op":"test","path":"/a","value":null}] of {}: {}, {}
[{"op":"test","path":"/a","value":1}] of {}: refused, refused
[{"op":"test","path":"/a","value":1.0}] of {"a":1}: refused, refused
[{"op":"test","path":"/a","value":"\u00e9"}] of {"a":"é"}: {"a":"é"}, refused
[{"op":"remove","path":"/a/-1"}] of {"a":[1,2]}: {"a":[1]}, {"a":[1]}
SEEN
