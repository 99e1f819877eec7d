//! A Kafka broker for the copy of messages: the one that the user names, or one of this run where the broker's jars are
//! installed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::certificates::as_settings;
use crate::run::children::Guarded;
use crate::run::rig::{Place, RigError};
use callmodel::scp::Feed;
use loadgen::engine::TlsFiles;

/// The topic.
const TOPIC: &str = "signalbox-lab";
/// Additional time to start that a broker may take on a busy machine.
const LONGER: Duration = Duration::from_secs(60);
/// Timeout of the creation of the topic.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bound of its answer in bytes; a longer one is invalid.
const MOST_ANSWER: i32 = 4096;
/// Error code of its answer when the topic exists already (TOPIC_ALREADY_EXISTS).
const THERE_ALREADY: i16 = 36;
/// Where the jars are, if not beside the folder of the program: as `scripts/kafka.sh` reads it.
const HOME: &str = "KAFKA_TEST_HOME";
/// Id of the cluster: any value is right for a cluster of one broker that ends with the run.
const CLUSTER: &str = "AAAAAAAAQACAAAAAAAAAAQ";

/// A broker with the topic.
pub(super) struct Broker {
    /// The broker, if it is of this run.
    pub(super) process: Option<Guarded>,
    address: SocketAddr,
    tls: Option<TlsFiles>,
}

impl Broker {
    /// The user's broker, or one of this run with this certificate; why there is none.
    pub(super) fn find(
        feed: &Feed,
        given: Option<SocketAddr>,
        place: &Place,
        tls: Option<&TlsFiles>,
    ) -> Result<Result<Self, String>, RigError> {
        let broker = match given {
            Some(address) => Self {
                process: None,
                address,
                tls: None,
            },
            None => match home(&place.program) {
                Ok(home) => Self::start(&home, place, tls)?,
                Err(why) => return Ok(Err(why)),
            },
        };
        broker.make_topic(feed.partitions)?;
        Ok(Ok(broker))
    }

