#!/usr/bin/env bash
# Installs, upgrades, removes and purges the newest package of target/debian in a fresh Debian root, runs the whole core
# there, then the image of target/image as a root with nothing else in it. As root; `make test-packages`.
#   DEBIAN_ROOT=FILE.tar   takes a root that is there already (mmdebstrap --variant=minbase bookworm FILE.tar)
set -euo pipefail
cd "$(dirname "$0")/.."

for program in mmdebstrap lintian umoci systemd-analyze dpkg-deb curl unshare jq; do
  command -v "$program" > /dev/null || { echo "$program is missing (apt-get install mmdebstrap lintian umoci systemd)" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "run it as root: it changes its root directory" >&2; exit 1; }

# A network of its own, in which nothing but loopback is: the defaults of a core may be taken outside.
if [ -z "${PACKAGES_WORK:-}" ]; then
  PACKAGES_WORK=$(mktemp -d)
  export PACKAGES_WORK
  trap 'rm -rf "$PACKAGES_WORK"' EXIT
  if [ -n "${DEBIAN_ROOT:-}" ]; then
    cp "$DEBIAN_ROOT" "$PACKAGES_WORK/base.tar"
  else
    mmdebstrap --quiet --variant=minbase "${DEBIAN_SUITE:-bookworm}" "$PACKAGES_WORK/base.tar"
  fi
  unshare --net --mount --fork "$0"
  exit
fi
ip link set lo up
ROOT=$PACKAGES_WORK/root
DEB=$(ls -t target/debian/signalbox_*.deb | head -1)

FUNCTIONS="nrf scp bsf pcf scef dsr ipfe stp enum sds dp console"
passed=0
ok() { passed=$((passed + 1)); echo "ok: $*"; }
die() { echo "FAILED: $*" >&2; exit 1; }
inside() { chroot "$ROOT" "$@"; }
is_gone() { [ ! -e "$ROOT$1" ] || die "$1 is still there"; }
is_there() { [ -e "$ROOT$1" ] || die "$1 is missing"; }

# Waits until a page answers 200. `up` and its probes are on loopback of this network.
until_ready() {
  for _ in $(seq 600); do
    if curl --silent --fail --output /dev/null "$1"; then return; fi
    kill -0 "$2" 2> /dev/null || die "it has ended: $(tail -20 "$PACKAGES_WORK/log")"
    sleep 0.2
  done
  die "$1 was never ready: $(tail -20 "$PACKAGES_WORK/log")"
}

# Runs a program until a page is ready and, where a command is given, until it succeeds; then ends it.
run_until() {
  local page=$1 also=$2 pid has=
  shift 2
  "$@" > "$PACKAGES_WORK/log" 2>&1 &
  pid=$!
  until_ready "$page" "$pid"
  for _ in $(seq 300); do
    if [ -z "$also" ] || eval "$also"; then has=1; break; fi
    sleep 0.2
  done
  [ -n "$has" ] || die "never: $also"
  kill -TERM "$pid"
  wait "$pid" || die "it ended with $?: $(tail -20 "$PACKAGES_WORK/log")"
}

lint() {
  lintian --allow-root --fail-on error "$DEB" || die "lintian"
  ok "lintian finds no error"
  dpkg-deb -x "$DEB" "$PACKAGES_WORK/plain"
  if readelf -d "$PACKAGES_WORK/plain/usr/bin/signalbox" | grep NEEDED; then die "the program wants libraries"; fi
  ok "the program is linked statically"
  if [ -e target/package/signalbox.debug ]; then
    if nm target/package/signalbox.debug | grep -E ' T (gaih_inet|__nss_lookup_function)'; then die "glibc's resolver is in it"; fi
    ok "glibc's resolver is not in it"
    scripts/sbom.sh --check target/package/signalbox.debug "$PACKAGES_WORK/plain/usr/share/doc/signalbox/signalbox.cdx.json" || die "bill of materials"
    ok "the bill of materials lists every crate that is in it"
    [ -s "$PACKAGES_WORK/plain/usr/share/doc/signalbox/licences.txt" ] || die "licence texts"
    (cd target/package && sha256sum --quiet --check SHA256SUMS) || die "checksums"
    ok "licence texts are in it, checksums fit"
  fi
}

install_it() {
  mkdir "$ROOT"
  tar -x -f "$PACKAGES_WORK/base.tar" -C "$ROOT" --exclude='./dev/*'
  mkdir -p "$ROOT/dev" "$ROOT/proc"
  mount --bind /dev "$ROOT/dev"
  mount -t proc proc "$ROOT/proc"
  cp "$DEB" "$ROOT/tmp/signalbox.deb"
  inside dpkg -i /tmp/signalbox.deb
  for name in $FUNCTIONS; do
    is_there "/etc/signalbox/$name.yaml"
    inside getent passwd "signalbox-$name" > /dev/null || die "user signalbox-$name"
    inside signalbox check "/etc/signalbox/$name.yaml" > /dev/null || die "$name.yaml"
  done
  ok "dpkg -i: users, configurations without mistakes"
  # Some versions of systemd-analyze see nothing in a root without the targets of systemd.
  mkdir "$PACKAGES_WORK/unit"
  sed "s|=signalbox |=$ROOT/usr/bin/signalbox |" "$ROOT/lib/systemd/system/signalbox@.service" > "$PACKAGES_WORK/unit/signalbox@.service"
  said=$(systemd-analyze verify "$PACKAGES_WORK/unit/signalbox@nrf.service" 2>&1) || die "verify: $said"
  [ -z "$said" ] || die "verify: $said"
  systemd-analyze security --offline=yes --threshold=20 "$PACKAGES_WORK/unit/signalbox@.service" > /dev/null || die "exposure above 2.0"
  ok "systemd-analyze verify, security below 2.0"
}

