//! osmo-stp (Debian: `osmo-stp` 1.6) as a peer of a link of IPA, which it speaks over TCP: as a gateway and as a client.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::ipa::{Unit, connecting, exchange, is_available, with_unit};
use crate::support::{Asp, start, until};

/// A running osmo-stp. It is killed when dropped.
struct OsmoStp {
    child: Child,
    folder: TempDir,
}

impl OsmoStp {
    /// Starts it with these lines of `cs7 instance 0`, and a gateway at this port. None when it is not installed.
    fn start(instance: &str, port: u16) -> Option<Self> {
        let version = Command::new("osmo-stp")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if version.is_err() {
            testpeer::skip::missing("osmo-stp");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("osmo-stp.cfg");
        // Its terminal has a fixed port: the address is as unique as the port of the gateway.
        let [high, low] = port.to_be_bytes();
        let terminal = SocketAddr::from(([127, 77, high, low], 4239));
        let text = format!(
            "log stderr\n logging level set-all notice\nline vty\n no login\n bind {}\ncs7 instance 0\n{instance} listen ipa {port}\n  local-ip 127.0.0.1\n  accept-asp-connections dynamic-permitted\n",
            terminal.ip()
        );
        std::fs::write(&file, text).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new("osmo-stp")
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut running = Self { child, folder };
        until("osmo-stp does not listen", || {
            assert!(running.child.try_wait().unwrap().is_none(), "{}", running.log());
            TcpStream::connect(terminal).is_ok()
        });
        Some(running)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for OsmoStp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let Some(_osmo) = OsmoStp::start(&instance.concat(), port) else {
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
    let Some(_osmo) = OsmoStp::start(&instance.concat(), port) else {
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
