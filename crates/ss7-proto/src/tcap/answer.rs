//! Answers of our own: an End with one result, error or Reject, and Aborts (Q.773 §3.1, §3.2; dialogue of TS 29.002
//! §17.1.6).

use super::context::ApplicationContext;
use super::transaction::TransactionId;

/// `dialogue-as-id`, `0.0.17.773.1.1.1`.
const DIALOGUE: &[u8] = &[0x06, 7, 0, 0x11, 0x86, 5, 1, 1, 1];

/// An End that answers one Invoke, or carries one in return.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The identifier of who began.
    pub destination: TransactionId,
    /// The application context of the Begin, which is accepted; without one the End has no dialogue.
    pub context: Option<ApplicationContext<'a>>,
    /// The identifier of the Invoke, or of the one in return; a Reject may be without.
    pub invoke_id: Option<i8>,
    /// What it is answered by.
    pub outcome: Outcome<'a>,
}

/// What an Invoke is answered by.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The operation and its result, as BER.
    Result(u8, &'a [u8]),
    /// An error without parameter.
    Error(u8),
    /// An operation in return, and its argument as BER: what answers an InitialDP.
    Invoke(u8, &'a [u8]),
    /// A problem of the component or of its Invoke.
    Reject(Problem),
}

/// Why a component is rejected (Q.773 §4.2.2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// General: the component is not one that can be read.
    MistypedComponent,
    /// General: its octets are not BER.
    BadlyStructuredComponent,
    /// Of an Invoke: the operation is not one of the application context.
    UnrecognizedOperation,
    /// Of an Invoke: the parameter is not that of the operation.
    MistypedParameter,
}

impl Problem {
    /// Tag of the kind, and number.
    const fn octets(self) -> [u8; 3] {
        match self {
            Self::MistypedComponent => [0x80, 1, 1],
            Self::BadlyStructuredComponent => [0x80, 1, 2],
            Self::UnrecognizedOperation => [0x81, 1, 1],
            Self::MistypedParameter => [0x81, 1, 2],
        }
    }
}

/// Why a transaction is aborted.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// P-Abort: the transaction is not known.
    UnknownTransaction,
    /// The dialogue portion cannot be read: ABRT of the provider (Q.774 §3.2).
    BadDialogue,
    /// The user ends it, with ABRT where there is a dialogue.
    User {
        /// Whether there is one.
        has_dialogue: bool,
    },
    /// AARE: the application context is not supported; the one that is offered.
    Context(ApplicationContext<'a>),
}

/// Appends an Abort.
pub fn abort(destination: TransactionId, reason: Reason<'_>, out: &mut Vec<u8>) {
    // Abort source: 0 = user, 1 = provider of the dialogue (Q.773 §4.2.3).
    let abrt = |source, out: &mut Vec<u8>| dialogue(out, |out| out.extend([0x64, 3, 0x80, 1, source]));
    element(0x67, out, |out| {
        element(0x49, out, |out| out.extend_from_slice(destination.octets()));
        match reason {
            Reason::UnknownTransaction => out.extend([0x4a, 1, 1]),
            Reason::BadDialogue => abrt(1, out),
            Reason::User { has_dialogue: true } => abrt(0, out),
            Reason::User { has_dialogue: false } => {}
            // Rejected for good: the application context name is not supported.
            Reason::Context(context) => associate(context, [1, 2], out),
        }
    });
}

impl Answer<'_> {
    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        element(0x64, out, |out| {
            element(0x49, out, |out| out.extend_from_slice(self.destination.octets()));
            if let Some(context) = self.context {
                associate(context, [0, 0], out);
            }
            element(0x6c, out, |out| self.component(out));
        });
    }

    fn component(&self, out: &mut Vec<u8>) {
        let put_id = |out: &mut Vec<u8>| match self.invoke_id {
            Some(id) => out.extend([2, 1, id.cast_unsigned()]),
            None => out.extend([5, 0]),
        };
        match self.outcome {
            Outcome::Result(operation, result) => element(0xa2, out, |out| {
                put_id(out);
                element(0x30, out, |out| {
                    out.extend_from_slice(&[2, 1, operation]);
                    out.extend_from_slice(result);
                });
            }),
            Outcome::Error(code) => element(0xa3, out, |out| {
                put_id(out);
                out.extend_from_slice(&[2, 1, code]);
            }),
            Outcome::Invoke(operation, argument) => element(0xa1, out, |out| {
                put_id(out);
                out.extend_from_slice(&[2, 1, operation]);
                out.extend_from_slice(argument);
            }),
            Outcome::Reject(problem) => element(0xa4, out, |out| {
                put_id(out);
                out.extend_from_slice(&problem.octets());
            }),
        }
    }
}

