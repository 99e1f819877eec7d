//! One query, for an explanation: the caller waits for the answer.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use dp_proto::{Answer, Bundle, Frame};

use super::{Processors, Reply, push};
use crate::address::Address;
use crate::config::Service;
use crate::data::ByName;

/// Asks one processor after another, until one answers or the deadline is over; returns the reply and who gave it.
pub(super) fn ask(
    processors: &Processors,
    address: &Address,
    service: Option<Service>,
    names: &ByName,
) -> (Reply, String) {
    let mut query = Bundle::default();
    push(&mut query, 0, address, service);
    let mut octets = Vec::new();
    query.take_into(&mut octets);
    let until = Instant::now() + processors.deadline;
    let (mut last, count) = (String::new(), processors.addresses.len() as u32);
    for (processor, behind) in processors.addresses.iter().zip((0..count).rev()) {
        let until = share(Instant::now(), until, behind);
        match ask_one(*processor, &octets, until, names) {
            Ok(Reply::Nothing) => last = format!("database processor {processor}: it has no data"),
            Ok(reply) => return (reply, format!("database processor {processor}")),
            Err(error) => last = format!("database processor {processor}: {error}"),
        }
    }
    (Reply::Nothing, last)
}

/// The end of a processor's part of the time: one that is silent leaves as much to each of those behind it.
fn share(now: Instant, until: Instant, behind: u32) -> Instant {
    now + until.saturating_duration_since(now) / (behind + 1)
}

fn ask_one(processor: SocketAddr, query: &[u8], until: Instant, names: &ByName) -> io::Result<Reply> {
    let left = || {
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of 0 would be none.
        left.max(Duration::from_millis(1))
    };
    let mut stream = TcpStream::connect_timeout(&processor, left())?;
    stream.set_write_timeout(Some(left()))?;
    stream.write_all(query)?;
    let (mut input, mut chunk) = (Vec::new(), [0; 1024]);
    loop {
        stream.set_read_timeout(Some(left()))?;
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => input.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
        let frame = Frame::<Answer<'_>>::split(&input).map_err(io::Error::other)?;
        let Some((frame, _)) = frame else { continue };
        let mut reply = Reply::Nothing;
        let taken = frame.each(|answer| reply = Reply::new(&answer, names));
        return taken.map(|()| reply).map_err(io::Error::other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_processor_leaves_time_for_those_behind_it() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(share(at(0), at(6), 2), at(2));
        assert_eq!(share(at(2), at(6), 1), at(4));
        assert_eq!(share(at(4), at(6), 0), at(6));
        assert_eq!(share(at(7), at(6), 0), at(7));
    }
}
