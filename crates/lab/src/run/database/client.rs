//! Look-ups at a database processor, one bundle after the other, for what is not measured.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use dp_proto::{Answer, Bundle, Frame, Outcome, Query};

use super::Record;

/// How long a processor may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Look-ups that are sent at once.
const TOGETHER: usize = 1_000;

/// A connection to a processor.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Client {
    pub(super) fn connect(processor: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&processor, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            held: Vec::new(),
        })
    }

    /// Whether the processor answers each of these by its destination.
    pub(super) fn knows(&mut self, records: &[Record]) -> io::Result<Vec<bool>> {
        let mut known = Vec::with_capacity(records.len());
        for records in records.chunks(TOGETHER) {
            self.ask(records, &mut known)?;
        }
        Ok(known)
    }

    fn ask(&mut self, records: &[Record], known: &mut Vec<bool>) -> io::Result<()> {
        let (mut bundle, mut out) = (Bundle::default(), Vec::new());
        for (id, record) in (0..).zip(records) {
            bundle.push(&Query {
                id,
                kind: record.kind,
                service: b"",
                value: record.value.as_bytes(),
            });
        }
        bundle.take_into(&mut out);
        self.stream.write_all(&out)?;
        let (first, mut chunk) = (known.len(), vec![0; 64 * 1024]);
        known.resize(first + records.len(), false);
        let mut left = records.len();
        while left > 0 {
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.held.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let mut taken = 0;
            while let Some((frame, length)) =
                Frame::<Answer<'_>>::split(self.held.get(taken..).unwrap_or_default())
                    .map_err(io::Error::other)?
            {
                let each = |answer: Answer<'_>| {
                    let at = answer.id as usize;
                    let record = records.get(at);
                    let is_right = answer.outcome == Outcome::Exact
                        && record.is_some_and(|one| one.destination.as_bytes() == answer.destination);
                    if let Some(place) = known.get_mut(first + at) {
                        *place = is_right;
                    }
                };
                frame.each(each).map_err(io::Error::other)?;
                left = left.saturating_sub(frame.count());
                taken += length;
            }
            self.held.drain(..taken);
        }
        Ok(())
    }
}
