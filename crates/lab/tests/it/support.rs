//! What several tests need.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::loadgen::{Answer, Draft, Fault, Generator, Interest, Plan, Record, Ticket, Traffic, Workload};
use lab::sim::{Handle, Server, Settings};
use rand::rngs::SmallRng;

/// A simulator on a thread of this process.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    pub(crate) fn start(settings: &Settings) -> Self {
        let server = Server::bind(settings).unwrap();
        let (address, handle) = (server.addresses()[0], server.handle());
        let thread = std::thread::spawn(move || server.run().unwrap());
        Self {
            address,
            handle,
            thread: Some(thread),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Posts a few bytes, and wants this status.
pub(crate) struct Posts(pub(crate) u16);

impl Workload for Posts {
    fn operations(&self) -> Vec<String> {
        vec!["post".to_owned()]
    }
    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("user-agent", "AMF-lab".to_owned())]
    }
    fn next(&mut self, _random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        draft.method = "POST";
        draft.path.extend_from_slice(b"/notify/1");
        draft.content_type = Some("application/json");
        draft.body = (&b"{}"[..]).into();
        Ticket::default()
    }
    fn interest(&mut self, _ticket: &Ticket, _status: u16, _length: Option<u64>) -> Interest {
        Interest::Skip
    }
    fn judge(&mut self, _ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        if answer.status == self.0 {
            Ok(())
        } else {
            Err(Fault::Status)
        }
    }
}

/// Sends at this rate until this many requests were offered, then waits until none is without an answer.
pub(crate) fn load(plan: &Plan, workload: impl Workload + 'static, tps: f64, offered: u64) -> Record {
    load_traffic(plan, Box::new(workload), tps, offered)
}

/// As [`load`], in any protocol.
pub(crate) fn load_traffic(plan: &Plan, traffic: impl Into<Traffic>, tps: f64, offered: u64) -> Record {
    let generator = Generator::start(plan, vec![traffic]).unwrap();
    let mut record = Record::default();
    generator.set(0.0, 1);
    // Connections first, so that nothing is refused for want of one.
    std::thread::sleep(Duration::from_millis(200));
    generator.set(tps, 2);
    let patience = Instant::now() + Duration::from_secs(60);
    let mut stopped = false;
    loop {
        for snapshot in generator.snapshots(Duration::from_millis(50)) {
            record.merge(&snapshot.record);
        }
        let total = record.total();
        if total.offered >= offered && !stopped {
            generator.set(0.0, 2);
            stopped = true;
        }
        if stopped && total.offered == total.succeeded + total.failures() {
            generator
                .stop()
                .unwrap()
                .iter()
                .for_each(|rest| record.merge(&rest.record));
            return record;
        }
        assert!(
            Instant::now() < patience,
            "the load does not end: {} offered",
            total.offered
        );
    }
}

pub(crate) fn plan(peer: SocketAddr) -> Plan {
    Plan {
        targets: vec![peer],
        authority: peer.to_string(),
        connections: 2,
        timeout: Duration::from_secs(20),
        max_in_flight: 100_000,
        arrivals: lab::loadgen::Arrivals::Constant,
        seed: 1,
        cpus: Vec::new(),
        tick: lab::loadgen::TICK,
        tls: None,
        sources: Vec::new(),
    }
}
