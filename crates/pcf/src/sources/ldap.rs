//! Profiles of subscribers in a directory (RFC 4511): a few connections of a worker, each with many searches in flight.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use ldap3::asn1::StructureTag;
use ldap3::{
    Ldap, LdapConnAsync, LdapConnSettings, LdapError, LdapResult, Scope, SearchOptions, ldap_escape,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::{timeout, timeout_at};

use crate::config::{self, LdapScope, LdapType};

/// Before another connection is tried after one has failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Values of an attribute that policies read.
const MOST_VALUES: usize = 64;
/// Bytes of a value.
const LONGEST_VALUE: usize = 16 * 1_024;
/// Tags of the protocol (RFC 4511 §4.5.2).
const SEARCH_RESULT_ENTRY: u64 = 4;
/// Result codes (RFC 4511 §4.1.9).
const SUCCESS: u32 = 0;
const SIZE_LIMIT_EXCEEDED: u32 = 4;
const REFERRAL: u32 = 10;
const NO_SUCH_OBJECT: u32 = 32;

/// How the PCF proves who it is, and what it trusts: read when the settings are.
#[derive(Clone)]
pub(crate) struct Access {
    password: String,
    settings: LdapConnSettings,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A password does not appear in logs.
        f.write_str("Access")
    }
}

impl Access {
    /// Reads the files that the settings name; none where no directory is queried.
    pub(crate) fn read(settings: &config::Ldap) -> Result<Option<Self>, String> {
        if !settings.is_enabled() {
            return Ok(None);
        }
        let password = match &settings.password_file {
            None => String::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text =
                    text.map_err(|error| format!("pds.ldap.passwordFile {}: {error}", path.display()))?;
                text.trim_end_matches(['\r', '\n']).to_owned()
            }
        };
        let mut connection = LdapConnSettings::new();
        if let Some(authorities) = &settings.authorities {
            let files = tls::TlsFiles {
                authorities: Some(authorities.clone()),
                ..tls::TlsFiles::default()
            };
            let client = tls::Material::read(&files).and_then(|material| material.client(&[]));
            let client = client.map_err(|error| format!("pds.ldap.authorities: {error}"))?;
            connection = connection.set_config(client);
        }
        Ok(Some(Self {
            password,
            settings: connection,
        }))
    }
}

/// What a directory knows of a subscriber.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Profile {
    /// Members of `$subscriber`.
    Known(Map<String, Value>),
    /// It has no entry.
    Unknown,
}

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// More queries than may be in flight.
    Busy,
    /// No connection, or no answer in time.
    Unavailable(String),
    /// The directory refers to others, which the PCF does not query.
    Referral(String),
    /// It refuses, or answers with other than one entry.
    Refused(String),
}

