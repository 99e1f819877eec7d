//! Two peer machines, joined in memory by a network with latency, with a clock that is moved by hand.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::peer::{
    ApplicationId, Capabilities, DownReason, Health, Input, Machine, Output, PeerSettings, Side, State,
};
use diameter_proto::{Message, MessageMut};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const LATENCY: Duration = Duration::from_millis(10);

/// Events that a machine reported to its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reported {
    Up(Side, Vec<u32>, bool),
    Health(Health),
    Down(DownReason),
}

pub(crate) struct Node {
    pub(crate) machine: Machine,
    pub(crate) reported: Vec<Reported>,
    /// Whether connections to it succeed.
    pub(crate) listens: bool,
    /// The connection on each side.
    sides: [Option<usize>; 2],
}

/// A connection: who opened it, and whether each end (0 the opener's) is still there.
struct Link {
    opener: usize,
    alive: [bool; 2],
}

enum Event {
    Connected(usize),
    Refused(usize),
    Deliver(usize, usize, MessageMut),
    Gone(usize, usize),
}

pub(crate) struct World {
    pub(crate) now: Instant,
    start: Instant,
    pub(crate) nodes: [Node; 2],
    links: Vec<Link>,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    /// Messages are lost silently, as when a cable is cut.
    pub(crate) cut: bool,
    /// Commands delivered, with who got them.
    pub(crate) log: Vec<(usize, u32, bool)>,
}

pub(crate) fn capabilities(host: &str) -> Capabilities {
    Capabilities::new(host, "example").with_applications([ApplicationId::tgpp(16_777_251)])
}

impl World {
    pub(crate) fn new(nodes: [(Capabilities, PeerSettings); 2]) -> Self {
        let now = Instant::now();
        let mut seed = 0;
        let nodes = nodes.map(|(local, settings)| {
            seed += 1;
            Node {
                machine: Machine::new(Arc::new(local), settings, seed),
                reported: Vec::new(),
                listens: true,
                sides: [None; 2],
            }
        });
        let (links, events, log) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self {
            now,
            start: now,
            nodes,
            links,
            events,
            sequence: 0,
            cut: false,
            log,
        }
    }

