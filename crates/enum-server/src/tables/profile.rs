//! Profiles, compiled: literal texts with numbers and parameters between them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::Arc;

use domain::base::Name;
use settings::Faults;

use super::Digits;
use crate::config;

/// The name of the profile whose numbers do not exist.
pub(crate) const NO_NUMBER: &str = "none";
/// Most octets of a character string (RFC 1035 §3.3).
const MOST_OCTETS: usize = 255;
/// Most records of a profile. An answer holds some dozens at best.
const MOST_RECORDS: usize = 64;

/// What a number resolves to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) ttl: u32,
    pub(crate) records: Vec<Template>,
    /// What clients may misunderstand.
    pub(crate) advice: Vec<String>,
}

/// A record before the number is known.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) order: u16,
    pub(crate) preference: u16,
    pub(crate) flags: String,
    pub(crate) service: String,
    delimiter: Option<char>,
    regexp: Vec<Piece>,
    replacement: Vec<Piece>,
    /// The replacement, where it is the same for all numbers.
    fixed: Option<Name<Vec<u8>>>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Number,
    Parameter(String),
}

/// A record of one number.
#[derive(Debug)]
pub(crate) struct Naptr<'p> {
    pub(crate) template: &'p Template,
    pub(crate) regexp: String,
    pub(crate) replacement: Cow<'p, Name<Vec<u8>>>,
}

impl Profile {
    /// The records of a number, without those whose parameters it does not have.
    ///
    /// # Errors
    /// Why one cannot be written.
    pub(crate) fn expand<'s>(
        &self,
        number: &Digits,
        parameter: impl Fn(&str) -> Option<&'s str>,
    ) -> Result<Vec<Naptr<'_>>, String> {
        let records = self
            .records
            .iter()
            .map(|record| record.expand(number, &parameter));
        records.filter_map(Result::transpose).collect()
    }
}

impl Template {
    fn expand<'s>(
        &self,
        number: &Digits,
        parameter: &impl Fn(&str) -> Option<&'s str>,
    ) -> Result<Option<Naptr<'_>>, String> {
        let text = |pieces| joined(pieces, number, parameter, self.delimiter);
        let Some(regexp) = text(&self.regexp)? else {
            return Ok(None);
        };
        if regexp.len() > MOST_OCTETS {
            return Err(format!(
                "a regexp has {} octets, and at most {MOST_OCTETS} are possible",
                regexp.len()
            ));
        }
        let replacement = match &self.fixed {
            Some(name) => Cow::Borrowed(name),
            None => match text(&self.replacement)? {
                Some(text) => Cow::Owned(
                    Name::from_str(&text).map_err(|error| format!("replacement `{text}`: {error}"))?,
                ),
                None => return Ok(None),
            },
        };
        Ok(Some(Naptr {
            template: self,
            regexp,
            replacement,
        }))
    }
}

/// The text; none where the number lacks a parameter.
fn joined<'s>(
    pieces: &[Piece],
    number: &Digits,
    parameter: &impl Fn(&str) -> Option<&'s str>,
    delimiter: Option<char>,
) -> Result<Option<String>, String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Number => text.extend(number.as_slice().iter().map(|digit| char::from(b'0' + digit))),
            Piece::Parameter(name) => {
                let Some(value) = parameter(name) else {
                    return Ok(None);
                };
                // It would end the result, or begin a back reference (RFC 3402 §3.2).
                if value.chars().any(|one| one == '\\' || Some(one) == delimiter) {
                    return Err(format!("parameter `{name}` has the delimiter or a backslash"));
                }
                text.push_str(value);
            }
        }
    }
    Ok(Some(text))
}

