//! One query, for an explanation: the caller waits for the answer.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use dp_proto::{Answer, Bundle, Frame};
use rustls::{ClientConnection, StreamOwned};

use super::{Place, Processors, Reply, push};
use crate::address::Address;
use crate::config::Service;
use crate::data::ByName;

/// The id of the query, which its answer repeats.
const ID: u32 = 1;

/// Asks one processor after another, until one answers or the deadline is over; returns the reply and who gave it.
pub(super) fn ask(
    processors: &Processors,
    address: &Address,
    service: Option<Service>,
    names: &ByName,
) -> (Reply, String) {
    let mut query = Bundle::default();
    push(&mut query, ID, address, service);
    let mut octets = Vec::new();
    query.take_into(&mut octets);
    let until = Instant::now() + processors.deadline;
    let (mut last, mut damaged, count) = (String::new(), None, processors.places.len() as u32);
    for (place, behind) in processors.places.iter().zip((0..count).rev()) {
        let processor = place.address;
        let until = share(Instant::now(), until, behind);
        match ask_one(processors, place, &octets, until, names) {
            Ok(Reply::Nothing) => last = format!("database processor {processor}: it has no data"),
            // Another one may have the entry whole.
            Ok(Reply::Damaged) => damaged = Some((Reply::Damaged, format!("database processor {processor}"))),
            Ok(reply) => return (reply, format!("database processor {processor}")),
            Err(error) => last = format!("database processor {processor}: {error}"),
        }
    }
    damaged.unwrap_or((Reply::Nothing, last))
}

/// The end of a processor's part of the time: one that is silent leaves as much to each of those behind it.
fn share(now: Instant, until: Instant, behind: u32) -> Instant {
    now + until.saturating_duration_since(now) / (behind + 1)
}

fn ask_one(
    processors: &Processors,
    place: &Place,
    query: &[u8],
    until: Instant,
    names: &ByName,
) -> io::Result<Reply> {
    let socket = TcpStream::connect_timeout(&place.address, left(until)?)?;
    let Some(tls) = &processors.tls else {
        return exchange(&mut &socket, &socket, query, until, names);
    };
    let session = ClientConnection::new(tls.client.clone(), place.name.clone()).map_err(io::Error::other)?;
    exchange(
        &mut StreamOwned::new(session, &socket),
        &socket,
        query,
        until,
        names,
    )
}

/// The time that is left: a timeout of 0 would be none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

/// Sends the query and reads frames until one has its answer.
fn exchange(
    stream: &mut (impl Read + Write),
    socket: &TcpStream,
    query: &[u8],
    until: Instant,
    names: &ByName,
) -> io::Result<Reply> {
    socket.set_write_timeout(Some(left(until)?))?;
    socket.set_read_timeout(Some(left(until)?))?;
    stream.write_all(query)?;
    stream.flush()?;
    let (mut input, mut chunk) = (Vec::new(), [0; 1024]);
    loop {
        while let Some((frame, length)) = Frame::<Answer<'_>>::split(&input).map_err(io::Error::other)? {
            let mut reply = None;
            let take = |answer: Answer<'_>| {
                if answer.id == ID {
                    reply = Some(Reply::new(&answer, names));
                }
            };
            frame.each(take).map_err(io::Error::other)?;
            if let Some(reply) = reply {
                return Ok(reply);
            }
            input.drain(..length);
        }
        socket.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => input.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
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

    #[test]
    fn the_answer_to_another_query_is_passed_over() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = Place::new(listener.local_addr().unwrap(), None).unwrap();
        let processors = Processors {
            places: vec![place],
            deadline: Duration::from_secs(60),
            tls: None,
        };
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut begun = [0; 8];
            stream.read_exact(&mut begun).unwrap();
            let (mut bundle, mut octets) = (Bundle::default(), Vec::new());
            bundle.probe::<Answer<'_>>();
            for (id, destination) in [(ID + 1, b"other"), (ID, b"right")] {
                bundle.push(&Answer {
                    id,
                    outcome: dp_proto::Outcome::Exact,
                    destination,
                });
                bundle.close();
            }
            bundle.take_into(&mut octets);
            stream.write_all(&octets).unwrap();
        });
        let names = ["other", "right"]
            .map(Box::<str>::from)
            .into_iter()
            .zip(0..)
            .collect();
        let address = Address::parse(crate::config::Entity::Imsi, "001010000000001").unwrap();
        let (reply, _) = ask(&processors, &address, None, &names);
        assert_eq!(reply, Reply::Destination(1, crate::data::By::Processor));
        serving.join().unwrap();
    }
}
