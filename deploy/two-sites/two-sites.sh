#!/usr/bin/env bash
# Two to four sites on this machine's loopback, each with its own database, replicating to one another.
#
#   two-sites.sh start  [--dir DIR] [--port BASE] [--sites N]   create what is absent, start, connect
#   two-sites.sh status [--dir DIR] …                           each site, and how far it has followed the others
#   two-sites.sh kill SITE | stop SITE | restart SITE           one site: SIGKILL, clean stop, start again
#   two-sites.sh cut SITE | join SITE                           stop and resume what SITE receives from the others
#   two-sites.sh stop                                           all sites
#   two-sites.sh remove                                         all sites and their data
#
# --tls FOLDER with authority.crt, server.crt and server.key: the servers take encrypted connections as well.
#
# Site I (from 1) listens for SQL on BASE + 10 (I - 1). User "signalbox", password "signalbox", database "signalbox".
# Every site replicates from every other one (multi-source), asynchronously, by GTID with one domain per site.
#
# Conflicts: a session is written by the site that serves it, so two sites write the same row only after a
# failover, or while they are cut off. Replication goes on (slave_exec_mode=IDEMPOTENT: an insert of a row that is
# there replaces it, a delete of one that is not does nothing), and the later version of the row wins at each site:
# Signalbox creates triggers that compare versions, where slave_run_triggers_for_rbr=ENFORCE lets them run, and
# log_bin_trust_function_creators=ON lets its user create them. The user has the same name and host at each site.
set -euo pipefail

DIR=${TMPDIR:-/tmp}/signalbox-sites
PORT=13410
SITES=2
TLS=
COMMAND=${1:-help}
shift || true
SITE=
case ${1:-} in [0-9]*) SITE=$1; shift ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --dir) DIR=$2; shift 2 ;;
    --port) PORT=$2; shift 2 ;;
    --sites) SITES=$2; shift 2 ;;
    --tls) TLS=$2; shift 2 ;;
    *) echo "two-sites.sh: unknown option $1" >&2; exit 2 ;;
  esac
done

die() { echo "two-sites.sh: $*" >&2; exit 1; }
for need in mariadbd mariadb mariadb-install-db; do
  command -v $need >/dev/null || die "$need is missing (apt-get install mariadb-server)"
done

