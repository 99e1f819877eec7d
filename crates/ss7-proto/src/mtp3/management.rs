//! Signalling network management: in the form of ITU (Q.704 §15), in China's network with point codes of 24 bits; in that of ANSI
//! (T1.111.4 §15), which names a link in the message and has messages about clusters.

use crate::point_code::{Plan, PointCode};

/// What a changeover says of the messages that its sender has accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changeover {
    /// Nothing: of an emergency changeover (§5.6).
    Emergency,
    /// FSN of the last accepted MSU, 7 bits: of links of MTP2 (§15.4).
    Short(u8),
    /// FSN of the last accepted MSU, 24 bits: extended changeover (§15.4, RFC 4165 §4.2.1).
    Extended(u32),
}

/// A message about a link or a destination. The link is named by [`link_code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Management {
    /// COO, XCO, ECO: changeover order.
    ChangeoverOrder(Changeover),
    /// COA, XCA, ECA: changeover acknowledgement.
    ChangeoverAcknowledgement(Changeover),
    /// CBD: changeback declaration, with its code.
    ChangebackDeclaration(u8),
    /// CBA: changeback acknowledgement, with the code of the declaration.
    ChangebackAcknowledgement(u8),
    /// TFP: transfer prohibited.
    TransferProhibited(PointCode),
    /// TFR: transfer restricted.
    TransferRestricted(PointCode),
    /// TFA: transfer allowed.
    TransferAllowed(PointCode),
    /// TCP: as TFP, for a cluster: the point codes that differ in their last eight bits only. Of ANSI, as the next three.
    ClusterProhibited(PointCode),
    /// TCR: as TFR, for a cluster.
    ClusterRestricted(PointCode),
    /// TCA: as TFA, for a cluster.
    ClusterAllowed(PointCode),
    /// RCP, and RCR: test of a cluster that was prohibited or restricted.
    ClusterTest(PointCode),
    /// TFC: messages of the node in the label meet congestion on their way to a destination (§13.6, §13.7).
    TransferControlled {
        /// The destination.
        destination: PointCode,
        /// Congestion status, 0 to 3; 0 in networks without levels (§11.2.3).
        level: u8,
    },
    /// RST: test of a destination that was prohibited; of ANSI RSP, and RSR of one that was restricted.
    RouteSetTest(PointCode),
    /// RCT: test of the congestion of the destination in the label (§13.9).
    CongestionTest,
    /// LIN, LUN and the others about inhibiting a link (§10).
    Inhibiting(Inhibiting),
    /// TRA: traffic restart allowed.
    TrafficRestartAllowed,
    /// TRW: traffic restart waiting: TRA follows later. Of ANSI.
    TrafficRestartWaiting,
    /// UPU: a node has no such user (§11.2.7).
    UserPartUnavailable {
        /// The node.
        destination: PointCode,
        /// The service indicator of the user.
        user: u8,
        /// 0: unknown, 1: unequipped, 2: inaccessible (§15.17.5).
        cause: u8,
    },
}

/// A message about inhibiting the link in its label (§10, §15.11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inhibiting {
    /// LIN: the sender asks to inhibit.
    Inhibit,
    /// LUN: the sender ends its inhibition.
    Uninhibit,
    /// LIA: LIN is granted.
    InhibitAcknowledgement,
    /// LUA: LUN is accepted.
    UninhibitAcknowledgement,
    /// LID: LIN is denied.
    InhibitDenied,
    /// LFU: the sender needs a link that the receiver has inhibited.
    ForcedUninhibit,
    /// LLT: the sender has inhibited the link.
    LocalTest,
    /// LRT: by what the sender knows, the receiver has.
    RemoteTest,
}

impl Inhibiting {
    /// By heading code H1, from 1 on.
    const ALL: [Self; 8] = [
        Self::Inhibit,
        Self::Uninhibit,
        Self::InhibitAcknowledgement,
        Self::UninhibitAcknowledgement,
        Self::InhibitDenied,
        Self::ForcedUninhibit,
        Self::LocalTest,
        Self::RemoteTest,
    ];
}