whole_core() {
  local start
  start=$(date +%s)
  run_until http://127.0.0.1:9010/readyz 'inside signalbox pcf sessions 2> /dev/null | grep -q imsi' \
    chroot "$ROOT" sh -c 'cd /var/lib/signalbox && exec signalbox up'
  ok "signalbox up: traffic after $(($(date +%s) - start)) s"
}

each_function() {
  local admin
  for name in $FUNCTIONS; do
    admin=$(inside signalbox config show --config "/etc/signalbox/$name.yaml" --json | jq -r ".[\"$name\"].admin")
    install -d -o "$(inside id -u "signalbox-$name")" -m 0700 "$ROOT/var/lib/signalbox/$name"
    run_until "http://$admin/livez" '' chroot --userspec="signalbox-$name:signalbox-$name" "$ROOT" \
      sh -c "cd /var/lib/signalbox/$name && exec signalbox run $name --config /etc/signalbox/$name.yaml"
  done
  ok "each function runs as its user"
}

# By a name of /etc/hosts, with modules of a resolver that no machine has.
names() {
  echo 'hosts: nonexistent' > "$ROOT/etc/nsswitch.conf"
  echo '127.0.7.1 nrf.signalling.test' >> "$ROOT/etc/hosts"
  echo 'nrf: {listen: "nrf.signalling.test:8010", admin: "nrf.signalling.test:9010"}' > "$ROOT/tmp/names.yaml"
  run_until http://127.0.7.1:9010/readyz '' chroot "$ROOT" sh -c 'cd /tmp && exec signalbox run nrf --config /tmp/names.yaml'
  ok "names are resolved without modules of glibc"
}

upgrade_and_remove() {
  dpkg-deb -R "$DEB" "$PACKAGES_WORK/next"
  sed -i 's/^Version: .*/&+next/' "$PACKAGES_WORK/next/DEBIAN/control"
  for name in $FUNCTIONS; do
    echo '# changed here' >> "$ROOT/etc/signalbox/$name.yaml"
    echo '# changed in the package' >> "$PACKAGES_WORK/next/etc/signalbox/$name.yaml"
  done
  (cd "$PACKAGES_WORK/next" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum > DEBIAN/md5sums)
  dpkg-deb -Zgzip -z1 -b "$PACKAGES_WORK/next" "$ROOT/tmp/next.deb" > /dev/null
  touch "$ROOT/var/lib/signalbox/state"
  # No answer: dpkg keeps what was changed, and has the new file beside it.
  inside dpkg -i --force-confdef --force-confold /tmp/next.deb
  inside dpkg-query -W -f '${Version}\n' signalbox | grep -q '+next' || die "the version after the upgrade"
  for name in $FUNCTIONS; do
    grep -q 'changed here' "$ROOT/etc/signalbox/$name.yaml" || die "the upgrade has overwritten $name.yaml"
  done
  is_there /var/lib/signalbox/state
  ok "upgrade: configurations and state stay"
  inside dpkg -r signalbox
  is_gone /usr/bin/signalbox
  is_there /etc/signalbox/nrf.yaml
  is_there /var/lib/signalbox/state
  ok "remove: configurations and state stay"
  inside dpkg -P signalbox
  for path in /etc/signalbox /var/lib/signalbox /usr/share/signalbox /lib/systemd/system/signalbox@.service; do is_gone "$path"; done
  ok "purge: nothing is left"
}

image() {
  [ -d target/image ] || { echo "skipped: no image (make image)"; return; }
  local size bundle=$PACKAGES_WORK/bundle
  size=$(du -sm target/image | cut -f1)
  [ "$size" -le 40 ] || die "the image has $size MB"
  umoci unpack --image target/image:latest "$bundle" > /dev/null
  [ "$(stat -c %u "$bundle/rootfs/var/lib/signalbox")" = 900 ] || die "owner of the state"
  [ ! -e "$bundle/rootfs/bin/sh" ] || die "there is a shell in the image"
  grep -q '"uid": 900' "$bundle/config.json" || die "user of the image"
  # Every runtime gives these two, which a static program reads: it finds no `getrandom` by its name.
  mkdir -p "$bundle/rootfs/dev"
  mknod -m 666 "$bundle/rootfs/dev/random" c 1 8
  mknod -m 666 "$bundle/rootfs/dev/urandom" c 1 9
  cp examples/nrf.yaml "$bundle/rootfs/usr/share/doc/signalbox/nrf.yaml"
  # As a runtime does it: root, working directory, user.
  local start within=(unshare --root "$bundle/rootfs" --wd /var/lib/signalbox --setgid 900 --setuid 900)
  run_until http://127.0.0.1:9010/readyz '' "${within[@]}" /usr/bin/signalbox run nrf --config /usr/share/doc/signalbox/nrf.yaml
  ok "the image ($size MB) serves /readyz with nothing but random numbers of /dev beside it, as user 900"
  start=$(date +%s)
  run_until http://127.0.0.1:9010/readyz '"${within[@]}" /usr/bin/signalbox pcf sessions 2> /dev/null | grep -q imsi' \
    "${within[@]}" /usr/bin/signalbox up
  ok "signalbox up in the image: traffic after $(($(date +%s) - start)) s"
}

trap 'umount "$ROOT/dev" "$ROOT/proc" 2> /dev/null || true' EXIT
lint
install_it
whole_core
each_function
names
upgrade_and_remove
image
echo "$passed passed, 0 failed"