/// Compiles profiles, and reports what is wrong with them.
pub(super) fn compile(profiles: &[config::Profile], faults: &mut Faults) -> HashMap<String, Arc<Profile>> {
    let mut all = HashMap::new();
    for (index, profile) in profiles.iter().enumerate() {
        let at = format!("profiles[{index}]");
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name =
            !profile.name.is_empty() && profile.name.len() <= MOST_OCTETS && profile.name.bytes().all(plain);
        if !is_name || profile.name == NO_NUMBER {
            let what = format!("`{}` cannot name a profile", profile.name);
            let expected = "letters, digits, `-`, `_` and `.`, other than `none`";
            faults.at(format!("{at}.name")).say(what, expected);
        }
        if profile.records.is_empty() || profile.records.len() > MOST_RECORDS {
            let what = format!("has {} records", profile.records.len());
            let expected = format!("1 to {MOST_RECORDS} records");
            faults.at(format!("{at}.records")).say(what, expected);
        }
        let mut records = Vec::new();
        for (number, record) in profile.records.iter().enumerate() {
            let at = format!("{at}.records[{number}]");
            records.push(template(record, &at, faults));
        }
        records.sort_by_key(|record| (record.order, record.preference));
        let compiled = Profile {
            name: profile.name.clone(),
            ttl: seconds(profile.ttl),
            advice: advice(&records),
            records,
        };
        if all.insert(profile.name.clone(), Arc::new(compiled)).is_some() {
            let what = format!("`{}` is there twice", profile.name);
            faults
                .at(format!("{at}.name"))
                .say(what, "a name for each profile");
        }
    }
    all
}

/// As a TTL, which has 31 bits (RFC 2181 §8).
pub(super) fn seconds(period: settings::Period) -> u32 {
    u32::try_from(period.duration().as_secs()).map_or(i32::MAX as u32, |seconds| seconds.min(i32::MAX as u32))
}

fn template(record: &config::Record, at: &str, faults: &mut Faults) -> Template {
    let is_terminal = record.flags.eq_ignore_ascii_case("u");
    if !is_terminal && !record.flags.is_empty() {
        let what = format!("is `{}`", record.flags);
        faults
            .at(format!("{at}.flags"))
            .say(what, "`u`, or empty (RFC 6116 §3.4.2)");
    }
    if !is_service(&record.service) && (is_terminal || !record.service.is_empty()) {
        let what = format!("`{}` is not a service of ENUM", record.service);
        let expected = "`E2U+` with types, such as `E2U+sip` or `E2U+pstn:tel` (RFC 6116 §3.4.3)";
        faults.at(format!("{at}.service")).say(what, expected);
    }
    let is_root = record.replacement == ".";
    if is_terminal && !is_root || !is_terminal && (is_root || !record.regexp.is_empty()) {
        let what = "does not fit the flags";
        let expected = "`.` with flags `u`, otherwise the next name and no `regexp` (RFC 3403 §4.1)";
        faults.at(format!("{at}.replacement")).say(what, expected);
    }
    let delimiter = if is_terminal {
        let found = delimiter(&record.regexp);
        if let Err(what) = &found {
            let expected = "such as `!^.*$!sip:+{number}@example.net!` (RFC 3402 §3.2)";
            faults.at(format!("{at}.regexp")).say(what.clone(), expected);
        }
        found.ok()
    } else {
        None
    };
    let mut pieces = |key: &str, text: &str| {
        pieces(text).unwrap_or_else(|what| {
            let expected = "`{number}`, or `{NAME}` of a parameter in lower-case letters, digits and `-`";
            faults.at(format!("{at}.{key}")).say(what, expected);
            Vec::new()
        })
    };
    let (regexp, replacement) = (
        pieces("regexp", &record.regexp),
        pieces("replacement", &record.replacement),
    );
    // With the longest number and the shortest parameters: whether there is a text that fits.
    let expanded = |pieces: &[Piece]| joined(pieces, &Digits::LONGEST, &|_| Some("a"), None);
    if let Ok(Some(text)) = expanded(&regexp)
        && text.len() > MOST_OCTETS
    {
        let what = format!("has {} octets with a number of 15 digits", text.len());
        let expected = format!("at most {MOST_OCTETS}");
        faults.at(format!("{at}.regexp")).say(what, expected);
    }
    if let Ok(Some(name)) = expanded(&replacement)
        && Name::<Vec<u8>>::from_str(&name).is_err()
    {
        let what = format!("`{}` is not a name of DNS", record.replacement);
        faults
            .at(format!("{at}.replacement"))
            .say(what, "a name such as `example.net`");
    }
    let is_fixed = replacement.iter().all(|piece| matches!(piece, Piece::Text(_)));
    Template {
        order: record.order,
        preference: record.preference,
        flags: record.flags.clone(),
        service: record.service.clone(),
        delimiter,
        regexp,
        fixed: Name::from_str(&record.replacement).ok().filter(|_| is_fixed),
        replacement,
    }
}