/// Heading codes: H0 in the low half, H1 in the high one.
const COO: u8 = 0x11;
const COA: u8 = 0x21;
const XCO: u8 = 0x31;
const XCA: u8 = 0x41;
const CBD: u8 = 0x51;
const CBA: u8 = 0x61;
const ECO: u8 = 0x12;
const ECA: u8 = 0x22;
const RCT: u8 = 0x13;
const TFC: u8 = 0x23;
const TFP: u8 = 0x14;
const TFR: u8 = 0x34;
const TFA: u8 = 0x54;
const RST: u8 = 0x15;
/// Of ANSI.
const TCP: u8 = 0x24;
const TCR: u8 = 0x44;
const TCA: u8 = 0x64;
const RSR: u8 = 0x25;
const RCP: u8 = 0x35;
const RCR: u8 = 0x45;
const TRW: u8 = 0x27;
const TRA: u8 = 0x17;
const UPU: u8 = 0x1a;
/// H0 of messages about a link: changeover and changeback, emergency changeover, inhibiting.
const CHM: u8 = 0x01;
const ECM: u8 = 0x02;
const MIM: u8 = 0x06;
/// H0 of TFP, TFR, TFA, and of RST, RSR.
const TFM: u8 = 0x04;
const RSM: u8 = 0x05;

/// Abbreviations of messages and their heading codes (§15, Table 1).
const HEADINGS: [(&str, u8); 31] = [
    ("COO", COO),
    ("COA", COA),
    ("XCO", XCO),
    ("XCA", XCA),
    ("CBD", CBD),
    ("CBA", CBA),
    ("ECO", ECO),
    ("ECA", ECA),
    ("RCT", RCT),
    ("TFC", TFC),
    ("TFP", TFP),
    ("TFR", TFR),
    ("TFA", TFA),
    ("RST", RST),
    ("RSR", RSR),
    ("LIN", 0x16),
    ("LUN", 0x26),
    ("LIA", 0x36),
    ("LUA", 0x46),
    ("LID", 0x56),
    ("LFU", 0x66),
    ("LLT", 0x76),
    ("LLI", 0x76),
    ("LRT", 0x86),
    ("LRI", 0x86),
    ("TRA", TRA),
    ("DLC", 0x18),
    ("CSS", 0x28),
    ("CNS", 0x38),
    ("CNP", 0x48),
    ("UPU", UPU),
];

/// Those that T1.111.4 has beside them.
const HEADINGS_OF_ANSI: [(&str, u8); 7] = [
    ("TCP", TCP),
    ("TCR", TCR),
    ("TCA", TCA),
    ("RSP", RST),
    ("RCP", RCP),
    ("RCR", RCR),
    ("TRW", TRW),
];

/// The code of the link that a message of management or a link test concerns: with ITU it is the link selection of the label (Q.704
/// §15.2), with ANSI it stands in the message (T1.111.4 §15, T1.111.7). Other messages have it in the label, too, as 0.
#[must_use]
pub fn link_code(sls: u8, user_data: &[u8], plan: Plan) -> u8 {
    match (plan, user_data) {
        // Link tests have the H0 of changeovers.
        (Plan::Ansi, [heading, octet, ..]) if matches!(heading & 0x0f, CHM | ECM | MIM) => octet & 0x0f,
        _ => sls,
    }
}

