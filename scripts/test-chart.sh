#!/usr/bin/env bash
# Lints and renders the Helm chart with each file of deploy/helm/signalbox/ci, and checks every configuration that it renders.
#   HELM=FILE        a helm of at least 3.14 (go install helm.sh/helm/v3/cmd/helm@v3.22.0)
#   SIGNALBOX=FILE   the program that checks configurations; otherwise of target, otherwise on PATH
set -euo pipefail
cd "$(dirname "$0")/.."

CHART=deploy/helm/signalbox
HELM=${HELM:-helm}
command -v "$HELM" > /dev/null || { echo "helm is missing (go install helm.sh/helm/v3/cmd/helm@v3.22.0)" >&2; exit 1; }
if [ -z "${SIGNALBOX:-}" ]; then
  SIGNALBOX=signalbox
  for profile in package dist release debug; do
    if [ -x "target/$profile/signalbox" ]; then SIGNALBOX=$PWD/target/$profile/signalbox; break; fi
  done
fi
# A helm that `go install` has made knows no version of Kubernetes.
VERSION=(--kube-version 1.33.0)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
ok() { passed=$((passed + 1)); echo "ok: $*"; }
die() { echo "FAILED: $*" >&2; exit 1; }

# Writes each configuration of rendered ConfigMaps to a file.
configurations() {
  awk -v to="$1" '
    /^  [a-z]+\.yaml: \|/ { file = to "/" substr($1, 1, length($1) - 1); next }
    file != "" && /^    / { print substr($0, 5) > file; next }
    { file = "" }'
}

for values in "$CHART"/ci/*-values.yaml; do
  name=$(basename "$values" -values.yaml)
  "$HELM" lint "$CHART" "${VERSION[@]}" --quiet --strict --values "$values" 2> "$work/log" || die "lint $name: $(cat "$work/log")"
  "$HELM" template core "$CHART" "${VERSION[@]}" --namespace sig --values "$values" > "$work/$name.yaml" 2> "$work/log" \
    || die "template $name: $(cat "$work/log")"
  mkdir "$work/$name"
  configurations "$work/$name" < "$work/$name.yaml"
  ls "$work/$name"/*.yaml > /dev/null || die "$name renders no configuration"
  POD_IP=127.0.0.1 POD_NAME=pod-0 PROJECT=$PWD/examples/policy/low "$SIGNALBOX" check --elsewhere --as config "$work/$name"/*.yaml > "$work/log" 2>&1 \
    || die "configurations of $name: $(cat "$work/log")"
  ok "$name: lint, template, $(ls "$work/$name" | wc -l) configurations without mistakes"
done

# The types of Kubernetes judge, where Go is.
if command -v go > /dev/null; then
  mkdir -p target/chart
  cp scripts/chart/* target/chart/
  (cd target/chart && go build -mod=mod -o decode .)
  target/chart/decode "$work"/*.yaml > "$work/log" 2>&1 || die "strict decoding: $(cat "$work/log")"
  ok "$(cat "$work/log")"
else
  echo "skipped: strict decoding, go is missing"
fi

has() { grep -q "$2" "$work/$1.yaml" || die "$1 has no $2"; }
has default 'kind: StatefulSet'
has default 'kind: Deployment'
has default 'kind: PodDisruptionBudget'
has secret 'kind: NetworkPolicy'
has secret 'secretName: core-tls'
has cert-manager 'kind: Certificate'
has cert-manager 'kind: ServiceMonitor'
has cert-manager 'alert: SignalboxUnreachable'
has cert-manager 'signalbox-pcf.json'
for function in nrf scp bsf pcf dsr scef stp enum sds dp; do
  has everything "^  name: core-signalbox-$function$"
  has everything "signalbox-$function.json"
  grep -A3 'kind: NetworkPolicy' "$work/everything.yaml" | grep -q "core-signalbox-$function$" || die "no NetworkPolicy of $function"
done
if grep -A200 'name: core-signalbox-nrf$' "$work/database.yaml" | grep -q volumeClaimTemplates; then
  # Of the BSF alone, whose store is embedded.
  [ "$(grep -c volumeClaimTemplates "$work/database.yaml")" = 1 ] || die "a volume beside a database"
fi
ok "each kind of object is rendered where it belongs"

refuses() {
  local what=$1
  shift
  if "$HELM" template core "$CHART" "${VERSION[@]}" "$@" > /dev/null 2> "$work/log"; then die "$what is accepted"; fi
}
refuses "an unknown value" --set functions.nrf.replica=2
refuses "a wrong type" --set-string functions.nrf.enabled=maybe
refuses "an unknown function" --set functions.amf.enabled=true
refuses "two replicas on embedded stores" --set functions.bsf.replicas=2
refuses "two SCEFs" --set functions.scef.enabled=true --set functions.scef.replicas=2
refuses "TLS without certificates" --set tls.enabled=true
ok "wrong values are refused"
echo "$passed passed, 0 failed"
