#!/usr/bin/env bash
# An Apache Cassandra cluster on this machine's loopback: to try Signalbox on it, and for the tests.
#
#   cassandra.sh fetch                                          gets Cassandra's jars from Maven Central
#   cassandra.sh start  [--dir DIR] [--port PORT] [--nodes N]   create what is absent, start, wait until all serve
#                       [--datacentres D]                       the nodes divided among D datacentres, dc1, dc2 …
#                       [--tls FOLDER]                          clients use TLS: server.p12 in FOLDER, "changeit"; they
#                                                               must show a certificate where clients.p12 has authorities
#                       [--password]                            clients log in: "cassandra", password "cassandra"
#   cassandra.sh status [--dir DIR] …                           state of each node
#   cassandra.sh kill NODE | restart NODE | stop NODE           one node: SIGKILL, start again, clean stop
#   cassandra.sh cut NODE | join NODE                           one node: SIGSTOP, SIGCONT
#   cassandra.sh stop                                           all nodes
#   cassandra.sh remove                                         all nodes and their data
#
# Node I (from 1) has the address 127.0.0.I, clients come at PORT, nodes talk at PORT + 1. Each takes 320 MB of heap.
# Needs Java 17 (or 11), and Maven to fetch.
set -euo pipefail

VERSION=5.0.4
JARS=${CASSANDRA_TEST_HOME:-$(cd "$(dirname "$0")/../.." && pwd)/target/cassandra}
DIR=${TMPDIR:-/tmp}/signalbox-cassandra
PORT=19042
NODES=3
DATACENTRES=1
TLS=
LOGIN=AllowAll
COMMAND=${1:-help}
shift || true
NODE=
case ${1:-} in [0-9]*) NODE=$1; shift ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --dir) DIR=$2; shift 2 ;;
    --port) PORT=$2; shift 2 ;;
    --nodes) NODES=$2; shift 2 ;;
    --datacentres) DATACENTRES=$2; shift 2 ;;
    --tls) TLS=$2; shift 2 ;;
    --password) LOGIN=Password; shift ;;
    *) echo "cassandra.sh: unknown option $1" >&2; exit 2 ;;
  esac
done

