//! One mediation rule: what a message has to be like, and what is changed.

use std::fmt;

use bytes::Bytes;
use diameter::proto::{Avp, AvpKey, Avps, CommandFlags};

use super::draft::Draft;
use crate::config::{AvpCondition, AvpPath, Change, MediationRule, data, encode, is_text, key, path};
use crate::measures::Count;

/// Why a rule does not fit a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misfit {
    Application,
    Peer,
    Flags,
    Result,
    /// The condition on AVPs at this position.
    Avp(usize),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application => f.write_str("when.applications does not hold"),
            Self::Peer => f.write_str("when.peers does not hold"),
            Self::Flags => f.write_str("a condition on flags does not hold"),
            Self::Result => f.write_str("when.results does not hold"),
            Self::Avp(at) => write!(f, "when.avps[{at}] does not hold"),
        }
    }
}

#[derive(Debug)]
enum Test {
    /// One of these texts.
    Text(Vec<Bytes>),
    /// One of these values, byte by byte.
    Value(Vec<Bytes>),
    StartsWith(Vec<Bytes>),
    EndsWith(Vec<Bytes>),
    Present,
    Absent,
}

impl Test {
    fn new(condition: &AvpCondition, of: AvpKey) -> Result<Self, String> {
        let texts = |texts: &[String]| {
            texts
                .iter()
                .map(|text| Bytes::copy_from_slice(text.as_bytes()))
                .collect()
        };
        Ok(match condition.present {
            Some(true) => Self::Present,
            Some(false) => Self::Absent,
            None if !condition.starts_with.is_empty() => Self::StartsWith(texts(&condition.starts_with)),
            None if !condition.ends_with.is_empty() => Self::EndsWith(texts(&condition.ends_with)),
            None => {
                let values: Result<_, _> = condition.equals.iter().map(|value| data(of, value)).collect();
                match is_text(of) {
                    true => Self::Text(values?),
                    false => Self::Value(values?),
                }
            }
        })
    }

    /// Whether it holds for the data of one AVP.
    fn holds(&self, data: &[u8]) -> bool {
        let same =
            |part: Option<&[u8]>, text: &Bytes| part.is_some_and(|part| part.eq_ignore_ascii_case(text));
        match self {
            Self::Text(texts) => texts.iter().any(|text| data.eq_ignore_ascii_case(text)),
            Self::Value(values) => values.iter().any(|value| data == value),
            Self::StartsWith(texts) => texts.iter().any(|text| same(data.get(..text.len()), text)),
            Self::EndsWith(texts) => texts.iter().any(|text| {
                let begin = data.len().checked_sub(text.len());
                same(begin.and_then(|begin| data.get(begin..)), text)
            }),
            Self::Present | Self::Absent => true,
        }
    }
}

/// Whether the test holds for an AVP at the end of the path.
fn any<'m>(avps: impl Iterator<Item = Avp<'m>>, path: &[AvpKey], test: &Test) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    let mut fitting = avps.filter(|avp| avp.key() == *first);
    match rest.is_empty() {
        true => fitting.any(|avp| test.holds(avp.data)),
        false => fitting.any(|avp| any_inside(avp.group(), rest, test)),
    }
}

fn any_inside(group: Avps<'_>, path: &[AvpKey], test: &Test) -> bool {
    any(
        &mut group.map_while(Result::ok) as &mut dyn Iterator<Item = Avp<'_>>,
        path,
        test,
    )
}

/// A rule.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) name: Box<str>,
    applications: Vec<u32>,
    peers: Vec<String>,
    /// Flags that count, and what they have to be.
    flags: (u8, u8),
    results: Vec<u32>,
    avps: Vec<(AvpPath, Test)>,
    /// New data of AVPs; none: they go.
    edits: Vec<(AvpKey, Option<Bytes>)>,
    /// AVPs that are added, encoded.
    added: Bytes,
    pub(super) last: bool,
    pub(super) count: Count,
}

impl Compiled {
    pub(super) fn new(rule: &MediationRule, count: Count) -> Result<Self, String> {
        let when = &rule.when;
        let mut flags = (0, 0);
        for (flag, wanted) in [
            (CommandFlags::PROXIABLE, when.proxiable),
            (CommandFlags::RETRANSMITTED, when.retransmitted),
            (CommandFlags::ERROR, when.error),
        ] {
            if let Some(wanted) = wanted {
                flags.0 |= flag.0;
                flags.1 |= if wanted { flag.0 } else { 0 };
            }
        }
        let mut avps = Vec::new();
        for condition in &when.avps {
            let path = path(&condition.avp)?;
            let last = path.last().copied().ok_or("a condition without an AVP")?;
            avps.push((path, Test::new(condition, last)?));
        }
        let (mut edits, mut added) = (Vec::new(), Vec::new());
        for change in &rule.changes {
            match change {
                Change::Add(avp) => added.extend_from_slice(&encode(&avp.avp, &avp.value)?),
                Change::Replace(avp) => {
                    let key = key(&avp.avp)?;
                    edits.push((key, Some(data(key, &avp.value)?)));
                }
                Change::Remove(name) => edits.push((key(name)?, None)),
            }
        }
        Ok(Self {
            name: rule.name.as_str().into(),
            applications: when.applications.clone(),
            peers: when.peers.clone(),
            flags,
            results: when.results.clone(),
            avps,
            edits,
            added: added.into(),
            last: rule.last,
            count,
        })
    }

    /// Why the rule does not fit a message of its command; none: it fits.
    pub(super) fn misfit(&self, draft: &Draft<'_>, from: &str) -> Option<Misfit> {
        if !self.applications.is_empty() && !self.applications.contains(&draft.header().application) {
            return Some(Misfit::Application);
        }
        if !self.peers.is_empty() && !self.peers.iter().any(|peer| peer.eq_ignore_ascii_case(from)) {
            return Some(Misfit::Peer);
        }
        let (mask, wanted) = self.flags;
        if draft.header().flags.0 & mask != wanted {
            return Some(Misfit::Flags);
        }
        if !self.results.is_empty() && !draft.result().is_some_and(|code| self.results.contains(&code)) {
            return Some(Misfit::Result);
        }
        let fails =
            |(path, test): &(AvpPath, Test)| any(draft.avps(), path, test) == matches!(test, Test::Absent);
        self.avps.iter().position(fails).map(Misfit::Avp)
    }

    /// Changes a message that the rule fits.
    pub(super) fn apply<'m>(&'m self, draft: &mut Draft<'m>) {
        let avps = draft.edit();
        if !self.edits.is_empty() {
            avps.retain_mut(|avp| {
                let change = self.edits.iter().rfind(|(key, _)| *key == avp.key());
                match change {
                    None => true,
                    Some((_, None)) => false,
                    Some((_, Some(data))) => {
                        // Without `raw` it is encoded when the message is built.
                        (avp.data, avp.raw) = (data, &[]);
                        true
                    }
                }
            });
        }
        avps.extend(Avps::new(&self.added).map_while(Result::ok));
    }
}
