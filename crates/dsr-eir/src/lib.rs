//! The equipment identity register: the server of S13 and S13' (TS 29.272 §6, §7.2.19, §7.2.20).
//!
//! An ME-Identity-Check-Request is answered by what the lists say of its IMEI: first for the pair of IMEI and IMSI, then
//! for the IMEI alone, then for the range that holds it.

mod changes;
pub mod config;
mod events;
mod file;
mod lists;

use std::sync::Arc;

use diameter_proto::check::{Strictness, check};
use diameter_proto::known::{self, command};
use diameter_proto::{AvpWriter, Dictionary, Fault, Message, MessageBuilder, MessageMut, Origin, ResultCode};
use dsr_app::{Application, Flow, On, Reply, Request, Table};
use serde_json::{Value, json};

pub use events::Event;

use changes::{Change, Changes};
use config::Unlisted;
use lists::Lists;

/// DIAMETER_ERROR_EQUIPMENT_UNKNOWN (TS 29.272 §7.4.3.2), an Experimental-Result-Code of 3GPP.
const EQUIPMENT_UNKNOWN: u32 = 5422;
/// NO_STATE_MAINTAINED: no session follows (TS 29.272 §7.1.4).
const NO_STATE_MAINTAINED: i32 = 1;

/// Equipment-Status (TS 29.272 §7.3.51).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Status {
    White = 0,
    Black = 1,
    Grey = 2,
}

impl Status {
    /// That of the two bits with which entries are stored.
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            1 => Self::Black,
            2 => Self::Grey,
            _ => Self::White,
        }
    }

    /// The word for it in files and pages.
    const fn as_str(self) -> &'static str {
        match self {
            Self::White => "white",
            Self::Black => "black",
            Self::Grey => "grey",
        }
    }
}

/// What decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Pair,
    OtherSubscriber,
    Imei,
    Range,
    Unlisted,
}

impl By {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pair => "the pair of IMEI and IMSI",
            Self::OtherSubscriber => "onOtherSubscriber: the IMEI is paired with other IMSIs",
            Self::Imei => "the IMEI",
            Self::Range => "the range of the IMEI",
            Self::Unlisted => "onUnlisted: no list has the IMEI",
        }
    }
}

/// The register.
#[derive(Debug)]
pub struct Eir {
    lists: Lists,
    changes: Option<Arc<Changes>>,
    max_changes: usize,
    unlisted: Option<Status>,
    other_subscriber: Option<Status>,
}

impl Eir {
    /// Reads the lists of a configuration.
    ///
    /// # Errors
    /// When the file cannot be read, has an invalid line or more entries than permitted, or contradicts itself.
    pub fn load(config: &config::Eir) -> Result<Self, String> {
        let status = |listed: Unlisted| match listed {
            Unlisted::Unknown => None,
            Unlisted::White => Some(Status::White),
            Unlisted::Grey => Some(Status::Grey),
            Unlisted::Black => Some(Status::Black),
        };
        let lists = match &config.file {
            Some(path) => file::read(path, config).map_err(|wrong| format!("{}: {wrong}", path.display()))?,
            None => Lists::default(),
        };
        let changes = config.changes.as_ref();
        let changes = changes.map(|path| Changes::open(path));
        Ok(Self {
            lists,
            changes: changes.transpose()?,
            max_changes: config.max_changes,
            unlisted: status(config.on_unlisted),
            other_subscriber: config.on_other_subscriber.and_then(status),
        })
    }

    /// What the lists say of an IMEI and an IMSI as messages have them: `white`, `grey`, `black`; none: it is not known.
    #[must_use]
    pub fn status_of(&self, imei: &[u8], imsi: &[u8]) -> Option<&'static str> {
        let (status, _) = self.judge(equipment(imei)?, digits(imsi));
        status.map(Status::as_str)
    }

    /// What the lists say of equipment, in the hands of a subscriber; none: it is not known.
    fn judge(&self, imei: u64, imsi: Option<u64>) -> (Option<Status>, By) {
        let changes = self.changes.as_deref();
        if let Some(imsi) = imsi {
            let changed = changes.and_then(|changes| changes.pair(imei, imsi));
            if let Some(status) = changed.unwrap_or_else(|| self.lists.pairs.find(imei, imsi)) {
                return (Some(status), By::Pair);
            }
            let is_paired =
                || self.lists.pairs.has(imei) || changes.is_some_and(|changes| changes.has_pair(imei));
            if self.other_subscriber.is_some() && is_paired() {
                return (self.other_subscriber, By::OtherSubscriber);
            }
        }
        let changed = changes.and_then(|changes| changes.alone(imei));
        if let Some(status) = changed.unwrap_or_else(|| self.lists.imeis.find(imei)) {
            return (Some(status), By::Imei);
        }
        match self.lists.ranges.find(imei) {
            Some(status) => (Some(status), By::Range),
            None => (self.unlisted, By::Unlisted),
        }
    }

    /// The answer to an ME-Identity-Check-Request.
    fn check(&self, on: &On<'_, Self>, request: &Request<'_>) -> Result<Reply, Fault> {
        let message = request.message;
        check(message, Dictionary::standard(), Strictness::Interoperable)?;
        let imei = imei(message)?;
        let imsi = request.view.routing.user_name.and_then(digits);
        let (status, _) = self.judge(imei, imsi);
        on.count(match status {
            Some(Status::White) => Event::White,
            Some(Status::Grey) => Event::Grey,
            Some(Status::Black) => Event::Black,
            None => Event::Unknown,
        });
        answer(message, request.names, status)
    }
}