impl Management {
    /// Reads the user data of an MSU of service indicator 0; `None` for other messages and those that end too early.
    #[must_use]
    pub fn read(user_data: &[u8], plan: Plan) -> Option<Self> {
        let (heading, rest) = user_data.split_first()?;
        let number = |octets| about_link(rest, plan, octets);
        let short = || number(1).map(|number| Changeover::Short(number as u8 & 0x7f));
        let long = || number(3).map(|number| Changeover::Extended(number & 0x00ff_ffff));
        let emergency = || number(0).map(|_| Changeover::Emergency);
        let code = || affected(rest, plan);
        Some(match (*heading, plan) {
            (COO, _) => Self::ChangeoverOrder(short()?),
            (XCO, _) => Self::ChangeoverOrder(long()?),
            (ECO, _) => Self::ChangeoverOrder(emergency()?),
            (COA, _) => Self::ChangeoverAcknowledgement(short()?),
            (XCA, _) => Self::ChangeoverAcknowledgement(long()?),
            (ECA, _) => Self::ChangeoverAcknowledgement(emergency()?),
            (CBD, _) => Self::ChangebackDeclaration(number(1)? as u8),
            (CBA, _) => Self::ChangebackAcknowledgement(number(1)? as u8),
            (TFP, _) => Self::TransferProhibited(code()?),
            (TFR, _) => Self::TransferRestricted(code()?),
            (TFA, _) => Self::TransferAllowed(code()?),
            (TCP, Plan::Ansi) => Self::ClusterProhibited(code()?),
            (TCR, Plan::Ansi) => Self::ClusterRestricted(code()?),
            (TCA, Plan::Ansi) => Self::ClusterAllowed(code()?),
            (RCP | RCR, Plan::Ansi) => Self::ClusterTest(code()?),
            (TFC, _) => controlled(rest, plan)?,
            (RST, _) | (RSR, Plan::Ansi) => Self::RouteSetTest(code()?),
            (RCT, _) => Self::CongestionTest,
            (TRA, _) => Self::TrafficRestartAllowed,
            (TRW, Plan::Ansi) => Self::TrafficRestartWaiting,
            (UPU, _) => {
                let octet = rest.get(length(plan))?;
                Self::UserPartUnavailable {
                    destination: code()?,
                    user: octet & 0x0f,
                    cause: octet >> 4,
                }
            }
            (heading, _) if heading & 0x0f == MIM => {
                let at = usize::from(heading >> 4).checked_sub(1)?;
                number(0)?;
                Self::Inhibiting(*Inhibiting::ALL.get(at)?)
            }
            _ => return None,
        })
    }

    /// The heading code of a message by its abbreviation (`TFP`): H0 in the low half, H1 in the high one. `None` for one that networks
    /// with this plan do not have.
    #[must_use]
    pub fn heading(abbreviation: &str, plan: Plan) -> Option<u8> {
        let of_ansi = HEADINGS_OF_ANSI.iter().filter(|_| plan == Plan::Ansi);
        let mut all = HEADINGS.iter().chain(of_ansi);
        all.find(|(name, _)| *name == abbreviation)
            .map(|(_, heading)| *heading)
    }

    /// Whether messages with a heading code name the destination that they concern.
    #[must_use]
    pub const fn names_destination(heading: u8) -> bool {
        matches!(heading & 0x0f, TFM | RSM) || matches!(heading, TFC | UPU)
    }

    /// Whether it is a cluster, of which the member does not count (T1.111.4).
    #[must_use]
    pub const fn names_cluster(heading: u8, plan: Plan) -> bool {
        matches!(plan, Plan::Ansi) && matches!(heading, TCP | TCR | TCA | RCP | RCR)
    }

    /// The destination in such a message; `None` when it ends too early.
    #[must_use]
    pub fn destination(user_data: &[u8], plan: Plan) -> Option<PointCode> {
        affected(user_data.get(1..)?, plan)
    }

