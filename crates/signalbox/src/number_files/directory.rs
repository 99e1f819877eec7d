//! Entries of a directory (LDAP, RFC 4511) as lines of numbers.

#[cfg(feature = "ldap")]
mod search;

use std::path::PathBuf;

#[cfg(feature = "ldap")]
use anyhow::Context as _;
use clap::Args;
use numbers::DestinationSet;

use super::progress::Display;
use super::spool::Spool;
use crate::failure::Failure;

/// Where the entries are, and what of them is imported.
#[derive(Debug, Args)]
#[command(next_help_heading = "Directory (LDAP)")]
pub(super) struct Directory {
    /// Take numbers from a directory in place of TEXT: ldap://HOST:389 or ldaps://HOST:636
    #[arg(long, value_name = "URL", id = "ldap", requires_all = ["base", "attribute", "destination"])]
    ldap: Option<String>,
    /// Base of the search, below which all entries are read
    #[arg(long, value_name = "DN", requires = "ldap")]
    base: Option<String>,
    /// Filter of the search (RFC 4515)
    #[arg(
        long,
        value_name = "FILTER",
        requires = "ldap",
        default_value = "(objectClass=*)"
    )]
    filter: String,
    /// Attribute with numbers of a kind (imsi, msisdn, imei; with --sds also name); several values are several numbers. May come
    /// several times
    #[arg(long, value_name = "KIND=ATTRIBUTE", requires = "ldap", value_parser = kind_and_attribute)]
    attribute: Vec<(String, String)>,
    /// Attribute with the destinations as TEXT has them, or with the one of a service. May come several times
    #[arg(long, value_name = "[SERVICE=]ATTRIBUTE", requires = "ldap")]
    destination: Vec<String>,
    /// Name to bind with; without it the bind is anonymous
    #[arg(long, value_name = "DN", requires = "password_file")]
    bind_dn: Option<String>,
    /// File with the password of the name
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    password_file: Option<PathBuf>,
    /// PEM file of the authorities that the certificate of the directory is checked by (ldaps)
    #[arg(long, value_name = "FILE", requires = "ldap")]
    ldap_authorities: Option<PathBuf>,
}

fn kind_and_attribute(text: &str) -> Result<(String, String), String> {
    let known = text
        .split_once('=')
        .filter(|(kind, _)| ["imei", "imsi", "msisdn", "name"].contains(kind));
    let (kind, attribute) = known.ok_or("expected KIND=ATTRIBUTE with imsi, msisdn, imei or name")?;
    Ok((kind.to_owned(), attribute.to_owned()))
}

/// Makes a line of kind, number or name, and destinations; says what is wrong with them.
pub(super) type MakeLine = fn(&str, &str, &str) -> Result<String, String>;

/// An entry: its name, and its attributes with their values.
#[derive(Debug)]
struct Entry {
    name: String,
    attributes: Vec<(String, Vec<Vec<u8>>)>,
}

impl Directory {
    /// Reads all entries into a spool, each number as the line that `make` makes of kind, number and destinations; returns how
    /// many entries there are.
    ///
    /// # Errors
    /// Names the first entry that cannot be imported, with the reason; also when the directory does not answer with all entries.
    pub(super) fn read(
        &self,
        make: MakeLine,
        spool: &mut Spool,
        display: &mut Display,
    ) -> Result<u64, Failure> {
        let url = self.ldap.as_deref().unwrap_or_default();
        let is_known = url.starts_with("ldap://") || url.starts_with("ldaps://");
        if !is_known {
            let reason = format!("--ldap {url}: expected ldap://HOST:389 or ldaps://HOST:636");
            return Err(Failure::Usage(reason));
        }
        if url.starts_with("ldaps:") && self.ldap_authorities.is_none() {
            let reason =
                "--ldap-authorities is missing, so that no certificate of the directory would be trusted";
            return Err(Failure::Usage(reason.to_owned()));
        }
        let mut count = 0;
        self.search(url, |entry, estimate| {
            let lines = self.lines(&entry, make);
            let lines = lines.map_err(|reason| anyhow::anyhow!("{}: {reason}", entry.name))?;
            if !lines.is_empty() {
                spool.push(&entry.name, &lines)?;
            }
            count += 1;
            // What the directory estimates may be less than there are.
            let share = (estimate > count).then(|| count as f64 / estimate as f64);
            display.show("entries read", count, share);
            Ok(())
        })?;
        Ok(count)
    }

    #[cfg(feature = "ldap")]
    fn search(
        &self,
        url: &str,
        each: impl FnMut(Entry, u64) -> Result<(), anyhow::Error>,
    ) -> Result<(), Failure> {
        let password = self.password()?;
        let bind = self.bind_dn.as_deref().map(|name| (name, password.as_str()));
        let query = search::Query {
            url,
            bind,
            authorities: self.ldap_authorities.as_deref(),
            base: self.base.as_deref().unwrap_or_default(),
            filter: &self.filter,
            attributes: self.attributes(),
        };
        Ok(query.run(each).with_context(|| url.to_owned())?)
    }

    #[cfg(not(feature = "ldap"))]
    fn search(&self, _: &str, _: impl FnMut(Entry, u64) -> Result<(), anyhow::Error>) -> Result<(), Failure> {
        let reason = "this program is built without LDAP; use one with the feature `ldap` (`make dist`)";
        Err(Failure::Usage(reason.to_owned()))
    }

