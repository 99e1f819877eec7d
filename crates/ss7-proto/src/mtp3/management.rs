//! Signalling network management (Q.704 §15), in the form of ITU; in China's network with point codes of 24 bits.

use crate::octets::le24;
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

/// A message about a link or a destination. The link is named by the link code in the label (§15.2).
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
    /// TFC: messages of the node in the label meet congestion on their way to a destination (§13.6, §13.7).
    TransferControlled {
        /// The destination.
        destination: PointCode,
        /// Congestion status, 0 to 3; 0 in networks without levels (§11.2.3).
        level: u8,
    },
    /// RST: test of a destination that was prohibited.
    RouteSetTest(PointCode),
    /// RCT: test of the congestion of the destination in the label (§13.9).
    CongestionTest,
    /// LIN, LUN and the others about inhibiting a link (§10).
    Inhibiting(Inhibiting),
    /// TRA: traffic restart allowed.
    TrafficRestartAllowed,
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
const TRA: u8 = 0x17;
const UPU: u8 = 0x1a;
/// H0 of messages about inhibiting.
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
    ("RSR", 0x25),
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

impl Management {
    /// Reads the user data of an MSU of service indicator 0; `None` for other messages and those that end too early.
    #[must_use]
    pub fn read(user_data: &[u8], plan: Plan) -> Option<Self> {
        let (heading, rest) = user_data.split_first()?;
        let long = || le24(rest, 0).map(Changeover::Extended);
        let short = || rest.first().map(|octet| Changeover::Short(octet & 0x7f));
        let code = || affected(rest, plan);
        Some(match *heading {
            COO => Self::ChangeoverOrder(short()?),
            XCO => Self::ChangeoverOrder(long()?),
            ECO => Self::ChangeoverOrder(Changeover::Emergency),
            COA => Self::ChangeoverAcknowledgement(short()?),
            XCA => Self::ChangeoverAcknowledgement(long()?),
            ECA => Self::ChangeoverAcknowledgement(Changeover::Emergency),
            CBD => Self::ChangebackDeclaration(*rest.first()?),
            CBA => Self::ChangebackAcknowledgement(*rest.first()?),
            TFP => Self::TransferProhibited(code()?),
            TFR => Self::TransferRestricted(code()?),
            TFA => Self::TransferAllowed(code()?),
            TFC => controlled(rest, plan)?,
            RST => Self::RouteSetTest(code()?),
            RCT => Self::CongestionTest,
            TRA => Self::TrafficRestartAllowed,
            UPU => {
                let octet = rest.get(length(plan))?;
                Self::UserPartUnavailable {
                    destination: code()?,
                    user: octet & 0x0f,
                    cause: octet >> 4,
                }
            }
            heading if heading & 0x0f == MIM => {
                let at = usize::from(heading >> 4).checked_sub(1)?;
                Self::Inhibiting(*Inhibiting::ALL.get(at)?)
            }
            _ => return None,
        })
    }

    /// The heading code of a message by its abbreviation (`TFP`): H0 in the low half, H1 in the high one.
    #[must_use]
    pub fn heading(abbreviation: &str) -> Option<u8> {
        let mut all = HEADINGS.iter();
        all.find(|(name, _)| *name == abbreviation)
            .map(|(_, heading)| *heading)
    }

    /// Whether messages with a heading code name the destination that they concern.
    #[must_use]
    pub const fn names_destination(heading: u8) -> bool {
        matches!(heading & 0x0f, TFM | RSM) || matches!(heading, TFC | UPU)
    }

    /// The destination in such a message; `None` when it ends too early.
    #[must_use]
    pub fn destination(user_data: &[u8], plan: Plan) -> Option<PointCode> {
        affected(user_data.get(1..)?, plan)
    }

    /// Appends the user data.
    pub fn write(&self, plan: Plan, out: &mut Vec<u8>) {
        let mut code = |heading: u8, code: PointCode| {
            out.push(heading);
            let octets = (code.0 & plan.max().0).to_le_bytes();
            out.extend_from_slice(octets.get(..length(plan)).unwrap_or_default());
        };
        match *self {
            Self::ChangeoverOrder(changeover) => changeover.write([COO, XCO, ECO], out),
            Self::ChangeoverAcknowledgement(changeover) => changeover.write([COA, XCA, ECA], out),
            Self::ChangebackDeclaration(number) => out.extend_from_slice(&[CBD, number]),
            Self::ChangebackAcknowledgement(number) => out.extend_from_slice(&[CBA, number]),
            Self::TransferProhibited(one) => code(TFP, one),
            Self::TransferRestricted(one) => code(TFR, one),
            Self::TransferAllowed(one) => code(TFA, one),
            Self::RouteSetTest(one) => code(RST, one),
            Self::TransferControlled { destination, level } => {
                code(TFC, destination);
                let level = level & 3;
                match plan {
                    // The two bits above the point code.
                    Plan::Itu => {
                        if let Some(last) = out.last_mut() {
                            *last |= level << 6;
                        }
                    }
                    Plan::Ansi | Plan::Japan => out.push(level),
                }
            }
            Self::CongestionTest => out.push(RCT),
            Self::Inhibiting(message) => out.push((message as u8 + 1) << 4 | MIM),
            Self::TrafficRestartAllowed => out.push(TRA),
            Self::UserPartUnavailable {
                destination,
                user,
                cause,
            } => {
                code(UPU, destination);
                out.push(cause << 4 | user & 0x0f);
            }
        }
    }
}

impl Changeover {
    fn write(self, [short, extended, emergency]: [u8; 3], out: &mut Vec<u8>) {
        match self {
            Self::Short(fsn) => out.extend_from_slice(&[short, fsn & 0x7f]),
            Self::Extended(fsn) => {
                let [low, middle, high, _] = fsn.to_le_bytes();
                out.extend_from_slice(&[extended, low, middle, high]);
            }
            Self::Emergency => out.push(emergency),
        }
    }
}

/// Octets of an affected point code.
const fn length(plan: Plan) -> usize {
    match plan {
        Plan::Ansi => 3,
        Plan::Itu | Plan::Japan => 2,
    }
}

/// TFC (§15.15). With point codes of 24 bits the status has an octet of its own.
fn controlled(octets: &[u8], plan: Plan) -> Option<Management> {
    let destination = affected(octets, plan)?;
    let level = match plan {
        Plan::Itu => *octets.get(1)? >> 6,
        Plan::Ansi | Plan::Japan => *octets.get(length(plan))? & 3,
    };
    Some(Management::TransferControlled { destination, level })
}

fn affected(octets: &[u8], plan: Plan) -> Option<PointCode> {
    let octets = octets.get(..length(plan))?;
    let number = octets
        .iter()
        .rev()
        .fold(0, |number, octet| number << 8 | u32::from(*octet));
    Some(PointCode(number & plan.max().0))
}
