//! Range based address resolution: which destination a subscriber's number belongs to.
//!
//! Ranges lie in sorted arrays, starts apart from ends and destinations, so that a search among a million
//! touches little memory. Numbers have an array for each count of digits; the longest prefix match counts.

mod changes;
mod chunks;
pub mod config;
mod events;
mod file;
mod spans;
mod tables;

use std::borrow::Cow;
use std::sync::Arc;

use ahash::AHashMap;
use diameter_proto::Fault;
use dsr_app::{Application, Digits, Flow, On, Request, Table, View, identity};
use serde_json::{Value, json};

pub use events::Event;

use changes::{Change, Changes};
use chunks::Listed;
use config::{Destination, Identity, Otherwise};
use tables::{Sorted, Tables};

#[derive(Debug)]
enum Fallback {
    Forward,
    To(u32),
    Answer(Fault),
    Abandon,
}

impl Fallback {
    fn new(otherwise: &Otherwise, destinations: &AHashMap<&str, u32>) -> Self {
        match otherwise {
            Otherwise::Forward => Self::Forward,
            Otherwise::Destination(name) => destinations
                .get(name.as_str())
                .map_or(Self::Forward, |number| Self::To(*number)),
            Otherwise::Answer(answer) => Self::Answer(answer.fault()),
            Otherwise::Abandon => Self::Abandon,
        }
    }
}

/// The resolver.
#[derive(Debug)]
pub struct Rbar {
    lookups: Vec<config::Lookup>,
    destinations: Vec<Destination>,
    /// The places of destinations by their names, which changes have.
    by_name: AHashMap<Box<str>, u32>,
    ranges: Sorted,
    changes: Option<Arc<Changes>>,
    max_changes: usize,
    unknown_command: Fallback,
    invalid_identity: Fallback,
    no_match: Fallback,
}

impl Rbar {
    /// Collects the ranges of a configuration and of the file it names.
    ///
    /// # Errors
    /// When the file cannot be read, or a range is invalid or overlaps another; with its line.
    pub fn load(config: &config::Rbar) -> Result<Self, String> {
        let names = config.destinations.iter().map(|one| one.name.as_str());
        let by_name: AHashMap<&str, u32> = names.zip(0..).collect();
        let mut tables = Tables::default();
        for (index, range) in config.ranges.iter().enumerate() {
            let to = by_name
                .get(range.destination.as_str())
                .copied()
                .unwrap_or_default();
            tables
                .add(range.identity, &range.start, &range.end, to, 0)
                .map_err(|reason| format!("ranges[{index}]: {reason}"))?;
        }
        if let Some(path) = &config.file {
            file::read(path, &by_name, &mut tables)?;
        }
        let ranges = tables.sort().map_err(|reason| match &config.file {
            Some(path) => format!("{}: {reason}", path.display()),
            None => reason,
        })?;
        let changes = config.changes.as_ref();
        let changes = changes.map(|path| Changes::open(path)).transpose()?;
        let led = changes.iter().flat_map(|changes| changes.destinations());
        if let Some(gone) = led.into_iter().find(|to| !by_name.contains_key(&**to)) {
            return Err(format!("changes: the destination `{gone}` does not exist"));
        }
        Ok(Self {
            lookups: config.lookups.clone(),
            destinations: config.destinations.clone(),
            by_name: by_name
                .iter()
                .map(|(name, number)| (Box::from(*name), *number))
                .collect(),
            ranges,
            changes,
            max_changes: config.max_changes,
            unknown_command: Fallback::new(&config.on_unknown_command, &by_name),
            invalid_identity: Fallback::new(&config.on_invalid_identity, &by_name),
            no_match: Fallback::new(&config.on_no_match, &by_name),
        })
    }

