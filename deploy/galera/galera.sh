#!/usr/bin/env bash
# A Galera cluster on this machine's loopback: to try Signalbox on a distributed database, and for the tests.
#
#   galera.sh start  [--dir DIR] [--port BASE] [--nodes N]   create what is absent, start, wait until all are synced
#   galera.sh status [--dir DIR] …                           state of each node
#   galera.sh kill NODE  | stop NODE | restart NODE          one node: SIGKILL, clean stop, start again
#   galera.sh stop                                           all nodes
#   galera.sh remove                                         all nodes and their data
#
# Node I (from 1) listens for SQL on BASE + 10 (I - 1); its replication ports are the three after that.
# User "signalbox", password "signalbox", database "signalbox"; only from 127.0.0.1.
# Needs Debian's mariadb-server and galera-4 (and rsync for the state transfer). Started by root, the nodes run as
# user mysql, because the state transfer refuses to run as root.
set -euo pipefail

DIR=${TMPDIR:-/tmp}/signalbox-galera
PORT=13310
NODES=3
COMMAND=${1:-help}
shift || true
NODE=
case ${1:-} in [0-9]*) NODE=$1; shift ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --dir) DIR=$2; shift 2 ;;
    --port) PORT=$2; shift 2 ;;
    --nodes) NODES=$2; shift 2 ;;
    *) echo "galera.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
SQL_USER=signalbox
PROVIDER=$(ls /usr/lib/galera/libgalera_smm.so /usr/lib/*/galera*/libgalera_smm.so /usr/lib64/galera*/libgalera_smm.so 2>/dev/null | head -1 || true)

die() { echo "galera.sh: $*" >&2; exit 1; }
for need in mariadbd mariadb mariadb-install-db rsync; do
  command -v $need >/dev/null || die "$need is missing (apt-get install mariadb-server galera-4 rsync)"
done
[ -n "$PROVIDER" ] || die "galera-4 is missing (apt-get install galera-4)"

