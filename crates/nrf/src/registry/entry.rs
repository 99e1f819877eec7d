//! A registered profile: its text, what is understood of it, and what moves with heart-beats.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use model::shape::Fault;
use model::{NfInstanceId, NfProfile, NfService, NfStatus, NfType, pattern};

use sbi::json::{text, unique};

/// Most services a profile may have: discovery keeps the chosen ones in a mask of this many bits.
pub const MAX_SERVICES: usize = 128;

/// A registered NF instance. Immutable: a change makes a new entry, which shares what did not change.
///
/// A heart-beat that brings a new load makes an entry that shares the parsed profile and all of its text
/// but one short line.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its identity.
    pub id: NfInstanceId,
    /// What is understood of the profile. Status, load and time stamp in here are those of the last full
    /// write; the current ones are fields of the entry.
    pub profile: Arc<NfProfile>,
    /// Current status.
    pub status: NfStatus,
    /// Current load.
    pub load: Option<u8>,
    /// When the load was measured, as its owner wrote it.
    pub load_time_stamp: Option<Arc<str>>,
    /// Seconds between heart-beats, as assigned.
    pub heart_beat_timer: u32,
    /// The other NRF set that it is registered with; `None`: with this one.
    pub set: Option<Arc<str>>,
    /// Members that come first: identity, type and what moves.
    moving: Bytes,
    still: Arc<Still>,
    etag: u64,
}

/// The text of a profile that heart-beats leave alone.
#[derive(Debug)]
struct Still {
    /// `"nfInstanceId":"…","nfType":"…"`.
    head: String,
    /// All other members, as their owner wrote them, joined by commas.
    rest: Bytes,
    /// Of these, what a discoverer may see, without services.
    visible: Visible,
    /// The services a discoverer may see, in the order of [`NfProfile::services`].
    services: Vec<Visible>,
    hash: u64,
}

/// A piece of JSON that a discoverer may see, and where in it the slices are, which an answer may narrow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible {
    pub(crate) text: Bytes,
    /// The value of `sNssais`.
    pub(crate) snssais: Option<Range<usize>>,
    /// The value of `perPlmnSnssaiList`.
    pub(crate) per_plmn: Option<Range<usize>>,
}

/// Why a text is not a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileFault {
    /// Not JSON.
    #[error("line {line}, column {column}: {reason}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// JSON, but not a profile.
    #[error("{} faults, the first at {}: {}", .0.len(), .0[0].pointer, .0[0].expected)]
    Shape(Vec<Fault>),
    /// A profile with more regular expressions than allowed; the faults say where.
    #[error("{} faults, the first at {}: {}", .0.len(), .0[0].pointer, .0[0].expected)]
    Patterns(Vec<Fault>),
}

impl ProfileFault {
    /// Whether it has more regular expressions than allowed.
    #[must_use]
    pub fn exceeds_patterns(&self) -> bool {
        matches!(self, Self::Patterns(_))
    }

    fn at(pointer: &str, expected: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::Shape(vec![Fault {
            pointer: pointer.to_owned(),
            expected: expected.into(),
            missing: false,
        }])
    }
}

/// Members that a discovery result never shows (TS 29.510 §6.2.6.2.3 lacks them): who may discover is the
/// NRF's business, and a discoverer has no use for the rest.
const HIDDEN: &[&str] = &[
    "allowedPlmns",
    "allowedSnpns",
    "allowedNfTypes",
    "allowedNfDomains",
    "allowedNssais",
    "nrfInfo",
    "perPlmnOauth2ReqList",
];
const SERVICES: &[&str] = &["nfServices", "nfServiceList"];
/// Members the entry writes itself.
const OWN: &[&str] = &[
    "nfInstanceId",
    "nfType",
    "nfStatus",
    "load",
    "loadTimeStamp",
    "heartBeatTimer",
];

/// Hashes text to entity tags. Fixed keys: a tag must mean the same on every worker and after a restart.
pub(crate) fn fingerprint(pieces: &[&[u8]]) -> u64 {
    let mut hasher = ahash::RandomState::with_seeds(29510, 6, 2, 3).build_hasher();
    for piece in pieces {
        hasher.write(piece);
    }
    hasher.finish()
}