    /// Appends the user data. `link` is the code of the link that it concerns, which counts where ANSI has it in the message; a
    /// message about clusters is one of ANSI alone.
    pub fn write(&self, plan: Plan, link: u8, out: &mut Vec<u8>) {
        let changeover = |changeover: Changeover, headings, out: &mut Vec<u8>| {
            changeover.write(headings, plan, link, out);
        };
        let about = |heading, octets, number, out: &mut Vec<u8>| {
            out.push(heading);
            put_about_link(plan, link, octets, number, out);
        };
        match *self {
            Self::ChangeoverOrder(one) => changeover(one, [COO, XCO, ECO], out),
            Self::ChangeoverAcknowledgement(one) => changeover(one, [COA, XCA, ECA], out),
            Self::ChangebackDeclaration(number) => about(CBD, 1, u32::from(number), out),
            Self::ChangebackAcknowledgement(number) => about(CBA, 1, u32::from(number), out),
            Self::Inhibiting(message) => about((message as u8 + 1) << 4 | MIM, 0, 0, out),
            Self::TransferProhibited(one) => put_affected(TFP, one, plan, out),
            Self::TransferRestricted(one) => put_affected(TFR, one, plan, out),
            Self::TransferAllowed(one) => put_affected(TFA, one, plan, out),
            Self::ClusterProhibited(one) => put_affected(TCP, one, plan, out),
            Self::ClusterRestricted(one) => put_affected(TCR, one, plan, out),
            Self::ClusterAllowed(one) => put_affected(TCA, one, plan, out),
            Self::ClusterTest(one) => put_affected(RCP, one, plan, out),
            Self::RouteSetTest(one) => put_affected(RST, one, plan, out),
            Self::TransferControlled { destination, level } => {
                put_affected(TFC, destination, plan, out);
                let level = level & 3;
                match plan {
                    // The two bits above the point code.
                    Plan::Itu => {
                        if let Some(last) = out.last_mut() {
                            *last |= level << 6;
                        }
                    }
                    Plan::Ansi | Plan::China | Plan::Japan => out.push(level),
                }
            }
            Self::CongestionTest => out.push(RCT),
            Self::TrafficRestartAllowed => out.push(TRA),
            Self::TrafficRestartWaiting => out.push(TRW),
            Self::UserPartUnavailable {
                destination,
                user,
                cause,
            } => {
                put_affected(UPU, destination, plan, out);
                out.push(cause << 4 | user & 0x0f);
            }
        }
    }
}

impl Changeover {
    fn write(self, [short, extended, emergency]: [u8; 3], plan: Plan, link: u8, out: &mut Vec<u8>) {
        let (heading, octets, number) = match self {
            Self::Short(fsn) => (short, 1, u32::from(fsn & 0x7f)),
            Self::Extended(fsn) => (extended, 3, fsn & 0x00ff_ffff),
            Self::Emergency => (emergency, 0, 0),
        };
        out.push(heading);
        put_about_link(plan, link, octets, number, out);
    }
}

/// The number in a message about a link, which has this many octets with ITU, the least significant first. With ANSI the code of the
/// link has the first four bits, and an octet more.
fn about_link(octets: &[u8], plan: Plan, length: usize) -> Option<u32> {
    let (length, bits) = if plan == Plan::Ansi {
        (length + 1, 4)
    } else {
        (length, 0)
    };
    Some(little_endian(octets.get(..length)?) >> bits)
}

fn put_about_link(plan: Plan, link: u8, length: usize, number: u32, out: &mut Vec<u8>) {
    let (length, number) = match plan {
        Plan::Ansi => (length + 1, number << 4 | u32::from(link & 0x0f)),
        Plan::Itu | Plan::China | Plan::Japan => (length, number),
    };
    out.extend_from_slice(number.to_le_bytes().get(..length).unwrap_or_default());
}

fn put_affected(heading: u8, code: PointCode, plan: Plan, out: &mut Vec<u8>) {
    out.push(heading);
    let octets = (code.0 & plan.max().0).to_le_bytes();
    out.extend_from_slice(octets.get(..length(plan)).unwrap_or_default());
}

fn little_endian(octets: &[u8]) -> u32 {
    let octets = octets.iter().rev();
    octets.fold(0, |number, octet| number << 8 | u32::from(*octet))
}

/// Octets of an affected point code.
const fn length(plan: Plan) -> usize {
    match plan {
        Plan::Ansi | Plan::China => 3,
        Plan::Itu | Plan::Japan => 2,
    }
}

/// TFC (Q.704 §15.15). With point codes of 24 bits the status has an octet of its own.
fn controlled(octets: &[u8], plan: Plan) -> Option<Management> {
    let destination = affected(octets, plan)?;
    let level = match plan {
        Plan::Itu => *octets.get(1)? >> 6,
        Plan::Ansi | Plan::China | Plan::Japan => *octets.get(length(plan))? & 3,
    };
    Some(Management::TransferControlled { destination, level })
}

fn affected(octets: &[u8], plan: Plan) -> Option<PointCode> {
    let number = little_endian(octets.get(..length(plan))?);
    Some(PointCode(number & plan.max().0))
}
