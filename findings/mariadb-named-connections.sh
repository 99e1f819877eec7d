#!/usr/bin/env bash
# Whether `slave_parallel_mode` of an option file is the mode of each connection that a server replicates from.
#
# Guess:     slave_parallel_mode=minimal in [mariadbd] holds for every connection, as slave_parallel_threads and slave_exec_mode
#            do; SHOW GLOBAL VARIABLES shows what is in effect.
# Behaviour: it holds for the connection without a name alone. A connection with a name (CHANGE MASTER 'site1' …) has the built-in
#            `optimistic`, while SHOW GLOBAL VARIABLES says `minimal`. `site1.slave_parallel_mode=minimal` sets it. SET GLOBAL
#            changes the connection that default_master_connection names, and no other.
# Version:   mariadb-server 10.11.19-0+deb12u1 (Debian 12).
# Matters:   sites that replicate to one another have named connections. `optimistic` applies transactions at once and takes
#            back those that collide, also while triggers that settle conflicts between sites are opened: an operator who wrote
#            `minimal` and read it back believes that this cannot be.
set -euo pipefail
dir=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir"
version=1:10.11.19-0+deb12u1
packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    mariadb-server-core mariadb-client-core | grep '^[a-z]' |
    grep -vE '^(mariadb-.*|libc6|libc-bin|libcrypt1|debconf.*|dpkg|perl.*|tar)(:|$)' | sort -u)
# shellcheck disable=SC2086 # one argument a package
apt-get download -qq mariadb-server-core=$version mariadb-client-core=$version mariadb-common=$version $packages 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(find root -name '*.so*' -printf "$dir/%h\n" | sort -u | paste -sd:)
export LD_LIBRARY_PATH
cat >my.cnf <<CNF
[mariadbd]
basedir=$dir/root/usr
lc-messages-dir=$dir/root/usr/share/mysql
datadir=$dir/data
tmpdir=$dir
socket=$dir/socket
pid-file=$dir/pid
skip-networking
server-id=3
slave_parallel_mode=minimal
slave_parallel_threads=4
site2.slave_parallel_mode=minimal
CNF
mkdir data
user=()
if [ "$(id -u)" = 0 ]; then user=(--user=root); fi
{ printf 'CREATE DATABASE mysql;\nUSE mysql;\n'; cat root/usr/share/mysql/mysql_system_tables.sql; } |
    root/usr/sbin/mariadbd --defaults-file=my.cnf "${user[@]}" --bootstrap 2>bootstrap.log
root/usr/sbin/mariadbd --defaults-file=my.cnf "${user[@]}" --skip-grant-tables 2>server.log &
server=$!
sql() { root/usr/bin/mariadb --no-defaults --socket="$dir/socket" --batch "${2:---skip-column-names}" -e "$1"; }
for _ in $(seq 150); do if sql 'SELECT 1' >/dev/null 2>&1; then break; fi; sleep 0.2; done
modes() { sql 'SHOW ALL SLAVES STATUS' --vertical | awk '/Connection_name:/ { name = $2 } /Parallel_Mode:/ { print "  connection \"" name "\": " $2 }'; }
seen=$(
    port=1 # never connected to: nothing is started
    for name in '' site1 site2; do
        sql "CHANGE MASTER '$name' TO MASTER_HOST='127.0.0.1', MASTER_PORT=$((port++)), MASTER_USER='replication'"
    done
    echo "option file: slave_parallel_mode=minimal, site2.slave_parallel_mode=minimal"
    echo "variable: $(sql 'SELECT @@GLOBAL.slave_parallel_mode')"
    modes
    sql "SET GLOBAL slave_parallel_mode=conservative"
    echo "after SET GLOBAL slave_parallel_mode=conservative"
    modes
    sql "SET SESSION default_master_connection='site1'; SET GLOBAL slave_parallel_mode=aggressive"
    echo "after the same with default_master_connection='site1' and aggressive"
    modes
)
echo "$seen"
diff <(echo "$seen" | sed 's/ *$//') - <<'SEEN'
option file: slave_parallel_mode=minimal, site2.slave_parallel_mode=minimal
variable: minimal
  connection "": minimal
  connection "site1": optimistic
  connection "site2": minimal
after SET GLOBAL slave_parallel_mode=conservative
  connection "": conservative
  connection "site1": optimistic
  connection "site2": minimal
after the same with default_master_connection='site1' and aggressive
  connection "": conservative
  connection "site1": aggressive
  connection "site2": minimal
SEEN
