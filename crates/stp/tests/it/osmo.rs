//! osmo-stp (Debian: `osmo-stp` 1.6) as a peer of a link of IPA, which it speaks over TCP: as a gateway and as a client.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::ipa::{Unit, connecting, exchange, is_available, with_unit};
use crate::support::{Asp, PATIENCE, start, until};

/// A running program of Osmocom. It is killed when dropped.
pub(crate) struct Osmo {
    child: Child,
    folder: TempDir,
    terminal: SocketAddr,
}

/// Whether a program of Osmocom is installed; the test is skipped where it is not.
pub(crate) fn is_installed(program: &str) -> bool {
    testpeer::skip::output(Command::new(program).arg("--version")).is_some()
}

impl Osmo {
    /// Starts a program that [`is_installed`] with these nodes of its configuration, its terminal at this
    /// address. The port of the terminal is its own, whatever is configured.
    pub(crate) fn start(program: &str, terminal: SocketAddr, nodes: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("osmo.cfg");
        let bind = terminal.ip();
        let text =
            format!("log stderr\n logging level set-all notice\nline vty\n no login\n bind {bind}\n{nodes}");
        std::fs::write(&file, text).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .arg("-c")
            .arg(&file)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut running = Self {
            child,
            folder,
            terminal,
        };
        until("the terminal does not listen", || {
            assert!(running.child.try_wait().unwrap().is_none(), "{}", running.log());
            TcpStream::connect(terminal).is_ok()
        });
        running
    }

    /// What the terminal answers to a command, up to the next prompt.
    pub(crate) fn ask(&self, command: &str) -> String {
        let mut terminal = TcpStream::connect(self.terminal).unwrap();
        terminal.set_read_timeout(Some(PATIENCE)).unwrap();
        terminal.write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
        loop {
            let read = terminal.read(&mut chunk).unwrap();
            assert_ne!(read, 0, "the terminal has closed");
            all.extend_from_slice(&chunk[..read]);
            let text = String::from_utf8_lossy(&all);
            if let Some((_, answer)) = text.split_once(command)
                && answer.ends_with("> ")
            {
                return answer.to_owned();
            }
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Osmo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts osmo-stp with these lines of `cs7 instance 0`, and a gateway at this port. None when it is not installed.
fn osmo_stp(instance: &str, port: u16) -> Option<Osmo> {
    if !is_installed("osmo-stp") {
        return None;
    }
    // Its terminal has a fixed port: the address is as unique as the port of the gateway.
    let [high, low] = port.to_be_bytes();
    let terminal = SocketAddr::from(([127, 77, high, low], 4239));
    let nodes = format!(
        "cs7 instance 0\n{instance} listen ipa {port}\n  local-ip 127.0.0.1\n  accept-asp-connections dynamic-permitted\n"
    );
    Some(Osmo::start("osmo-stp", terminal, &nodes))
}

/// An application server of osmo-stp, and the route to it.
fn server(name: &str, code: u32, to: u32) -> String {
    format!(" as {name} ipa\n  routing-key 0 0.0.{code}\n  point-code override dpc 0.0.{to}\n")
}

fn routes(all: &[(&str, u32)]) -> String {
    let route = |(name, code): &(&str, u32)| format!("  update route 0.0.{code} 7.255.7 linkset {name}\n");
    format!(
        " route-table system\n{}",
        all.iter().map(route).collect::<String>()
    )
}

/// The STP is a client of osmo-stp; behind that is a unit, which speaks with an ASP of the STP.
#[test]
fn osmo_stp_as_a_gateway() {
    let port = free_ports::port().unwrap();
    let instance = [
        server("c", 1, 5),
        server("unit", 5, 1),
        routes(&[("c", 1), ("unit", 5)]),
    ];
    let Some(_osmo) = osmo_stp(&instance.concat(), port) else {
        return;
    };
    let stp = start(connecting(port));
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    until("the link to osmo-stp is not active", || is_available(&stp));
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut unit = Unit::over(stream).identified("unit");
    for _ in 0..100 {
        exchange(&mut unit, &mut one);
    }
}

/// osmo-stp is a client of the STP, at the address of the link.
#[test]
fn osmo_stp_as_a_client() {
    let port = free_ports::port().unwrap();
    let stp = start(with_unit());
    let at = stp.addresses()[0];
    let instance = [
        format!(
            " asp stp {} 0 ipa\n  local-ip 127.0.0.15\n  remote-ip 127.0.0.1\n  role asp\n  sctp-role client\n",
            at.port()
        ),
        // What comes from the STP is for the unit.
        server("stp", 7, 1),
        "  asp stp\n".to_owned(),
        server("unit", 7, 1),
        routes(&[("stp", 1), ("unit", 7)]),
    ];
    let Some(_osmo) = osmo_stp(&instance.concat(), port) else {
        return;
    };
    let mut one = Asp::active(at, 11, 11);
    until("the link of osmo-stp is not active", || is_available(&stp));
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut unit = Unit::over(stream).identified("unit");
    for _ in 0..100 {
        exchange(&mut unit, &mut one);
    }
}