    fn start(home: &Path, place: &Place, tls: Option<&TlsFiles>) -> Result<Self, RigError> {
        let folder = place.folder.join("kafka");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .map_err(RigError::io(format!("removing {}", folder.display())))?;
        }
        std::fs::create_dir_all(&folder).map_err(RigError::io(format!("making {}", folder.display())))?;
        let port = free_ports::row(3, 1).map_err(RigError::io("finding free ports for a Kafka broker"))?;
        let file = folder.join("server.properties");
        write(&file, &properties(&folder, port, tls.is_some()))?;
        if let Some(files) = tls {
            let read = |path: &Path| {
                std::fs::read_to_string(path).map_err(RigError::io(format!("reading {}", path.display())))
            };
            write(
                &folder.join("broker.pem"),
                &(read(&files.key)? + &read(&files.certificate)?),
            )?;
        }
        let java = |program: &str| {
            let mut command = Command::new("java");
            command.args([
                "-Xmx384m",
                "-XX:TieredStopAtLevel=1",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            ]);
            command.arg("-cp").arg(home.join("libs/*")).arg(program);
            command.stdout(Stdio::null()).stdin(Stdio::null());
            command
        };
        let mut format = java("kafka.tools.StorageTool");
        format.args(["format", "-t", CLUSTER, "-c"]).arg(&file);
        let output = format
            .output()
            .map_err(RigError::io("preparing the Kafka broker"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(RigError::Settings(format!(
                "the Kafka broker cannot be prepared: {why}"
            )));
        }
        let mut run = java("kafka.Kafka");
        run.arg(&file);
        let mut process = Guarded::start("kafka", run, &place.lab_cpus, &place.folder.join("kafka.log"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        process.wait_longer_for(address, LONGER)?;
        Ok(Self {
            process: Some(process),
            address,
            tls: tls.cloned(),
        })
    }

    /// The settings of the SCP's feed.
    pub(super) fn settings(&self, feed: &Feed) -> Value {
        let mut made = json!(feed.settings);
        made["enabled"] = json!(true);
        made["topic"] = json!(TOPIC);
        made["brokers"] = json!([self.address.to_string()]);
        if let Some(files) = &self.tls {
            made["brokers"] = json!([secure(self.address).to_string()]);
            made["securityProtocol"] = json!("ssl");
            made["tls"] = as_settings(files, false);
        }
        made
    }

    /// For the report.
    pub(super) fn note(&self) -> String {
        match (&self.process, &self.tls) {
            (None, _) => format!("messages are copied to the broker at {}", self.address),
            (Some(_), Some(_)) => "messages are copied to a broker of this run, over TLS".to_owned(),
            (Some(_), None) => "messages are copied to a broker of this run, in the clear".to_owned(),
        }
    }

    fn make_topic(&self, partitions: u16) -> Result<(), RigError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let why = match ask_for_topic(self.address, partitions) {
                Ok(0 | THERE_ALREADY) => return Ok(()),
                Ok(code) => format!("error {code}"),
                Err(error) => error.to_string(),
            };
            // A broker that has just started is not yet one of its cluster.
            if Instant::now() > end {
                return Err(RigError::Settings(format!(
                    "the Kafka broker at {} makes no topic {TOPIC}: {why}",
                    self.address
                )));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Where the jars of a broker are, or why there can be none.
fn home(program: &Path) -> Result<PathBuf, String> {
    let beside = program
        .parent()
        .and_then(Path::parent)
        .map(|target| target.join("kafka"));
    let home = std::env::var_os(HOME).map(PathBuf::from).or(beside);
    let home = home.filter(|home| home.join("libs/complete").exists());
    let java = || {
        let version = Command::new("java")
            .arg("-version")
            .stderr(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    };
    match home {
        Some(home) if java() => Ok(home),
        Some(_) => Err("Java, which a Kafka broker needs, is not installed".to_owned()),
        None => Err(
            "no Kafka broker is at hand: --kafka ADDRESS names one, `scripts/kafka.sh fetch` brings one"
                .to_owned(),
        ),
    }
}

/// A broker that is its own controller, with short retention: no consumer reads the copies.
fn properties(folder: &Path, port: u16, tls: bool) -> String {
    let clients = format!("PLAINTEXT://127.0.0.1:{port}");
    let clients = match tls {
        true => format!("{clients},SSL://127.0.0.1:{}", port + 1),
        false => clients,
    };
    let controller = format!("127.0.0.1:{}", port + 2);
    let folder = folder.display();
    let mut text = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@{controller}\n\
         listeners={clients},CONTROLLER://{controller}\nadvertised.listeners={clients}\n\
         controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL\n\
         log.dirs={folder}/data\noffsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
         log.segment.bytes=16777216\nlog.retention.bytes=67108864\nlog.retention.check.interval.ms=1000\n\
         log.initial.task.delay.ms=1000\nlog.segment.delete.delay.ms=0\n"
    );
    if tls {
        text += &format!("ssl.keystore.type=PEM\nssl.keystore.location={folder}/broker.pem\n");
    }
    text
}

fn write(path: &Path, text: &str) -> Result<(), RigError> {
    std::fs::write(path, text).map_err(RigError::io(format!("writing {}", path.display())))
}

/// The address for TLS of a broker of this run.
fn secure(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port() + 1)
}

/// Asks for the topic (CreateTopics, version 2); the error code of the answer, 0 when there is none.
fn ask_for_topic(broker: SocketAddr, partitions: u16) -> io::Result<i16> {
    let mut stream = TcpStream::connect_timeout(&broker, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&create_topic(partitions))?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = i32::from_be_bytes(length);
    if !(0..=MOST_ANSWER).contains(&length) {
        return Err(io::Error::other(format!("an answer of {length} bytes")));
    }
    let mut answer = vec![0; length as usize];
    stream.read_exact(&mut answer)?;
    error_code(&answer).ok_or_else(|| io::Error::other("an answer that is not valid"))
}

fn create_topic(partitions: u16) -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = (text.len() as i16).to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    let mut request = Vec::new();
    // API key and version of the request, its number, the client id.
    request.extend_from_slice(&[0, 19, 0, 2, 0, 0, 0, 1]);
    request.extend(text("signalbox-lab"));
    // One topic with partitions of one replica, no assignments and no settings of its own.
    request.extend_from_slice(&1_i32.to_be_bytes());
    request.extend(text(TOPIC));
    request.extend_from_slice(&i32::from(partitions).to_be_bytes());
    request.extend_from_slice(&1_i16.to_be_bytes());
    request.extend_from_slice(&[0; 8]);
    // The timeout of the broker, and that the request is not a validation only.
    request.extend_from_slice(&(PATIENCE.as_millis() as i32).to_be_bytes());
    request.push(0);
    let mut framed = (request.len() as i32).to_be_bytes().to_vec();
    framed.extend(request);
    framed
}

/// The error of the one topic: after the request's number, the throttle time, the count and the name.
fn error_code(answer: &[u8]) -> Option<i16> {
    let name = answer.get(12..14)?;
    let at = 14 + usize::from(u16::from_be_bytes([name[0], name[1]]));
    let code = answer.get(at..at + 2)?;
    Some(i16::from_be_bytes([code[0], code[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_asked_for_as_the_protocol_has_it() {
        let request = create_topic(4);
        assert_eq!(
            i32::from_be_bytes(request[..4].try_into().unwrap()) as usize,
            request.len() - 4
        );
        // Key 19, version 2, request 1; after both names 4 partitions of 1 replica.
        assert_eq!(request[4..12], [0, 19, 0, 2, 0, 0, 0, 1]);
        let after = 12 + 2 + 13 + 4 + 2 + TOPIC.len();
        assert_eq!(request[after..after + 6], [0, 0, 0, 4, 0, 1]);
    }

    #[test]
    fn answers_are_read_and_broken_ones_are_not() {
        let mut answer = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3];
        answer.extend_from_slice(b"SCP\x00\x24\xff\xff");
        assert_eq!(error_code(&answer), Some(THERE_ALREADY));
        for length in 0..19 {
            assert_eq!(error_code(&answer[..length]), None);
        }
        // A name that is longer than the answer.
        answer[12] = 0xff;
        assert_eq!(error_code(&answer), None);
    }
}
