#!/bin/sh
# Prints the path of h2spec, the conformance tests for HTTP/2 servers: of the one that is installed, or else of one that
# it builds into target/h2spec once. That needs Go, and the network for its modules.
set -eu

VERSION=v2.2.1+incompatible
! command -v h2spec || exit 0
directory=$(cd "$(dirname "$0")/.." && pwd)/target/h2spec
program=$directory/h2spec

if ! [ -x "$program" ]; then
    PATH=$PATH:/usr/local/go/bin
    command -v go >/dev/null 2>&1 || { echo "h2spec.sh: Go is missing" >&2; exit 1; }
    : "${HOME:=$directory}"
    export HOME
    mkdir -p "$directory"
    # A folder of its own, then a rename: two tests may build at once.
    building=$(mktemp -d "$directory/build.XXXXXX")
    trap 'rm -rf "$building"' EXIT
    GOBIN=$building GOFLAGS=-mod=mod go install "github.com/summerwind/h2spec/cmd/h2spec@$VERSION" >&2
    mv "$building/h2spec" "$program"
fi
echo "$program"