/// A dialogue portion with AARE: result, and diagnostic of the user of the dialogue (Q.773 §4.2.3).
fn associate(context: ApplicationContext<'_>, [result, diagnostic]: [u8; 2], out: &mut Vec<u8>) {
    dialogue(out, |out| {
        element(0x61, out, |out| {
            // Version 1.
            out.extend_from_slice(&[0x80, 2, 7, 0x80]);
            element(0xa1, out, |out| {
                element(0x06, out, |out| out.extend_from_slice(context.octets()));
            });
            out.extend_from_slice(&[0xa2, 3, 2, 1, result, 0xa3, 5, 0xa1, 3, 2, 1, diagnostic]);
        });
    });
}

fn dialogue(out: &mut Vec<u8>, pdu: impl FnOnce(&mut Vec<u8>)) {
    element(0x6b, out, |out| {
        element(0x28, out, |out| {
            out.extend_from_slice(DIALOGUE);
            element(0xa0, out, pdu);
        });
    });
}

/// Appends an element with a tag of one octet and a definite length.
pub fn element(tag: u8, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    // Most contents are short: their length takes the octet that is reserved here.
    out.extend([tag, 0]);
    let start = out.len();
    content(out);
    let length = out.len() - start;
    let octets = length.to_be_bytes();
    let zeros = octets.iter().take_while(|octet| **octet == 0).count();
    let digits = octets.get(zeros..).unwrap_or_default();
    let first = if length < 0x80 {
        length as u8
    } else {
        out.splice(start..start, digits.iter().copied());
        0x80 | digits.len() as u8
    };
    if let Some(octet) = out.get_mut(start - 1) {
        *octet = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcap::{ComponentType, MessageType, OperationCode, Transaction};

    #[test]
    fn lengths_are_definite_and_shortest() {
        for (length, head) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (300, &[4, 0x82, 1, 44]),
        ] {
            let mut out = Vec::new();
            element(4, &mut out, |out| out.resize(out.len() + length, 7));
            assert_eq!((out.starts_with(head), out.len()), (true, head.len() + length));
        }
    }

    #[test]
    fn an_answer_reads_back() {
        let begin = [
            0x62, 0x12, 0x48, 2, 0xab, 0xcd, 0x6c, 0x0c, 0xa1, 0x0a, 2, 1, 0xff, 2, 1, 22, 0x30, 2, 0x80, 0,
        ];
        let begin = Transaction::parse(&begin).unwrap();
        for outcome in [
            Outcome::Result(22, &[0x30, 0]),
            Outcome::Error(7),
            Outcome::Invoke(31, &[]),
            Outcome::Reject(Problem::MistypedParameter),
        ] {
            let mut out = Vec::new();
            Answer {
                destination: begin.originating.unwrap(),
                context: Some(ApplicationContext::new(&[4, 0, 0, 1, 0, 5, 3])),
                invoke_id: Some(-1),
                outcome,
            }
            .write(&mut out);
            let end = Transaction::parse(&out).unwrap();
            assert_eq!(
                (end.message_type, end.destination),
                (MessageType::End, begin.originating)
            );
            assert_eq!(end.context.unwrap().map(), Some((5, 3)));
            let component = end.components.clone().next().unwrap().unwrap();
            assert_eq!(component.invoke_id, Some(-1));
            match outcome {
                Outcome::Result(..) => assert_eq!(component.component_type, ComponentType::ReturnResult),
                Outcome::Error(_) => assert_eq!(component.error, Some(7)),
                Outcome::Invoke(..) => {
                    assert_eq!(component.component_type, ComponentType::Invoke);
                    assert_eq!(component.operation, Some(OperationCode::Local(31)));
                }
                Outcome::Reject(_) => {
                    let problem = component.parameter.unwrap();
                    assert_eq!((problem.tag.0, problem.value), (0x81, &[2][..]));
                }
            }
        }
    }
}
