//! Queries over UDP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Instant;

use socket2::{Domain, Protocol, Socket, Type};

use super::Desk;
use super::batch::{Inbox, Outbox};
use super::rate::{Limiter, Verdict};
use crate::message::Transport;
use crate::metrics::Outcome;

/// Batches in a row before connections get their turn.
const BATCHES: usize = 2;
/// Octets that the system queues for a socket: some thousand queries that come at once.
const QUEUE: usize = 4 << 20;

/// Binds a socket at an address that other workers bind, too: the system spreads clients between them.
///
/// # Errors
/// When the system refuses.
pub(crate) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // As much as the system allows.
    let _ = socket.set_recv_buffer_size(QUEUE);
    if address.is_ipv6() {
        // As the listeners of TCP: `[::]` takes both families.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Answers until the task is aborted.
pub(crate) async fn serve(socket: tokio::net::UdpSocket, desk: Rc<Desk>) {
    let mut limiter = Limiter::new(Instant::now());
    let (mut inbox, mut outbox) = (Inbox::new(), Outbox::default());
    loop {
        if let Err(error) = socket.readable().await {
            tracing::warn!(%error, "UDP socket not readable");
            return;
        }
        for _ in 0..BATCHES {
            let received = inbox.receive(&socket, |datagram, client| {
                handle(&mut outbox, &desk, &mut limiter, datagram, client);
            });
            desk.meters.unsent.add(outbox.send(&socket) as u64);
            match received {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // What became of an answer before: the client's port is closed.
                Err(error) => tracing::debug!(%error, "datagram not received"),
            }
        }
        tokio::task::yield_now().await;
    }
}

fn handle(outbox: &mut Outbox, desk: &Desk, limiter: &mut Limiter, datagram: &[u8], client: SocketAddr) {
    let send = |answer: &[u8]| {
        if !answer.is_empty() {
            outbox.push(answer, client);
        }
    };
    if !may_answer(client.port()) {
        return desk.meters.count(Outcome::Dropped);
    }
    let rate = desk.live.load().config.rate.clone();
    match limiter.judge(&rate, client.ip(), Instant::now()) {
        Verdict::Answer => desk.answer(datagram, client, Transport::Udp, send),
        Verdict::Slip => {
            desk.slip(datagram, send);
        }
        Verdict::Drop => desk.meters.count(Outcome::Limited),
    }
}

/// Whether an answer to a port ends there. It would go nowhere (0), or to a service that answers whatever it gets, and is answered in
/// turn, for ever: echo, daytime, quote of the day, chargen, time (RFC 862 to RFC 868). Who forges source addresses names such ports.
const fn may_answer(port: u16) -> bool {
    !matches!(port, 0 | 7 | 13 | 17 | 19 | 37)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_that_answer_everything_get_no_answer() {
        let refused = (0..=u16::MAX).filter(|port| !may_answer(*port));
        assert_eq!(refused.collect::<Vec<u16>>(), [0, 7, 13, 17, 19, 37]);
    }
}