    /// What becomes of a request.
    fn resolve(&self, view: &View<'_>) -> Flow<'_> {
        let fits = |lookup: &&config::Lookup| {
            (lookup.applications.is_empty() || lookup.applications.contains(&view.application))
                && (lookup.commands.is_empty() || lookup.commands.contains(&view.command))
        };
        let Some(lookup) = self.lookups.iter().find(fits) else {
            return self.otherwise(&self.unknown_command);
        };
        let mut any = false;
        for identity in &lookup.identities {
            match self.find(*identity, view) {
                Some(Some(number)) => return self.to(number),
                Some(None) => any = true,
                None => {}
            }
        }
        self.otherwise(if any {
            &self.no_match
        } else {
            &self.invalid_identity
        })
    }

    fn to(&self, number: u32) -> Flow<'_> {
        // Numbers come from the list itself.
        let to = self.destinations.get(number as usize);
        to.map_or(Flow::Next, |to| Flow::to(&*to.realm, &*to.host))
    }

    fn otherwise<'a>(&'a self, fallback: &'a Fallback) -> Flow<'a> {
        match fallback {
            Fallback::Forward => Flow::Next,
            Fallback::To(number) => self.to(*number),
            Fallback::Answer(fault) => Flow::Answer(Cow::Borrowed(fault)),
            Fallback::Abandon => Flow::Drop,
        }
    }

    /// The destination of the request's identity, if it has such an identity and a range holds it.
    fn find(&self, identity: Identity, view: &View<'_>) -> Option<Option<u32>> {
        Some(match identity {
            Identity::Imsi => self.number(identity, view.imsi()?),
            Identity::Msisdn => self.number(identity, view.msisdn()?),
            Identity::Impi => self.name(identity, identity::impi(view.routing)?),
            Identity::Impu => self.name(identity, identity::impu(view.routing)?),
            Identity::Ipv4 => self.ipv4(identity::ipv4(view.routing)?.into()),
            Identity::Ipv6Prefix => self.ipv6(identity::ipv6(view.routing)?.0.into()),
        })
    }

    /// The changes, if there are any.
    fn changed(&self) -> Option<&Changes> {
        self.changes.as_deref().filter(|changes| !changes.is_empty())
    }