die() { echo "cassandra.sh: $*" >&2; exit 1; }
home() { echo "$DIR/node$1"; }
pid_of() { cat "$(home "$1")/pid" 2>/dev/null || true; }
alive() { local pid; pid=$(pid_of "$1"); [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }
serves() { (exec 3<>"/dev/tcp/127.0.0.$1/$PORT") 2>/dev/null; }

fetch() {
  [ ! -e "$JARS/libs/complete" ] || return 0
  command -v mvn >/dev/null 2>&1 || die "Maven is missing (apt-get install maven)"
  mkdir -p "$JARS"
  # Tests that run side by side fetch once.
  exec 9> "$JARS/lock"
  flock 9
  [ ! -e "$JARS/libs/complete" ] || return 0
  cat > "$JARS/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>signalbox.test</groupId><artifactId>cassandra</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>$VERSION</version></dependency>
  </dependencies>
</project>
POM
  (cd "$JARS" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=libs -DincludeScope=runtime)
  touch "$JARS/libs/complete"
  flock -u 9
}

seeds() {
  local list= i
  for i in $(seq "$NODES"); do list="$list,127.0.0.$i:$((PORT + 1))"; done
  echo "${list#,}"
}

configure() {
  local node=$1 home token
  home=$(home "$node")
  mkdir -p "$home/conf" "$home/data" "$home/tmp"
  # Tokens of Murmur3, evenly spread.
  token=$(awk -v i="$node" -v n="$NODES" 'BEGIN { printf "%.0f", -9223372036854775000 + (i - 1) * (18446744073709550000 / n) }')
  cat > "$home/conf/cassandra-rackdc.properties" <<CONF
dc=dc$(((node - 1) % DATACENTRES + 1))
rack=rack1
CONF
  cat > "$home/conf/logback.xml" <<CONF
<configuration>
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>$home/system.log</file>
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <logger name="org.apache.cassandra.auth.CassandraRoleManager" level="INFO"/>
  <root level="WARN"><appender-ref ref="FILE"/></root>
</configuration>
CONF
  cat > "$home/conf/cassandra.yaml" <<CONF
cluster_name: signalbox-$PORT
num_tokens: 1
initial_token: $token
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: GossipingPropertyFileSnitch
listen_address: 127.0.0.$node
rpc_address: 127.0.0.$node
storage_port: $((PORT + 1))
ssl_storage_port: $((PORT + 2))
native_transport_port: $PORT
start_native_transport: true
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "$(seeds)"
data_file_directories:
  - $home/data/data
commitlog_directory: $home/data/commitlog
saved_caches_directory: $home/data/saved_caches
hints_directory: $home/data/hints
cdc_raw_directory: $home/data/cdc_raw
authenticator: ${LOGIN}Authenticator
commitlog_sync: periodic
commitlog_sync_period: 1000ms
commitlog_segment_size: 16MiB
commitlog_total_space: 128MiB
memtable_allocation_type: heap_buffers
memtable_heap_space: 48MiB
memtable_offheap_space: 32MiB
memtable_flush_writers: 1
concurrent_reads: 16
concurrent_writes: 16
concurrent_counter_writes: 4
concurrent_compactors: 1
networking_cache_size: 16MiB
file_cache_size: 16MiB
key_cache_size: 4MiB
row_cache_size: 0MiB
counter_cache_size: 0MiB
prepared_statements_cache_size: 8MiB
auto_snapshot: false
hinted_handoff_enabled: true
hinted_handoff_throttle: 8MiB
hints_flush_period: 1000ms
paxos_variant: v2
read_request_timeout: 5000ms
range_request_timeout: 10000ms
write_request_timeout: 3000ms
cas_contention_timeout: 3000ms
request_timeout: 10000ms
disk_access_mode: standard
stream_entire_sstables: false
materialized_views_enabled: false
sasi_indexes_enabled: false
CONF
  if [ -n "$TLS" ]; then
    cat >> "$home/conf/cassandra.yaml" <<CONF
client_encryption_options:
  enabled: true
  optional: false
  keystore: $TLS/server.p12
  keystore_password: changeit
  store_type: PKCS12
  require_client_auth: $([ -e "$TLS/clients.p12" ] && echo true || echo false)
CONF
    if [ -e "$TLS/clients.p12" ]; then
      cat >> "$home/conf/cassandra.yaml" <<CONF
  truststore: $TLS/clients.p12
  truststore_password: changeit
CONF
    fi
  fi
}

JVM17="
-Djdk.attach.allowAttachSelf=true
--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED
--add-exports=java.base/java.lang.ref=ALL-UNNAMED
--add-exports=java.base/sun.nio.ch=ALL-UNNAMED
--add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi=ALL-UNNAMED
--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED
--add-exports=java.rmi/sun.rmi.server=ALL-UNNAMED
--add-exports=java.sql/java.sql=ALL-UNNAMED
--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED
--add-opens=java.base/java.io=ALL-UNNAMED
--add-opens=java.base/java.lang=ALL-UNNAMED
--add-opens=java.base/java.lang.module=ALL-UNNAMED
--add-opens=java.base/java.lang.reflect=ALL-UNNAMED
--add-opens=java.base/java.net=ALL-UNNAMED
--add-opens=java.base/java.nio=ALL-UNNAMED
--add-opens=java.base/java.util=ALL-UNNAMED
--add-opens=java.base/java.util.concurrent=ALL-UNNAMED
--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED
--add-opens=java.base/jdk.internal.loader=ALL-UNNAMED
--add-opens=java.base/jdk.internal.math=ALL-UNNAMED
--add-opens=java.base/jdk.internal.module=ALL-UNNAMED
--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED
--add-opens=java.base/jdk.internal.reflect=ALL-UNNAMED
--add-opens=java.base/jdk.internal.util.jar=ALL-UNNAMED
--add-opens=java.base/sun.nio.ch=ALL-UNNAMED
--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED
"

launch() {
  local node=$1 home
  home=$(home "$node")
  # Words of options; the star of the class path is Java's, not the shell's.
  set -f
  # Descriptors closed or replaced: no caller waits for, or holds a lock through, a node that stays.
  # shellcheck disable=SC2086
  setsid java -Xms128m -Xmx320m -Xss384k -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:MaxDirectMemorySize=128m -XX:+PerfDisableSharedMem \
    -Xshare:auto $JVM17 -javaagent:"$JARS/libs/jamm-0.4.0.jar" \
    -Djava.io.tmpdir="$home/tmp" -Djna.tmpdir="$home/tmp" -Dcassandra.storagedir="$home/data" -Dcassandra.logdir="$home" \
    -Dlogback.configurationFile="$home/conf/logback.xml" -Dcassandra.config="file://$home/conf/cassandra.yaml" \
    -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=2000 -Dcassandra.superuser_setup_delay_ms=0 \
    -Dcassandra.consistent.rangemovement=false -Dcassandra.allow_unsafe_join=true \
    -Dcassandra.available_processors=2 -Dio.netty.eventLoopThreads=2 -Dcassandra.disable_tcactive_openssl=true \
    -cp "$home/conf:$JARS/libs/*" org.apache.cassandra.service.CassandraDaemon \
    </dev/null >>"$home/output.log" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  echo $! > "$home/pid"
  set +f
}

wait_serving() {
  local node=$1 try
  for try in $(seq 1800); do
    if serves "$node"; then return; fi
    alive "$node" || { tail -20 "$(home "$node")/output.log" >&2; die "node $node ended; see $(home "$node")"; }
    sleep 0.1
  done
  die "node $node does not serve after three minutes; see $(home "$node")/system.log"
}

# The first node to start makes the role, some time after it serves.
wait_role() {
  local try
  for try in $(seq 600); do
    if grep -qs "Created default superuser role" "$DIR"/node*/system.log; then return; fi
    sleep 0.1
  done
  die "the role cassandra is not there after a minute"
}

start() {
  local node
  command -v java >/dev/null || die "java is missing (apt-get install default-jre-headless)"
  fetch
  for node in $(seq "$NODES"); do
    if ! alive "$node"; then configure "$node"; launch "$node"; fi
  done
  for node in $(seq "$NODES"); do wait_serving "$node"; done
  if [ "$LOGIN" = Password ]; then wait_role; fi
  status
}

status() {
  local node
  for node in $(seq "$NODES"); do
    if alive "$node"; then
      echo "node $node: 127.0.0.$node:$PORT pid $(pid_of "$node") $(serves "$node" && echo serves || echo "does not serve")"
    else
      echo "node $node: down"
    fi
  done
}

signal() { kill "-$2" "$(pid_of "$1")" 2>/dev/null || true; }

stop_node() {
  local node=$1 try
  alive "$node" || return 0
  signal "$node" CONT; signal "$node" TERM
  for try in $(seq 300); do alive "$node" || return 0; sleep 0.1; done
  signal "$node" KILL
}

need_node() { [ -n "$NODE" ] || die "$COMMAND which node?"; }

case $COMMAND in
  fetch) fetch ;;
  start) start ;;
  status) status ;;
  kill) need_node; signal "$NODE" KILL ;;
  cut) need_node; signal "$NODE" STOP ;;
  join) need_node; signal "$NODE" CONT ;;
  restart) need_node; stop_node "$NODE"; configure "$NODE"; launch "$NODE"; wait_serving "$NODE"; status ;;
  stop) if [ -n "$NODE" ]; then stop_node "$NODE"; else for node in $(seq "$NODES"); do stop_node "$node"; done; fi ;;
  remove)
    for node in $(seq "$NODES"); do if alive "$node"; then signal "$node" KILL; fi; done
    sleep 0.3; rm -rf "$DIR" ;;
  *) sed -n '2,20p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
esac