impl Entry {
    /// Reads a profile as its owner sent it; `timer` is the heart-beat timer the NRF assigns.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(body: &[u8], timer: impl FnOnce(&NfProfile) -> u32) -> Result<Self, ProfileFault> {
        Self::parse_within(body, pattern::Limits::default(), timer)
    }

    /// As [`Entry::parse`], with limits for the regular expressions of the profile.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse_within(
        body: &[u8],
        limits: pattern::Limits,
        timer: impl FnOnce(&NfProfile) -> u32,
    ) -> Result<Self, ProfileFault> {
        // What is compiled to be checked is used by the profile.
        let (read, exceeded) = pattern::within(limits, || Self::read(body, timer));
        match read {
            Err(ProfileFault::Shape(faults)) if exceeded => Err(ProfileFault::Patterns(faults)),
            other => other,
        }
    }

    fn read(body: &[u8], timer: impl FnOnce(&NfProfile) -> u32) -> Result<Self, ProfileFault> {
        let value = unique::parse(body).map_err(|fault| match fault {
            unique::Fault::Syntax(error) => ProfileFault::Syntax {
                line: error.line(),
                column: error.column(),
                reason: error.to_string(),
            },
            unique::Fault::Twice(place) => ProfileFault::at(&place, "expected each member once"),
        })?;
        let faults = model::nf_profile::shape::PROFILE.check(&value);
        if !faults.is_empty() {
            return Err(ProfileFault::Shape(faults));
        }
        let profile: NfProfile = serde::Deserialize::deserialize(&value)
            .map_err(|error: serde_json::Error| ProfileFault::at("", error.to_string()))?;
        if profile.services().count() > MAX_SERVICES {
            return Err(ProfileFault::at(
                "/nfServices",
                format!("expected at most {MAX_SERVICES} services"),
            ));
        }
        // A JSON text is UTF-8, as the parser has found.
        let body = std::str::from_utf8(body).map_err(|error| ProfileFault::at("", error.to_string()))?;
        let still = Still::new(body, &profile);
        let timer = timer(&profile);
        Ok(Self::assemble(
            profile.nf_status.clone(),
            profile.load,
            profile.load_time_stamp.as_deref().map(Into::into),
            timer,
            Arc::new(profile),
            Arc::new(still),
        ))
    }

    fn assemble(
        status: NfStatus,
        load: Option<u8>,
        load_time_stamp: Option<Arc<str>>,
        heart_beat_timer: u32,
        profile: Arc<NfProfile>,
        still: Arc<Still>,
    ) -> Self {
        use std::fmt::Write as _;
        let mut moving = still.head.clone();
        // Writing to a String cannot fail.
        let _ = write!(
            moving,
            ",\"nfStatus\":{}",
            serde_json::Value::from(status.as_str())
        );
        if let Some(load) = load {
            let _ = write!(moving, ",\"load\":{load}");
        }
        if let Some(stamp) = &load_time_stamp {
            let _ = write!(
                moving,
                ",\"loadTimeStamp\":{}",
                serde_json::Value::from(stamp.as_ref())
            );
        }
        let etag = fingerprint(&[
            moving.as_bytes(),
            &still.hash.to_le_bytes(),
            &heart_beat_timer.to_le_bytes(),
        ]);
        Self {
            id: profile.nf_instance_id,
            status,
            load,
            load_time_stamp,
            heart_beat_timer,
            set: None,
            moving: moving.into(),
            etag,
            profile,
            still,
        }
    }

    /// This profile with another status, load or time stamp; everything else is shared.
    #[must_use]
    pub fn moved(&self, status: NfStatus, load: Option<u8>, load_time_stamp: Option<Arc<str>>) -> Self {
        Self::assemble(
            status,
            load,
            load_time_stamp,
            self.heart_beat_timer,
            self.profile.clone(),
            self.still.clone(),
        )
    }

    /// This profile as one of another NRF set.
    #[must_use]
    pub fn of_set(self, set: Arc<str>) -> Self {
        Self {
            set: Some(set),
            ..self
        }
    }

    /// Whether it is registered with this NRF set.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.set.is_none()
    }

    /// Its type.
    #[must_use]
    pub fn nf_type(&self) -> &NfType {
        &self.profile.nf_type
    }

    /// Its entity tag, with quotes.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("\"{:016x}\"", self.etag)
    }

    /// The number behind the entity tag: equal for equal profiles.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.etag
    }

    /// Whether only load, status and time stamp differ from `other`.
    #[must_use]
    pub fn shares_text(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.still, &other.still)
    }

    /// Bytes of its text, about.
    #[must_use]
    pub fn size(&self) -> usize {
        self.moving.len() + self.still.rest.len()
    }

    /// The whole profile as registered, with current status and load: JSON text, unknown members included.
    #[must_use]
    pub fn document(&self) -> Bytes {
        let timer = format!(",\"heartBeatTimer\":{}", self.heart_beat_timer);
        let mut out = BytesMut::with_capacity(self.moving.len() + self.still.rest.len() + timer.len() + 3);
        out.put_u8(b'{');
        out.put_slice(&self.moving);
        out.put_slice(timer.as_bytes());
        if !self.still.rest.is_empty() {
            out.put_u8(b',');
            out.put_slice(&self.still.rest);
        }
        out.put_u8(b'}');
        out.freeze()
    }

    /// The profile as other NFs may see it in notifications: without who may discover it, with its timer.
    #[must_use]
    pub fn public_document(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.still.rest.len() + 256);
        out.push(b'{');
        out.extend_from_slice(&self.moving);
        out.extend_from_slice(format!(",\"heartBeatTimer\":{}", self.heart_beat_timer).as_bytes());
        self.push_rest(&mut out, &self.still.visible.text);
        let services = &self.still.services;
        if !services.is_empty() {
            out.extend_from_slice(b",\"nfServices\":[");
            join(&mut out, services.iter().map(|service| &service.text));
            out.push(b']');
        }
        out.push(b'}');
        out.into()
    }

    fn push_rest(&self, out: &mut Vec<u8>, text: &[u8]) {
        if !text.is_empty() {
            out.push(b',');
            out.extend_from_slice(text);
        }
    }

    /// `"nfInstanceId":…,"nfType":…,"nfStatus":…` and, if known, load and time stamp.
    pub(crate) fn moving(&self) -> &Bytes {
        &self.moving
    }

    /// Members other than those, and than services, that a discoverer may see.
    pub(crate) fn visible(&self) -> &Visible {
        &self.still.visible
    }

    /// The services a discoverer may see, in the order of [`NfProfile::services`].
    pub(crate) fn visible_services(&self) -> &[Visible] {
        &self.still.services
    }
}

