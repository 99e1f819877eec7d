//! The mailbox of a link: any worker puts frames into it, the worker that has the association takes them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// A message of M3UA or M2PA.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) octets: Vec<u8>,
    /// The link selection of DATA, which decides the stream.
    pub(crate) sls: u8,
    /// Whether it carries an MSU.
    pub(crate) is_data: bool,
}

impl Frame {
    /// Of management.
    pub(crate) fn management(octets: Vec<u8>) -> Self {
        Self {
            octets,
            sls: 0,
            is_data: false,
        }
    }

    /// Of DATA.
    pub(crate) fn data(octets: Vec<u8>, sls: u8) -> Self {
        Self {
            octets,
            sls,
            is_data: true,
        }
    }

    /// Whether it is a message of M2PA: its class (RFC 4165 §2.1).
    pub(crate) fn is_m2pa(&self) -> bool {
        self.octets.get(2) == Some(&11)
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

impl AsMut<[u8]> for Frame {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }
}

/// Room for management messages behind DATA: acknowledgements, NTFY, DUNA and DAVA must reach a peer that reads slowly.
const MANAGEMENT: usize = 4_096;

/// What became of a frame that was put into a mailbox.
pub(crate) enum Put {
    /// With the congestion level of the queue, 0 to 2.
    Taken(u8),
    /// The queue is full.
    Full,
    /// No link takes it now.
    Pending,
    /// It was decided by a state in which the link carried what it does not carry any more.
    Stale(Frame),
}

/// A bounded queue whose receiver passes from association to association.
pub(crate) struct Mailbox {
    sender: Sender<Frame>,
    /// Bound on the frames before one of DATA.
    most: usize,
    receiver: Mutex<Option<Receiver<Frame>>>,
    /// Of a link of M2PA: the oldest state by which frames are taken; none while the link carries nothing. A worker may put a
    /// frame long after it has decided on it, when the queue was drained for a changeover or changeback.
    gate: Option<RwLock<Option<u64>>>,
    /// How many peers have asked for the receiver.
    newest: AtomicU64,
    /// Asks the association to end, because its peer has connected again.
    replaced: Notify,
    /// MSUs of other links and those that were held, before what is queued.
    diverted: Mutex<Vec<Frame>>,
    /// Whether the peer has ordered a changeover: the association has to end.
    is_ordered: AtomicBool,
    /// One of the two is new.
    pub(crate) attention: Notify,
    /// The receiver is back.
    pub(crate) released: Notify,
}

impl Mailbox {
    pub(super) fn new(most: usize, is_gated: bool) -> Self {
        let most = most.max(16);
        let (sender, receiver) = channel(most + MANAGEMENT);
        Self {
            sender,
            most,
            newest: AtomicU64::new(0),
            receiver: Mutex::new(Some(receiver)),
            gate: is_gated.then(|| RwLock::new(None)),
            diverted: Mutex::default(),
            is_ordered: AtomicBool::new(false),
            attention: Notify::new(),
            replaced: Notify::new(),
            released: Notify::new(),
        }
    }

    /// Puts a frame of DATA at the end, which was decided by a state.
    pub(crate) fn put(&self, frame: Frame, state: u64) -> Put {
        // Held until the frame is in the queue: who closes the gate drains the queue then.
        let gate = self.gate.as_ref().map(RwLock::read);
        if gate
            .as_deref()
            .is_some_and(|gate| gate.is_none_or(|oldest| state < oldest))
        {
            return Put::Stale(frame);
        }
        let queued = self.queued();
        if queued < self.most && self.sender.try_send(frame).is_ok() {
            Put::Taken(self.level(queued))
        } else {
            Put::Full
        }
    }

    /// The congestion level (Q.704 §3.8.2): from half of the queue on 1, from three quarters on 2. Level 3 is a full queue.
    const fn level(&self, queued: usize) -> u8 {
        match queued.saturating_mul(4) / self.most {
            0 | 1 => 0,
            2 => 1,
            _ => 2,
        }
    }

    /// Puts a frame before those that are queued, behind other such frames.
    pub(crate) fn put_diverted(&self, frame: Frame) {
        self.diverted.lock().push(frame);
        self.attention.notify_one();
    }

    /// Takes what was put before the queue.
    pub(crate) fn take_diverted(&self) -> Vec<Frame> {
        std::mem::take(&mut self.diverted.lock())
    }

