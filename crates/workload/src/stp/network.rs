//! The nodes around an STP, their numbers, and the files by which the STP knows who serves them.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use callmodel::stp::{Drill, Mix, StpModel};
use ss7_proto::PointCode;

/// The point code of the STP.
pub const OWN: PointCode = PointCode(1);
/// The point codes of two mated STPs (drill `loseMate`), for which [`OWN`] is the capability point code that they share.
pub const MATES: [PointCode; 2] = [PointCode(3), PointCode(4)];
/// What the routing number of the other network begins with: the number follows.
pub(super) const ROUTING_NUMBER: &str = "990";
/// What calling titles begin with that screening refuses.
pub const SCREENED_CALLING: &str = "4398";
/// What titles begin with that are translated.
pub const TITLES: &str = "43660";
/// Digits of the number of a node, of a subscriber.
const OWN_DIGITS: usize = 7;
/// The first point codes of the kinds of nodes.
const MSCS: u32 = 0x100;
const SERVERS: u32 = 0x800;
const GATEWAYS: u32 = 0x1000;
const CONTROL_POINTS: u32 = 0x1001;
/// The subsystem of CAP (TS 23.003 §8.2).
pub const CAP: u8 = 146;
/// The title of the STP as a service control point, and the group of translations that leads to it.
pub(super) const OWN_TITLE: &str = "4367000";
/// See [`OWN_TITLE`].
pub const OWN_GROUP: &str = "own";
/// Nodes for which an octet of their addresses stands.
const NODES_OF_OCTET: u32 = 200;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// MSC and VLR.
    Msc,
    /// HLR.
    Hlr,
    /// Short message service centre.
    Smsc,
    /// The STP and exchange of the network that numbers were ported to.
    Gateway,
    /// The service control point of prepaid subscribers.
    Scp,
}

/// The one node of the other network.
pub(super) const GATEWAY: Party = Party {
    role: Role::Gateway,
    number: 0,
};

/// The one service control point.
pub(super) const SCP: Party = Party {
    role: Role::Scp,
    number: 0,
};

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// What it is.
    pub role: Role,
    /// Its number: MSCs from 0 on; HLRs from 0 on, and SMSCs behind them.
    pub number: u16,
}

impl Party {
    /// Its name, as in the settings of the STP.
    #[must_use]
    pub fn name(self) -> String {
        let Self { role, number } = self;
        match role {
            Role::Msc => format!("msc{number:03}"),
            Role::Hlr => format!("hlr{number:03}"),
            Role::Smsc => format!("smsc{number:03}"),
            Role::Gateway => format!("gateway{number:03}"),
            Role::Scp => format!("scp{number:03}"),
        }
    }

    /// Its point code.
    #[must_use]
    pub fn point_code(self) -> PointCode {
        let first = match self.role {
            Role::Msc => MSCS,
            Role::Hlr | Role::Smsc => SERVERS,
            Role::Gateway => GATEWAYS,
            Role::Scp => CONTROL_POINTS,
        };
        PointCode(first + u32::from(self.number))
    }

    /// Its subsystem.
    #[must_use]
    pub const fn subsystem(self) -> u8 {
        match self.role {
            Role::Msc | Role::Smsc => 8,
            Role::Hlr | Role::Gateway => 6,
            Role::Scp => CAP,
        }
    }

    /// Routing context of its application server: its point code.
    #[must_use]
    pub fn routing_context(self) -> u32 {
        self.point_code().0
    }

    /// The loopback address that it connects from.
    #[must_use]
    pub fn address(self) -> IpAddr {
        loopback(self.point_code())
    }
}

/// The loopback address of a node.
pub(super) fn loopback(PointCode(number): PointCode) -> IpAddr {
    let [_, _, high, low] = (number / NODES_OF_OCTET * 0x100 + number % NODES_OF_OCTET + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, 4, high, low))
}

/// By how many nodes translations were moved since the start, over all generator threads.
#[derive(Clone, Debug, Default)]
pub struct Shift(Arc<AtomicU32>);

