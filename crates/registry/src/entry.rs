//! A registered profile: its text, its typed view, and the members that heart-beats change.

use std::borrow::Cow;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use model::shape::rules;
use model::tolerance::Dropped;
use model::{NfInstanceId, NfProfile, NfStatus, NfType, pattern};

use sbi_proto::json::{text, unique};

use crate::fault::ProfileFault;
use crate::fingerprint::fingerprint;
use crate::reading::{Reading, Settled, settle};
use crate::still::{ALLOWED, SERVICES, Still};
use crate::visible::Visible;

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
    /// Typed view of the profile. Its status, load and time stamp are those of the last full write; the current ones are
    /// fields of the entry.
    pub profile: Arc<NfProfile>,
    /// Current status.
    pub status: NfStatus,
    /// The status that its owner gave it, while it is suspended for missed heart-beats.
    pub suspended_from: Option<NfStatus>,
    /// Current load.
    pub load: Option<u8>,
    /// When the load was measured, as its owner wrote it.
    pub load_time_stamp: Option<Arc<str>>,
    /// Seconds between heart-beats, as assigned.
    pub heart_beat_timer: u32,
    /// The other NRF set that it is registered with; `None`: with this one.
    pub set: Option<Arc<str>>,
    /// Identity, type and the members that heart-beats change; they come first.
    moving: Bytes,
    still: Arc<Still>,
    etag: u64,
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
        let reading = Reading {
            limits,
            strict: false,
            host_names: true,
        };
        Self::read(body, &reading, timer).map(|(entry, _)| entry)
    }

    /// As [`Entry::parse_within`], by the operator's settings, with the members that counted as absent.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(
        body: &[u8],
        reading: &Reading,
        timer: impl FnOnce(&NfProfile) -> u32,
    ) -> Result<(Self, Vec<Dropped>), ProfileFault> {
        // What is compiled to be checked is used by the profile.
        let (read, exceeded) = pattern::within(reading.limits, || {
            rules::with_host_names(reading.host_names, || Self::read_now(body, reading, timer))
        });
        match read {
            Err(ProfileFault::Shape(faults)) if exceeded => Err(ProfileFault::Patterns(faults)),
            other => other,
        }
    }

    fn read_now(
        body: &[u8],
        reading: &Reading,
        timer: impl FnOnce(&NfProfile) -> u32,
    ) -> Result<(Self, Vec<Dropped>), ProfileFault> {
        let value = unique::parse(body).map_err(|fault| match fault {
            unique::Fault::Syntax(error) => ProfileFault::Syntax {
                line: error.line(),
                column: error.column(),
                reason: error.to_string(),
            },
            unique::Fault::Twice(place) => ProfileFault::at(&place, "expected each member once"),
        })?;
        // A JSON text is UTF-8, as the parser has found.
        let body = std::str::from_utf8(body).map_err(|error| ProfileFault::at("", error.to_string()))?;
        let Settled { text, value, dropped } = settle(body, value, reading)?;
        let profile: NfProfile = serde::Deserialize::deserialize(&value)
            .map_err(|error: serde_json::Error| ProfileFault::at("", error.to_string()))?;
        if profile.services().count() > MAX_SERVICES {
            return Err(ProfileFault::at(
                "/nfServices",
                format!("expected at most {MAX_SERVICES} services"),
            ));
        }
        let still = Still::new(&text, &profile);
        let timer = timer(&profile);
        let entry = Self::assemble(
            profile.nf_status.clone(),
            profile.load,
            profile.load_time_stamp.as_deref().map(Into::into),
            timer,
            Arc::new(profile),
            Arc::new(still),
        );
        Ok((entry, dropped))
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
            suspended_from: None,
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

    /// This profile, suspended for missed heart-beats.
    #[must_use]
    pub fn suspended(&self) -> Self {
        let stamp = self.load_time_stamp.clone();
        Self {
            suspended_from: Some(self.own_status().clone()),
            ..self.moved(NfStatus::Suspended, self.load, stamp)
        }
    }

    /// This profile with the status that its owner gave it.
    #[must_use]
    pub fn resumed(&self) -> Self {
        match &self.suspended_from {
            Some(status) => self.moved(status.clone(), self.load, self.load_time_stamp.clone()),
            None => self.clone(),
        }
    }

    /// This profile with another load and time stamp; its status stays, suspended for missed heart-beats or not.
    #[must_use]
    pub fn with_load(&self, load: Option<u8>, load_time_stamp: Option<Arc<str>>) -> Self {
        Self {
            suspended_from: self.suspended_from.clone(),
            ..self.moved(self.status.clone(), load, load_time_stamp)
        }
    }

    /// The status that its owner gave it.
    #[must_use]
    pub fn own_status(&self) -> &NfStatus {
        self.suspended_from.as_ref().unwrap_or(&self.status)
    }

    /// This profile with another heart-beat timer.
    #[must_use]
    pub fn with_timer(self, seconds: u32) -> Self {
        if seconds == self.heart_beat_timer {
            return self;
        }
        Self::assemble(
            self.status,
            self.load,
            self.load_time_stamp,
            seconds,
            self.profile,
            self.still,
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

    /// Whether only loads and their time stamps differ from `other`, of the NF or of its services.
    #[must_use]
    pub fn differs_in_loads_only(&self, other: &Self) -> bool {
        self.status == other.status
            && self.heart_beat_timer == other.heart_beat_timer
            && (self.shares_text(other)
                || self.still.rest == other.still.rest
                || without_loads(self) == without_loads(other))
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

    /// The profile as other NFs may see it in notifications: without who may discover it, with its timer. `abroad`: for an
    /// NF of another network, which gets `interPlmnFqdn` as `fqdn` (TS 29.510 §6.1.6.2.2).
    #[must_use]
    pub fn public_document(&self, abroad: bool) -> Bytes {
        let still = &*self.still;
        let (mut visible, mut services) = (Cow::Borrowed(&still.visible), Cow::Borrowed(&*still.services));
        if still.reserved {
            let body = format!("{{{}}}", String::from_utf8_lossy(&still.rest));
            let whole = text::root(&body);
            let shown = |key: &str| !ALLOWED.contains(&key) && !SERVICES.contains(&key);
            visible = Cow::Owned(Visible::of(&body, whole.clone(), shown));
            services = Cow::Owned(Still::services(&body, whole, &self.profile, |key: &str| {
                !ALLOWED.contains(&key)
            }));
        }
        if abroad {
            if let Some(name) = &self.profile.inter_plmn_fqdn {
                visible = Cow::Owned(visible.with_fqdn(name));
            }
            for (at, service) in self.profile.services().enumerate() {
                if let (Some(name), Some(shown)) = (&service.inter_plmn_fqdn, services.to_mut().get_mut(at)) {
                    *shown = shown.with_fqdn(name);
                }
            }
        }
        let mut out = Vec::with_capacity(still.rest.len() + 256);
        out.push(b'{');
        out.extend_from_slice(&self.moving);
        out.extend_from_slice(format!(",\"heartBeatTimer\":{}", self.heart_beat_timer).as_bytes());
        if !visible.text.is_empty() {
            out.push(b',');
            out.extend_from_slice(&visible.text);
        }
        if !services.is_empty() {
            out.extend_from_slice(b",\"nfServices\":[");
            join(&mut out, services.iter().map(|service| &service.text));
            out.push(b']');
        }
        out.push(b'}');
        out.into()
    }

    /// `"nfInstanceId":…,"nfType":…,"nfStatus":…` and, if known, load and time stamp.
    pub fn moving(&self) -> &Bytes {
        &self.moving
    }

    /// Members other than those, and than services, that a discoverer may see.
    pub fn visible(&self) -> &Visible {
        &self.still.visible
    }

    /// The services a discoverer may see, in the order of [`NfProfile::services`].
    pub fn visible_services(&self) -> &[Visible] {
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

/// A profile without what heart-beats report (TS 29.510 §6.1.6.2.2, §6.1.6.2.3).
fn without_loads(entry: &Entry) -> Option<serde_json::Value> {
    use serde_json::Value;
    let mut profile: Value = serde_json::from_slice(&entry.document()).ok()?;
    let strip = |part: &mut Value| {
        if let Some(members) = part.as_object_mut() {
            members.remove("load");
            members.remove("loadTimeStamp");
        }
    };
    strip(&mut profile);
    if let Some(listed) = profile.get_mut("nfServices").and_then(Value::as_array_mut) {
        listed.iter_mut().for_each(strip);
    }
    if let Some(mapped) = profile.get_mut("nfServiceList").and_then(Value::as_object_mut) {
        mapped.values_mut().for_each(strip);
    }
    Some(profile)
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

    #[test]
    fn loads_are_told_from_other_changes() {
        let before = entry(TEXT);
        let same = |from: &str, to: &str| before.differs_in_loads_only(&entry(&TEXT.replacen(from, to, 1)));
        assert!(same("\"load\": 10", "\"load\": 11"));
        let service = r#"{"serviceInstanceId":"#;
        assert!(same(
            service,
            r#"{"load":3,"loadTimeStamp":"2026-01-01T00:00:00Z","serviceInstanceId":"#
        ));
        assert!(same(r#"{"b":{"#, r#"{"b":{"load":9,"#));
        assert!(!same("1.0e2", "1.0e3") && !same("udm.example", "amf.example"));
        assert!(!same("\"REGISTERED\"", "\"UNDISCOVERABLE\""));
        let other_timer = Entry::parse(TEXT.as_bytes(), |_| 31).unwrap();
        assert!(!before.differs_in_loads_only(&other_timer));
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
        assert_eq!(
            json(&escaped.public_document(false)),
            json(&plain.public_document(false))
        );
        assert!(
            !String::from_utf8(escaped.public_document(false).to_vec())
                .unwrap()
                .contains("allowedNfTyp")
        );
    }

    #[test]
    fn discoverers_do_not_see_who_is_allowed() {
        let entry = entry(TEXT);
        let text = String::from_utf8(entry.public_document(false).to_vec()).unwrap();
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
    fn a_suspended_entry_knows_the_status_of_its_owner() {
        let before = entry(&TEXT.replace("REGISTERED\", \"nfInstanceId", "UNDISCOVERABLE\", \"nfInstanceId"));
        let suspended = before.suspended();
        assert_eq!(json(&suspended.document())["nfStatus"], "SUSPENDED");
        assert_eq!(suspended.resumed().document(), before.document());
        let loaded = suspended.with_load(Some(7), None);
        assert_eq!(loaded.own_status(), before.own_status());
        assert_eq!(suspended.suspended().own_status().as_str(), "UNDISCOVERABLE");
    }

    /// Some functions register so.
    #[test]
    fn an_empty_map_of_services_is_none() {
        let text = r#"{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"SCP","nfStatus":"REGISTERED","fqdn":"a.example.com","nfServiceList":{}}"#;
        assert!(json(&entry(text).document())["nfServiceList"].is_null());
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
