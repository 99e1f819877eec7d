//! Mediation: rules that change requests and answers on their way.

use bytes::Bytes;
use diameter::proto::kind::AvpType;
use diameter::proto::{AvpKey, Dictionary, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};
use smallvec::SmallVec;

use super::rules::require_one_test;

/// Bound on the rules.
const MAX_RULES: usize = 1000;
/// Bound on the AVP conditions of a rule, and on its changes.
const MAX_PARTS: usize = 32;
/// Bound on the depth of a path to an AVP in groups.
const MAX_DEPTH: usize = 4;
/// Session-Id, Route-Record and Proxy-Info: a message finds its way, and its way back, by them.
const FIXED: [u32; 3] = [263, 282, 284];

const ROUTE_RECORD: u32 = 282;

/// The AVPs from the top level to one in groups.
pub(crate) type AvpPath = SmallVec<[AvpKey; 2]>;

/// Rules that change requests and answers in the router.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Mediation {
    /// Every rule that matches a message changes it, in this order; each sees the changes of those before it.
    pub rules: Vec<MediationRule>,
}

/// A mediation rule.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct MediationRule {
    /// Name under which matching requests are counted; rules of one name count together. Empty: not counted.
    pub name: String,
    /// Messages to which it applies.
    pub messages: Messages,
    /// Conditions on a message; an absent condition is always true.
    pub when: MessageConditions,
    /// Changes of a matching message.
    pub changes: Vec<Change>,
    /// Whether no further rule is applied to a matching message.
    pub last: bool,
}

/// Which messages a rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Messages {
    /// Requests, before application route rules.
    #[default]
    Requests,
    /// Answers of peers, before they go to the sender of the request.
    Answers,
}

/// What a message has to be like. All that are given have to hold.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct MessageConditions {
    /// Application ids, any of these; empty: all.
    pub applications: Vec<u32>,
    /// Command codes, any of these; empty: all.
    pub commands: Vec<u32>,
    /// DiameterIdentities of the peer it comes from, any of these; empty: all.
    pub peers: Vec<String>,
    /// Whether the P flag is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxiable: Option<bool>,
    /// Whether the T flag is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<bool>,
    /// Whether the E flag is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<bool>,
    /// Result-Codes or Experimental-Result-Codes of an answer, any of these; empty: all.
    pub results: Vec<u32>,
    /// AVPs.
    pub avps: Vec<AvpCondition>,
}

/// A condition on an AVP. Exactly one of its keys besides `avp` is given; it holds if it does for one of several AVPs.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AvpCondition {
    /// Its name, or `VENDOR:CODE`; in groups with those of the groups before it:
    /// `Subscription-Id/Subscription-Id-Data`.
    pub avp: String,
    /// It is one of these. Letters of text compare without regard to case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equals: Vec<String>,
    /// It begins with one of these; for text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starts_with: Vec<String>,
    /// It ends with one of these; for text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends_with: Vec<String>,
    /// It is present (true) or absent (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<bool>,
}

/// A change of a message, at its top level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// An AVP is appended.
    Add(AvpValue),
    /// Every AVP of that name gets this value; a message without one stays as it is.
    Replace(AvpValue),
    /// Every AVP of that name goes.
    Remove(String),
}

/// An AVP with its value.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AvpValue {
    /// Its name, or `VENDOR:CODE`.
    pub avp: String,
    /// Its value: text, a number, the name of a value, an address, `0x` and hexadecimal digits, or a group as
    /// `{ Name = value … }`.
    pub value: String,
}

/// Whether values of an AVP are compared as text.
pub(crate) fn is_text(key: AvpKey) -> bool {
    use AvpType::{DiameterIdentity, DiameterUri, IpFilterRule, OctetString, QosFilterRule, Utf8String};
    Dictionary::standard().avp(key).is_none_or(|avp| {
        matches!(
            avp.kind,
            Utf8String | DiameterIdentity | DiameterUri | OctetString | IpFilterRule | QosFilterRule
        )
    })
}

/// The AVPs that a path names.
pub(crate) fn path(names: &str) -> Result<AvpPath, String> {
    let path: AvpPath = names.split('/').map(key).collect::<Result<_, _>>()?;
    match path.len() <= MAX_DEPTH {
        true => Ok(path),
        false => Err(format!("`{names}` is more than {MAX_DEPTH} AVPs deep")),
    }
}

/// The AVP of a name or of `VENDOR:CODE`.
pub(crate) fn key(name: &str) -> Result<AvpKey, String> {
    if let Some(avp) = Dictionary::standard().avp_named(name) {
        return Ok(avp.key);
    }
    let numbers = name
        .split_once(':')
        .and_then(|(vendor, code)| Some((vendor.parse().ok()?, code.parse().ok()?)));
    match numbers {
        Some((vendor, code)) => Ok(AvpKey { vendor, code }),
        None => Err(format!("unknown AVP `{name}`")),
    }
}