    fn number(&self, identity: Identity, digits: &Digits) -> Option<u32> {
        let arrays = &self.ranges.numbers[usize::from(identity == Identity::Msisdn)];
        let Some(changes) = self.changed() else {
            return arrays
                .iter()
                .find_map(|(length, spans)| spans.find(&digits.prefix(*length)?));
        };
        // The longest prefix counts, changed or not.
        for count in (1..=digits.as_bytes().len()).rev() {
            let found = match changes.number(identity, count, digits) {
                Some(listed) => self.named(&listed),
                None => {
                    let of_count = arrays.iter().find(|(length, _)| *length == count);
                    of_count.and_then(|(_, spans)| spans.find(&digits.prefix(count)?))
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Names are compared in lower case.
    fn name(&self, identity: Identity, name: &[u8]) -> Option<u32> {
        let spans = &self.ranges.names[usize::from(identity == Identity::Impu)];
        let changes = self.changed();
        if spans.len() == 0 && changes.is_none() {
            return None;
        }
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        match changes.and_then(|changes| changes.name(identity, &name)) {
            Some(listed) => self.named(&listed),
            None => spans.find(&name.into_boxed_str()),
        }
    }

    fn ipv4(&self, address: u32) -> Option<u32> {
        match self.changed().and_then(|changes| changes.ipv4(address)) {
            Some(listed) => self.named(&listed),
            None => self.ranges.v4.find(&address),
        }
    }

    fn ipv6(&self, address: u128) -> Option<u32> {
        match self.changed().and_then(|changes| changes.ipv6(address)) {
            Some(listed) => self.named(&listed),
            None => self.ranges.v6.find(&address),
        }
    }

    /// The number of a destination.
    fn named(&self, listed: &Listed) -> Option<u32> {
        self.by_name.get(listed.as_deref()?).copied()
    }

    /// The destination of a value that is written as in a file of ranges.
    fn destination(&self, identity: Identity, value: &str) -> Result<Option<u32>, String> {
        let address = |wrong: std::net::AddrParseError| format!("`{value}`: {wrong}");
        Ok(match identity {
            Identity::Imsi | Identity::Msisdn => {
                let digits = value.strip_prefix('+').unwrap_or(value);
                let digits = Digits::parse(digits.as_bytes());
                let digits = digits.ok_or_else(|| format!("`{value}` is not 1 to 15 digits"))?;
                self.number(identity, &digits)
            }
            Identity::Impi | Identity::Impu => self.name(identity, value.as_bytes()),
            Identity::Ipv4 => {
                let parsed: std::net::Ipv4Addr = value.parse().map_err(address)?;
                self.ipv4(parsed.into())
            }
            Identity::Ipv6Prefix => {
                let parsed: std::net::Ipv6Addr = value.parse().map_err(address)?;
                self.ipv6(parsed.into())
            }
        })
    }
}

impl Application for Rbar {
    const KIND: &'static str = "rbar";

    type Event = Event;
    type Worker = ();
    type Found = ();

    #[inline]
    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        on.count(Event::Resolved);
        let flow = self.resolve(request.view);
        if matches!(flow, Flow::To(_)) {
            on.count(Event::ResolvedTo);
        }
        flow
    }

    fn tables(&self) -> Vec<Table> {
        let (entries, bytes) = self.ranges.size();
        let mut tables = vec![Table {
            name: "ranges",
            entries,
            bytes,
        }];
        tables.extend(self.changes.as_ref().map(|changes| Table {
            name: "changes",
            entries: changes.len(),
            bytes: changes.len() * 64,
        }));
        tables
    }

    fn change(&self, subject: &str, to: &str) -> Option<Result<(), String>> {
        let Some(changes) = &self.changes else {
            let why = "no range can be changed: rbar.changes names no file";
            return Some(Err(why.to_owned()));
        };
        Some(Change::new(subject, to).and_then(|change| {
            if change.to.is_some() && self.named(&change.to).is_none() {
                return Err(format!("the destination `{to}` does not exist"));
            }
            changes.make(&change, self.max_changes)
        }))
    }

    fn look_up(&self, subject: &str) -> Option<Value> {
        let (identity, value) = subject.split_once(':')?;
        let found = Identity::from_word(identity).and_then(|kind| self.destination(kind, value));
        Some(match found {
            Ok(number) => {
                let to = number.and_then(|number| self.destinations.get(number as usize));
                json!({
                    "identity": identity,
                    "value": value,
                    "destination": to.map_or("", |to| &to.name),
                    "realm": to.map_or("", |to| &to.realm),
                    "host": to.map_or("", |to| &to.host),
                })
            }
            Err(wrong) => json!({"error": wrong}),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::{MessageBuilder, Routing, known};
    use dsr_app::Answer;

    use crate::config::Range;

    fn config(ranges: &[(Identity, &str, &str, &str)]) -> config::Rbar {
        config::Rbar {
            lookups: vec![config::Lookup {
                applications: vec![16_777_251, 16_777_217],
                identities: Identity::ALL.to_vec(),
                ..config::Lookup::default()
            }],
            destinations: ["a", "b"]
                .map(|name| config::Destination {
                    name: name.to_owned(),
                    host: format!("{name}.example"),
                    ..config::Destination::default()
                })
                .to_vec(),
            ranges: ranges
                .iter()
                .map(|(identity, start, end, to)| Range {
                    identity: *identity,
                    start: (*start).to_owned(),
                    end: (*end).to_owned(),
                    destination: (*to).to_owned(),
                })
                .collect(),
            on_invalid_identity: Otherwise::Answer(Answer::default()),
            on_no_match: Otherwise::Abandon,
            ..config::Rbar::default()
        }
    }

    fn outcome(rbar: &Rbar, application: u32, fill: impl FnOnce(&mut MessageBuilder)) -> String {
        let mut builder = MessageBuilder::request(316, application);
        fill(&mut builder);
        let message = builder.finish().unwrap();
        let routing = Routing::scan(&message, b"").unwrap();
        match rbar.resolve(&View::new(application, 316, 10, &routing)) {
            Flow::To(to) => to.host.trim_end_matches(".example").to_owned(),
            other => format!("{other:?}").chars().take(6).collect(),
        }
    }

    #[test]
    fn the_longest_range_counts_and_each_identity_has_its_own() {
        let rbar = Rbar::load(&config(&[
            (Identity::Imsi, "00101", "00109", "a"),
            (Identity::Imsi, "001010000000000", "001010000000999", "b"),
            (Identity::Msisdn, "+49170", "", "b"),
            (Identity::Impu, "sip:a", "sip:m", "a"),
            (Identity::Impi, "bob@ims.example", "", "b"),
            (Identity::Ipv4, "10.0.0.0", "10.0.0.255", "a"),
            (Identity::Ipv6Prefix, "2001:db8::/32", "", "b"),
        ]))
        .unwrap();
        assert_eq!(rbar.ranges.size().0, 7);
        let s6a = 16_777_251;
        let user = |name: &'static str| {
            outcome(&rbar, s6a, |b| {
                b.put(known::USER_NAME, name);
            })
        };
        assert_eq!(user("001010000000999"), "b");
        assert_eq!(user("001010000001000"), "a");
        assert_eq!(user("001110000001000"), "Drop");
        assert_eq!(user("Bob@IMS.example"), "b");
        let other = |fill: fn(&mut MessageBuilder)| outcome(&rbar, s6a, fill);
        assert_eq!(
            other(|b| {
                b.put(known::PUBLIC_IDENTITY, "SIP:joe@x");
            }),
            "a"
        );
        assert_eq!(
            other(|b| {
                b.put(known::PUBLIC_IDENTITY, "sip:+4917012345@x");
            }),
            "b"
        );
        assert_eq!(
            other(|b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 255]);
            }),
            "a"
        );
        assert_eq!(
            other(|b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 1, 0]);
            }),
            "Drop"
        );
        assert_eq!(
            other(|b| {
                b.put(
                    known::FRAMED_IPV6_PREFIX,
                    &[0, 64, 0x20, 1, 0x0d, 0xb8, 1, 2, 3, 4],
                );
            }),
            "b"
        );
        assert_eq!(other(|_| ()), "Answer");
        assert_eq!(outcome(&rbar, 4, |_| ()), "Next");
    }

    #[test]
    fn invalid_ranges_are_reported() {
        for (ranges, part) in [
            (&[(Identity::Imsi, "1x", "", "a")][..], "digits"),
            (&[(Identity::Imsi, "100", "99", "a")], "count of digits"),
            (&[(Identity::Imsi, "200", "100", "a")], "before it begins"),
            (&[(Identity::Ipv4, "10.0.0", "", "a")], "IPv4"),
            (&[(Identity::Ipv6Prefix, "::/129", "", "a")], "IPv6"),
            (
                &[
                    (Identity::Imsi, "100", "200", "a"),
                    (Identity::Imsi, "200", "300", "b"),
                ],
                "overlap",
            ),
            (
                &[(Identity::Impu, "a", "c", "a"), (Identity::Impu, "b", "", "b")],
                "overlap",
            ),
        ] {
            let error = Rbar::load(&config(ranges)).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_million_ranges_come_from_a_file() {
        use std::io::Write as _;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut text = String::from("# identity,start,end,destination\n\n");
        for n in 0..1_000_000u64 {
            // In no order: the reader sorts.
            let n = (n * 7_919) % 1_000_000;
            let to = if n % 2 == 0 { "a" } else { "b" };
            text.push_str(&format!("imsi,00101{n:06}0000,00101{n:06}4999,{to}\n"));
        }
        file.write_all(text.as_bytes()).unwrap();
        let mut with_file = config(&[]);
        with_file.file = Some(file.path().to_owned());
        let rbar = Rbar::load(&with_file).unwrap();
        assert_eq!(rbar.ranges.size().0, 1_000_000);
        let s6a = 16_777_251;
        let user = |name: String| {
            outcome(&rbar, s6a, |b| {
                b.put(known::USER_NAME, &name);
            })
        };
        for n in (0..1_000_000u64).step_by(9_973) {
            assert_eq!(
                user(format!("00101{n:06}4999")),
                if n % 2 == 0 { "a" } else { "b" }
            );
            assert_eq!(user(format!("00101{n:06}5000")), "Drop");
        }
        file.write_all(b"imsi,001010000004999,001010000005000,a\n")
            .unwrap();
        let error = Rbar::load(&with_file).unwrap_err();
        assert!(
            error.contains("overlap") && error.contains("line 1000003"),
            "{error}"
        );
        file.write_all(b"imsi,1,2\n").unwrap();
        let error = Rbar::load(&with_file).unwrap_err();
        assert!(error.contains("line 1000004"), "{error}");
    }
}
