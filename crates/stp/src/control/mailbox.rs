//! The mailbox of a link: any worker puts frames into it, the worker that has the association takes them.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// An M3UA message.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) octets: Vec<u8>,
    /// The link selection of DATA, which decides the stream.
    pub(crate) sls: u8,
    /// Whether it carries an MSU.
    pub(crate) is_data: bool,
}

/// Room for management messages behind DATA: acknowledgements, NTFY, DUNA and DAVA must reach a peer that reads slowly.
const MANAGEMENT: usize = 4_096;

/// A bounded queue whose receiver passes from association to association.
pub(crate) struct Mailbox {
    sender: Sender<Frame>,
    /// Bound on the frames before one of DATA.
    most: usize,
    receiver: Mutex<Option<Receiver<Frame>>>,
    /// How many peers have asked for the receiver.
    newest: AtomicU64,
    /// Asks the association to end, because its peer has connected again.
    pub(crate) replaced: Notify,
    /// The receiver is back.
    pub(crate) released: Notify,
}

impl Mailbox {
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(16);
        let (sender, receiver) = channel(most + MANAGEMENT);
        Self {
            sender,
            most,
            newest: AtomicU64::new(0),
            receiver: Mutex::new(Some(receiver)),
            replaced: Notify::new(),
            released: Notify::new(),
        }
    }

    /// Puts a frame of DATA at the end; `false` when the queue is full.
    pub(crate) fn put(&self, frame: Frame) -> bool {
        self.queued() < self.most && self.sender.try_send(frame).is_ok()
    }

    /// Puts a frame of management at the end, which has room of its own; `false` when that is full, too.
    pub(crate) fn put_management(&self, octets: Vec<u8>) -> bool {
        self.sender
            .try_send(Frame {
                octets,
                sls: 0,
                is_data: false,
            })
            .is_ok()
    }

    /// A number for a peer that wants the receiver: the greatest is that of the peer that has connected last.
    pub(crate) fn ask(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether no peer has connected since this one asked.
    pub(crate) fn is_newest(&self, number: u64) -> bool {
        self.newest.load(Ordering::Relaxed) == number
    }

    pub(crate) fn queued(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Takes the receiver, for an association.
    pub(crate) fn take(&self) -> Option<Receiver<Frame>> {
        self.receiver.lock().take()
    }

    /// Gives the receiver back.
    pub(crate) fn give_back(&self, receiver: Receiver<Frame>) {
        *self.receiver.lock() = Some(receiver);
        self.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn management_has_room_behind_data() {
        let mailbox = Mailbox::new(16);
        let data = || Frame {
            octets: vec![0; 8],
            sls: 0,
            is_data: true,
        };
        let taken = (0..20).filter(|_| mailbox.put(data())).count();
        assert_eq!(taken, 16);
        assert!(mailbox.put_management(vec![1]));
        let mut receiver = mailbox.receiver.lock().take().unwrap();
        let last = std::iter::from_fn(|| receiver.try_recv().ok()).last().unwrap();
        assert_eq!(last.octets, [1]);
    }

    #[test]
    fn the_peer_that_asked_last_is_the_newest() {
        let mailbox = Mailbox::new(16);
        let (one, two) = (mailbox.ask(), mailbox.ask());
        assert!(!mailbox.is_newest(one) && mailbox.is_newest(two));
    }
}
