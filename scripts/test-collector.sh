#!/usr/bin/env bash
# The collector of OpenTelemetry, built from its modules, takes the traces of a running core over TLS: a request that the SCP relays
# is one trace of several functions, and spans name function, version and instance. `make test-collector`.
#   SIGNALBOX=target/release/signalbox scripts/test-collector.sh
# Needs Go, openssl and curl with HTTP/2. The first build takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

signalbox=$(realpath "${SIGNALBOX:-target/release/signalbox}")
for program in go openssl curl "$signalbox"; do
  command -v "$program" > /dev/null || { echo "$program is missing" >&2; exit 1; }
done
mkdir -p target/collector
built=$(realpath target/collector)
cp scripts/collector/* "$built"
(cd "$built" && go build -mod=mod -o collector .)

work=$(mktemp -d)
pids=()
finish() {
  kill "${pids[@]}" 2> /dev/null || true
  wait
  rm -rf "$work"
}
trap finish EXIT
die() { echo "FAILED: $*" >&2; grep -h "WARN\|ERROR" "$work/log" >&2; tail -n 20 "$work/log" "$work/collector.log" >&2; exit 1; }
cd "$work"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority 2> /dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out request.pem -subj /CN=collector 2> /dev/null
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > extensions
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out cert.pem 2> /dev/null
cat > collector.yaml << YAML
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:14318
        tls: {cert_file: $work/cert.pem, key_file: $work/key.pem}
exporters:
  debug: {verbosity: detailed}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
YAML
"$built/collector" --config "file:$work/collector.yaml" > collector.log 2>&1 &
pids+=($!)
cat > core.yaml << YAML
traces: {collector: "https://127.0.0.1:14318", certificateAuthority: $work/ca.pem, share: 0%, headers: {x-tenant: core}}
YAML
"$signalbox" check core.yaml > log || die "the configuration"
"$signalbox" up --config core.yaml > log 2>&1 &
pids+=($!)

# A request with a trace of its own, relayed by the SCP once the simulated functions are there.
trace=4bf92f3577b34da6a3ce929d0e0e4736
ask() {
  curl --silent --http2-prior-knowledge -o "$work/answer" -w '%{http_code}' -H "traceparent: 00-$trace-00f067aa0ba902b7-01" "$@" || true
}
status=
for _ in $(seq 150); do
  status=$(ask -H '3gpp-Sbi-Discovery-target-nf-type: BSF' -H '3gpp-Sbi-Discovery-requester-nf-type: AF' \
    -H '3gpp-Sbi-Discovery-service-names: nbsf-management' "http://127.0.0.1:8020/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.1")
  [ "$status" != 200 ] || break
  sleep 0.2
done
[ "$status" = 200 ] || die "the SCP answers $status: $(cat "$work/answer")"
for _ in $(seq 100); do
  if grep -A12 "Trace ID *: $trace" collector.log | grep -q 'Nbsf_Management'; then break; fi
  sleep 0.2
done
grep -q "Trace ID *: $trace" collector.log || die "the collector has no span of the trace"
for function in scp bsf; do
  grep -q "service.name: Str($function)" collector.log || die "no span of $function"
done
for attribute in service.instance.id service.version service.namespace; do
  grep -q "$attribute: Str(" collector.log || die "no $attribute"
done
# What the SCP sends for the request is a client span, below which the BSF's is.
awk -v trace="$trace" '/Trace ID/ { here = $NF == trace } / Kind .*Client/ { if (here) found = 1 } END { exit !found }' collector.log ||
  die "no span of what a function sends"
# The span of the BSF is below the one of the SCP.
awk -v trace="$trace" '
  /Trace ID/ { here = $NF == trace } /Parent ID/ { parent = $NF } / ID  / && !/Trace|Parent/ { if (here) { spans[$NF] = parent } }
  END { for (span in spans) if (spans[span] in spans) found = 1; exit !found }' collector.log || die "no span is below another one"
echo "ok: one trace of SCP and BSF, over TLS"
