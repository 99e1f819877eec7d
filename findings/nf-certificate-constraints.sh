#!/usr/bin/env bash
# Which certificates of network functions are accepted under a certificate authority with name constraints.
#
# Guess:     an authority that is bound to the operator's domain (nameConstraints, permitted DNS:op.example) signs for an NF of that
#            domain, whatever other kinds of names its certificate has: RFC 5280 §4.2.1.10 restricts the kinds that are named.
#            So do OpenSSL and rustls-webpki, and Go up to 1.25.
# Behaviour: Go 1.26 refuses the certificate when it has the NF instance id as TS 33.310 §6.1.3c.3 asks (URI:urn:uuid:…), though no constraint
#            is about URIs. With a constraint for URIs, permitted or excluded, all of them refuse: a URN has no host.
# Version:   Go 1.25.8 and 1.26.0 (crypto/x509), OpenSSL 3 of the system, rustls-webpki 0.103.16.
# Matters:   a private authority of an operator is bound to its domain as a rule. NFs in Go (free5GC, SD-Core, proxies) that are
#            built anew with 1.26 stop accepting all other NFs, without a change of certificates.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
request() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2>/dev/null
}
sign() { # of what, by whom, extensions
    printf '%s\n' "$3" >ext
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 20 -extfile ext -out "$1.pem" 2>/dev/null
}
cat >main.go <<'GO'
package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

func load(name string) *x509.Certificate {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		panic(err)
	}
	return certificate
}

func main() {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(load("root.pem"))
	between.AddCert(load("operator.pem"))
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	_, err := load("smf.pem").Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: usages})
	if err != nil {
		fmt.Print("refused")
		return
	}
	fmt.Print("accepted")
}
GO
printf 'module finding\n\ngo 1.24\n' >go.mod
go1_25=$(GOTOOLCHAIN=go1.25.8 go build -o with25 . && echo ./with25)
go1_26=$(GOTOOLCHAIN=go1.26.0 go build -o with26 . && echo ./with26)
mkdir -p webpki/src
cat >webpki/Cargo.toml <<'TOML'
[package]
name = "judge"
version = "0.0.0"
edition = "2021"

[dependencies]
rustls-pki-types = "=1.16.0"
rustls-webpki = { version = "=0.103.16", features = ["ring"] }
TOML
cat >webpki/src/main.rs <<'RS'
use rustls_pki_types::{pem::PemObject, CertificateDer, UnixTime};
use webpki::{anchor_from_trusted_cert, EndEntityCert, KeyUsage, ALL_VERIFICATION_ALGS};

fn main() {
    let load = |name: &str| CertificateDer::from_pem_file(name).unwrap();
    let (root, between, smf) = (load("root.pem"), [load("operator.pem")], load("smf.pem"));
    let anchors = [anchor_from_trusted_cert(&root).unwrap()];
    let leaf = EndEntityCert::try_from(&smf).unwrap();
    let now = UnixTime::now();
    let usage = KeyUsage::client_auth();
    let outcome = leaf.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, &between, now, usage, None, None);
    print!("{}", if outcome.is_ok() { "accepted" } else { "refused" });
}
RS
CARGO_TARGET_DIR="$dir/target" cargo build --quiet --manifest-path webpki/Cargo.toml >/dev/null 2>&1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout root.key -out root.pem -subj /CN=root -days 30 \
    -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign 2>/dev/null
request operator
request smf
id=URI:urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6
judge() { # constraints, names
    ca=$'basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign'
    sign operator root "$ca${1:+$'\n'nameConstraints=critical,$1}"
    sign smf operator $'keyUsage=digitalSignature\nextendedKeyUsage=clientAuth\nsubjectAltName='"$2"
    openssl=refused
    if openssl verify -CAfile root.pem -untrusted operator.pem smf.pem >/dev/null 2>&1; then openssl=accepted; fi
    printf '%-32s %-18s openssl %s, webpki %s, Go 1.25 %s, Go 1.26 %s\n' "${1:-no constraint}" "${3}" \
        "$openssl" "$(target/debug/judge)" "$("$go1_25")" "$("$go1_26")"
}
seen=$(
    for constraints in "" "permitted;DNS:op.example" "permitted;URI:op.example" "excluded;URI:other.example"; do
        judge "$constraints" DNS:smf1.op.example "DNS name"
        judge "$constraints" "DNS:smf1.op.example,$id" "DNS name, urn:uuid"
    done
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
no constraint                    DNS name           openssl accepted, webpki accepted, Go 1.25 accepted, Go 1.26 accepted
no constraint                    DNS name, urn:uuid openssl accepted, webpki accepted, Go 1.25 accepted, Go 1.26 accepted
permitted;DNS:op.example         DNS name           openssl accepted, webpki accepted, Go 1.25 accepted, Go 1.26 accepted
permitted;DNS:op.example         DNS name, urn:uuid openssl accepted, webpki accepted, Go 1.25 accepted, Go 1.26 refused
permitted;URI:op.example         DNS name           openssl accepted, webpki accepted, Go 1.25 accepted, Go 1.26 accepted
permitted;URI:op.example         DNS name, urn:uuid openssl refused, webpki refused, Go 1.25 refused, Go 1.26 refused
excluded;URI:other.example       DNS name           openssl accepted, webpki accepted, Go 1.25 accepted, Go 1.26 accepted
excluded;URI:other.example       DNS name, urn:uuid openssl refused, webpki refused, Go 1.25 refused, Go 1.26 refused
SEEN
