#!/bin/sh
# A Kafka broker for the tests of the SCP's message feed.
#   kafka.sh fetch               gets the broker's jars from Maven Central into target/kafka/libs
#   kafka.sh run DIR PORT        runs one broker (KRaft, no ZooKeeper) with its data in DIR until it is killed;
#                                with DIR/keystore.p12 and DIR/truststore.p12 it also speaks TLS at PORT+1
#   kafka.sh join DIR PORT FIRST runs a second broker of the cluster whose first has the port FIRST
# Needs Java 17 and, to fetch, Maven. A test that cannot have a broker skips and says so.
set -eu

VERSION=3.9.1
HOME_DIR=${KAFKA_TEST_HOME:-$(cd "$(dirname "$0")/.." && pwd)/target/kafka}

fetch() {
    [ ! -e "$HOME_DIR/libs/complete" ] || exit 0
    command -v mvn >/dev/null 2>&1 || { echo "kafka.sh: Maven is missing" >&2; exit 1; }
    mkdir -p "$HOME_DIR"
    # Tests that run side by side fetch once.
    exec 9> "$HOME_DIR/lock"
    flock 9
    [ ! -e "$HOME_DIR/libs/complete" ] || exit 0
    cat > "$HOME_DIR/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>signalbox.test</groupId><artifactId>kafka-broker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$VERSION</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
    (cd "$HOME_DIR" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=libs -DincludeScope=runtime)
    touch "$HOME_DIR/libs/complete"
}

run() {
    # The class path has a star of Java's, not of the shell's.
    set -f
    dir=$1 port=$2 controller=$((${3:-$2} + 2))
    listeners="PLAINTEXT://127.0.0.1:$port"
    advertised="PLAINTEXT://127.0.0.1:$port"
    roles=broker node=2
    if [ $# -lt 3 ]; then
        listeners="$listeners,CONTROLLER://127.0.0.1:$controller"
        roles=broker,controller node=1
    fi
    if [ -e "$dir/keystore.p12" ]; then
        listeners="$listeners,SSL://127.0.0.1:$(($port + 1))"
        advertised="$advertised,SSL://127.0.0.1:$(($port + 1))"
    fi
    cat > "$dir/server.properties" <<CONF
process.roles=$roles
node.id=$node
controller.quorum.voters=1@127.0.0.1:$controller
listeners=$listeners
advertised.listeners=$advertised
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL
log.dirs=$dir/data
num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
ssl.keystore.location=$dir/keystore.p12
ssl.keystore.password=changeit
ssl.keystore.type=PKCS12
ssl.truststore.location=$dir/truststore.p12
ssl.truststore.password=changeit
ssl.truststore.type=PKCS12
CONF
    [ -e "$dir/keystore.p12" ] || sed -i '/^ssl\./d' "$dir/server.properties"
    java="java -Xmx384m -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp $HOME_DIR/libs/*"
    if [ ! -d "$dir/data" ]; then
        $java kafka.tools.StorageTool format -t AAAAAAAAQACAAAAAAAAAAQ -c "$dir/server.properties" >/dev/null
    fi
    exec $java kafka.Kafka "$dir/server.properties"
}

case "${1:-}" in
    fetch) fetch ;;
    run) run "$2" "$3" ;;
    join) run "$2" "$3" "$4" ;;
    *) sed -n '2,8p' "$0" >&2; exit 2 ;;
esac
