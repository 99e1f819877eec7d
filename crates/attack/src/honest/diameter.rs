//! Over Diameter: an MME with one connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::BytesMut;
use diameter_proto::known::{self, application, command};
use diameter_proto::peer::{ApplicationId, Capabilities};
use diameter_proto::{CommandFlags, MessageBuilder, MessageMut, Origin, ResultCode, next_frame};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::Fared;
use crate::epc::{MME, REALM, ulr};

/// How long an answer is awaited.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest message read.
const LONGEST: usize = 1 << 20;

struct Mme {
    stream: TcpStream,
    buffer: BytesMut,
    name: String,
}

/// A socket with an address of its own: what the router bounds for each address must not meet the honest client,
/// because the attack comes from this machine as well.
fn from_elsewhere(target: SocketAddr) -> anyhow::Result<TcpSocket> {
    if target.is_ipv6() {
        return Ok(TcpSocket::new_v6()?);
    }
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 2], 0)))?;
    Ok(socket)
}

impl Mme {
    async fn connect(target: SocketAddr, name: &str) -> anyhow::Result<Self> {
        let stream = timeout(DEADLINE, from_elsewhere(target)?.connect(target)).await??;
        stream.set_nodelay(true)?;
        let mut own = Capabilities::new(name, REALM).with_applications([
            ApplicationId::tgpp(application::S6A),
            ApplicationId::tgpp(application::RX),
        ]);
        own.addresses.push(stream.local_addr()?.ip());
        let mut cer = MessageBuilder::request(command::CAPABILITIES_EXCHANGE, 0);
        *cer.flags_mut() = CommandFlags::REQUEST;
        cer.identifiers(1, 1);
        own.write(&mut cer);
        let mut mme = Self {
            stream,
            buffer: BytesMut::new(),
            name: name.to_owned(),
        };
        mme.stream.write_all(cer.finish()?.as_bytes()).await?;
        let answer = timeout(DEADLINE, mme.next()).await??;
        let result = answer.get(known::RESULT_CODE).ok().flatten();
        ensure!(
            result == Some(ResultCode::SUCCESS.0),
            "the honest MME is turned away: {result:?}"
        );
        Ok(mme)
    }

    async fn next(&mut self) -> anyhow::Result<MessageMut> {
        loop {
            if let Some(message) = next_frame(&mut self.buffer, LONGEST)
                .ok()
                .context("no Diameter came")?
            {
                if !message.is_request() {
                    return Ok(message);
                }
                // A watchdog request is answered, so that the connection lives.
                let mut answer = MessageBuilder::answer(&message);
                answer.result(ResultCode::SUCCESS, &Origin::new(&*self.name, REALM));
                self.stream.write_all(answer.finish()?.as_bytes()).await?;
                continue;
            }
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the honest connection ended"
            );
        }
    }

    async fn once(&mut self, number: u32) -> anyhow::Result<()> {
        let request = ulr(&self.name, "001010000000001", number)?;
        self.stream.write_all(request.as_bytes()).await?;
        let answer = timeout(DEADLINE, self.next()).await??;
        let result = answer.get(known::RESULT_CODE).ok().flatten();
        ensure!(result == Some(ResultCode::SUCCESS.0), "result {result:?}");
        Ok(())
    }
}

/// Waits until an honest request comes through.
pub(crate) async fn served(target: SocketAddr) -> anyhow::Result<()> {
    let mut last = Ok(());
    for round in 0..100 {
        // A name of its own: the honest client itself may be connected.
        last = async {
            Mme::connect(target, &format!("probe{round}.epc.example"))
                .await?
                .once(1)
                .await
        }
        .await;
        if last.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    last
}

pub(super) async fn ask(target: SocketAddr, tick: Duration, stop: Arc<AtomicBool>) -> Fared {
    let mut fared = Fared::default();
    let mut mme = match Mme::connect(target, MME).await {
        Ok(mme) => mme,
        Err(error) => {
            fared.error(error.to_string());
            return fared;
        }
    };
    let mut open: BTreeMap<u32, Instant> = BTreeMap::new();
    let mut number = 10;
    let mut ticks = tokio::time::interval(tick);
    loop {
        let ending = stop.load(Ordering::Relaxed);
        if ending && open.is_empty() {
            return fared;
        }
        let late = open.iter().find(|(_, begun)| begun.elapsed() > DEADLINE);
        if let Some(number) = late.map(|(number, _)| *number) {
            open.remove(&number);
            fared.error("no answer".to_owned());
        }
        let event = tokio::select! {
            answer = mme.next() => Some(answer),
            _ = ticks.tick() => None,
        };
        let step = match event {
            Some(Ok(answer)) => {
                let result = answer.get(known::RESULT_CODE).ok().flatten();
                match (open.remove(&answer.hop_by_hop()), result) {
                    (Some(begun), Some(2001)) => fared.answer(begun.elapsed()),
                    (Some(_), result) => fared.error(format!("result {result:?}")),
                    (None, _) => fared.error("an answer to nothing".to_owned()),
                }
                Ok(())
            }
            Some(Err(error)) => Err(error),
            None if ending => Ok(()),
            None => send(&mut mme, &mut open, &mut number).await,
        };
        if let Err(error) = step {
            fared.errors += open.len() as u64;
            fared.error(error.to_string());
            open.clear();
            if ending {
                return fared;
            }
            tokio::time::sleep(tick).await;
            match Mme::connect(target, MME).await {
                Ok(again) => mme = again,
                Err(error) => fared.error(error.to_string()),
            }
        }
    }
}

async fn send(mme: &mut Mme, open: &mut BTreeMap<u32, Instant>, number: &mut u32) -> anyhow::Result<()> {
    *number += 1;
    let request = ulr(MME, "001010000000001", *number)?;
    open.insert(*number, Instant::now());
    mme.stream.write_all(request.as_bytes()).await?;
    Ok(())
}
