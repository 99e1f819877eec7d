#!/bin/sh
# Installs the programs that the tests use as real peers: as root on Debian from its packages, elsewhere it
# says what to install. A test whose program is missing skips and says so; nothing here is needed to build.
set -eu

# program:package
NEEDS="
curl:curl
nghttp:nghttp2-client
h2load:nghttp2-client
nghttpx:nghttp2-proxy
haproxy:haproxy
nginx:nginx-light
valgrind:valgrind
osmo-stp:osmo-stp
osmo-bsc:osmo-bsc
osmo-msc:osmo-msc
openssl:openssl
java:default-jre-headless
javac:default-jdk-headless
mvn:maven
tshark:tshark
dig:bind9-dnsutils
kdig:knot-dnsutils
freeDiameterd:freediameterd
kamailio:kamailio
mariadbd:mariadb-server
slapd:slapd
rsync:rsync
jq:jq
go:golang-go
escript:erlang-base
node:nodejs
qemu-system-x86_64:qemu-system-x86
depmod:kmod
chromium:chromium
promtool:prometheus
prometheus:prometheus
ip:iproute2
arping:iputils-arping
"
EXTRA_PACKAGES="erlang-diameter kamailio-ims-modules freediameter-extensions libfreediameter-dev gcc galera-4"

missing=""
for need in $NEEDS; do
    program=${need%%:*}
    package=${need##*:}
    if ! command -v "$program" >/dev/null 2>&1 && ! [ -x "/usr/sbin/$program" ] && ! [ -x "/usr/local/go/bin/$program" ]; then
        missing="$missing $package"
    fi
done
for package in $EXTRA_PACKAGES; do
    if command -v dpkg >/dev/null 2>&1 && ! dpkg -s "$package" >/dev/null 2>&1; then
        missing="$missing $package"
    fi
done
missing=$(printf '%s\n' $missing | sort -u | tr '\n' ' ')

# A kernel with SCTP, where this one has none.
kernel() {
    if ! grep -qw SCTP /proc/net/protocols 2>/dev/null && [ "$(uname -m)" = x86_64 ]; then
        "$(dirname "$0")/test-kernel.sh" "${CARGO_TARGET_DIR:-target}/sctp-kernel" ||
            echo "no kernel with SCTP could be fetched; its tests will skip"
    fi
}

[ -n "${missing# }" ] || { kernel; exit 0; }
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing test peers: $missing"
    export DEBIAN_FRONTEND=noninteractive
    # A test peer must not become a service of this machine: keep the packages from starting theirs.
    policy=/usr/sbin/policy-rc.d
    made_policy=no
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod +x "$policy"
        made_policy=yes
    fi
    apt-get update -qq || true
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        echo "some test peers could not be installed; their tests will skip"
    [ "$made_policy" = no ] || rm -f "$policy"
    kernel
else
    echo "Some tests will skip until these Debian packages are installed:"
    echo "  sudo apt-get install $missing"
fi
