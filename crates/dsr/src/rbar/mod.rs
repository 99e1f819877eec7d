//! Range based address resolution: which destination a subscriber's number belongs to.
//!
//! Ranges lie in sorted arrays, starts apart from ends and destinations, so that a search among a million
//! touches little memory. Numbers have an array for each count of digits; the longest prefix match counts.

mod file;
mod spans;
mod tables;

use ahash::AHashMap;
use diameter::proto::{Fault, ResultCode};

use crate::application::{Application, Given, Outcome, Table};
use crate::config::{self, Destination, Identity, Otherwise};
use crate::events::Event;
use crate::routing::{self, Digits, View};
use spans::Spans;
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
            Otherwise::Answer(answer) => {
                let fault = Fault::new(ResultCode(answer.result_code), answer.message.clone());
                Self::Answer(fault.of_vendor(answer.vendor_id))
            }
            Otherwise::Abandon => Self::Abandon,
        }
    }
}

/// The resolver.
#[derive(Debug)]
pub(crate) struct Rbar {
    lookups: Vec<config::Lookup>,
    destinations: Vec<Destination>,
    ranges: Sorted,
    unknown_command: Fallback,
    invalid_identity: Fallback,
    no_match: Fallback,
}

impl Rbar {
    /// Collects the ranges of a configuration and of the file it names.
    ///
    /// # Errors
    /// When the file cannot be read, or a range is invalid or overlaps another; with its line.
    pub(crate) fn load(config: &config::Rbar) -> Result<Self, String> {
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
        Ok(Self {
            lookups: config.lookups.clone(),
            destinations: config.destinations.clone(),
            ranges,
            unknown_command: Fallback::new(&config.on_unknown_command, &by_name),
            invalid_identity: Fallback::new(&config.on_invalid_identity, &by_name),
            no_match: Fallback::new(&config.on_no_match, &by_name),
        })
    }

    /// What becomes of a request.
    #[must_use]
    pub(crate) fn resolve(&self, view: &View<'_>) -> Outcome<'_> {
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

    fn to(&self, number: u32) -> Outcome<'_> {
        // Numbers come from the list itself.
        self.destinations
            .get(number as usize)
            .map_or(Outcome::Forward, Outcome::To)
    }

    fn otherwise<'a>(&'a self, fallback: &'a Fallback) -> Outcome<'a> {
        match fallback {
            Fallback::Forward => Outcome::Forward,
            Fallback::To(number) => self.to(*number),
            Fallback::Answer(fault) => Outcome::Answer(fault),
            Fallback::Abandon => Outcome::Abandon,
        }
    }

    /// The destination of the request's identity; the outer none: it has no such identity.
    fn find(&self, identity: Identity, view: &View<'_>) -> Option<Option<u32>> {
        match identity {
            Identity::Imsi => Some(number(&self.ranges.numbers[0], view.imsi()?)),
            Identity::Msisdn => Some(number(&self.ranges.numbers[1], view.msisdn()?)),
            Identity::Impi => Some(name(&self.ranges.names[0], routing::impi(view.routing)?)),
            Identity::Impu => Some(name(&self.ranges.names[1], routing::impu(view.routing)?)),
            Identity::Ipv4 => Some(self.ranges.v4.find(&u32::from(routing::ipv4(view.routing)?))),
            Identity::Ipv6Prefix => {
                let (address, _) = routing::ipv6(view.routing)?;
                Some(self.ranges.v6.find(&u128::from(address)))
            }
        }
    }
}

impl Application for Rbar {
    fn kind(&self) -> &'static str {
        "rbar"
    }

    #[inline]
    fn request(&self, given: &Given<'_>) -> Outcome<'_> {
        (given.count)(Event::Resolved);
        let outcome = self.resolve(given.view);
        if matches!(outcome, Outcome::To(_)) {
            (given.count)(Event::ResolvedTo);
        }
        outcome
    }

    fn tables(&self) -> Vec<Table> {
        let (entries, bytes) = self.ranges.size();
        vec![Table {
            name: "ranges",
            entries,
            bytes,
        }]
    }
}

fn number(arrays: &[(usize, Spans<u64>)], digits: &Digits) -> Option<u32> {
    arrays
        .iter()
        .find_map(|(length, spans)| spans.find(&digits.prefix(*length)?))
}

/// Names are compared in lower case.
fn name(spans: &Spans<Box<str>>, name: &[u8]) -> Option<u32> {
    if spans.len() == 0 {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    spans.find(&name.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Range;
    use diameter::proto::{MessageBuilder, Routing, known};

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
            on_invalid_identity: Otherwise::Answer(config::Answer::default()),
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
            Outcome::To(destination) => destination.name.clone(),
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
        assert_eq!(user("001110000001000"), "Abando");
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
            "Abando"
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
        assert_eq!(outcome(&rbar, 4, |_| ()), "Forwar");
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
            assert_eq!(user(format!("00101{n:06}5000")), "Abando");
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
