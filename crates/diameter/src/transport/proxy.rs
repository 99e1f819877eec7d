//! The header in which a front end gives the addresses of its client's connection: version 2 of the PROXY protocol
//! (haproxy.org, `doc/proxy-protocol.txt` §2.2).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The first octets of a header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The longest header that is read: addresses, and extensions that are skipped.
const MOST: usize = 2048;

/// Reads a header and nothing behind it: the client's address, then the one that it connected to. None: the front end
/// speaks for itself (command LOCAL), or gives no address of IP.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<(SocketAddr, SocketAddr)>> {
    let mut head = [0; 16];
    // An end before the first octet announces nothing; one within is a broken one.
    let first = stream.read(&mut head).await?;
    if first == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid("the PROXY header is incomplete"),
        _ => error,
    };
    stream.read_exact(&mut head[first..]).await.map_err(missing)?;
    let [.., command, family, high, low] = head;
    if head[..SIGNATURE.len()] != SIGNATURE || command >> 4 != 2 {
        return Err(invalid(
            "no PROXY header of version 2; the address of the client is unknown",
        ));
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MOST {
        return Err(invalid("the PROXY header is longer than 2048 octets"));
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await.map_err(missing)?;
    match (command & 0xf, family) {
        (0, _) | (1, 0) => Ok(None),
        (1, 0x11) => addresses(&rest, |ip: [u8; 4]| Ipv4Addr::from(ip).into()).map(Some),
        (1, 0x21) => addresses(&rest, |ip: [u8; 16]| Ipv6Addr::from(ip).into()).map(Some),
        _ => Err(invalid("the PROXY header is about a connection that is not TCP")),
    }
}

/// Source and destination: two addresses, then two ports.
fn addresses<const N: usize>(
    bytes: &[u8],
    ip: impl Fn([u8; N]) -> std::net::IpAddr,
) -> io::Result<(SocketAddr, SocketAddr)> {
    let read = || {
        let (source, rest) = bytes.split_first_chunk::<N>()?;
        let (destination, rest) = rest.split_first_chunk::<N>()?;
        let (from, rest) = rest.split_first_chunk::<2>()?;
        let (to, _) = rest.split_first_chunk::<2>()?;
        let at = |address: &[u8; N], port: &[u8; 2]| {
            SocketAddr::new(ip(*address).to_canonical(), u16::from_be_bytes(*port))
        };
        Some((at(source, from), at(destination, to)))
    };
    read().ok_or_else(|| invalid("the PROXY header is too short for its addresses"))
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut all = SIGNATURE.to_vec();
        all.extend([command, family]);
        all.extend((rest.len() as u16).to_be_bytes());
        all.extend(rest);
        all
    }

    async fn of(bytes: &[u8]) -> io::Result<Option<(SocketAddr, SocketAddr)>> {
        let mut all = bytes.to_vec();
        all.extend(b"CER");
        let mut stream = &all[..];
        let read = read(&mut stream).await?;
        assert_eq!(stream, b"CER", "nothing behind the header is read");
        Ok(read)
    }

    #[tokio::test]
    async fn a_header_gives_the_addresses_of_the_client() {
        let v4 = [192, 0, 2, 7, 198, 51, 100, 1, 0x30, 0x39, 0x0f, 0x1c];
        let (from, to) = of(&header(0x21, 0x11, &v4)).await.unwrap().unwrap();
        assert_eq!(
            (from.to_string(), to.to_string()),
            ("192.0.2.7:12345".into(), "198.51.100.1:3868".into())
        );
        // Extensions behind the addresses are skipped.
        let longer = [&v4[..], &[4, 0, 2, 1, 2]].concat();
        assert_eq!(of(&header(0x21, 0x11, &longer)).await.unwrap(), Some((from, to)));
        let mut v6 = [0; 36];
        v6[15] = 1;
        v6[31] = 2;
        let (from, to) = of(&header(0x21, 0x21, &v6)).await.unwrap().unwrap();
        assert_eq!(
            (from.to_string(), to.to_string()),
            ("[::1]:0".into(), "[::2]:0".into())
        );
        assert_eq!(of(&header(0x20, 0x11, &v4)).await.unwrap(), None, "LOCAL");
        assert_eq!(of(&header(0x21, 0, &[])).await.unwrap(), None, "UNSPEC");
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused() {
        let wrong = [
            header(0x21, 0x12, &[0; 12]),
            header(0x21, 0x11, &[0; 11]),
            header(0x31, 0x11, &[0; 12]),
            header(0x22, 0x11, &[0; 12]),
            header(0x21, 0x11, &[0; 2049]),
            b"\x01\x00\x00\x14 a message of Diameter".to_vec(),
            b"PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\n".to_vec(),
        ];
        for bytes in wrong {
            let error = read(&mut &bytes[..]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
        let cut = header(0x21, 0x11, &[0; 12]);
        let error = read(&mut &cut[..20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = read(&mut &[][..]).await.unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::UnexpectedEof,
            "a check of a front end"
        );
    }
}
