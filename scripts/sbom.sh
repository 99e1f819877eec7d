#!/usr/bin/env bash
# Writes what the program consists of into target/package (or the folder that is given, with cargo's options for features after
# it): signalbox.cdx.json, a CycloneDX bill of materials of every crate that is linked into it, and licences.txt with their
# licence texts. Build scripts and macros are not in the program and not listed. `--check PROGRAM [BILL]` compares the bill with the
# debug information of a program. Programs: jq, cargo; no network.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
OUT=target/package
TARGET=$(rustc -vV | sed -n 's/^host: //p')

# Every crate whose code the debug information names is in the bill.
check() {
  local program=$1 bill=$2 missing
  missing=$(comm -23 \
    <(grep -aoE 'registry/src/[^/]+-[0-9a-f]{16}/[A-Za-z0-9_.+-]+/' "$program" | cut -d/ -f4 | sort -u) \
    <(jq -r '.components[] | "\(.name)-\(.version)"' "$bill" | sort -u) |
    while read -r crate; do
      # Code that a macro has made carries the place of the macro's source.
      grep -qxF "$crate" "$3" || echo "$crate"
    done)
  [ -z "$missing" ] || { echo "not in the bill of materials: $missing" >&2; exit 1; }
  echo "ok: $(jq '.components | length' "$bill") crates, every one that $program names is listed"
}

tree() {
  "$CARGO" tree --locked -p signalbox --edges "$1" --target "$TARGET" --prefix none --format '{p}' "${FEATURES[@]}" |
    sed -n 's/^\([^ ]*\) v\([^ ]*\).*/\1-\2/p' | sort -u
}

FEATURES=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "${1:-}" = --check ]; then
  tree normal > "$work/all"
  tree normal,no-proc-macro > "$work/linked"
  comm -23 "$work/all" "$work/linked" > "$work/macros"
  check "$2" "${3:-$OUT/signalbox.cdx.json}" "$work/macros"
  exit
fi
if [ $# -gt 0 ]; then OUT=$1; FEATURES=("${@:2}"); fi
mkdir -p "$OUT"

tree normal,no-proc-macro | jq -R . | jq -s . > "$work/linked.json"
"$CARGO" metadata --locked --format-version 1 --filter-platform "$TARGET" > "$work/metadata.json"
# Checksums of crates are in the lock file alone.
awk -F'"' '/^name = /{n=$2} /^version = /{v=$2} /^checksum = /{print n"-"v"\t"$2}' Cargo.lock |
  jq -R 'split("\t") | {(.[0]): .[1]}' | jq -s add > "$work/checksums.json"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}
time=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

jq -n --arg time "$time" --arg rustc "$(rustc --version | cut -d' ' -f2)" --slurpfile linked "$work/linked.json" \
  --slurpfile metadata "$work/metadata.json" --slurpfile checksums "$work/checksums.json" '
  def ref: if .source == null then "pkg:generic/\(.name)@\(.version)" else "pkg:cargo/\(.name)@\(.version)" end;
  ($linked[0] | map({(.): true}) | add) as $in
  | ($metadata[0].packages | map(select($in["\(.name)-\(.version)"])) | sort_by(.name, .version)) as $packages
  | ($packages | map({(.id): ref}) | add) as $refs
  | ($packages | map(select(.name == "signalbox"))[0]) as $own
  | def component($type): {
      type: $type, "bom-ref": ref, name, version,
      licenses: (if .license then [{expression: (.license | gsub("/"; " OR "))}] else [] end),
      externalReferences: (if .repository then [{type: "vcs", url: .repository}] else [] end)
    } + (if .source then {purl: ref} else {} end)
      + (($checksums[0]["\(.name)-\(.version)"]) as $sum | if $sum then {hashes: [{alg: "SHA-256", content: $sum}]} else {} end);
  {
    bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
    metadata: {timestamp: $time, component: ($own | component("application"))},
    components: ([$packages[] | select(.id != $own.id) | component("library")] + [{
      type: "library", "bom-ref": "pkg:generic/rust-std@\($rustc)", name: "rust-std", version: $rustc,
      licenses: [{expression: "MIT OR Apache-2.0"}], purl: "pkg:generic/rust-std@\($rustc)"
    }]),
    dependencies: [$metadata[0].resolve.nodes[] | select($refs[.id]) | {
      ref: $refs[.id],
      dependsOn: ([.deps[] | select(any(.dep_kinds[]; .kind == null)) | $refs[.pkg] | select(. != null)] | unique)
    }] | sort_by(.ref)
  }' > "$OUT/signalbox.cdx.json"

listed=$(jq '[.components[] | select(.name != "rust-std")] | length' "$OUT/signalbox.cdx.json")
linked=$(jq length "$work/linked.json")
[ $((listed + 1)) = "$linked" ] || { echo "$linked crates are linked, $listed are listed" >&2; exit 1; }
jq -e '[.components[] | select(.licenses == [])] | length == 0' "$OUT/signalbox.cdx.json" > /dev/null ||
  { echo "without a licence: $(jq -r '.components[] | select(.licenses == []) | .name' "$OUT/signalbox.cdx.json")" >&2; exit 1; }

# Licence texts, each once, under the names of the crates that have it.
jq -r --slurpfile linked "$work/linked.json" '
  ($linked[0] | map({(.): true}) | add) as $in
  | .packages | sort_by(.name, .version)[] | select(.source != null and $in["\(.name)-\(.version)"])
  | "\(.name) \(.version)\t\(.license // "see its files")\t\(.manifest_path | rtrimstr("/Cargo.toml"))"' "$work/metadata.json" > "$work/crates"
mkdir "$work/texts"
{
  echo "Signalbox is linked with these libraries. Licence texts follow, each with the libraries whose files have it."
  echo
  while IFS=$'\t' read -r crate licence folder; do
    echo "$crate: $licence"
    find "$folder" -maxdepth 2 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' \) \
      ! -name '*.rs' ! -name '*.toml' ! -name '*.html' | LC_ALL=C sort | while read -r file; do
      sum=$(sha256sum < "$file" | cut -d' ' -f1)
      [ -e "$work/texts/$sum" ] || cp "$file" "$work/texts/$sum"
      echo "$crate" >> "$work/texts/$sum.crates"
    done
  done < "$work/crates"
  for names in $(LC_ALL=C ls "$work/texts" | grep '\.crates$'); do
    echo
    echo "================================================================================"
    sort -u "$work/texts/$names" | paste -sd, | sed 's/,/, /g'
    echo "--------------------------------------------------------------------------------"
    cat "$work/texts/${names%.crates}"
  done
} > "$OUT/licences.txt"
echo "$OUT/signalbox.cdx.json: $listed crates; $OUT/licences.txt: $(ls "$work/texts" | grep -c '\.crates$') texts"
