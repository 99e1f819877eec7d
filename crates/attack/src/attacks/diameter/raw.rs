//! A Diameter connection that keeps no rule and forgives everything.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::BytesMut;
use diameter_proto::known::{application, command};
use diameter_proto::peer::{ApplicationId, Capabilities};
use diameter_proto::{CommandFlags, MessageBuilder, MessageMut, known, next_frame};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout, timeout_at};

use crate::stage::REALM;

/// The longest message read.
const LONGEST: usize = 1 << 24;
/// How long a connection or an answer of the first exchange may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(in crate::attacks) struct Raw {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Raw {
    /// Connects from this address and says nothing.
    pub(in crate::attacks) async fn connect(
        target: SocketAddr,
        from: Option<IpAddr>,
    ) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        if let Some(from) = from {
            socket.bind(SocketAddr::new(from, 0))?;
        }
        let stream = timeout(PATIENCE, socket.connect(target)).await??;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: BytesMut::new(),
        })
    }

    /// Connects and exchanges capabilities under this name; whether it was let in does not matter.
    pub(in crate::attacks) async fn admitted(target: SocketAddr, host: &str) -> anyhow::Result<Self> {
        let mut raw = Self::connect(target, None).await?;
        raw.send(&cer(host, raw.local())?).await;
        raw.read_until(1, PATIENCE).await;
        Ok(raw)
    }

    pub(in crate::attacks) fn local(&self) -> Option<IpAddr> {
        self.stream.local_addr().ok().map(|address| address.ip())
    }

    /// Ends the connection with a reset.
    pub(in crate::attacks) fn break_off(self) {
        // Lingering for no time is what makes the kernel send a reset.
        let _ = self.stream.set_zero_linger();
    }

    /// Whether the other side took it.
    pub(in crate::attacks) async fn send(&mut self, bytes: &[u8]) -> bool {
        matches!(timeout(PATIENCE, self.stream.write_all(bytes)).await, Ok(Ok(())))
    }

    /// What comes within this time, and whether the connection ended.
    pub(in crate::attacks) async fn read_for(&mut self, time: Duration) -> (Vec<MessageMut>, bool) {
        self.read_until(usize::MAX, time).await
    }

    /// The same, until `count` messages came.
    pub(in crate::attacks) async fn read_until(
        &mut self,
        count: usize,
        time: Duration,
    ) -> (Vec<MessageMut>, bool) {
        let (end, mut messages) = (Instant::now() + time, Vec::new());
        loop {
            while let Ok(Some(message)) = next_frame(&mut self.buffer, LONGEST) {
                messages.push(message);
            }
            if messages.len() >= count {
                return (messages, false);
            }
            match timeout_at(end, self.stream.read_buf(&mut self.buffer)).await {
                Ok(Ok(1..)) => {}
                Ok(_) => return (messages, true),
                Err(_) => return (messages, false),
            }
        }
    }

    /// Sends this over and over for so long, and reads meanwhile or not; bytes that were taken.
    pub(in crate::attacks) async fn pour(&mut self, bytes: &[u8], time: Duration, reads: bool) -> u64 {
        let (mut reader, mut writer) = self.stream.split();
        let (end, mut at, mut sent) = (Instant::now() + time, 0, 0);
        let mut scratch = vec![0; 65_536];
        while Instant::now() < end && !bytes.is_empty() {
            let step = async {
                tokio::select! {
                    written = writer.write(bytes.get(at..).unwrap_or_default()) => written.ok().filter(|n| *n > 0),
                    read = reader.read(&mut scratch), if reads => read.ok().filter(|n| *n > 0).map(|_| 0),
                }
            };
            match timeout_at(end, step).await {
                Ok(Some(written)) => {
                    sent += written as u64;
                    at = (at + written) % bytes.len();
                }
                _ => break,
            }
        }
        sent
    }
}

/// A CER under this name.
pub(in crate::attacks) fn cer(host: &str, address: Option<IpAddr>) -> anyhow::Result<Vec<u8>> {
    let mut own = Capabilities::new(host, REALM).with_applications([
        ApplicationId::tgpp(application::S6A),
        ApplicationId::tgpp(application::RX),
        ApplicationId::tgpp(application::GX),
    ]);
    own.addresses.extend(address);
    let mut cer = MessageBuilder::request(command::CAPABILITIES_EXCHANGE, 0);
    *cer.flags_mut() = CommandFlags::REQUEST;
    cer.identifiers(1, 1);
    own.write(&mut cer);
    Ok(cer.finish()?.as_bytes().to_vec())
}

/// A DWR under this name.
pub(in crate::attacks) fn dwr(host: &str) -> anyhow::Result<Vec<u8>> {
    let mut dwr = MessageBuilder::request(command::DEVICE_WATCHDOG, 0);
    *dwr.flags_mut() = CommandFlags::REQUEST;
    dwr.identifiers(2, 2);
    dwr.put(known::ORIGIN_HOST, host).put(known::ORIGIN_REALM, REALM);
    Ok(dwr.finish()?.as_bytes().to_vec())
}