impl Application for Eir {
    const KIND: &'static str = "eir";
    const IS_SERVER: bool = true;

    type Event = Event;
    type Worker = ();
    type Found = ();

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        let message = request.message;
        if message.application() != known::application::S13 || message.command() != command::ME_IDENTITY_CHECK
        {
            let why = format!("command {} is not served by the EIR", message.command());
            return Flow::refuse(Fault::new(ResultCode::COMMAND_UNSUPPORTED, why));
        }
        match self.check(on, request) {
            Ok(reply) => Flow::Reply(reply),
            Err(fault) => {
                on.count(Event::Invalid);
                Flow::refuse(fault)
            }
        }
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = self.lists.tables().to_vec();
        tables.extend(self.changes.as_ref().map(|changes| Table {
            name: "changes",
            entries: changes.len(),
            bytes: changes.len() * 64,
        }));
        tables
    }

    fn change(&self, subject: &str, list: &str) -> Option<Result<(), String>> {
        let Some(changes) = &self.changes else {
            return Some(Err(
                "no entry can be changed: eir.changes names no file".to_owned()
            ));
        };
        Some(Change::new(subject, list).and_then(|change| changes.make(change, self.max_changes)))
    }

    fn look_up(&self, subject: &str) -> Option<Value> {
        // Those of ranges name an identity first.
        if subject.contains(':') {
            return None;
        }
        let (imei, imsi) = subject.split_once('-').unwrap_or((subject, ""));
        let Some(imei) = equipment(imei.as_bytes()) else {
            return Some(json!({"error": format!("`{imei}` is not an IMEI; use 14 to 16 digits")}));
        };
        let (status, by) = self.judge(imei, digits(imsi.as_bytes()));
        Some(json!({
            "imei": format!("{imei:014}"),
            "imsi": imsi,
            "status": status.map_or("unknown", Status::as_str),
            "by": by.as_str(),
        }))
    }
}

/// The number of 1 to 15 digits.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 15 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = text
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    // Leading zeros count: 001 is not 1.
    Some(value * 16 + text.len() as u64)
}

/// TAC and serial number of an IMEI of 14 digits, also with its check digit or software version (TS 23.003 §6.2,
/// TS 29.272 §7.3.7).
fn equipment(text: &[u8]) -> Option<u64> {
    if !(14..=16).contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let first = text.iter().take(14);
    Some(first.fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// The IMEI of a request.
fn imei<B: AsRef<[u8]>>(message: &Message<B>) -> Result<u64, Fault> {
    let imei = message
        .require(known::TERMINAL_INFORMATION)?
        .require(known::IMEI)?;
    equipment(imei.as_bytes()).ok_or_else(|| {
        let mut failed = AvpWriter::with_capacity(32);
        failed.put(known::IMEI, imei);
        let why = "an IMEI has 14 to 16 digits";
        Fault::new(ResultCode::INVALID_AVP_VALUE, why).about(failed.into_bytes())
    })
}

/// An ME-Identity-Check-Answer (TS 29.272 §7.2.20).
fn answer(request: &MessageMut, names: &Origin, status: Option<Status>) -> Result<Reply, Fault> {
    let mut answer = MessageBuilder::answer(request);
    if let Ok(Some(application)) = request.avps().find(known::VENDOR_SPECIFIC_APPLICATION_ID) {
        answer.copy(&application);
    }
    let result = match status {
        Some(_) => (0, ResultCode::SUCCESS.0),
        None => (known::VENDOR_3GPP, EQUIPMENT_UNKNOWN),
    };
    match result {
        (0, code) => answer.put(known::RESULT_CODE, code),
        (vendor, code) => answer.group(known::EXPERIMENTAL_RESULT, |group| {
            group
                .put(known::VENDOR_ID, vendor)
                .put(known::EXPERIMENTAL_RESULT_CODE, code);
        }),
    };
    answer
        .put(known::AUTH_SESSION_STATE, NO_STATE_MAINTAINED)
        .put(known::ORIGIN_HOST, &names.host)
        .put(known::ORIGIN_REALM, &names.realm)
        .maybe(known::EQUIPMENT_STATUS, status.map(|status| status as i32));
    // RFC 6733 §6.2: in the order of the request.
    let avps = request.avps().map_while(Result::ok);
    for avp in avps.filter(|avp| avp.is(known::PROXY_INFO)) {
        answer.copy(&avp);
    }
    let too_long = |_| Fault::new(ResultCode::UNABLE_TO_COMPLY, "the answer would be too long");
    let message = answer.finish().map_err(too_long)?;
    Ok(Reply { message, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_equipment_and_subscribers_are_read() {
        for text in ["35209900176148", "352099001761481", "3520990017614823"] {
            assert_eq!(equipment(text.as_bytes()), Some(35_209_900_176_148), "{text}");
        }
        for text in ["3520990017614", "35209900176148234", "3520990017614x", ""] {
            assert_eq!(equipment(text.as_bytes()), None, "{text}");
        }
        assert_ne!(digits(b"001"), digits(b"1"));
        assert!(digits(b"").is_none() && digits(b"1234567890123456").is_none() && digits(b"12a").is_none());
    }
}
