//! Diameter stacks of others around the router: they connect, exchange requests through it, and one server takes over from
//! the other.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use dsr::config::{Peer as PeerConfig, Timers};
use dsr::{Config, Running};

use crate::ocdra::support::{OCSS, agent};
use crate::support::{REALM, available, config, one_list, routing, run, until};

const SERVERS: [&str; 2] = ["hss1.example", "hss2.example"];
/// Bound of each wait: a machine with other work starts virtual machines slowly.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process of a foreign stack, which ends with this.
struct Foreign {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Foreign {
    /// Starts a driver as `ROLE HOST REALM PORT`.
    fn start(program: &[&str], role: &str, host: &str, port: u16) -> Self {
        let [program, arguments @ ..] = program else {
            panic!("a program")
        };
        let mut child = Command::new(program)
            .args(arguments)
            .args([role, host, REALM, &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).all(|sent| sent.is_ok())
        });
        Self { child, input, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line of the driver")
    }

    /// Has a client send this many requests; the hosts that have answered them with success.
    fn ask(&mut self, count: usize) -> Vec<String> {
        writeln!(self.input, "{count}").unwrap();
        self.input.flush().unwrap();
        let each = (0..count).map(|_| self.line());
        each.map(|line| match line.strip_prefix("2001 ") {
            Some(host) => host.to_owned(),
            None => panic!("{line}"),
        })
        .collect()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free now; drivers cannot say which one the system gave them.
fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Two servers of one stack with these names and a client, with the router between them, which has this configuration for its
/// peers.
fn around(
    program: &[&str],
    hosts: [&str; 2],
    configure: impl FnOnce(&mut Config),
) -> (Running, [Foreign; 2], Foreign) {
    let ports = [port(), port()];
    let servers = [0, 1].map(|n| Foreign::start(program, "server", hosts[n], ports[n]));
    for server in &servers {
        assert_eq!(server.line(), "listening");
    }
    let mut base = config();
    base.peers = [0, 1]
        .map(|n: usize| PeerConfig {
            host: hosts[n].to_owned(),
            addresses: vec![([127, 0, 0, 1], ports[n]).into()],
            timers: Timers {
                reconnect_min: settings::Period::from_millis(50),
                reopen: dsr::config::ReopenPolicy::Never,
                ..Timers::default()
            },
            ..PeerConfig::default()
        })
        .to_vec();
    configure(&mut base);
    let dsr = dsr::start(base).unwrap();
    run(async {
        for host in hosts {
            available(&dsr, host).await;
        }
    });
    let client = Foreign::start(program, "client", "mme.example", dsr.addresses()[0].port());
    assert_eq!(client.line(), "up");
    (dsr, servers, client)
}

/// Waits until a server is down.
fn down(dsr: &Running, host: &str) {
    run(async {
        until(|| {
            let rows = dsr.peers();
            rows.iter()
                .any(|row| row.host == host && row.state == "unavailable")
        })
        .await;
    });
}

/// The second server answers when the first one, which is preferred, dies.
fn exchange_and_fail_over(program: &[&str]) {
    let configure = |base: &mut Config| routing(base, &one_list(&SERVERS));
    let (dsr, servers, mut client) = around(program, SERVERS, configure);
    assert_eq!(client.ask(20), [SERVERS[0]; 20]);
    let [first, _second] = servers;
    drop(first);
    down(&dsr, SERVERS[0]);
    assert_eq!(client.ask(20), [SERVERS[1]; 20]);
    // Nothing listens there: the next attempt says so.
    run(async {
        until(|| {
            let rows = dsr.peers();
            let down = rows.iter().find(|row| row.host == SERVERS[0]);
            down.is_some_and(|row| !row.last_error.is_empty())
        })
        .await;
    });
}

fn driver(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    folder.join(name).display().to_string()
}

#[test]
fn otp_diameter_exchanges_and_fails_over() {
    let has_it = "case code:lib_dir(diameter) of {error, _} -> halt(1); _ -> halt(0) end.";
    let found = Command::new("erl").args(["-noshell", "-eval", has_it]).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("skipped: OTP's diameter (Debian: erlang-base, erlang-diameter) is not installed");
        return;
    }
    exchange_and_fail_over(&["escript", &driver("peer.escript")]);
}

#[test]
fn python_diameter_exchanges_and_fails_over() {
    let Some(folder) = testpeer::python::diameter(env!("CARGO_TARGET_TMPDIR")) else {
        eprintln!("skipped: python-diameter (PyPI) is not available");
        return;
    };
    let path = format!("PYTHONPATH={}", folder.display());
    exchange_and_fail_over(&["env", &path, "python3", "-B", &driver("peer.py")]);
}

#[test]
fn python_diameter_charges_each_session_at_one_ocs() {
    let Some(folder) = testpeer::python::diameter(env!("CARGO_TARGET_TMPDIR")) else {
        eprintln!("skipped: python-diameter (PyPI) is not available");
        return;
    };
    let path = format!("PYTHONPATH={}", folder.display());
    let store = tempfile::tempdir().unwrap();
    let configure = |base: &mut Config| {
        let charging = agent(store.path(), "", "");
        (base.applications, base.routing) = (charging.applications, charging.routing);
    };
    let program = ["env", &path, "python3", "-B", &driver("charging.py")];
    let (dsr, servers, mut client) = around(&program, OCSS, configure);
    // An OCS refuses what is not of a session of its own.
    let hosts = client.ask(30);
    assert!(
        OCSS.iter().all(|ocs| hosts.iter().any(|host| host == ocs)),
        "{hosts:?}"
    );
    let [first, _second] = servers;
    drop(first);
    down(&dsr, OCSS[0]);
    assert!(client.ask(30).iter().all(|host| host == OCSS[1]));
}

/// The driver of go-diameter, built once for each target directory with its module from the Go proxy; none: it cannot be
/// built here.
fn go_diameter() -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-diameter");
    std::fs::create_dir_all(&folder).ok()?;
    let module = "module peer\n\ngo 1.25.0\n\nrequire github.com/fiorix/go-diameter/v4 v4.1.0\n";
    std::fs::write(folder.join("go.mod"), module).ok()?;
    std::fs::copy(driver("peer.go"), folder.join("main.go")).ok()?;
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/go/bin";
    let mut go = Command::new("env");
    go.arg(format!("PATH={path}"));
    if std::env::var_os("HOME").is_none() {
        go.arg(format!("HOME={}", folder.display()));
    }
    go.args(["go", "build", "-mod=mod", "-o", "peer", "."]);
    go.current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    go.status().ok().filter(std::process::ExitStatus::success)?;
    Some(folder.join("peer").display().to_string())
}

#[test]
fn go_diameter_exchanges_and_fails_over() {
    let Some(peer) = go_diameter() else {
        eprintln!("skipped: Go 1.25 or the module go-diameter is not available");
        return;
    };
    exchange_and_fail_over(&[&peer]);
}

const JDIAMETER: [&str; 1] = ["org.mobicents.diameter:jdiameter-impl:1.7.1-123"];
/// What the stack names, and Maven Central lacks in part: its transport over SCTP.
const WITHOUT_SCTP: [&str; 2] = ["org.mobicents.protocols.sctp", "org.mobicents.commons"];

#[test]
fn jdiameter_exchanges_and_fails_over() {
    let jars = testpeer::maven::jars(
        env!("CARGO_TARGET_TMPDIR"),
        "jdiameter",
        &JDIAMETER,
        &WITHOUT_SCTP,
    );
    let Some(jars) = jars else {
        return testpeer::skip::missing("a Java compiler, Maven, or jDiameter from Maven Central,");
    };
    let classes = jars.join("*").display().to_string();
    exchange_and_fail_over(&[
        "java",
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        &classes,
        &driver("Peer.java"),
    ]);
}
