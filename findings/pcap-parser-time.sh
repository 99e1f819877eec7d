#!/usr/bin/env bash
# Which times pcap-parser reads from captures whose interfaces have another resolution than 10^-6 or 10^-9 seconds.
#
# Guess:     each if_tsresol of pcapng has a resolution: 10^-n, or 2^-n with the highest bit set; a time is its seconds and the
#            rest in units of the resolution.
# Behaviour: with the highest bit set there is none, for any n: the bound on n is compared with the whole octet, which is 128 or more
#            then. With 10^-10 and finer, the rest is cut to 32 bits
#            without an error: half a second in units of 10^-12 becomes 0.0018 s.
# Version:   pcap-parser 0.16.0 and 0.17.0 (crates.io).
# Matters:   capture cards and taps of signalling networks write 2^-n and 10^-12. A tool that replays or pairs requests and answers
#            by these times takes them in a wrong order. `crates/capture` computes times from the octet itself.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >src/main.rs <<'RS'
use pcap_parser::pcapng::{build_ts, build_ts_resolution};

fn main() {
    // Half a second after the offset of the interface (if_tsoffset), at each resolution.
    for (octet, units) in [(6_u8, 1_000_000_u64), (9, 1_000_000_000), (12, 1_000_000_000_000), (0x8a, 1 << 10), (0x94, 1 << 20), (0xa0, 1 << 32)] {
        let ticks = units / 2;
        let time = build_ts_resolution(octet)
            .map(|resolution| build_ts((ticks >> 32) as u32, ticks as u32, 1_000_000_000, resolution));
        println!("if_tsresol {octet:#04x}, {units} units a second, 1000000000 s and {ticks} units: {time:?}");
    }
}
RS
for version in 0.16.0 0.17.0; do
    printf '[package]\nname = "finding"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\npcap-parser = "=%s"\n' "$version" >Cargo.toml
    cargo build --quiet >/dev/null 2>&1
    target/debug/finding >"seen-$version"
done
cat seen-0.17.0
diff seen-0.16.0 seen-0.17.0
diff seen-0.17.0 - <<'SEEN'
if_tsresol 0x06, 1000000 units a second, 1000000000 s and 500000 units: Some((1000000000, 500000))
if_tsresol 0x09, 1000000000 units a second, 1000000000 s and 500000000 units: Some((1000000000, 500000000))
if_tsresol 0x0c, 1000000000000 units a second, 1000000000 s and 500000000000 units: Some((1000000000, 1783793664))
if_tsresol 0x8a, 1024 units a second, 1000000000 s and 512 units: None
if_tsresol 0x94, 1048576 units a second, 1000000000 s and 524288 units: None
if_tsresol 0xa0, 4294967296 units a second, 1000000000 s and 2147483648 units: None
SEEN