sql_port() { echo $((PORT + 10 * ($1 - 1))); }
home() { echo "$DIR/node$1"; }
pid_of() { cat "$(home "$1")/mariadbd.pid" 2>/dev/null || true; }
alive() { local pid; pid=$(pid_of "$1"); [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }
sql() { local node=$1; shift; mariadb --socket="$(home "$node")/mariadbd.sock" --user=root --batch --skip-column-names --connect-timeout=3 -e "$*"; }
own() { if [ "$(id -u)" = 0 ]; then chmod 755 "$DIR"; chown -R mysql:mysql "$1"; fi; }
as_user() { if [ "$(id -u)" = 0 ]; then echo "--user=mysql"; fi; }

addresses() { # of the group, comma separated
  local list= i
  for i in $(seq "$NODES"); do list="$list,127.0.0.1:$(($(sql_port "$i") + 1))"; done
  echo "${list#,}"
}

configure() {
  local node=$1 port home
  port=$(sql_port "$node"); home=$(home "$node")
  mkdir -p "$home/data" "$home/tmp"
  cat > "$home/my.cnf" <<CNF
[mariadbd]
datadir=$home/data
tmpdir=$home/tmp
socket=$home/mariadbd.sock
pid-file=$home/mariadbd.pid
log-error=$home/error.log
bind-address=127.0.0.1
port=$port
server-id=$node
skip-name-resolve
max_connections=200
binlog_format=ROW
default_storage_engine=InnoDB
innodb_autoinc_lock_mode=2
innodb_buffer_pool_size=${BUFFER_POOL:-256M}
innodb_log_file_size=${LOG_FILE:-256M}
# Durability is the cluster's: a write is on all nodes before it is acknowledged. Each disk follows within a second.
innodb_flush_log_at_trx_commit=${FLUSH:-0}
wsrep_on=ON
wsrep_provider=$PROVIDER
wsrep_cluster_name=signalbox-$PORT
wsrep_cluster_address=gcomm://$(addresses)
wsrep_node_name=node$node
wsrep_node_address=127.0.0.1
wsrep_slave_threads=4
wsrep_retry_autocommit=0
wsrep_sst_method=rsync
wsrep_sst_receive_address=127.0.0.1:$((port + 3))
# A node that was killed is voted out after about a second instead of five; too short for links between sites, right
# for one data centre.
wsrep_provider_options="gmcast.listen_addr=tcp://127.0.0.1:$((port + 1));ist.recv_addr=127.0.0.1:$((port + 2));gcache.dir=$home/data;gcache.size=64M;evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;evs.suspect_timeout=PT0.8S;evs.inactive_timeout=PT1.5S;evs.install_timeout=PT1.5S;evs.join_retrans_period=PT0.2S;gmcast.peer_timeout=PT1S"
CNF
  own "$home"
  if [ ! -d "$home/data/mysql" ]; then
    # A server that starts removes the temporary tables of its folder: those of others that are installed at the same time.
    mariadb-install-db --no-defaults --datadir="$home/data" --tmpdir="$home/tmp" --auth-root-authentication-method=normal \
      --skip-test-db $(as_user) > "$home/install.log" 2>&1 || { tail -20 "$home/install.log" >&2; die "see $home/install.log"; }
  fi
  own "$home"
}

launch() { # node, further options
  local node=$1 home; shift
  home=$(home "$node")
  rm -f "$home/mariadbd.pid"
  # Closed or replaced descriptors: no caller waits on, or keeps a lock through, a server that stays.
  setsid mariadbd --defaults-file="$home/my.cnf" $(as_user) "$@" </dev/null >>"$home/error.log" 2>&1 \
    3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
}

wait_synced() {
  local node=$1 try
  for try in $(seq 600); do
    if [ "$(sql "$node" "SHOW STATUS LIKE 'wsrep_local_state_comment'" 2>/dev/null | cut -f2)" = Synced ]; then return; fi
    sleep 0.1
  done
  die "node $node is not synced after a minute; see $(home "$node")/error.log"
}

grant() {
  sql "$1" "CREATE DATABASE IF NOT EXISTS signalbox; CREATE USER IF NOT EXISTS '$SQL_USER'@'127.0.0.1' IDENTIFIED BY '$SQL_USER'; GRANT ALL ON signalbox.* TO '$SQL_USER'@'127.0.0.1';"
}

start() {
  local node first=
  for node in $(seq "$NODES"); do if alive "$node"; then first=$node; fi; done
  for node in $(seq "$NODES"); do configure "$node"; done
  if [ -z "$first" ]; then
    # The node that knows most begins the new cluster; after a clean start that is the first.
    first=1
    for node in $(seq "$NODES"); do
      if grep -qs 'safe_to_bootstrap: 1' "$(home "$node")/data/grastate.dat"; then first=$node; fi
    done
    if [ -f "$(home "$first")/data/grastate.dat" ]; then
      sed -i 's/safe_to_bootstrap: 0/safe_to_bootstrap: 1/' "$(home "$first")/data/grastate.dat"
    fi
    launch "$first" --wsrep-new-cluster
    wait_synced "$first"
    grant "$first"
  fi
  for node in $(seq "$NODES"); do
    if ! alive "$node" && [ "$node" != "$first" ]; then launch "$node"; wait_synced "$node"; fi
  done
  status
}

status() {
  local node
  for node in $(seq "$NODES"); do
    if alive "$node"; then
      echo "node $node: 127.0.0.1:$(sql_port "$node") pid $(pid_of "$node") $(sql "$node" "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_cluster_status', 'wsrep_local_state_comment')" 2>/dev/null | cut -f2 | tr '\n' ' ')"
    else
      echo "node $node: down"
    fi
  done
}

stop_node() {
  local node=$1 pid try
  pid=$(pid_of "$node"); [ -n "$pid" ] || return 0
  kill -TERM "$pid" 2>/dev/null || return 0
  for try in $(seq 300); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.1; done
  kill -KILL "$pid" 2>/dev/null || true
}

case $COMMAND in
  start) start ;;
  status) status ;;
  kill) [ -n "$NODE" ] || die "kill which node?"; kill -KILL "$(pid_of "$NODE")" ;;
  restart) [ -n "$NODE" ] || die "restart which node?"; configure "$NODE"; launch "$NODE"; wait_synced "$NODE"; status ;;
  stop) if [ -n "$NODE" ]; then stop_node "$NODE"; else for node in $(seq "$NODES" -1 1); do stop_node "$node"; done; fi ;;
  remove)
    for node in $(seq "$NODES"); do if alive "$node"; then kill -KILL "$(pid_of "$node")" || true; fi; done
    sleep 0.3; rm -rf "$DIR" ;;
  *) sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
esac