    /// `a.example` and `b.example`, each initiating or not.
    pub(crate) fn pair(initiate: [bool; 2]) -> Self {
        let settings = |initiate| PeerSettings {
            initiate,
            ..PeerSettings::default()
        };
        Self::new([
            (capabilities("a.example"), settings(initiate[0])),
            (capabilities("b.example"), settings(initiate[1])),
        ])
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + after, self.sequence), event);
    }

    pub(crate) fn input(&mut self, who: usize, input: Input<'_>) {
        self.nodes[who].machine.handle(self.now, input);
        self.obey(who, None);
    }

    fn obey(&mut self, who: usize, incoming: Option<usize>) {
        while let Some(output) = self.nodes[who].machine.output() {
            match output {
                Output::Connect => {
                    let listens = self.nodes[1 - who].listens && !self.cut;
                    self.schedule(
                        LATENCY,
                        if listens {
                            Event::Connected(who)
                        } else {
                            Event::Refused(who)
                        },
                    );
                }
                Output::Accept => self.nodes[who].sides[1] = incoming,
                Output::Reject(answer) => {
                    let link = incoming.unwrap();
                    self.send(who, link, answer);
                    self.close(who, link);
                }
                Output::Send(side, message) => {
                    if let Some(link) = self.nodes[who].sides[side as usize] {
                        self.send(who, link, message);
                    }
                }
                Output::Close(side) => {
                    if let Some(link) = self.nodes[who].sides[side as usize].take() {
                        self.close(who, link);
                    }
                }
                Output::Up {
                    side, common, secure, ..
                } => {
                    self.nodes[who].reported.push(Reported::Up(side, common, secure));
                }
                Output::Health(health) => self.nodes[who].reported.push(Reported::Health(health)),
                Output::Down(reason) => self.nodes[who].reported.push(Reported::Down(reason)),
            }
        }
    }

    fn send(&mut self, who: usize, link: usize, message: MessageMut) {
        assert!(
            Message::parse(message.as_bytes()).is_ok(),
            "machines send whole messages"
        );
        if !self.cut {
            self.schedule(LATENCY, Event::Deliver(link, 1 - who, message));
        }
    }

    fn close(&mut self, who: usize, link: usize) {
        let end = usize::from(self.links[link].opener != who);
        self.links[link].alive[end] = false;
        if !self.cut {
            self.schedule(LATENCY, Event::Gone(link, 1 - who));
        }
    }

    /// Both ends see the connection of this side break.
    pub(crate) fn break_off(&mut self, who: usize, side: Side) {
        let link = self.nodes[who].sides[side as usize].expect("there is a connection to break");
        for node in [who, 1 - who] {
            self.schedule(Duration::ZERO, Event::Gone(link, node));
        }
    }

    /// The node loses its state and restarts; the other end of its connections gets no notice.
    pub(crate) fn restart(&mut self, who: usize, local: Capabilities, settings: PeerSettings) {
        for link in self.nodes[who].sides.into_iter().flatten() {
            let end = usize::from(self.links[link].opener != who);
            self.links[link].alive[end] = false;
        }
        let machine = Machine::new(Arc::new(local), settings, 99);
        self.nodes[who] = Node {
            machine,
            reported: Vec::new(),
            listens: true,
            sides: [None; 2],
        };
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Connected(who) => {
                self.links.push(Link {
                    opener: who,
                    alive: [true, true],
                });
                let link = self.links.len() - 1;
                self.nodes[who].sides[0] = Some(link);
                self.input(who, Input::Connected { local: LOCAL });
                if self.nodes[who].sides[0] != Some(link) || self.nodes[who].machine.state() == State::Closed
                {
                    self.nodes[who].sides[0] = None;
                    self.close(who, link);
                }
            }
            Event::Refused(who) => self.input(who, Input::ConnectFailed),
            Event::Deliver(link, to, message) => self.deliver(link, to, &message),
            Event::Gone(link, node) => {
                let end = usize::from(self.links[link].opener != node);
                if !std::mem::replace(&mut self.links[link].alive[end], false) {
                    return;
                }
                for side in [Side::Initiator, Side::Responder] {
                    if self.nodes[node].sides[side as usize] == Some(link) {
                        self.nodes[node].sides[side as usize] = None;
                        self.input(node, Input::Disconnected(side));
                    }
                }
            }
        }
    }

    fn deliver(&mut self, link: usize, to: usize, message: &MessageMut) {
        let end = usize::from(self.links[link].opener != to);
        if !self.links[link].alive[end] {
            return;
        }
        self.log.push((to, message.command(), message.is_request()));
        let side = if end == 0 {
            Side::Initiator
        } else {
            Side::Responder
        };
        if self.nodes[to].sides[side as usize] == Some(link) {
            self.input(to, Input::Received(side, message.view()));
        } else if side == Side::Responder {
            let remote = Capabilities::read(message).unwrap();
            self.nodes[to].machine.handle(
                self.now,
                Input::ConnectedBy {
                    cer: message.view(),
                    remote,
                    local: LOCAL,
                    same_address: true,
                },
            );
            self.obey(to, Some(link));
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let timer = self.nodes.iter().filter_map(|node| node.machine.deadline()).min();
            let Some(next) = [event, timer]
                .into_iter()
                .flatten()
                .min()
                .filter(|&next| next <= until)
            else {
                break;
            };
            self.now = self.now.max(next);
            if event == Some(next) {
                let (_, event) = self.events.pop_first().unwrap();
                self.happen(event);
            } else {
                for who in 0..2 {
                    if self.nodes[who]
                        .machine
                        .deadline()
                        .is_some_and(|due| due <= self.now)
                    {
                        self.input(who, Input::Timer);
                    }
                }
            }
        }
        self.now = until;
    }

    pub(crate) fn states(&self) -> [State; 2] {
        [self.nodes[0].machine.state(), self.nodes[1].machine.state()]
    }

    pub(crate) fn count(&self, to: usize, command: u32, request: bool) -> usize {
        self.log
            .iter()
            .filter(|entry| **entry == (to, command, request))
            .count()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.now - self.start
    }
}
