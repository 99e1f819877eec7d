#!/usr/bin/env bash
# Makes an OCI image of target/package without a container engine and without privileges: target/image is an OCI layout with
# the tag `latest`, target/image.tar the same as one file, for `podman load` and registries. Programs: Debian's umoci; with
# Debian's skopeo the archive is made, too. In it are the program, the certificates of
# authorities, names of users, and empty folders; there is no shell.
set -euo pipefail
cd "$(dirname "$0")/.."

STAGE=target/package
LAYOUT=target/image
ROOT=target/image-root
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
commit=$(git rev-parse HEAD 2> /dev/null || echo unknown)
case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture=$(uname -m) ;;
esac

if readelf -d "$STAGE/signalbox" | grep -q NEEDED; then
  echo "$STAGE/signalbox wants libraries, which are not in the image: make stage" >&2
  exit 1
fi

rm -rf "$ROOT" "$LAYOUT" "$LAYOUT.tar"
install -d "$ROOT/etc/ssl/certs" "$ROOT/etc/signalbox" "$ROOT/usr/bin" "$ROOT/usr/share/doc/signalbox" "$ROOT/var/lib/signalbox" "$ROOT/tmp"
install -m 755 "$STAGE/signalbox" "$ROOT/usr/bin/signalbox"
install -m 644 LICENSE "$STAGE/signalbox.cdx.json" "$STAGE/licences.txt" "$ROOT/usr/share/doc/signalbox/"
install -m 644 /etc/ssl/certs/ca-certificates.crt "$ROOT/etc/ssl/certs/ca-certificates.crt"
install -m 644 deploy/package/image/passwd deploy/package/image/group "$ROOT/etc/"
chmod 1777 "$ROOT/tmp"

# The same files give the same bytes. The state belongs to user 900, everything else to root.
pack() { tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner -C "$ROOT" -f "$ROOT.tar" "$@"; }
pack --create --owner=0 --group=0 --exclude=./var/lib/signalbox .
pack --append --owner=900 --group=900 ./var/lib/signalbox

umoci init --layout "$LAYOUT"
umoci new --image "$LAYOUT:latest"
umoci raw add-layer --image "$LAYOUT:latest" --history.created "$created" --history.created_by scripts/image.sh "$ROOT.tar"
umoci config --image "$LAYOUT:latest" --no-history --created "$created" --os linux --architecture "$architecture" \
  --config.user 900:900 --config.workingdir /var/lib/signalbox --config.volume /var/lib/signalbox \
  --config.entrypoint /usr/bin/signalbox --config.cmd --help --config.stopsignal SIGTERM \
  --config.env SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
  --config.label org.opencontainers.image.title=Signalbox \
  --config.label "org.opencontainers.image.description=Signalling core for 4G and 5G networks" \
  --config.label org.opencontainers.image.licenses=Apache-2.0 \
  --config.label "org.opencontainers.image.version=$version" \
  --config.label "org.opencontainers.image.revision=$commit"
umoci gc --layout "$LAYOUT"
if command -v skopeo > /dev/null; then
  skopeo copy --quiet "oci:$LAYOUT:latest" "oci-archive:$LAYOUT.tar:signalbox:$version"
fi
rm -rf "$ROOT" "$ROOT.tar"
du -sh "$LAYOUT"