fn join<'a>(out: &mut Vec<u8>, pieces: impl Iterator<Item = &'a Bytes>) {
    for (i, piece) in pieces.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(piece);
    }
}

impl Still {
    /// Of a text in which each member comes once.
    fn new(body: &str, profile: &NfProfile) -> Self {
        let whole = text::root(body);
        let (mut rest, mut visible) = (
            String::with_capacity(body.len()),
            String::with_capacity(body.len()),
        );
        let (mut snssais, mut per_plmn) = (None, None);
        let (mut id, mut nf_type) = ("", "");
        for item in text::items(body, whole.clone()) {
            let key = text::unescaped(&body[item.key.clone()]);
            let key = key.as_ref();
            match key {
                "nfInstanceId" => id = &body[item.value.clone()],
                "nfType" => nf_type = &body[item.value.clone()],
                _ => {}
            }
            if OWN.contains(&key) {
                continue;
            }
            push_joined(&mut rest, &body[item.whole.clone()]);
            if HIDDEN.contains(&key) || SERVICES.contains(&key) {
                continue;
            }
            push_joined(&mut visible, &body[item.whole.clone()]);
            let value = visible.len() - item.value.len()..visible.len();
            match key {
                "sNssais" => snssais = Some(value),
                "perPlmnSnssaiList" => per_plmn = Some(value),
                _ => {}
            }
        }
        let head = format!("\"nfInstanceId\":{id},\"nfType\":{nf_type}");
        let services = Self::services(body, whole, profile);
        let hash = fingerprint(&[rest.as_bytes()]);
        Self {
            head,
            rest: rest.into(),
            visible: Visible {
                text: visible.into(),
                snssais,
                per_plmn,
            },
            services,
            hash,
        }
    }

    /// The texts of the services, in the order of [`NfProfile::services`].
    fn services(body: &str, whole: Range<usize>, profile: &NfProfile) -> Vec<Visible> {
        let listed = text::member(body, whole.clone(), "nfServices").map(|item| item.value);
        let mapped = text::member(body, whole, "nfServiceList").map(|item| item.value);
        let spans = |container: &Option<Range<usize>>| -> Vec<Range<usize>> {
            container
                .iter()
                .flat_map(|span| text::items(body, span.clone()))
                .map(|item| item.value)
                .collect()
        };
        let (listed, mapped_spans) = (spans(&listed), spans(&mapped));
        let from_map = |service: &NfService| {
            mapped_spans.iter().find(|span| {
                text::member(body, (*span).clone(), "serviceInstanceId").is_some_and(|id| {
                    serde_json::from_str::<String>(&body[id.value])
                        .is_ok_and(|id| id == service.service_instance_id)
                })
            })
        };
        profile
            .services()
            .enumerate()
            .filter_map(|(i, service)| listed.get(i).or_else(|| from_map(service)))
            .map(|span| Visible::service(&body[span.clone()]))
            .collect()
    }
}

impl Visible {
    /// A service without what a discoverer must not see.
    fn service(text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        let (mut snssais, mut per_plmn) = (None, None);
        out.push('{');
        for item in text::items(text, text::root(text)) {
            let key = text::unescaped(&text[item.key.clone()]);
            let key = key.as_ref();
            if HIDDEN.contains(&key) {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&text[item.whole.clone()]);
            let value = out.len() - item.value.len()..out.len();
            match key {
                "sNssais" => snssais = Some(value),
                "perPlmnSnssaiList" => per_plmn = Some(value),
                _ => {}
            }
        }
        out.push('}');
        Self {
            text: out.into(),
            snssais,
            per_plmn,
        }
    }
}