/// An AVP with a value, encoded.
pub(crate) fn encode(name: &str, value: &str) -> Result<Bytes, String> {
    let key = key(name)?;
    let dictionary = Dictionary::standard();
    let known = dictionary.avp(key);
    let quoted = is_text(key) && !value.starts_with("0x") && !value.starts_with('{');
    let value = match quoted {
        true => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
        false => value.to_owned(),
    };
    let name = match known {
        Some(known) => dictionary.unique_name(known),
        None => format!("avp {}:{}", key.vendor, key.code),
    };
    let wrong = || match known {
        Some(known) => format!(
            "{value} is not a value of {}; use a value of type {}",
            known.name,
            known.kind.name()
        ),
        None => format!("{value} is not a value of AVP {key}; use text, or 0x and hexadecimal digits"),
    };
    let message = text::parse(&format!("DWR {{ {name} = {value} }}"), dictionary).map_err(|_| wrong())?;
    let mut avps = message.avps();
    match (avps.next(), avps.next()) {
        (Some(Ok(avp)), None) if avp.key() == key => {
            let mut writer = diameter::proto::AvpWriter::default();
            writer.copy(&avp);
            Ok(writer.into_bytes())
        }
        _ => Err(wrong()),
    }
}

/// The data of a value of an AVP.
pub(crate) fn data(key: AvpKey, value: &str) -> Result<Bytes, String> {
    let name = format!("{}:{}", key.vendor, key.code);
    let encoded = encode(&name, value)?;
    let avp = diameter::proto::Avps::new(&encoded).next();
    match avp {
        Some(Ok(avp)) => Ok(Bytes::copy_from_slice(avp.data)),
        _ => Err(format!(
            "{value} is not a value of AVP {key}; use one AVP's value"
        )),
    }
}

impl AvpCondition {
    fn validate_at(&self, at: &str, faults: &mut Faults) {
        let path = match path(&self.avp) {
            Ok(path) => path,
            Err(wrong) => {
                return faults
                    .at(format!("{at}.avp"))
                    .say(wrong, "names of the dictionary such as User-Name, or VENDOR:CODE");
            }
        };
        let lists = [&self.equals, &self.starts_with, &self.ends_with];
        require_one_test(lists, self.present, at, faults);
        let (Some(last), groups) = (path.last(), path.len().saturating_sub(1)) else {
            return;
        };
        for group in path.iter().take(groups) {
            let known = Dictionary::standard().avp(*group);
            if let Some(known) = known.filter(|known| known.kind != AvpType::Grouped) {
                faults.at(format!("{at}.avp")).say(
                    format!("{} is not a group", known.name),
                    "a path through AVPs of type Grouped",
                );
            }
        }
        let is_partial = !self.starts_with.is_empty() || !self.ends_with.is_empty();
        if is_partial && !is_text(*last) {
            faults.at(at).say(
                format!("{} is not text, which startsWith and endsWith are for", self.avp),
                "equals or present",
            );
        }
        for (index, value) in self.equals.iter().enumerate() {
            if let Err(wrong) = data(*last, value) {
                faults
                    .at(format!("{at}.equals[{index}]"))
                    .say(wrong, "a value of the AVP");
            }
        }
    }
}

impl Change {
    /// Whether it takes Route-Records out of answers, where they are of no use: RFC 6733 §6.1.9 has them in requests. Some
    /// relays leave them in, and some clients then drop the answer.
    fn is_harmless(&self, messages: Messages, key: AvpKey) -> bool {
        matches!(self, Self::Remove(_)) && messages == Messages::Answers && key.code == ROUTE_RECORD
    }

    fn validate_at(&self, messages: Messages, at: &str, faults: &mut Faults) {
        let (name, value) = match self {
            Self::Add(avp) | Self::Replace(avp) => (&avp.avp, Some(&avp.value)),
            Self::Remove(name) => (name, None),
        };
        match key(name) {
            Err(wrong) => {
                return faults.at(at).say(
                    wrong,
                    "a name of the dictionary such as User-Name, or VENDOR:CODE",
                );
            }
            Ok(key) if key.vendor == 0 && FIXED.contains(&key.code) && !self.is_harmless(messages, key) => {
                return faults.at(at).say(
                    format!("{name} is needed to route the answer"),
                    "any AVP but Session-Id, Route-Record (which may be removed from answers) and Proxy-Info",
                );
            }
            Ok(_) => {}
        }
        if let Some(value) = value
            && let Err(wrong) = encode(name, value)
        {
            faults.at(at).say(wrong, "a value of the AVP");
        }
    }
}

impl Validate for Mediation {
    fn validate(&self, faults: &mut Faults) {
        let mut bound = |at: String, count: usize, max: usize| {
            if count > max {
                faults
                    .at(at)
                    .say(format!("has {count} entries"), format!("at most {max}"));
            }
        };
        bound("rules".to_owned(), self.rules.len(), MAX_RULES);
        for (index, rule) in self.rules.iter().enumerate() {
            bound(
                format!("rules[{index}].when.avps"),
                rule.when.avps.len(),
                MAX_PARTS,
            );
            bound(format!("rules[{index}].changes"), rule.changes.len(), MAX_PARTS);
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let at = format!("rules[{index}]");
            if rule.changes.is_empty() {
                faults
                    .at(format!("{at}.changes"))
                    .say("is empty", "at least one change");
            }
            if rule.messages == Messages::Requests && !rule.when.results.is_empty() {
                faults
                    .at(format!("{at}.when.results"))
                    .say("is about answers, requests have no result", "messages: answers");
            }
            for (number, condition) in rule.when.avps.iter().enumerate() {
                condition.validate_at(&format!("{at}.when.avps[{number}]"), faults);
            }
            for (number, change) in rule.changes.iter().enumerate() {
                change.validate_at(rule.messages, &format!("{at}.changes[{number}]"), faults);
            }
        }
    }
}
