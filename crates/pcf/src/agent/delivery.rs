//! Delivers requests of ours, and takes their answers.

use std::rc::Rc;
use std::time::Instant;

use diameter::endpoint::{Endpoint, RequestError, SendOptions, To};
use diameter::proto::Message;

use super::Agent;
use crate::activity::{of_diameter, trail};
use crate::change::af_notices;
use crate::events::Event;
use crate::gx;
use crate::orders::{Order, Queued, Receiver, Then};
use crate::pds;
use crate::sd;
use crate::worker::Front;

/// Sends the requests of a worker until it ends, each in a task of its own.
pub(super) async fn deliver(node: Endpoint<Agent>, mut orders: Receiver, front: Rc<Front>) {
    while let Some(Queued { order, mark, scope }) = orders.recv().await {
        let sent = trail::resume(mark, send(node.clone(), order, front.clone()));
        match scope {
            None => tokio::task::spawn_local(sent),
            Some(scope) => tokio::task::spawn_local(scope.around(Box::pin(sent))),
        };
    }
}

/// Sends a request over a connection of this worker; without one, the request goes to the next worker. The first round is for
/// the peer itself, the second for any that serves the application, such as an agent.
async fn send(node: Endpoint<Agent>, order: Order, front: Rc<Front>) {
    let worker = front.worker();
    let options = SendOptions {
        deadline: order.timeout,
        failover: false,
    };
    let rounds = match order.peer {
        Some(_) => 2,
        None => 1,
    };
    let to = match &order.peer {
        Some(peer) if order.tried < worker.workers() => To::Peer(peer),
        _ => To::Routed,
    };
    let spare = order.message.clone();
    let peer = order.peer.clone().unwrap_or_default();
    let out = trail::is_traced().then(|| of_diameter("out", &peer, &order.message));
    let request = (order.message.application(), order.message.command());
    let began = Instant::now();
    let answer = match node.request(to, order.message, options).await {
        Err(error) if error.is_unsent() && order.tried + 1 < rounds * worker.workers() => {
            let next = Order {
                message: spare,
                tried: order.tried + 1,
                ..order
            };
            if !worker.orders().send(front.seat().context.index + 1, next) {
                worker.count(Event::DiameterDropped);
            }
            return;
        }
        answer => answer,
    };
    worker.latencies().sent(request, began);
    if let Some(out) = out {
        trail::note(|| out);
    }
    if let Ok(answer) = &answer {
        trail::note(|| of_diameter("in", &peer, answer));
    }
    take(&front, order.then, answer).await;
}

async fn take(front: &Rc<Front>, then: Then, answer: Result<Message, RequestError>) {
    let worker = front.worker();
    match &answer {
        Ok(_) => worker.count(Event::DiameterAnswered),
        Err(error) => {
            tracing::debug!(%error, "a Diameter request has no answer");
            worker.count(Event::DiameterUnanswered);
        }
    }
    match then {
        Then::Gx(push) => gx::re_auth_answered(&worker, push, answer.ok().as_ref()).await,
        Then::Sd(sent) => sd::answered(&worker, sent, answer.ok().as_ref()).await,
        Then::Rx(record) => af_notices::answered(&worker, record, answer.ok().as_ref()).await,
        Then::SyEnd => pds::sy_ended(&worker, answer.ok().as_ref()),
        // Without an answer the sender sees the end of the channel.
        Then::Reply(sender) => drop(answer.map(|answer| sender.send(answer))),
    }
}