impl Shift {
    /// Messages may go to the node of before and to the next one.
    pub fn begin(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    /// What is sent from now on goes to the next one.
    pub fn complete(&self) {
        self.0.store(2, Ordering::Relaxed);
    }

    pub(super) fn phase(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The part of a generator thread: nodes are dealt to the threads in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which thread.
    pub thread: u16,
    /// Of how many.
    pub threads: u16,
}

impl Share {
    fn has(self, number: u16) -> bool {
        number % self.threads.max(1) == self.thread
    }
}

/// The network of a model.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) model: StpModel,
    mscs: u16,
    pub(super) shift: Shift,
}

impl Network {
    /// With this number of MSCs.
    #[must_use]
    pub fn new(model: &StpModel, mscs: u16) -> Self {
        Self {
            model: model.clone(),
            mscs,
            shift: Shift::default(),
        }
    }

    /// Whether an STP that translates has a point code.
    pub(super) fn translates_at(&self, code: PointCode) -> bool {
        match self.model.drill {
            Some(Drill::LoseMate) => MATES.contains(&code),
            _ => code == OWN,
        }
    }

    /// By how many nodes translations were moved.
    #[must_use]
    pub const fn shift(&self) -> &Shift {
        &self.shift
    }

    /// MSCs.
    pub fn mscs(&self) -> impl Iterator<Item = Party> {
        (0..self.mscs).map(|number| Party {
            role: Role::Msc,
            number,
        })
    }

    /// HLRs and SMSCs.
    pub fn servers(&self) -> impl Iterator<Item = Party> {
        (0..self.model.nodes()).map(|number| self.server(number))
    }

    /// All nodes.
    pub fn parties(&self) -> impl Iterator<Item = Party> {
        let gateway = self.has_gateway().then_some(GATEWAY);
        let scp = self.has_control_point().then_some(SCP);
        let others = gateway.into_iter().chain(scp);
        self.mscs().chain(self.servers()).chain(others)
    }

    /// The nodes of a generator thread.
    #[must_use]
    pub fn parties_of(&self, share: Share) -> Vec<Party> {
        self.parties().filter(|one| share.has(one.number)).collect()
    }

    /// Whether messages or calls leave for the other network.
    #[must_use]
    pub fn has_gateway(&self) -> bool {
        let Mix {
            ported_messages,
            calls,
            ..
        } = self.model.mix;
        ported_messages.percent() + calls.percent() > 0.0
    }

    /// Whether calls of prepaid subscribers are relayed.
    #[must_use]
    pub fn has_control_point(&self) -> bool {
        self.model.mix.prepaid.percent() > 0.0
    }

    /// Whether InitialDP or IAM are among the messages.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        let Mix { queries, calls, .. } = self.model.mix;
        queries.percent() + calls.percent() > 0.0 || self.has_control_point()
    }

    fn server(&self, number: u16) -> Party {
        let role = if number < self.model.hlrs {
            Role::Hlr
        } else {
            Role::Smsc
        };
        Party { role, number }
    }

    /// The node that a title is translated to, with translations moved by this number of nodes.
    pub(super) fn server_of(&self, title: u32, moved: u32) -> Party {
        let nodes = u32::from(self.model.nodes().max(1));
        self.server((title.wrapping_add(moved) % nodes) as u16)
    }

    /// The HLR of a number of the number services.
    pub(super) fn hlr_of(&self, number: u32) -> Party {
        self.server((number % u32::from(self.model.hlrs.max(1))) as u16)
    }

