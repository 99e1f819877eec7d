//! Messages of calls: InitialDP of CAP (TS 29.078 §6.1.1) and IAM of ISUP (Q.763 §4), and what answers them.

use ss7_proto::Digits;
use ss7_proto::cap::{self, operation};
use ss7_proto::isup::{Cause, Number, nature, write_release};
use ss7_proto::tcap::element;

use super::content::{Answer, begin_in};
use super::network::{ROUTING_NUMBER, free_digits, home_digits, ported_digits};

/// The application context of CAP version 2, gsmSSF to gsmSCF, behind `0.4.0.0.1.0` (TS 29.078 §5.6).
const CAP_2: [u8; 2] = [50, 1];
/// Service keys: of prepaid subscribers, of queries.
pub const PREPAID_KEY: u8 = 100;
const QUERY_KEY: u8 = 1;
/// Message types of ISUP.
const INITIAL_ADDRESS: u8 = 1;
const RELEASE: u8 = 12;
/// Circuits between two exchanges: their codes have 12 bits.
pub(super) const CIRCUITS: u16 = 1 << 12;
/// The most octets of user-to-user information (Q.763 §3.60).
const MOST_FILLER: usize = 129;
/// Number portability status (Q.763 §3.101): no query done; query done, ported.
const NOT_QUERIED: u8 = 0x81;
const PORTED: u8 = 0x83;

/// What a number that is called is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialled {
    Home,
    Ported,
    Unallocated,
}

/// What each number of a model is as a called one: every second of this network, a quarter ported, a quarter not allocated.
pub(super) const fn dialled(number: u32) -> Dialled {
    match number % 4 {
        2 => Dialled::Ported,
        3 => Dialled::Unallocated,
        _ => Dialled::Home,
    }
}

/// The called number.
pub(super) fn dialled_digits(number: u32) -> String {
    match dialled(number) {
        Dialled::Home => home_digits(number),
        Dialled::Ported => ported_digits(number),
        Dialled::Unallocated => free_digits(number),
    }
}

fn party(nature: u8, indicators: u8, digits: &str) -> Number {
    Number {
        nature,
        indicators,
        digits: Digits::parse(digits).unwrap_or_default(),
    }
}

/// The called number behind the routing number.
fn routed(number: u32) -> Number {
    let digits = format!("{ROUTING_NUMBER}{}", ported_digits(number));
    party(nature::ROUTING_NUMBER, Number::E164, &digits)
}

/// Appends a Begin with InitialDP: a query about a called number, or the call of a prepaid subscriber.
pub(super) fn initial_dp(
    transaction: u32,
    digits: [&str; 2],
    is_prepaid: bool,
    filler: usize,
    out: &mut Vec<u8>,
) {
    let [called, calling] = digits;
    let key = if is_prepaid { PREPAID_KEY } else { QUERY_KEY };
    let initial_dp = operation::INITIAL_DP as u8;
    begin_in(Some(CAP_2), transaction, initial_dp, out, |out| {
        out.extend([0x80, 1, key]);
        element(0x82, out, |out| {
            party(nature::INTERNATIONAL, Number::E164, called).write(out);
        });
        // Presentation allowed, screening: network provided.
        element(0x83, out, |out| {
            party(nature::INTERNATIONAL, Number::E164 | 3, calling).write(out);
        });
        // Calling party's category: ordinary subscriber.
        out.extend([0x85, 1, 10]);
        if filler > 0 {
            extension(filler, out);
        }
        // Event: collectedInfo.
        out.extend([0x9c, 1, 2]);
    });
}

/// An extension that no reader knows.
fn extension(filler: usize, out: &mut Vec<u8>) {
    element(0xaf, out, |out| {
        element(0x30, out, |out| {
            out.extend([2, 1, 1]);
            element(0xa1, out, |out| {
                element(0x04, out, |out| {
                    let end = out.len() + filler;
                    out.resize(end, 0x55);
                });
            });
        });
    });
}

/// Whether an InitialDP about a number was answered right.
pub(super) fn is_answer(number: u32, answer: &Answer<'_>) -> bool {
    let mut argument = Vec::new();
    let wanted = match dialled(number) {
        Dialled::Home => return matches!(answer, Answer::Invoke(operation::CONTINUE, None)),
        Dialled::Ported => {
            cap::connect(&routed(number), &mut argument);
            operation::CONNECT
        }
        Dialled::Unallocated => {
            cap::release_call(Cause::UNALLOCATED, &mut argument);
            operation::RELEASE_CALL
        }
    };
    let Answer::Invoke(operation, Some(parameter)) = answer else {
        return false;
    };
    // The tag and the length of the argument have an octet each.
    *operation == wanted && argument.get(2..) == Some(parameter.value)
}

