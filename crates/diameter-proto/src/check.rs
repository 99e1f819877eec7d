//! Does a message keep to its definition? For where a message ends; a relay checks frames only
//! ([`crate::Message::check_frames`]).
//!
//! Checked are: frames at every depth, AVP flags, types (length and content), and, where the dictionary has
//! the command or group, its grammar: what has to be there, how often, and what must not be. AVPs that the
//! dictionary does not have are refused only when their M flag says so (RFC 6733 §4.1).

use smallvec::SmallVec;

use crate::avp::AvpWriter;
use crate::avp::{Avp, AvpFlags, AvpKey, Avps};
use crate::dictionary::{AvpDefinition, Dictionary, Grammar, MandatoryRule};
use crate::fault::{Fault, ResultCode};
use crate::header::CommandFlags;
use crate::kind::{
    Address, AvpType, DiameterIdentity, DiameterUri, IpFilterRule, Kind, QosFilterRule, Utf8String,
    ValueError,
};
use crate::known;
use crate::message::Message;

/// Groups within groups are followed so deep. The deepest of 3GPP's go to about eight.
pub const MAX_DEPTH: usize = 16;

/// How hard to judge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strictness {
    /// What protects us and what the RFC lets no choice about.
    #[default]
    Interoperable,
    /// Also what is wrong but does no harm: reserved bits, an M flag against the definition, values an
    /// enumeration does not have, padding that is not zero.
    Pedantic,
}

/// Checks a whole message.
///
/// # Errors
/// The first fault found, with result code and Failed-AVP as RFC 6733 §7 has them.
pub fn check<B: AsRef<[u8]>>(
    message: &Message<B>,
    dictionary: &Dictionary,
    strictness: Strictness,
) -> Result<(), Fault> {
    message.check_flags()?;
    let flags = message.flags();
    if strictness == Strictness::Pedantic && flags.0 & CommandFlags::RESERVED.0 != 0 {
        return Err(Fault::new(
            ResultCode::INVALID_BIT_IN_HEADER,
            format!("reserved bits are set in {flags}"),
        ));
    }
    let command = dictionary.command(message.command(), message.application());
    let checker = Checker {
        dictionary,
        strictness,
    };
    checker.walk(message.avps(), 0)?;
    let Some(command) = command else { return Ok(()) };
    if flags.contains(CommandFlags::ERROR) {
        // §7.2: an error answer has a grammar of its own, whatever the command.
        return Ok(());
    }
    let grammar = if flags.is_request() {
        &command.request
    } else {
        &command.answer
    };
    checker.grammar(message.avps(), grammar, is_failure(message))
}

/// Checks what an end point must refuse of a request: AVPs with the M flag that the dictionary does not have, at any depth, where all has to be
/// `understood` (RFC 6733 §4.1), and AVPs of the command that are missing, occur too often or must not be there (§7.1.5).
/// Values and the members of groups are left to who reads them.
///
/// # Errors
/// The first fault found.
pub fn request<B: AsRef<[u8]>>(
    message: &Message<B>,
    dictionary: &Dictionary,
    understood: bool,
) -> Result<(), Fault> {
    let checker = Checker {
        dictionary,
        strictness: Strictness::Interoperable,
    };
    if understood {
        checker.understood(message.avps(), 0)?;
    }
    match dictionary.command(message.command(), message.application()) {
        Some(command) => checker.grammar(message.avps(), &command.request, false),
        None => Ok(()),
    }
}

/// Answers that report a failure leave out AVPs that a success would carry, and §7.1.5 permits that.
fn is_failure<B: AsRef<[u8]>>(message: &Message<B>) -> bool {
    if message.is_request() {
        return false;
    }
    let code = message.get(known::RESULT_CODE).ok().flatten();
    !code.is_some_and(|code| ResultCode(code).is_success())
}

struct Checker<'d> {
    dictionary: &'d Dictionary,
    strictness: Strictness,
}