    /// Writes the translations as the STP reads them, moved by this number of nodes.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_translations(&self, moved: u32, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "digits,group,routing,subsystem")?;
        for title in 0..self.model.translations {
            let server = self.server_of(title, moved);
            let (name, subsystem) = (server.name(), server.subsystem());
            writeln!(out, "{},{name},subsystem,{subsystem}", title_digits(title))?;
        }
        if self.has_gateway() {
            writeln!(out, "{ROUTING_NUMBER},{},title,", GATEWAY.name())?;
        }
        if self.has_control_point() {
            writeln!(out, "{OWN_TITLE},{OWN_GROUP},title,")?;
        }
        out.flush()
    }

    /// Writes the numbers of the number services as `signalbox numbers import` reads them.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_numbers(&self, out: &mut impl Write) -> io::Result<()> {
        let control_point = self.has_control_point().then(|| format!(",scp={}", SCP.name()));
        let prepaid = control_point.unwrap_or_default();
        for number in 0..self.model.numbers {
            let group = self.hlr_of(number).name();
            writeln!(out, "msisdn,{},hlr={group}{prepaid}", home_digits(number))?;
            writeln!(out, "imsi,{},hlr={group}", imsi_digits(number))?;
            let ported = ported_digits(number);
            writeln!(out, "msisdn,{ported},rn={ROUTING_NUMBER},network=23205")?;
        }
        out.flush()
    }
}

/// A title that is translated.
pub(super) fn title_digits(title: u32) -> String {
    format!("{TITLES}{title:0OWN_DIGITS$}")
}

/// A number of this network.
pub(super) fn home_digits(number: u32) -> String {
    format!("43664{number:0OWN_DIGITS$}")
}

/// A number that was ported to another network.
pub(super) fn ported_digits(number: u32) -> String {
    format!("43676{number:0OWN_DIGITS$}")
}

/// A number of this network that is not allocated.
pub(super) fn free_digits(number: u32) -> String {
    format!("43665{number:0OWN_DIGITS$}")
}

/// An IMSI of this network.
pub(super) fn imsi_digits(number: u32) -> String {
    format!("23210{number:010}")
}

/// The title of an MSC; one that screening refuses.
pub(super) fn msc_digits(msc: Party, screened: bool) -> String {
    let first = if screened { SCREENED_CALLING } else { "4399" };
    format!("{first}{:0OWN_DIGITS$}", msc.number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use settings::Percent;

    fn model(hlrs: u16, smscs: u16) -> StpModel {
        StpModel {
            mps: 100.0,
            mix: Mix {
                ported_messages: Percent::new(100.0),
                ..Mix::default()
            },
            message_bytes: 200,
            hlrs,
            smscs,
            translations: 6,
            numbers: 2,
            screening_rules: 0,
            equipment: None,
            drill: None,
        }
    }

    #[test]
    fn nodes_have_addresses_and_point_codes_of_their_own() {
        let network = Network::new(&model(600, 399), 999);
        let all: Vec<Party> = network.parties().collect();
        assert_eq!(all.len(), 999 + 999 + 1);
        let codes: HashSet<u32> = all.iter().map(|one| one.point_code().0).collect();
        let addresses: HashSet<IpAddr> = all.iter().map(|one| one.address()).collect();
        assert_eq!((codes.len(), addresses.len()), (all.len(), all.len()));
        // 14 bits (Q.708).
        assert!(codes.iter().all(|code| *code < 1 << 14 && *code != OWN.0));
        // Each node belongs to one thread.
        let shares = (0..3).map(|thread| Share { thread, threads: 3 });
        let dealt: usize = shares.map(|share| network.parties_of(share).len()).sum();
        assert_eq!(dealt, all.len());
    }

    #[test]
    fn files_say_who_serves_what() {
        let network = Network::new(&model(1, 1), 1);
        let mut text = Vec::new();
        network.write_translations(1, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with("digits,group,routing,subsystem\n436600000000,smsc001,subsystem,8\n436600000001,hlr000,subsystem,6\n"),
            "{text}"
        );
        assert!(text.ends_with("990,gateway000,title,\n"), "{text}");
        let mut text = Vec::new();
        network.write_numbers(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let last = "imsi,232100000000001,hlr=hlr000\nmsisdn,436760000001,rn=990,network=23205\n";
        assert!(text.starts_with("msisdn,436640000000,hlr=hlr000\n") && text.ends_with(last));
    }
}
