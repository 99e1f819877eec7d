//! The header by which a message processor learns the client's address: version 2 of the PROXY protocol (haproxy.org,
//! `doc/proxy-protocol.txt` §2.2).

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Sends the header of a client's connection.
pub(crate) async fn announce(client: &TcpStream, backend: &mut TcpStream) -> io::Result<()> {
    let header = header(client.peer_addr()?, client.local_addr()?);
    backend.write_all(&header).await
}

/// Version 2, command PROXY, over TCP: the client's address, then the one that it connected to.
fn header(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    let addresses = match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.push(0x11);
            [from.octets(), to.octets()].concat()
        }
        (from, to) => {
            header.push(0x21);
            [mapped(from).octets(), mapped(to).octets()].concat()
        }
    };
    let length = addresses.len() as u16 + 4;
    header.extend(length.to_be_bytes());
    header.extend(addresses);
    header.extend(from.port().to_be_bytes());
    header.extend(to.port().to_be_bytes());
    header
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_have_their_form() {
        let [from, to] = ["[::ffff:192.0.2.7]:12345", "198.51.100.1:3868"].map(|text| text.parse().unwrap());
        let v4 = header(from, to);
        let addresses = [192, 0, 2, 7, 198, 51, 100, 1, 0x30, 0x39, 0x0f, 0x1c];
        assert_eq!(v4[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
        assert_eq!(v4[16..], addresses);
        let [from, to] = ["[2001:db8::7]:1", "[2001:db8::1]:2"].map(|text| text.parse().unwrap());
        let v6 = header(from, to);
        assert_eq!(v6[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24");
        assert_eq!((v6.len(), &v6[48..]), (52, &[0, 1, 0, 2][..]));
    }
}