/// `E2U` and one service or more, each of types that are separated by colons.
fn is_service(text: &str) -> bool {
    let mut parts = text.split('+');
    let is_type = |one: &str| {
        !one.is_empty()
            && one.len() <= 32
            && one
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_enum = parts
        .next()
        .is_some_and(|first| first.eq_ignore_ascii_case("E2U"));
    let mut services = parts.peekable();
    is_enum
        && text.len() <= MOST_OCTETS
        && services.peek().is_some()
        && services.all(|service| service.split(':').all(is_type))
}

/// The delimiter of an expression.
///
/// # Errors
/// What is wrong with the expression.
fn delimiter(regexp: &str) -> Result<char, String> {
    if regexp.is_empty()
        || regexp.len() > MOST_OCTETS
        || !regexp.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    {
        return Err(format!("is not 1 to {MOST_OCTETS} visible characters of ASCII"));
    }
    let mut characters = regexp.chars();
    let delimiter = characters.next().unwrap_or_default();
    // RFC 3402 §3.2; a letter would be taken for a flag, and braces are those of parameters.
    if delimiter.is_ascii_alphanumeric() || "\\{} ^$".contains(delimiter) {
        return Err(format!("begins with `{delimiter}`, which cannot be a delimiter"));
    }
    let (mut parts, mut escaped) = (vec![String::new()], false);
    for one in characters {
        if one == delimiter && !escaped {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(one);
        }
        escaped = one == '\\' && !escaped;
    }
    match parts.as_slice() {
        [pattern, result, flags]
            if !pattern.is_empty() && !result.is_empty() && matches!(flags.as_str(), "" | "i") =>
        {
            let groups = groups(pattern)?;
            // RFC 3402 §3.2: from 1 to 9.
            let beyond = (0..=9)
                .filter(|number| *number == 0 || *number > groups)
                .find(|number| result.contains(&format!("\\{number}")));
            beyond.map_or(Ok(delimiter), |number| {
                Err(format!(
                    "refers to `\\{number}`, and the pattern has {groups} groups"
                ))
            })
        }
        _ => Err(format!(
            "is not a pattern and a result between three `{delimiter}`, with no flag but `i`"
        )),
    }
}

/// Groups of an extended regular expression of POSIX.
///
/// # Errors
/// Which bracket has no other one.
fn groups(pattern: &str) -> Result<usize, String> {
    let (mut groups, mut open) = (0, 0_usize);
    let mut rest = pattern.chars();
    while let Some(one) = rest.next() {
        match one {
            '\\' => drop(rest.next()),
            '(' => (groups, open) = (groups + 1, open + 1),
            ')' => open = open.checked_sub(1).ok_or("has a `)` without `(`")?,
            '[' => {
                // A `]` that comes first stands for itself.
                let inner = rest.as_str();
                let inner = inner.strip_prefix('^').unwrap_or(inner);
                let inner = inner.strip_prefix(']').unwrap_or(inner);
                let (_, behind) = inner.split_once(']').ok_or("has a `[` without `]`")?;
                rest = behind.chars();
            }
            _ => {}
        }
    }
    match open {
        0 => Ok(groups),
        _ => Err("has a `(` without `)`".to_owned()),
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, behind)) = behind.split_once('}') else {
            return Err("has a `{` without `}`".to_owned());
        };
        // Repetition of an expression: `{2,15}`.
        if name.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') {
            pieces.push(Piece::Text(format!("{before}{{{name}}}")));
        } else if name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        {
            pieces.push(Piece::Text(before.to_owned()));
            let parameter = || Piece::Parameter(name.to_owned());
            pieces.push(if name == "number" {
                Piece::Number
            } else {
                parameter()
            });
        } else {
            return Err(format!("`{{{name}}}` is not a parameter"));
        }
        rest = behind;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

