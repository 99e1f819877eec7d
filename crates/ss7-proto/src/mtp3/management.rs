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
    /// RST: test of a destination that was prohibited.
    RouteSetTest(PointCode),
    /// TRA: traffic restart allowed.
    TrafficRestartAllowed,
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
const TFP: u8 = 0x14;
const TFR: u8 = 0x34;
const TFA: u8 = 0x54;
const RST: u8 = 0x15;
const TRA: u8 = 0x17;

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
            RST => Self::RouteSetTest(code()?),
            TRA => Self::TrafficRestartAllowed,
            _ => return None,
        })
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
            Self::TrafficRestartAllowed => out.push(TRA),
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

fn affected(octets: &[u8], plan: Plan) -> Option<PointCode> {
    let octets = octets.get(..length(plan))?;
    let number = octets
        .iter()
        .rev()
        .fold(0, |number, octet| number << 8 | u32::from(*octet));
    Some(PointCode(number & plan.max().0))
}