/// An IAM on a circuit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) circuit: u16,
    /// The number that is called.
    pub(super) number: u32,
    /// Octets of the message, where user-to-user information can fill it.
    pub(super) size: usize,
}

impl Call {
    /// Appends the IAM as the exchange sends it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let called = party(nature::INTERNATIONAL, Number::E164, &dialled_digits(self.number));
        self.write_to(&called, NOT_QUERIED, out);
    }

    /// Appends the message as it has to arrive: the IAM at the other exchange, or REL at the one before.
    pub(super) fn write_arriving(&self, out: &mut Vec<u8>) {
        match dialled(self.number) {
            Dialled::Home => self.write(out),
            Dialled::Ported => self.write_to(&routed(self.number), PORTED, out),
            Dialled::Unallocated => write_release(self.circuit.to_le_bytes(), Cause::UNALLOCATED, out),
        }
    }

    fn write_to(&self, called: &Number, status: u8, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend(self.circuit.to_le_bytes());
        // No satellite; interworking indicators of a call by ISUP all the way; an ordinary subscriber; speech.
        out.extend([INITIAL_ADDRESS, 0, 0x60, 1, 10, 0, 2]);
        let length = 2 + called.digits.packed().len();
        out.extend([length as u8 + 2, length as u8]);
        called.write(out);
        // The number as it was dialled has the octets of this one.
        let own = dialled_digits(self.number).len().div_ceil(2) + 2;
        out.extend([0x8d, 1, status]);
        let used = out.len() - begin + own - length;
        let filler = self.size.saturating_sub(used + 3).min(MOST_FILLER);
        if filler > 2 {
            out.extend([0x20, filler as u8]);
            let end = out.len() + filler;
            out.resize(end, 0x55);
        }
        out.push(0);
    }
}

/// The circuit of an IAM or REL, and whether it is an IAM.
pub(super) fn circuit(octets: &[u8]) -> Option<(u16, bool)> {
    match octets {
        [low, high, kind @ (INITIAL_ADDRESS | RELEASE), ..] => {
            Some((u16::from_le_bytes([*low, *high]), *kind == INITIAL_ADDRESS))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stp::content::answer;
    use ss7_proto::cap::InitialDp;
    use ss7_proto::isup::Iam;
    use ss7_proto::tcap::Transaction;

    #[test]
    fn messages_of_calls_are_read_as_they_are_meant() {
        for number in 0..8 {
            let (called, calling) = (dialled_digits(number), home_digits(7));
            let mut octets = Vec::new();
            initial_dp(77, [&called, &calling], true, 60, &mut octets);
            let begin = Transaction::parse(&octets).unwrap();
            let mut components = begin.components;
            let invoke = components.next().unwrap().unwrap();
            let fields = InitialDp::read(operation::INITIAL_DP, invoke.parameter.unwrap());
            assert_eq!(fields.service_key, Some(i32::from(PREPAID_KEY)));
            assert_eq!(fields.called.unwrap().digits.to_string(), called);
            assert!(!is_answer(number, &answer(&octets)), "a Begin answers nothing");

            let call = Call {
                circuit: 0xabc,
                number,
                size: 148,
            };
            let (mut sent, mut arriving) = (Vec::new(), Vec::new());
            call.write(&mut sent);
            call.write_arriving(&mut arriving);
            assert_eq!((sent.len(), circuit(&sent)), (148, Some((0xabc, true))));
            let iam = Iam::parse(&sent).unwrap();
            assert_eq!(iam.called().unwrap().digits.to_string(), called);
            assert!(!iam.is_queried());
            let expected = match dialled(number) {
                Dialled::Home => sent.clone(),
                Dialled::Unallocated => vec![0xbc, 0x0a, RELEASE, 2, 0, 2, 0x83, 0x81],
                Dialled::Ported => {
                    let mut made = Vec::new();
                    iam.write_with_called(&routed(number), true, &mut made).unwrap();
                    made
                }
            };
            assert_eq!(arriving, expected);
        }
    }
}
