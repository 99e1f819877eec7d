//! Delivers requests of ours, and takes their answers.

use std::rc::Rc;

use diameter::endpoint::{Endpoint, RequestError, SendOptions, To};
use diameter::proto::Message;

use super::Agent;
use crate::events::Event;
use crate::gx;
use crate::orders::{Order, Receiver, Then};
use crate::worker::Front;

/// Sends the requests of a worker until it ends, each in a task of its own.
pub(super) async fn deliver(node: Endpoint<Agent>, mut orders: Receiver, front: Rc<Front>) {
    while let Some(order) = orders.recv().await {
        tokio::task::spawn_local(send(node.clone(), order, front.clone()));
    }
}

async fn send(node: Endpoint<Agent>, order: Order, front: Rc<Front>) {
    let worker = front.worker();
    let options = SendOptions {
        deadline: worker.config().diameter.timeout.duration(),
        failover: false,
    };
    let Order {
        peer,
        message,
        then,
        tried,
    } = order;
    let spare = message.clone();
    let answer = match node.request(To::Peer(&peer), message, options).await {
        Err(error) if error.is_unsent() => {
            let next = Order {
                peer,
                message: spare,
                then,
                tried: tried + 1,
            };
            return elsewhere(&node, next, options, &front).await;
        }
        answer => answer,
    };
    take(&front, then, answer).await;
}

/// Another worker may be connected to the peer; where none is, any peer that serves the application is an agent.
async fn elsewhere(node: &Endpoint<Agent>, order: Order, options: SendOptions, front: &Rc<Front>) {
    let (worker, index) = (front.worker(), front.seat().context.index);
    if order.tried < worker.workers() {
        if !worker.orders().send(index + 1, order) {
            worker.count(Event::DiameterDropped);
        }
        return;
    }
    let then = order.then;
    let answer = node.request(To::Routed, order.message, options).await;
    take(front, then, answer).await;
}

async fn take(front: &Rc<Front>, then: Then, answer: Result<Message, RequestError>) {
    let worker = front.worker();
    match (&answer, then) {
        (Ok(_), _) => worker.count(Event::DiameterAnswered),
        (Err(error), _) => {
            tracing::debug!(%error, ?then, "a Diameter request has no answer");
            worker.count(Event::DiameterUnanswered);
        }
    }
    if let Then::Gx(id) = then {
        gx::re_auth_answered(&worker, id, answer.ok().as_ref()).await;
    }
}
