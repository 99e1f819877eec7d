#!/usr/bin/env bash
# What the Python package jsonpatch takes for equal.
#
# Guess:     values are equal where they are of one JSON type and the same (RFC 6902 §4.6): `true` is not 1, `false` is not 0.
# Behaviour: a test for `true` passes where the document has 1, in arrays and objects as well. A patch that is made of two documents is
#            empty where an array has `true` in place of 1: the change is lost. Outside of arrays the same change is in the patch.
# Version:   jsonpatch 1.33 (PyPI).
# Matters:   bodies of PATCH in 5G (TS 29.501; NF profiles, subscription data, bindings) are such patches. A client that
#            makes them with this package loses changes in arrays, and a test operation that is to guard a change passes where the
#            document has another value. A test of a function with it proves less than it seems to.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q --disable-pip-version-check install jsonpatch==1.33 jsonpointer==3.0.0
cat >"$dir/equal.py" <<'PY'
import json
import jsonpatch
for old, new in (({"a": 1}, {"a": True}), ({"a": [1]}, {"a": [True]}), ({"a": [False, 7]}, {"a": [0, 7]}), ({"a": [1]}, {"a": [2]})):
    print(f"{json.dumps(old)} to {json.dumps(new)}: {jsonpatch.make_patch(old, new)}")
for document, value in (({"a": 1}, True), ({"a": False}, 0), ({"a": [1, {"b": 0}]}, [True, {"b": False}]), ({"a": 1}, "1")):
    try:
        jsonpatch.apply_patch(document, [{"op": "test", "path": "/a", "value": value}])
        verdict = "passes"
    except jsonpatch.JsonPatchTestFailed:
        verdict = "fails"
    print(f"test of {json.dumps(document)} for {json.dumps(value)}: {verdict}")
PY
seen=$("$dir/v/bin/python" "$dir/equal.py")
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
{"a": 1} to {"a": true}: [{"op": "replace", "path": "/a", "value": true}]
{"a": [1]} to {"a": [true]}: []
{"a": [false, 7]} to {"a": [0, 7]}: []
{"a": [1]} to {"a": [2]}: [{"op": "replace", "path": "/a/0", "value": 2}]
test of {"a": 1} for true: passes
test of {"a": false} for 0: passes
test of {"a": [1, {"b": 0}]} for [true, {"b": false}]: passes
test of {"a": 1} for "1": fails
SEEN