impl Checker<'_> {
    fn walk(&self, avps: Avps<'_>, depth: usize) -> Result<(), Fault> {
        let mut rest = avps.remaining();
        let mut walk = avps;
        while let Some(avp) = walk.next() {
            let avp = avp?;
            let padding = &rest[avp.raw.len()..rest.len() - walk.remaining().len()];
            rest = walk.remaining();
            self.avp(&avp, padding, depth)?;
        }
        Ok(())
    }

    /// Refuses AVPs with the M flag that are not known.
    fn understood(&self, avps: Avps<'_>, depth: usize) -> Result<(), Fault> {
        for avp in avps {
            let avp = avp?;
            match self.dictionary.avp(avp.key()) {
                None if avp.flags.contains(AvpFlags::MANDATORY) => return Err(unsupported(&avp)),
                // What is inside a Failed-AVP is wrong by definition.
                Some(known)
                    if known.kind == AvpType::Grouped && !avp.is(known::FAILED_AVP) && depth < MAX_DEPTH =>
                {
                    self.understood(avp.group(), depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn avp(&self, avp: &Avp<'_>, padding: &[u8], depth: usize) -> Result<(), Fault> {
        let pedantic = self.strictness == Strictness::Pedantic;
        if avp.flags.contains(AvpFlags::VENDOR) && avp.vendor == 0 {
            return Err(fault(
                avp,
                ResultCode::INVALID_AVP_BITS,
                "the V flag is set and the Vendor-Id is 0",
            ));
        }
        if pedantic && avp.flags.0 & AvpFlags::RESERVED.0 != 0 {
            return Err(fault(avp, ResultCode::INVALID_AVP_BITS, "reserved bits are set"));
        }
        if pedantic && padding.iter().any(|&byte| byte != 0) {
            return Err(fault(
                avp,
                ResultCode::INVALID_AVP_VALUE,
                "the padding is not zero",
            ));
        }
        let Some(definition) = self.dictionary.avp(avp.key()) else {
            if avp.flags.contains(AvpFlags::MANDATORY) {
                return Err(unsupported(avp));
            }
            return Ok(());
        };
        if pedantic {
            self.pedantic(avp, definition)?;
        }
        if definition.kind == AvpType::Grouped {
            if avp.is(known::FAILED_AVP) {
                // What is inside is wrong by definition.
                return Ok(());
            }
            if depth >= MAX_DEPTH {
                return Err(fault(
                    avp,
                    ResultCode::INVALID_AVP_VALUE,
                    "groups are nested too deep",
                ));
            }
            self.walk(avp.group(), depth + 1)?;
            return self.grammar(avp.group(), &definition.members, false);
        }
        value(definition.kind, avp.data).map_err(|error| value_fault(avp, definition, &error))
    }

    fn pedantic(&self, avp: &Avp<'_>, definition: &AvpDefinition) -> Result<(), Fault> {
        let mandatory = avp.flags.contains(AvpFlags::MANDATORY);
        let against = match definition.mandatory {
            MandatoryRule::Must => !mandatory,
            MandatoryRule::MustNot => mandatory,
            MandatoryRule::May => false,
        };
        if against {
            return Err(fault(
                avp,
                ResultCode::INVALID_AVP_BITS,
                "the M flag is against its definition",
            ));
        }
        if definition.kind == AvpType::Enumerated
            && !definition.values.is_empty()
            && let Ok(bytes) = avp.data.try_into()
        {
            let number = i64::from(i32::from_be_bytes(bytes));
            if definition.value_name(number).is_none() {
                return Err(fault(
                    avp,
                    ResultCode::INVALID_AVP_VALUE,
                    &format!("{number} is not a value of {}", definition.name),
                ));
            }
        }
        Ok(())
    }

    fn grammar(&self, avps: Avps<'_>, grammar: &Grammar, failure: bool) -> Result<(), Fault> {
        let mut counts: SmallVec<[u32; 64]> = SmallVec::from_elem(0, grammar.rules.len());
        for avp in avps {
            let avp = avp?;
            match grammar.rules.iter().position(|rule| rule.key == avp.key()) {
                Some(index) => {
                    counts[index] += 1;
                    if counts[index] > grammar.rules[index].max {
                        return Err(fault(
                            &avp,
                            ResultCode::AVP_OCCURS_TOO_MANY_TIMES,
                            &format!("it may be there {} times", grammar.rules[index].max),
                        ));
                    }
                }
                None if !grammar.open => {
                    return Err(fault(&avp, ResultCode::AVP_NOT_ALLOWED, "it may not be there"));
                }
                None => {}
            }
        }
        if failure {
            return Ok(());
        }
        for (rule, count) in grammar.rules.iter().zip(&counts) {
            if *count < rule.min {
                return Err(self.missing(rule.key));
            }
        }
        Ok(())
    }

    /// §7.1.5: the Failed-AVP holds an example of what is missing, zeros of the smallest right length.
    fn missing(&self, key: AvpKey) -> Fault {
        let definition = self.dictionary.avp(key);
        let name = definition.map_or_else(|| key.to_string(), |avp| avp.name.to_string());
        let length = definition.map_or(0, |avp| avp.kind.min_len());
        let flags = definition.map_or(AvpFlags::MANDATORY, AvpDefinition::flags);
        let mut example = AvpWriter::with_capacity(32);
        example.put_raw(key, flags, &[0; 16][..length]);
        Fault::new(ResultCode::MISSING_AVP, format!("{name} is missing")).about(example.into_bytes())
    }
}

fn unsupported(avp: &Avp<'_>) -> Fault {
    fault(
        avp,
        ResultCode::AVP_UNSUPPORTED,
        "it is not known and has the M flag",
    )
}

fn fault(avp: &Avp<'_>, code: ResultCode, what: &str) -> Fault {
    Fault::new(code, format!("AVP {}: {what}", avp.key())).about(avp.padded())
}

/// §7.1.5: for a wrong length, the header and the least right payload in zeros are enough, so that a huge AVP
/// does not come back.
fn value_fault(avp: &Avp<'_>, definition: &AvpDefinition, error: &ValueError) -> Fault {
    match error {
        ValueError::Length { .. } => {
            let mut example = AvpWriter::with_capacity(32);
            example.put_raw(avp.key(), avp.flags, &[0; 16][..definition.kind.min_len()]);
            Fault::new(
                ResultCode::INVALID_AVP_LENGTH,
                format!("{}: {error}", definition.name),
            )
            .about(example.into_bytes())
        }
        ValueError::Content(_) => fault(
            avp,
            ResultCode::INVALID_AVP_VALUE,
            &format!("{}: {error}", definition.name),
        ),
    }
}

/// Checks data against a type.
///
/// # Errors
/// When length or content cannot be of the type. Groups are not entered.
pub fn value(kind: AvpType, data: &[u8]) -> Result<(), ValueError> {
    match kind {
        AvpType::OctetString | AvpType::Grouped => Ok(()),
        AvpType::Integer32
        | AvpType::Unsigned32
        | AvpType::Float32
        | AvpType::Time
        | AvpType::Enumerated
        | AvpType::Integer64
        | AvpType::Unsigned64
        | AvpType::Float64 => {
            let expected = kind.min_len();
            if data.len() == expected {
                Ok(())
            } else {
                Err(ValueError::Length {
                    expected,
                    got: data.len(),
                })
            }
        }
        AvpType::Address => Address::read(data).map(drop),
        AvpType::Utf8String => Utf8String::read(data).map(drop),
        AvpType::DiameterIdentity => DiameterIdentity::read(data).map(drop),
        AvpType::DiameterUri => DiameterUri::read(data).map(drop),
        AvpType::IpFilterRule => IpFilterRule::read(data).map(drop),
        AvpType::QosFilterRule => QosFilterRule::read(data).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::MessageBuilder;

    fn dpr(fill: impl FnOnce(&mut MessageBuilder)) -> Result<(), Fault> {
        let mut builder = MessageBuilder::request(282, 0);
        builder.put(known::ORIGIN_HOST, "a").put(known::ORIGIN_REALM, "r");
        fill(&mut builder);
        check(
            &builder.finish().unwrap(),
            Dictionary::standard(),
            Strictness::Interoperable,
        )
    }

    #[test]
    fn each_rule_has_its_code_and_names_its_avp() {
        dpr(|builder| {
            builder.put(known::DISCONNECT_CAUSE, 0);
        })
        .unwrap();
        type Fill = fn(&mut MessageBuilder);
        let cases: [(ResultCode, u32, Fill); 8] = [
            (ResultCode::MISSING_AVP, 273, |_| {}),
            (ResultCode::AVP_OCCURS_TOO_MANY_TIMES, 273, |b| {
                b.put(known::DISCONNECT_CAUSE, 0).put(known::DISCONNECT_CAUSE, 0);
            }),
            (ResultCode::INVALID_AVP_LENGTH, 273, |b| {
                b.put_raw(AvpKey::ietf(273), AvpFlags::MANDATORY, &[0; 3]);
            }),
            (ResultCode::INVALID_AVP_VALUE, 283, |b| {
                b.put_raw(AvpKey::ietf(283), AvpFlags::MANDATORY, b"a b");
            }),
            (ResultCode::AVP_UNSUPPORTED, 77_777, |b| {
                b.put_raw(AvpKey::ietf(77_777), AvpFlags::MANDATORY, b"");
            }),
            (ResultCode::INVALID_AVP_BITS, 5, |b| {
                b.append_encoded(&[0, 0, 0, 5, 0x80, 0, 0, 12, 0, 0, 0, 0]);
            }),
            (ResultCode::INVALID_AVP_LENGTH, 258, |b| {
                b.group(known::VENDOR_SPECIFIC_APPLICATION_ID, |group| {
                    group.append_encoded(&[0, 0, 1, 2, 0x40, 0, 1, 0]);
                });
            }),
            (ResultCode::MISSING_AVP, 266, |b| {
                b.group(known::VENDOR_SPECIFIC_APPLICATION_ID, |_| {});
            }),
        ];
        for (code, avp, fill) in cases {
            let fault = dpr(fill).unwrap_err();
            assert_eq!(fault.code, code, "{fault}");
            let failed = fault.failed_avp.unwrap();
            assert_eq!(
                Avps::new(&failed).next().unwrap().unwrap().code,
                avp,
                "{}",
                fault.reason
            );
        }
    }

    #[test]
    fn unknown_avps_without_the_m_flag_are_welcome() {
        dpr(|builder| {
            builder.put(known::DISCONNECT_CAUSE, 0);
            builder.put_raw(
                AvpKey {
                    vendor: 99_999,
                    code: 1,
                },
                AvpFlags::default(),
                b"x",
            );
        })
        .unwrap();
    }

    #[test]
    fn an_end_point_refuses_what_it_must_and_no_more() {
        let unknown = AvpKey {
            vendor: 99_999,
            code: 1,
        };
        let str_of = |fill: &dyn Fn(&mut MessageBuilder)| {
            let mut builder = MessageBuilder::request(275, known::application::RX);
            builder
                .put(known::SESSION_ID, "a;1")
                .put(known::ORIGIN_HOST, "a")
                .put(known::ORIGIN_REALM, "r")
                .put(known::DESTINATION_REALM, "r")
                .put(known::AUTH_APPLICATION_ID, known::application::RX);
            fill(&mut builder);
            let message = builder.finish().unwrap();
            request(&message, Dictionary::standard(), true).map_err(|fault| fault.code)
        };
        let ended = |builder: &mut MessageBuilder| {
            builder.put(known::TERMINATION_CAUSE, 1);
        };
        assert_eq!(str_of(&ended), Ok(()));
        assert_eq!(str_of(&|_| {}), Err(ResultCode::MISSING_AVP));
        let twice = |builder: &mut MessageBuilder| {
            ended(builder);
            ended(builder);
        };
        assert_eq!(str_of(&twice), Err(ResultCode::AVP_OCCURS_TOO_MANY_TIMES));
        for (flags, expected) in [
            (AvpFlags::MANDATORY, Err(ResultCode::AVP_UNSUPPORTED)),
            (AvpFlags::default(), Ok(())),
        ] {
            let top = |builder: &mut MessageBuilder| {
                ended(builder);
                builder.put_raw(unknown, flags, b"x");
            };
            assert_eq!(str_of(&top), expected);
            let inside = |builder: &mut MessageBuilder| {
                ended(builder);
                builder.group(known::SUPPORTED_FEATURES, |group| {
                    group.put_raw(unknown, flags, b"x");
                });
            };
            assert_eq!(str_of(&inside), expected, "in a group");
        }
    }

    #[test]
    fn groups_end_somewhere() {
        let mut data = Vec::new();
        for _ in 0..MAX_DEPTH + 2 {
            let mut writer = AvpWriter::default();
            writer.put_raw(AvpKey::ietf(284), AvpFlags::MANDATORY, &data);
            data = writer.into_bytes().to_vec();
        }
        let mut builder = MessageBuilder::request(258, 0);
        builder.append_encoded(&data);
        let fault = check(
            &builder.finish().unwrap(),
            Dictionary::standard(),
            Strictness::default(),
        );
        assert_eq!(fault.unwrap_err().code, ResultCode::INVALID_AVP_VALUE);
    }

    #[test]
    fn pedantry_is_a_choice() {
        let mut builder = MessageBuilder::request(282, 0);
        builder
            .put(known::ORIGIN_HOST, "a")
            .put(known::ORIGIN_REALM, "r")
            .put(known::DISCONNECT_CAUSE, 77);
        let message = builder.finish().unwrap();
        check(&message, Dictionary::standard(), Strictness::Interoperable).unwrap();
        let fault = check(&message, Dictionary::standard(), Strictness::Pedantic).unwrap_err();
        assert_eq!(fault.code, ResultCode::INVALID_AVP_VALUE);
    }
}
