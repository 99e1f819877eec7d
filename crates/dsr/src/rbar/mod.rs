//! Range based address resolution: which destination a subscriber's number belongs to.
//!
//! Ranges lie in sorted arrays, starts apart from ends and destinations, so that a search among a million
//! touches little memory. Numbers have an array for each count of digits; the longest that holds a number's
//! beginning counts.

mod file;
mod spans;

use std::net::{Ipv4Addr, Ipv6Addr};

use ahash::AHashMap;
use diameter::proto::{Fault, ResultCode};
use ipnet::Ipv6Net;

use crate::config::{self, Identity, Otherwise, Range};
use crate::routing::{self, Digits, View};
use spans::{Collected, Spans};

/// Where a range leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Name.
    pub name: String,
    /// New Destination-Realm; empty: as it is.
    pub realm: String,
    /// New Destination-Host; empty: as it is.
    pub host: String,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// It goes on as it is.
    Forward,
    /// It goes there.
    To(&'a Destination),
    /// It is answered.
    Answer(&'a Fault),
    /// It is forgotten.
    Abandon,
}

#[derive(Debug)]
enum Fallback {
    Forward,
    To(u32),
    Answer(Fault),
    Abandon,
}

/// The resolver.
#[derive(Debug)]
pub struct Rbar {
    lookups: Vec<config::Lookup>,
    destinations: Vec<Destination>,
    numbers: [Vec<(usize, Spans<u64>)>; 2],
    names: [Spans<Box<str>>; 2],
    v4: Spans<u32>,
    v6: Spans<u128>,
    unknown_command: Fallback,
    invalid_identity: Fallback,
    no_match: Fallback,
}

/// One end of a range, or both.
enum Bound {
    Digits(usize, u64),
    Name(Box<str>),
    V4(u32),
    V6(u128, u128),
}

fn bound(identity: Identity, text: &str) -> Result<Bound, String> {
    match identity {
        Identity::Imsi | Identity::Msisdn => {
            let digits = text.strip_prefix('+').unwrap_or(text).as_bytes();
            let parsed = Digits::parse(digits).ok_or_else(|| format!("`{text}` is not 1 to 15 digits"))?;
            Ok(Bound::Digits(
                digits.len(),
                parsed.prefix(digits.len()).unwrap_or_default(),
            ))
        }
        Identity::Impi | Identity::Impu if text.is_empty() => Err("a name is empty".to_owned()),
        Identity::Impi | Identity::Impu => Ok(Bound::Name(text.to_ascii_lowercase().into())),
        Identity::Ipv4 => {
            let address: Ipv4Addr = text.parse().map_err(|_| format!("`{text}` is no IPv4 address"))?;
            Ok(Bound::V4(address.into()))
        }
        Identity::Ipv6Prefix => {
            if let Ok(net) = text.parse::<Ipv6Net>() {
                return Ok(Bound::V6(net.network().into(), net.broadcast().into()));
            }
            let address: Ipv6Addr = text
                .parse()
                .map_err(|_| format!("`{text}` is no IPv6 address or prefix"))?;
            Ok(Bound::V6(address.into(), address.into()))
        }
    }
}

/// Whether a range can be.
///
/// # Errors
/// What is wrong with it.
pub fn check(range: &Range) -> Result<(), String> {
    let mut tables = Tables::default();
    tables.add(range.identity, &range.start, &range.end, 0, 0)
}

/// Ranges that are being collected.
#[derive(Default)]
struct Tables {
    numbers: [AHashMap<usize, Collected<u64>>; 2],
    names: [Collected<Box<str>>; 2],
    v4: Collected<u32>,
    v6: Collected<u128>,
}

impl Tables {
    fn add(
        &mut self,
        identity: Identity,
        start: &str,
        end: &str,
        to: u32,
        line: usize,
    ) -> Result<(), String> {
        let end = if end.is_empty() { start } else { end };
        let second = usize::from(matches!(identity, Identity::Msisdn | Identity::Impu));
        let turned = || Err(format!("{start} to {end} ends before it begins"));
        match (bound(identity, start)?, bound(identity, end)?) {
            (Bound::Digits(length, from), Bound::Digits(other, until)) => {
                if length != other {
                    return Err(format!("{start} and {end} differ in the count of digits"));
                }
                if until < from {
                    return turned();
                }
                self.numbers[second]
                    .entry(length)
                    .or_default()
                    .push(from, until, to, line);
            }
            (Bound::Name(from), Bound::Name(until)) => {
                if until < from {
                    return turned();
                }
                self.names[second].push(from, until, to, line);
            }
            (Bound::V4(from), Bound::V4(until)) => {
                if until < from {
                    return turned();
                }
                self.v4.push(from, until, to, line);
            }
            (Bound::V6(from, _), Bound::V6(_, until)) => {
                if until < from {
                    return turned();
                }
                self.v6.push(from, until, to, line);
            }
            // Both ends are of the same identity.
            _ => return Err("the ends are of different kinds".to_owned()),
        }
        Ok(())
    }
}

impl Rbar {
    /// Collects the ranges of a configuration and of the file it names.
    ///
    /// # Errors
    /// When the file cannot be read, or a range cannot be or overlaps another; with its line.
    pub fn load(config: &config::Rbar) -> Result<Self, String> {
        let destinations: Vec<Destination> = config
            .destinations
            .iter()
            .map(|one| Destination {
                name: one.name.clone(),
                realm: one.realm.clone(),
                host: one.host.clone(),
            })
            .collect();
        let by_name: AHashMap<&str, u32> = destinations
            .iter()
            .zip(0..)
            .map(|(one, number)| (one.name.as_str(), number))
            .collect();
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
        let fallback = |otherwise: &Otherwise| match otherwise {
            Otherwise::Forward => Fallback::Forward,
            Otherwise::Destination(name) => by_name
                .get(name.as_str())
                .map_or(Fallback::Forward, |number| Fallback::To(*number)),
            Otherwise::Answer(answer) => {
                Fallback::Answer(Fault::new(ResultCode(answer.result_code), answer.message.clone()))
            }
            Otherwise::Abandon => Fallback::Abandon,
        };
        let of = |what: &str| {
            let file = config.file.as_ref().map(|path| format!("{}: ", path.display()));
            (file.unwrap_or_default(), what.to_owned())
        };
        let told = |(file, what): (String, String)| {
            move |(one, other): (usize, usize)| {
                let place = |line| match line {
                    0 => "the configuration".to_owned(),
                    line => format!("line {line}"),
                };
                format!(
                    "{file}ranges of {what} overlap: those of {} and {}",
                    place(one),
                    place(other)
                )
            }
        };
        let Tables {
            numbers,
            names,
            v4,
            v6,
        } = tables;
        let sort_numbers = |by_length: AHashMap<usize, Collected<u64>>, what: &str| {
            let mut sorted = Vec::new();
            for (length, collected) in by_length {
                sorted.push((length, collected.sort().map_err(told(of(what)))?));
            }
            sorted.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
            Ok::<_, String>(sorted)
        };
        let [imsi, msisdn] = numbers;
        let [impi, impu] = names;
        let (unknown_command, invalid_identity, no_match) = (
            fallback(&config.on_unknown_command),
            fallback(&config.on_invalid_identity),
            fallback(&config.on_no_match),
        );
        drop(by_name);
        Ok(Self {
            lookups: config.lookups.clone(),
            numbers: [sort_numbers(imsi, "imsi")?, sort_numbers(msisdn, "msisdn")?],
            names: [
                impi.sort().map_err(told(of("impi")))?,
                impu.sort().map_err(told(of("impu")))?,
            ],
            v4: v4.sort().map_err(told(of("ipv4")))?,
            v6: v6.sort().map_err(told(of("ipv6Prefix")))?,
            destinations,
            unknown_command,
            invalid_identity,
            no_match,
        })
    }

    /// How many ranges there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let numbers: usize = self.numbers.iter().flatten().map(|(_, spans)| spans.len()).sum();
        let names: usize = self.names.iter().map(Spans::len).sum();
        numbers + names + self.v4.len() + self.v6.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What becomes of a request.
    #[must_use]
    pub fn resolve(&self, view: &View<'_>) -> Outcome<'_> {
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
            Identity::Imsi => Some(number(&self.numbers[0], view.imsi()?)),
            Identity::Msisdn => Some(number(&self.numbers[1], view.msisdn()?)),
            Identity::Impi => Some(name(&self.names[0], routing::impi(view.routing)?)),
            Identity::Impu => Some(name(&self.names[1], routing::impu(view.routing)?)),
            Identity::Ipv4 => Some(self.v4.find(&u32::from(routing::ipv4(view.routing)?))),
            Identity::Ipv6Prefix => {
                let (address, _) = routing::ipv6(view.routing)?;
                Some(self.v6.find(&u128::from(address)))
            }
        }
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
        assert_eq!(rbar.len(), 7);
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
    fn what_cannot_be_is_told() {
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
        assert_eq!(rbar.len(), 1_000_000);
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