/// What clients may misunderstand, though it is right (RFC 5483).
fn advice(records: &[Template]) -> Vec<String> {
    let mut advice = Vec::new();
    let mut orders: Vec<u16> = records.iter().map(|record| record.order).collect();
    orders.dedup();
    if orders.len() > 1 {
        advice.push(format!("orders {orders:?}: some clients read the lowest one alone, others all; use one order, and preferences"));
    }
    for record in records {
        let service = &record.service;
        if record.flags.is_empty() {
            advice.push("a record without flags: few clients ask for the next name".to_owned());
        }
        if service.matches('+').count() > 1 {
            advice.push(format!(
                "`{service}`: few clients read several services of one record; use a record for each"
            ));
        }
        if record.delimiter.is_some_and(|one| one != '!') {
            advice.push(format!("`{service}`: some clients know no delimiter but `!`"));
        }
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(record: config::Record) -> Vec<String> {
        let mut faults = Faults::default();
        template(&record, "", &mut faults);
        faults
            .into_vec()
            .into_iter()
            .map(|fault| format!("{} {}", fault.path, fault.what))
            .collect()
    }

    fn with(regexp: &str) -> config::Record {
        config::Record {
            service: "E2U+sip".to_owned(),
            regexp: regexp.to_owned(),
            ..config::Record::default()
        }
    }

    #[test]
    fn expressions_are_checked() {
        for good in [
            "!^.*$!sip:+{number}@ims.example!",
            "!^\\+43(.*)$!sip:\\1@ims.example!i",
            "/^.*$/sip:info@example/",
            "!^[](]\\((.*)$!sip:\\1@h!",
            "!^\\+[0-9]{2,15}$!sip:{number}@{host}!",
        ] {
            assert_eq!(faults(with(good)), Vec::<String>::new(), "{good}");
        }
        for wrong in [
            "",
            "!",
            "!!",
            "!!x!",
            "!^.*$!!",
            "!^.*$!sip:a@b",
            "!^.*$!sip:a!b!",
            "!^.*$!sip:\\1@b!",
            "1^.*$1sip:a@b1",
            "i^.*$isip:a@bi",
            "!^.*$!sip:{Number}@b!",
            "!^.*$!sip:ä@b!",
            "!^.*$!sip:a@b!x",
            "!^.*$!sip:{number@b!",
            "!^.*$!sip:\\0@b!",
            "!^(.*$!sip:a@b!",
            "!^.*)$!sip:a@b!",
            "!^[0-9$!sip:a@b!",
        ] {
            assert_ne!(faults(with(wrong)), Vec::<String>::new(), "{wrong}");
        }
        let long = |fill| with(&format!("!^.*$!sip:{{number}}{}!", "x".repeat(fill)));
        assert_eq!(faults(long(229)), Vec::<String>::new());
        assert_eq!(
            faults(long(230)),
            [".regexp has 256 octets with a number of 15 digits"]
        );
    }

    #[test]
    fn services_and_flags_are_checked() {
        for good in [
            "E2U+sip",
            "e2u+pstn:tel",
            "E2U+email:mailto+sip",
            "E2U+voice:tel+sms:tel",
        ] {
            assert!(is_service(good), "{good}");
        }
        for wrong in ["", "sip+E2U", "E2U", "E2U+", "E2U+sip+", "E2U+pstn:", "E2U+a b"] {
            assert!(!is_service(wrong), "{wrong}");
        }
        let next = config::Record {
            flags: String::new(),
            replacement: "next.example".to_owned(),
            ..config::Record::default()
        };
        assert_eq!(faults(next.clone()), Vec::<String>::new());
        let numbered = config::Record {
            replacement: "{number}.example".to_owned(),
            ..next.clone()
        };
        assert_eq!(faults(numbered), Vec::<String>::new());
        assert_ne!(
            faults(config::Record {
                flags: "s".to_owned(),
                ..next.clone()
            }),
            Vec::<String>::new()
        );
        assert_ne!(
            faults(config::Record {
                replacement: "..".to_owned(),
                ..next
            }),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_record_without_its_parameter_is_left_out() {
        let number = Digits::parse("43660123").unwrap();
        let mut faults = Faults::default();
        let profile = config::Profile {
            name: "p".to_owned(),
            records: vec![
                with("!^.*$!sip:+{number}@h!"),
                with("!^.*$!tel:+{number};npdi;rn={rn}!"),
            ],
            ..config::Profile::default()
        };
        let profile = compile(&[profile], &mut faults).remove("p").unwrap();
        assert!(faults.is_empty());
        assert_eq!(profile.expand(&number, |_| None).unwrap().len(), 1);
        let ported = profile
            .expand(&number, |name| (name == "rn").then_some("+4366099"))
            .unwrap();
        assert_eq!(ported[1].regexp, "!^.*$!tel:+43660123;npdi;rn=+4366099!");
        assert!(
            profile.expand(&number, |_| Some("a!b")).is_err(),
            "it would end the result"
        );
    }
}
