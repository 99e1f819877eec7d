#!/usr/bin/env bash
# Builds what packages contain, into target/package: the statically linked program without debug information, that
# information beside it (signalbox.debug), man pages, completions, a changelog in Debian's form, a bill of materials with licence
# texts, checksums.
#   PROFILE=release   builds in less time, a larger and slower program
#   PROGRAM=FILE      takes a program that is built already
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
PROFILE=${PROFILE:-dist}
TARGET=$(rustc -vV | sed -n 's/^host: //p')
STAGE=target/package

# Two builds of one commit give the same bytes: no paths of this machine, and the time of the commit in place of now.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}
export SOURCE_DATE_EPOCH

if [ -z "${PROGRAM:-}" ]; then
  # With --target the flags do not reach build scripts and macros, which cannot be static.
  home=${CARGO_HOME:-$HOME/.cargo}
  RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$PWD=/signalbox --remap-path-prefix=$home=/cargo" \
    "$CARGO" build --profile "$PROFILE" --locked -p signalbox --target "$TARGET" "$@"
  PROGRAM=${CARGO_TARGET_DIR:-target}/$TARGET/$PROFILE/signalbox
fi

rm -rf "$STAGE"
mkdir -p "$STAGE/man" "$STAGE/completions"
objcopy --only-keep-debug "$PROGRAM" "$STAGE/signalbox.debug"
objcopy --strip-all --add-gnu-debuglink="$STAGE/signalbox.debug" "$PROGRAM" "$STAGE/signalbox"
"$STAGE/signalbox" man "$STAGE/man"
for shell in bash zsh fish; do
  "$STAGE/signalbox" completions "$shell" > "$STAGE/completions/$shell"
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
maintainer=$(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/signalbox/Cargo.toml)
cat > "$STAGE/changelog" <<TEXT
signalbox ($version-1) unstable; urgency=medium

  * New release; CHANGELOG.md has what has changed.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
scripts/sbom.sh "$STAGE" "$@"
(cd "$STAGE" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS)
ls -l "$STAGE"
