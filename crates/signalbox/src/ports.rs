//! The process that listens at an address, as `/proc` shows it (proc(5)): the table of sockets has the inode of the
//! listener, and the process that has it open is the holder.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// State of a listening socket in the tables of `/proc/net`.
const LISTEN: &str = "0A";
/// Characters of a command line that are shown.
const SHOWN: usize = 80;

/// Who listens.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Its process id; none where the process belongs to a user whose files this one may not see.
    pub(crate) process: Option<u32>,
    /// Its command line.
    pub(crate) program: Option<String>,
    /// The user id it runs as.
    pub(crate) user: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.process, &self.program) {
            (Some(process), Some(program)) => write!(f, "process {process} ({program})"),
            (Some(process), None) => write!(f, "process {process}"),
            (None, _) => write!(f, "a process of the user {}", self.user),
        }
    }
}

/// The process that listens at this address, or at all addresses of its port.
pub(crate) fn holder(address: SocketAddr) -> Option<Holder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let mut sockets = tables.iter().flat_map(|table| table.lines().skip(1));
    let (inode, user) = sockets.find_map(|line| listener(line, address))?;
    let process = process_of(&inode);
    Some(Holder {
        process,
        program: process.and_then(command_line),
        user,
    })
}

/// Inode and user of a line of the table, where it is a listener at the address.
fn listener(line: &str, wanted: SocketAddr) -> Option<(String, u32)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, _, _, _, user, _, inode, ..] = fields[..] else {
        return None;
    };
    let (ip, port) = local.split_once(':')?;
    let ip = address(ip)?;
    let is_same = ip == wanted.ip().to_canonical() || ip.is_unspecified() || wanted.ip().is_unspecified();
    let has_port = u16::from_str_radix(port, 16).ok()? == wanted.port();
    (state == LISTEN && has_port && is_same).then(|| Some((inode.to_owned(), user.parse().ok()?)))?
}

/// An address of the table: words of 32 bits in the order of octets of the machine.
fn address(hexadecimal: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hexadecimal.get(at..at + 8)?, 16).ok();
    match hexadecimal.len() {
        8 => Some(Ipv4Addr::from(word(0)?.to_ne_bytes()).into()),
        32 => {
            let mut octets = [0; 16];
            for (index, part) in octets.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index * 8)?.to_ne_bytes());
            }
            Some(IpAddr::from(Ipv6Addr::from(octets)).to_canonical())
        }
        _ => None,
    }
}

/// The process that has this socket open.
fn process_of(inode: &str) -> Option<u32> {
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let files = fs::read_dir(format!("/proc/{id}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str())
    })
}

fn command_line(process: u32) -> Option<String> {
    let text = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&text).replace(|c: char| c.is_control(), " ");
    let text: String = text.trim().chars().take(SHOWN).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_holder_of_a_port_is_this_process() {
        for at in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else {
                eprintln!("skipped: this machine has no {at}");
                continue;
            };
            let found = holder(listener.local_addr().unwrap()).unwrap();
            assert_eq!(found.process, Some(std::process::id()), "{at}");
            assert!(found.program.is_some());
        }
    }

    #[test]
    fn a_listener_at_another_address_is_none() {
        let line = "   0: 0100007F:1F54 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x";
        let found = |at: &str| listener(line, at.parse().unwrap());
        assert_eq!(found("127.0.0.1:8020"), Some(("4711".to_owned(), 1000)));
        assert_eq!(found("0.0.0.0:8020"), Some(("4711".to_owned(), 1000)));
        assert_eq!(found("127.0.0.2:8020"), None);
        assert_eq!(found("127.0.0.1:8021"), None);
    }
}
