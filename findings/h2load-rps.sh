#!/usr/bin/env bash
# What h2load --rps measures while a server stands still.
#
# Guess:     --rps=100 offers 100 requests a second, whatever the server does, and the latency of a request counts from the moment
#            when it was due: an open loop.
# Behaviour: no more than -m requests are outstanding. What is due meanwhile is sent in one burst when the server goes on, and
#            its latency counts from that burst: of the 300 requests that were due while the server stood still for 3 s, 50
#            (-m) are seen to be slow. Totals and rate look untouched.
# Version:   h2load and nghttpd of nghttp2 1.52.0-1+deb12u3 (Debian 12).
# Matters:   consumers of a signalling core do not wait for one another. A p95 of h2load says nothing of a pause (a commit, a
#            reload, a collapse) that an open-loop generator shows at once; a burst as a catch-up is a second load on top.
set -euo pipefail
dir=$(mktemp -d)
server=
trap 'kill -CONT $server 2>/dev/null || true; kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -qq nghttp2-client=1.52.0-1+deb12u3 nghttp2-server=1.52.0-1+deb12u3 libnghttp2-14=1.52.0-1+deb12u3 \
    libc-ares2 libev4 libjemalloc2 libjansson4 libxml2 libicu72 libevent-2.1-7 libevent-openssl-2.1-7 libsystemd0 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(find "$PWD/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
export LD_LIBRARY_PATH
echo x >index.html
port=$((20000 + RANDOM % 10000))
root/usr/sbin/nghttpd --no-tls -a 127.0.0.1 -d "$PWD" "$port" >/dev/null &
server=$!
sleep 1
(sleep 2 && kill -STOP $server && sleep 3 && kill -CONT $server) &
root/usr/bin/h2load -c1 -m50 --rps=100 -D 8 --log-file=log "http://127.0.0.1:$port/index.html" >/dev/null
# Each line: start in microseconds, status, microseconds until the answer.
seen=$(awk '
    { start[NR] = $1; if ($3 > 400000) slow++ }
    END {
        for (i = 2; i <= NR; i++) if (start[i] < first || !first) first = start[i]
        for (i = 1; i <= NR; i++) bucket[int((start[i] - start[1]) / 100000)]++
        for (b in bucket) if (bucket[b] > burst) burst = bucket[b]
        printf "answered: about %d of 800\n", int(NR / 10 + 0.5) * 10
        printf "slower than 0.4 s: %d\n", slow
        printf "most requests begun within 0.1 s: over 200: %s\n", (burst > 200 ? "yes" : "no")
    }' <(sort -n log))
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
answered: about 800 of 800
slower than 0.4 s: 50
most requests begun within 0.1 s: over 200: yes
SEEN