impl From<LdapError> for Failure {
    fn from(error: LdapError) -> Self {
        match error {
            LdapError::LdapResult { result } => refusal(&result),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

/// A connection, made when it is needed.
#[derive(Default)]
struct Connection {
    handle: RefCell<Option<Ldap>>,
    /// When the last attempt to connect failed, and why.
    failed: RefCell<Option<(Instant, String)>>,
    /// Held while it is made: the others wait for it.
    making: Mutex<()>,
}

impl Connection {
    fn open(&self) -> Option<Ldap> {
        let mut handle = self.handle.borrow_mut();
        if handle.as_mut().is_some_and(Ldap::is_closed) {
            *handle = None;
        }
        handle.clone()
    }
}

/// The directory of a worker.
pub(crate) struct Directory {
    settings: config::Ldap,
    access: Access,
    attributes: Vec<String>,
    connections: Vec<Connection>,
    turn: Cell<usize>,
    in_flight: Cell<usize>,
}

/// Counts a query in flight.
struct InFlight<'a>(&'a Cell<usize>);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Directory {
    pub(crate) fn new(settings: &config::Ldap, access: Access) -> Self {
        let mut attributes: Vec<String> = settings
            .attributes
            .values()
            .map(|one| one.attribute.clone())
            .collect();
        attributes.sort();
        attributes.dedup();
        Self {
            settings: settings.clone(),
            access,
            attributes,
            connections: (0..settings.connections.max(1))
                .map(|_| Connection::default())
                .collect(),
            turn: Cell::new(0),
            in_flight: Cell::new(0),
        }
    }

    /// The profile of a subscriber.
    ///
    /// # Errors
    /// When the directory does not answer in time, or not with one entry.
    pub(crate) async fn query(
        &self,
        supi: &str,
        gpsi: Option<&str>,
        end: Instant,
    ) -> Result<Profile, Failure> {
        let Some(filter) = filter_of(&self.settings.filter, supi, gpsi) else {
            return Ok(Profile::Unknown);
        };
        if self.in_flight.get() >= self.settings.parallel {
            return Err(Failure::Busy);
        }
        self.in_flight.set(self.in_flight.get() + 1);
        let _in_flight = InFlight(&self.in_flight);
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        let Some(connection) = self.connections.get(turn % self.connections.len()) else {
            return Err(Failure::Busy);
        };
        let ldap = self.connected(connection, end).await?;
        match self.search(ldap, &filter, end).await {
            // The directory has closed the connection, perhaps long ago: another one.
            Err(Failure::Unavailable(_)) if connection.open().is_none() => {
                let ldap = self.connected(connection, end).await?;
                self.search(ldap, &filter, end).await
            }
            outcome => outcome,
        }
    }

    async fn connected(&self, connection: &Connection, end: Instant) -> Result<Ldap, Failure> {
        if let Some(ldap) = connection.open() {
            return Ok(ldap);
        }
        let left = end.saturating_duration_since(Instant::now());
        let made = timeout(left, async {
            let _making = connection.making.lock().await;
            if let Some(ldap) = connection.open() {
                return Ok(ldap);
            }
            let failed = connection.failed.borrow().clone();
            if let Some((at, why)) = failed
                && at.elapsed() < PAUSE
            {
                return Err(Failure::Unavailable(why));
            }
            let left = end.saturating_duration_since(Instant::now());
            let made = timeout(left, self.connect()).await;
            let made = made.unwrap_or_else(|_| Err(Failure::Unavailable("no connection in time".to_owned())));
            match &made {
                Ok(ldap) => {
                    *connection.failed.borrow_mut() = None;
                    *connection.handle.borrow_mut() = Some(ldap.clone());
                }
                Err(failure) => {
                    *connection.failed.borrow_mut() = Some((Instant::now(), format!("{failure:?}")));
                }
            }
            made
        });
        made.await
            .unwrap_or_else(|_| Err(Failure::Unavailable("no connection in time".to_owned())))
    }

    async fn connect(&self) -> Result<Ldap, Failure> {
        let settings = self.access.settings.clone();
        let (driver, mut ldap) = LdapConnAsync::with_settings(settings, &self.settings.url).await?;
        tokio::task::spawn_local(async move {
            if let Err(error) = driver.drive().await {
                tracing::debug!(%error, "a connection to the directory has ended");
            }
        });
        if !self.settings.bind_dn.is_empty() {
            let bound = ldap
                .simple_bind(&self.settings.bind_dn, &self.access.password)
                .await?;
            if bound.rc != SUCCESS {
                return Err(refusal(&bound));
            }
        }
        Ok(ldap)
    }

    async fn search(&self, mut ldap: Ldap, filter: &str, end: Instant) -> Result<Profile, Failure> {
        let scope = match self.settings.scope {
            LdapScope::Base => Scope::Base,
            LdapScope::One => Scope::OneLevel,
            LdapScope::Sub => Scope::Subtree,
        };
        // A second entry shows that the filter does not name one subscriber.
        ldap.with_search_options(SearchOptions::new().sizelimit(2));
        let stream = ldap.streaming_search(&self.settings.base, scope, filter, &self.attributes);
        let stream = timeout_at(end.into(), stream).await;
        let mut stream = stream.map_err(|_| late())??;
        let (mut entries, mut referral) = (Vec::new(), false);
        let read = timeout_at(end.into(), async {
            while let Some(item) = stream.next().await? {
                if item.is_ref() {
                    referral = true;
                } else if !item.is_intermediate() && entries.len() < 2 {
                    entries.push(item.0);
                }
            }
            Ok::<_, LdapError>(())
        });
        let read = read.await;
        // Before the search is given up, so that its answer finds no place any more.
        let result = stream.finish().await;
        read.map_err(|_| late())??;
        match (result.rc, entries.len()) {
            (SUCCESS, 1) => {}
            (SUCCESS, 0) if !referral => return Ok(Profile::Unknown),
            (NO_SUCH_OBJECT, _) => return Ok(Profile::Unknown),
            (SUCCESS, 0) => return Err(Failure::Referral("to a continuation of the search".to_owned())),
            (SUCCESS | SIZE_LIMIT_EXCEEDED, _) => {
                return Err(Failure::Refused("more than one entry fits the filter".to_owned()));
            }
            _ => return Err(refusal(&result)),
        }
        let entry = entries.pop().and_then(|entry| self.members(entry));
        let members = entry.ok_or_else(|| Failure::Refused("the entry is malformed".to_owned()))?;
        Ok(Profile::Known(members))
    }

    /// The members of `$subscriber` that an entry has. `None`: it is malformed.
    fn members(&self, entry: StructureTag) -> Option<Map<String, Value>> {
        let attributes = attributes_of(entry)?;
        let mut members = Map::new();
        for (member, wanted) in &self.settings.attributes {
            let found = attributes
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(&wanted.attribute));
            if let Some(value) = found.and_then(|(_, values)| value_of(wanted.of, values)) {
                members.insert(member.clone(), value);
            }
        }
        Some(members)
    }
}

fn late() -> Failure {
    Failure::Unavailable("no answer in time".to_owned())
}

fn refusal(result: &LdapResult) -> Failure {
    match result.rc {
        REFERRAL => Failure::Referral(result.refs.join(" ")),
        rc => Failure::Refused(format!("result {rc} {}", result.text)),
    }
}

/// Attributes of a `SearchResultEntry` (RFC 4511 §4.5.2) with their values.
fn attributes_of(entry: StructureTag) -> Option<Vec<(String, Vec<Vec<u8>>)>> {
    let mut parts = entry
        .match_id(SEARCH_RESULT_ENTRY)?
        .expect_constructed()?
        .into_iter();
    let _name = parts.next()?;
    let attributes = parts.next()?.expect_constructed()?.into_iter();
    let one = |attribute: StructureTag| {
        let mut parts = attribute.expect_constructed()?.into_iter();
        let name = String::from_utf8(parts.next()?.expect_primitive()?).ok()?;
        let values = parts.next()?.expect_constructed()?.into_iter();
        let values: Option<Vec<Vec<u8>>> = values
            .take(MOST_VALUES)
            .map(StructureTag::expect_primitive)
            .collect();
        Some((name, values?))
    };
    attributes.map(one).collect()
}

fn value_of(of: LdapType, values: &[Vec<u8>]) -> Option<Value> {
    let mut texts = values
        .iter()
        .filter(|value| value.len() <= LONGEST_VALUE)
        .filter_map(|value| std::str::from_utf8(value).ok());
    match of {
        LdapType::Texts => Some(texts.map(Value::from).collect()),
        LdapType::Text => texts.next().map(Value::from),
        LdapType::Boolean => match texts.next()? {
            "TRUE" => Some(Value::Bool(true)),
            "FALSE" => Some(Value::Bool(false)),
            _ => None,
        },
        LdapType::Number => {
            let number: serde_json::Number = texts.next()?.trim().parse().ok()?;
            Some(Value::Number(number))
        }
        LdapType::Json => serde_json::from_str(texts.next()?).ok(),
    }
}

/// The filter for a subscriber. `None`: it needs what is not known of the subscriber.
fn filter_of(template: &str, supi: &str, gpsi: Option<&str>) -> Option<String> {
    let mut filter = template.to_owned();
    let known = [
        ("{supi}", Some(supi)),
        ("{imsi}", supi.strip_prefix("imsi-")),
        ("{gpsi}", gpsi),
        ("{msisdn}", gpsi.and_then(|gpsi| gpsi.strip_prefix("msisdn-"))),
    ];
    // What is put in has no braces of a name, since they are escaped below.
    for (name, value) in known {
        if filter.contains(name) {
            let value = ldap_escape(value?).replace('{', "\\7b").replace('}', "\\7d");
            filter = filter.replace(name, &value);
        }
    }
    Some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_filter_holds_what_is_known_of_a_subscriber_and_nothing_else() {
        let template = "(|(imsi={imsi})(tel={msisdn}))";
        let filter = filter_of(template, "imsi-001010000000001", Some("msisdn-1555"));
        assert_eq!(filter.unwrap(), "(|(imsi=001010000000001)(tel=1555))");
        assert_eq!(filter_of(template, "nai-x@example", Some("msisdn-1555")), None);
        assert_eq!(filter_of("(tel={gpsi})", "imsi-1", None), None);
        let hostile = filter_of("(u={supi})(t={gpsi})", "nai-*)(x={gpsi}", Some("a")).unwrap();
        assert_eq!(hostile, "(u=nai-\\2a\\29\\28x=\\7bgpsi\\7d)(t=a)");
    }

    #[test]
    fn values_are_what_the_settings_say() {
        let values =
            |texts: &[&str]| -> Vec<Vec<u8>> { texts.iter().map(|text| text.as_bytes().to_vec()).collect() };
        for (of, texts, expected) in [
            (LdapType::Text, &["gold", "x"][..], Some(json!("gold"))),
            (LdapType::Texts, &["a", "b"], Some(json!(["a", "b"]))),
            (LdapType::Number, &["42"], Some(json!(42))),
            (LdapType::Number, &["x"], None),
            (LdapType::Boolean, &["TRUE"], Some(json!(true))),
            (LdapType::Boolean, &["yes"], None),
            (LdapType::Json, &["{\"a\":[1]}"], Some(json!({"a": [1]}))),
            (LdapType::Text, &[], None),
        ] {
            assert_eq!(value_of(of, &values(texts)), expected, "{of:?} {texts:?}");
        }
        assert_eq!(value_of(LdapType::Text, &[vec![0xff]]), None, "not UTF-8");
        assert_eq!(value_of(LdapType::Text, &[vec![b'x'; LONGEST_VALUE + 1]]), None);
    }
}
