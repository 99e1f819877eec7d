//! Messages between the workers: a request whose hop lives elsewhere, an answer whose origin does.

use std::rc::Rc;

use bytes::Bytes;
use diameter::Kept;
use diameter::proto::{CommandFlags, MessageMut};

use super::followed::Came;
use super::reports::ReceivedReport;
use super::{Core, Origin, Transit};
use crate::redirects::CachedRoute;

/// A message on its way to another worker.
#[derive(Debug)]
pub(crate) enum Packet {
    /// A request to be sent to this hop.
    Request {
        hop: u32,
        message: MessageMut,
        append: Bytes,
        transit: Transit,
    },
    /// A request to be sent once more, to this hop.
    Again {
        hop: u32,
        kept: Kept,
        flags: CommandFlags,
        transit: Transit,
    },
    /// What came of a request, for the applications that follow it.
    Back {
        kept: Kept,
        came: Came,
        transit: Transit,
    },
    /// An answer for a peer of that worker.
    Answer { origin: Origin, message: MessageMut },
    /// An overload report for every worker.
    Report(ReceivedReport),
    /// A route of a redirect indication for every worker.
    Redirect(CachedRoute),
}

/// Sends to the other workers.
pub(crate) type Post = worker::Post<Packet>;
/// Receives from the other workers.
pub(crate) type Mailbox = worker::Mailbox<Packet>;

impl Core {
    /// Sends the batches of each turn, until the worker ends.
    pub(crate) async fn deliver_post(self: Rc<Self>) {
        match self.post.deliver().await {}
    }

    /// Handles what other workers send, until the worker ends.
    pub(crate) async fn take_post(self: Rc<Self>, mut mailbox: Mailbox) {
        while let Some(batch) = mailbox.next().await {
            for node in self.nodes.borrow().iter() {
                node.refresh();
            }
            for packet in batch {
                match packet {
                    Packet::Request {
                        hop,
                        message,
                        append,
                        transit,
                    } => self.send(hop, message, &append, transit),
                    Packet::Again {
                        hop,
                        kept,
                        flags,
                        transit,
                    } => self.send_kept(hop, kept, flags, transit),
                    Packet::Back { kept, came, transit } => self.take_back(kept, came, transit),
                    Packet::Answer { origin, message } => self.deliver_here(origin, message),
                    Packet::Redirect(route) => self.learn_redirect(route),
                    Packet::Report(report) => self.learn_forwarded(&report),
                }
            }
        }
    }
}