fn push_joined(out: &mut String, piece: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str(piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "nfStatus" : "REGISTERED", "nfInstanceId":"4947A69A-f61b-4bc1-b9da-47c9c5d14b64","nfType":"UDM",
      "heartBeatTimer": 7, "x-vendor" : { "n": 1.0e2 }, "fqdn":"udm.example.com", "allowedNfTypes":["AMF"], "load": 10,
      "nfServices":[ {"serviceInstanceId":"a","serviceName":"nudm-sdm","versions":[{"apiVersionInUri":"v2","apiFullVersion":"2.0.0"}],"scheme":"http","nfServiceStatus":"REGISTERED","allowedNfTypes":["AMF"], "y" : 1.00} ],
      "nfServiceList":{"b":{"serviceInstanceId":"b","serviceName":"nudm-ueau","versions":[{"apiVersionInUri":"v1","apiFullVersion":"1.0.0"}],"scheme":"http","nfServiceStatus":"REGISTERED"}} }"#;

    fn entry(text: &str) -> Entry {
        Entry::parse(text.as_bytes(), |_| 30).unwrap()
    }

    fn json(bytes: &[u8]) -> serde_json::Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn the_document_is_what_was_registered() {
        let entry = entry(TEXT);
        let mut expected = json(TEXT.as_bytes());
        expected["heartBeatTimer"] = 30.into();
        assert_eq!(json(&entry.document()), expected);
        let text = String::from_utf8(entry.document().to_vec()).unwrap();
        assert!(text.contains(r#""x-vendor" : { "n": 1.0e2 }"#) && text.contains(r#""y" : 1.00"#));
        assert!(text.contains("4947A69A-"), "the identity as it was written");
    }

    /// Names written with escapes mean what they mean without.
    #[test]
    fn escaped_names_are_names() {
        let plain = entry(TEXT);
        let text = TEXT
            .replace("\"nfInstanceId\"", r#""nfInstanc\u0065Id""#)
            .replace("\"load\"", r#""l\u006fad""#)
            .replace("\"allowedNfTypes\"", r#""allowedNfTyp\u0065s""#)
            .replace("\"serviceInstanceId\"", r#""service\u0049nstanceId""#)
            .replace("\"nfServices\"", r#""nf\u0053ervices""#);
        let escaped = entry(&text);
        assert_eq!(json(&escaped.document()), json(&plain.document()));
        assert_eq!(json(&escaped.public_document()), json(&plain.public_document()));
        assert!(
            !String::from_utf8(escaped.public_document().to_vec())
                .unwrap()
                .contains("allowedNfTyp")
        );
    }

    #[test]
    fn discoverers_do_not_see_who_is_allowed() {
        let entry = entry(TEXT);
        let text = String::from_utf8(entry.public_document().to_vec()).unwrap();
        assert!(!text.contains("allowedNfTypes") && text.contains(r#""y" : 1.00"#));
        let value = json(text.as_bytes());
        assert_eq!(value["nfServices"].as_array().unwrap().len(), 2);
        assert_eq!(value["nfServices"][1]["serviceInstanceId"], "b");
        assert_eq!(entry.visible_services().len(), 2);
    }

    #[test]
    fn a_moved_entry_shares_its_text_and_has_another_tag() {
        let before = entry(TEXT);
        let after = before.moved(NfStatus::Suspended, Some(55), None);
        assert!(before.shares_text(&after));
        assert_ne!(before.etag(), after.etag());
        let value = json(&after.document());
        assert_eq!(
            (value["nfStatus"].as_str(), value["load"].as_u64()),
            (Some("SUSPENDED"), Some(55))
        );
        let back = after.moved(NfStatus::Registered, Some(10), None);
        assert_eq!(back.etag(), before.etag());
    }

    #[test]
    fn faults() {
        assert!(matches!(
            Entry::parse(b"{", |_| 30),
            Err(ProfileFault::Syntax { line: 1, .. })
        ));
        let twice = TEXT.replacen("\"fqdn\"", "\"load\": 11, \"fqdn\"", 1);
        let Err(ProfileFault::Shape(faults)) = Entry::parse(twice.as_bytes(), |_| 30) else {
            panic!()
        };
        assert_eq!(faults[0].pointer, "/load");
        assert!(Entry::parse(b"[]", |_| 30).is_err());
        let escaped = TEXT.replacen("\"fqdn\"", r#""nf\u0054ype":"AMF", "fqdn""#, 1);
        let Err(ProfileFault::Shape(faults)) = Entry::parse(escaped.as_bytes(), |_| 30) else {
            panic!()
        };
        assert_eq!(faults[0].pointer, "/nfType");
        assert!(Entry::parse(b"\xff", |_| 30).is_err());
    }
}