sql_port() { echo $((PORT + 10 * ($1 - 1))); }
home() { echo "$DIR/site$1"; }
pid_of() { cat "$(home "$1")/mariadbd.pid" 2>/dev/null || true; }
alive() { local pid; pid=$(pid_of "$1"); [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }
sql() { local site=$1; shift; mariadb --socket="$(home "$site")/mariadbd.sock" --user=root --batch --skip-column-names --connect-timeout=3 -e "$*"; }
own() { if [ "$(id -u)" = 0 ]; then chmod 755 "$DIR"; chown -R mysql:mysql "$1"; fi; }
as_user() { if [ "$(id -u)" = 0 ]; then echo "--user=mysql"; fi; }
others() { local i; for i in $(seq "$SITES"); do if [ "$i" != "$1" ]; then echo "$i"; fi; done; }

configure() {
  local site=$1 home
  home=$(home "$site")
  mkdir -p "$home/data" "$home/tmp"
  cat > "$home/my.cnf" <<CNF
[mariadbd]
datadir=$home/data
tmpdir=$home/tmp
socket=$home/mariadbd.sock
pid-file=$home/mariadbd.pid
log-error=$home/error.log
bind-address=127.0.0.1
port=$(sql_port "$site")
server-id=$site
gtid_domain_id=$site
gtid_strict_mode=ON
skip-name-resolve
max_connections=200
default_storage_engine=InnoDB
innodb_buffer_pool_size=${BUFFER_POOL:-256M}
innodb_log_file_size=${LOG_FILE:-256M}
innodb_flush_log_at_trx_commit=${FLUSH:-1}
log_bin=$home/data/binlog
# Not what comes from other sites: each site replicates from all others itself, and would miss in this log what
# replication has found done already.
log_slave_updates=OFF
sync_binlog=${FLUSH:-1}
expire_logs_days=1
binlog_format=ROW
slave_exec_mode=IDEMPOTENT
slave_run_triggers_for_rbr=ENFORCE
log_bin_trust_function_creators=ON
slave_parallel_threads=4
# Each site replicates from all others itself, so nothing is passed on: changes of third sites would arrive twice.
slave_net_timeout=5
wsrep_on=OFF
CNF
  # Transactions share the wait for the disk and are applied one after the other. The default (optimistic) takes back those
  # that collide, and MariaDB 10.11 that does so while it opens a table stops with error 1064 in the table's trigger. Without
  # the name of the connection the setting is for the unnamed one alone.
  local other
  for other in $(others "$site"); do echo "site$other.slave_parallel_mode=minimal" >> "$home/my.cnf"; done
  if [ -n "$TLS" ]; then
    cp "$TLS"/authority.crt "$TLS"/server.crt "$TLS"/server.key "$home/"
    printf 'ssl_ca=%s/authority.crt\nssl_cert=%s/server.crt\nssl_key=%s/server.key\n' "$home" "$home" "$home" >> "$home/my.cnf"
  fi
  own "$home"
  if [ ! -d "$home/data/mysql" ]; then
    # A server that starts removes the temporary tables of its folder: those of others that are installed at the same time.
    mariadb-install-db --no-defaults --datadir="$home/data" --tmpdir="$home/tmp" --auth-root-authentication-method=normal \
      --skip-test-db $(as_user) > "$home/install.log" 2>&1 || { tail -20 "$home/install.log" >&2; die "see $home/install.log"; }
  fi
  own "$home"
}

launch() {
  local site=$1 home try
  home=$(home "$site")
  rm -f "$home/mariadbd.pid"
  # Closed descriptors: no caller waits on, or keeps a lock through, a server that stays.
  setsid mariadbd --defaults-file="$home/my.cnf" $(as_user) </dev/null >>"$home/error.log" 2>&1 \
    3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  for try in $(seq 300); do
    if sql "$site" "SELECT 1" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  die "site $site does not answer after 30 s; see $home/error.log"
}

# Not logged: each site has its own users, and creating them must not be replicated.
grant() {
  sql "$1" "SET SESSION sql_log_bin = 0; CREATE DATABASE IF NOT EXISTS signalbox;
    CREATE USER IF NOT EXISTS 'signalbox'@'127.0.0.1' IDENTIFIED BY 'signalbox';
    GRANT ALL ON signalbox.* TO 'signalbox'@'127.0.0.1';
    CREATE USER IF NOT EXISTS 'replication'@'127.0.0.1' IDENTIFIED BY 'replication';
    GRANT REPLICATION SLAVE ON *.* TO 'replication'@'127.0.0.1';"
}

follow() { # site, the one it follows
  sql "$1" "CHANGE MASTER 'site$2' TO MASTER_HOST='127.0.0.1', MASTER_PORT=$(sql_port "$2"), MASTER_USER='replication',
    MASTER_PASSWORD='replication', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1,
    IGNORE_DOMAIN_IDS=($(others "$2" | paste -sd,)); START SLAVE 'site$2';"
}

start() {
  local site other
  for site in $(seq "$SITES"); do
    if ! alive "$site"; then configure "$site"; launch "$site"; grant "$site"; fi
  done
  for site in $(seq "$SITES"); do
    for other in $(others "$site"); do
      if ! sql "$site" "SHOW ALL SLAVES STATUS" | grep -q "site$other"; then follow "$site" "$other"; fi
    done
  done
  status
}

status() {
  local site
  for site in $(seq "$SITES"); do
    if ! alive "$site"; then echo "site $site: down"; continue; fi
    echo "site $site: 127.0.0.1:$(sql_port "$site") pid $(pid_of "$site")"
    mariadb --socket="$(home "$site")/mariadbd.sock" --user=root -e "SHOW ALL SLAVES STATUS\G" |
      awk '$1 == "Connection_name:" { name = $2 } $1 == "Slave_IO_Running:" { io = $2 } $1 == "Slave_SQL_Running:" { run = $2 }
           $1 == "Seconds_Behind_Master:" { print "  from " name ": receiving " io ", applying " run ", behind " $2 " s" }
           $1 == "Last_SQL_Error:" && NF > 1 { print "  " $0 }'
  done
}

stop_site() {
  local site=$1 pid try
  pid=$(pid_of "$site"); [ -n "$pid" ] || return 0
  kill -TERM "$pid" 2>/dev/null || return 0
  for try in $(seq 300); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.1; done
  kill -KILL "$pid" 2>/dev/null || true
}

case $COMMAND in
  start) start ;;
  status) status ;;
  kill) [ -n "$SITE" ] || die "kill which site?"; kill -KILL "$(pid_of "$SITE")" ;;
  restart) [ -n "$SITE" ] || die "restart which site?"; configure "$SITE"; launch "$SITE"; status ;;
  cut) [ -n "$SITE" ] || die "cut which site?"; sql "$SITE" "STOP ALL SLAVES" ;;
  join) [ -n "$SITE" ] || die "join which site?"; sql "$SITE" "START ALL SLAVES" ;;
  stop) if [ -n "$SITE" ]; then stop_site "$SITE"; else for site in $(seq "$SITES"); do stop_site "$site"; done; fi ;;
  remove)
    for site in $(seq "$SITES"); do if alive "$site"; then kill -KILL "$(pid_of "$site")" || true; fi; done
    sleep 0.3; rm -rf "$DIR" ;;
  *) sed -n '2,24p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
esac