    /// Asks the association to end.
    pub(crate) fn order(&self) {
        self.is_ordered.store(true, Ordering::Relaxed);
        self.attention.notify_one();
    }

    /// Whether the association has to end; the next one has not.
    pub(crate) fn take_order(&self) -> bool {
        self.is_ordered.swap(false, Ordering::Relaxed)
    }

    /// From now on frames of states since this one are taken.
    pub(crate) fn open(&self, state: u64) {
        if let Some(gate) = &self.gate {
            *gate.write() = Some(state);
        }
    }

    /// As [`Self::open`], unless the mailbox is closed.
    pub(crate) fn advance(&self, state: u64) {
        if let Some(gate) = &self.gate {
            let mut gate = gate.write();
            *gate = gate.map(|oldest| oldest.max(state));
        }
    }

    /// Takes no frames of DATA from now on.
    pub(crate) fn close(&self) {
        if let Some(gate) = &self.gate {
            *gate.write() = None;
        }
    }

    /// Puts a frame of management at the end, which has room of its own; `false` when that is full, too.
    pub(crate) fn put_management(&self, octets: Vec<u8>) -> bool {
        self.sender.try_send(Frame::management(octets)).is_ok()
    }

    /// Whether management has room.
    pub(crate) fn has_room(&self) -> bool {
        self.sender.capacity() > 0
    }

    /// A number for a peer that wants the receiver: the greatest is that of the peer that has connected last.
    pub(crate) fn ask(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether no peer has connected since this one asked.
    pub(crate) fn is_newest(&self, number: u64) -> bool {
        self.newest.load(Ordering::Relaxed) == number
    }

    /// Asks the association that has the receiver to end.
    pub(crate) fn replace(&self) {
        self.replaced.notify_one();
    }

    /// Waits until a peer asks for the receiver that the association with a number has.
    pub(crate) async fn replaced(&self, number: u64) {
        loop {
            self.replaced.notified().await;
            // The request may have been for the association before, which had ended by itself.
            if !self.is_newest(number) {
                return;
            }
        }
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn management_has_room_behind_data() {
        let mailbox = Mailbox::new(16, false);
        let data = || Frame::data(vec![0; 8], 0);
        let taken = (0..20)
            .filter_map(|_| match mailbox.put(data(), 0) {
                Put::Taken(level) => Some(level),
                _ => None,
            })
            .collect::<Vec<u8>>();
        assert_eq!(taken, [[0; 8], [1, 1, 1, 1, 2, 2, 2, 2]].concat());
        assert!(mailbox.put_management(vec![1]));
        let mut receiver = mailbox.receiver.lock().take().unwrap();
        let last = std::iter::from_fn(|| receiver.try_recv().ok()).last().unwrap();
        assert_eq!(last.octets, [1]);
    }

    #[test]
    fn a_queue_that_was_drained_refuses_what_was_decided_before() {
        let mailbox = Mailbox::new(16, true);
        let data = || Frame::data(vec![0; 20], 0);
        let is_stale = |state| matches!(mailbox.put(data(), state), Put::Stale(_));
        assert!(is_stale(9));
        mailbox.advance(1);
        assert!(is_stale(9));
        mailbox.open(5);
        assert!(is_stale(4) && !is_stale(5) && !is_stale(6));
        mailbox.advance(7);
        assert!(is_stale(6) && !is_stale(7));
        mailbox.close();
        assert!(is_stale(7));
    }

    #[test]
    fn the_peer_that_asked_last_is_the_newest() {
        let mailbox = Mailbox::new(16, false);
        let (one, two) = (mailbox.ask(), mailbox.ask());
        assert!(!mailbox.is_newest(one) && mailbox.is_newest(two));
    }

    /// An association that ends by itself leaves the request for it to the next one.
    #[test]
    fn a_request_for_the_association_before_ends_none_behind_it() {
        let mailbox = Mailbox::new(16, false);
        mailbox.ask();
        let receiver = mailbox.take().unwrap();
        let second = mailbox.ask();
        mailbox.replace();
        mailbox.give_back(receiver);
        assert!(mailbox.take().is_some());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            let stale = tokio::time::timeout(Duration::from_millis(1), mailbox.replaced(second));
            assert!(stale.await.is_err());
            mailbox.ask();
            mailbox.replace();
            mailbox.replaced(second).await;
        });
    }
}