    #[cfg(feature = "ldap")]
    fn password(&self) -> Result<String, Failure> {
        let Some(path) = &self.password_file else {
            return Ok(String::new());
        };
        let text =
            std::fs::read_to_string(path).with_context(|| format!("--password-file {}", path.display()))?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The attributes that are asked for.
    #[cfg(feature = "ldap")]
    fn attributes(&self) -> Vec<String> {
        let numbers = self.attribute.iter().map(|(_, attribute)| attribute.clone());
        let destinations = self
            .destination
            .iter()
            .map(|one| service_and_attribute(one).1.to_owned());
        numbers.chain(destinations).collect()
    }

    /// The numbers of an entry as lines.
    fn lines(&self, entry: &Entry, make: MakeLine) -> Result<Vec<String>, String> {
        let (mut lines, mut destinations) = (Vec::new(), None);
        for (kind, attribute) in &self.attribute {
            for value in entry.values(attribute)? {
                if destinations.is_none() {
                    destinations = Some(self.destinations(entry)?);
                }
                let set = destinations.as_ref().map_or("", DestinationSet::as_str);
                let line = make(kind, &number(kind, value), set);
                lines.push(line.map_err(|error| format!("{attribute} `{value}`: {error}"))?);
            }
        }
        Ok(lines)
    }

    /// The destinations of an entry as text.
    fn destinations(&self, entry: &Entry) -> Result<DestinationSet, String> {
        let mut text = String::new();
        for one in &self.destination {
            let (service, attribute) = service_and_attribute(one);
            let value = match entry.values(attribute)?[..] {
                [] => continue,
                [value] => value,
                [..] => return Err(format!("{attribute} has several values; expected one")),
            };
            if !text.is_empty() {
                text.push(',');
            }
            if let Some(service) = service {
                if value.contains([',', '=']) {
                    return Err(format!("{attribute} `{value}`: expected one destination"));
                }
                text.push_str(&format!("{service}="));
            }
            text.push_str(value);
        }
        if text.is_empty() {
            return Err(format!(
                "no destination; expected {}",
                self.destination.join(" or ")
            ));
        }
        DestinationSet::parse(&text).map_err(|error| format!("destinations `{text}`: {error}"))
    }
}

impl Entry {
    /// The values of an attribute. Names of attributes are compared without case (RFC 4512 §2.5).
    fn values(&self, attribute: &str) -> Result<Vec<&str>, String> {
        let found = self
            .attributes
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(attribute));
        let values = found.flat_map(|(_, values)| values);
        values
            .map(|value| std::str::from_utf8(value).map_err(|_| format!("{attribute} is not in UTF-8")))
            .collect()
    }
}

/// `pcrf=pcrfName`, or `hssName` for all services.
fn service_and_attribute(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((service, attribute)) => (Some(service), attribute),
        None => (None, text),
    }
}

/// A number of a kind: an MSISDN may be written as `+49 151 100-001` (RFC 4517 §3.3.31).
fn number(kind: &str, value: &str) -> String {
    match kind {
        "msisdn" => {
            let value = value.strip_prefix('+').unwrap_or(value);
            value.replace([' ', '-', '.', '(', ')'], "")
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        directory: Directory,
    }

    fn directory() -> Directory {
        let options = "x --ldap ldap://h --base dc=x --attribute imsi=imsi --attribute msisdn=telephoneNumber \
                       --destination hss --destination pcrf=pcrfName";
        Options::parse_from(options.split_whitespace()).directory
    }

    fn lines(attributes: &[(&str, &[&str])]) -> Result<Vec<String>, String> {
        let values = |values: &[&str]| values.iter().map(|value| value.as_bytes().to_vec()).collect();
        let attributes = attributes
            .iter()
            .map(|(name, all)| ((*name).to_owned(), values(all)));
        let entry = Entry {
            name: "cn=one".to_owned(),
            attributes: attributes.collect(),
        };
        directory().lines(&entry, sds::record_line)
    }

    #[test]
    fn an_entry_is_a_line_for_each_number() {
        let found = lines(&[
            ("IMSI", &["001010000000001", "001010000000002"]),
            ("telephoneNumber", &["+49 (151) 100-001"]),
            ("hss", &["hss1.example"]),
            ("pcrfname", &["pcrf7"]),
        ]);
        let destinations = "hss1.example,pcrf=pcrf7";
        let expected = [
            "imsi,001010000000001",
            "imsi,001010000000002",
            "msisdn,49151100001",
        ];
        assert_eq!(
            found.unwrap(),
            expected.map(|number| format!("{number},{destinations}"))
        );
        let found = lines(&[("imsi", &["1"]), ("hss", &["a,ocs=b"])]);
        assert_eq!(found.unwrap(), ["imsi,1,a,ocs=b"]);
        assert_eq!(lines(&[("hss", &["a"])]).unwrap(), [""; 0], "no number");
    }

    #[test]
    fn what_is_not_a_record_is_refused_with_the_reason() {
        for (attributes, reason) in [
            (
                &[("imsi", &["0010X"][..]), ("hss", &["a"])][..],
                "imsi `0010X`: character 5",
            ),
            (&[("imsi", &["0010100000000012"]), ("hss", &["a"])], "16 digits"),
            (
                &[("imsi", &["1"])],
                "no destination; expected hss or pcrf=pcrfName",
            ),
            (
                &[("imsi", &["1"]), ("hss", &["a", "b"])],
                "hss has several values",
            ),
            (&[("imsi", &["1"]), ("hss", &["a b"])], "destinations `a b`"),
            (
                &[("imsi", &["1"]), ("pcrfName", &["a,ocs=b"])],
                "expected one destination",
            ),
        ] {
            let wrong = lines(attributes).unwrap_err();
            assert!(wrong.contains(reason), "{wrong}");
        }
    }
}
