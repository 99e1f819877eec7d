#!/usr/bin/env bash
# What the resolver crate `hickory-resolver` makes of a resolv.conf without a name server.
#
# Guess:     it asks the name server of the local machine, as resolv.conf(5) says of a file without `nameserver` and the C library does;
#            so does a program in an image that has no such file.
# Behaviour: such a configuration is an error, "no nameservers found in config", also where it has search domains and options alone.
#            An empty file, as a runtime may mount it, is the same.
# Version:   hickory-resolver 0.26.3 (crates.io), feature system-config.
# Matters:   a network function that builds its resolver from the system at the start does not start in a container of one program, or
#            with search domains alone, even where all its peers have addresses.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "0.0.0"
edition = "2024"

[dependencies]
hickory-resolver = { version = "=0.26.3", default-features = false, features = ["system-config", "tokio"] }
TOML
cat >src/main.rs <<'RS'
use hickory_resolver::system_conf::parse_resolv_conf;

fn main() {
    for (what, text) in [
        ("a name server", "nameserver 192.0.2.53\n"),
        ("search domains and options", "search example.org\noptions ndots:2\n"),
        ("nothing", ""),
    ] {
        match parse_resolv_conf(text) {
            Ok((servers, _)) => println!("{what}: {} name servers", servers.name_servers().len()),
            Err(error) => println!("{what}: {error}"),
        }
    }
}
RS
seen=$(cargo run --quiet 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
a name server: 1 name servers
search domains and options: io error: no nameservers found in config
nothing: io error: no nameservers found in config
SEEN
