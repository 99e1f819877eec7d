//! SpecAVPScr_Config, AVPInstChk_Config and AVPWLScr_Config: AVPs, compiled to one program for each application, command and
//! kind of message.

use std::borrow::Cow;

use ahash::{AHashMap, AHashSet};
use diameter_proto::dictionary::AvpDefinition;
use diameter_proto::{Avp, AvpKey, AvpType, Avps as Walk, Dictionary};
use smallvec::SmallVec;

use super::commands::{application, command};
use super::{Reading, number};
use crate::csv::Row;

/// Levels of groups in a row, the AVP itself included.
const MAX_PATH: usize = 5;
/// Levels of groups in a message whose AVPs are all listed.
const MAX_DEPTH: usize = 8;

/// What is asked of the AVPs of a message.
#[derive(Debug, Default)]
pub(crate) struct Program {
    values: Vec<Value>,
    counts: Vec<Count>,
    allowed: Option<AHashSet<AvpKey>>,
    /// Rows by the AVP at the top level of a message with which their paths begin.
    tops: AHashMap<AvpKey, Rows>,
}

/// Positions in `values` and in `counts`, ascending.
#[derive(Debug, Default)]
struct Rows {
    values: Vec<usize>,
    counts: Vec<usize>,
}

/// An AVP that makes a message wrong.
#[derive(Debug)]
struct Value {
    path: Vec<AvpKey>,
    name: String,
    /// None: any.
    value: Option<Vec<u8>>,
    /// Names of nodes and realms are compared without regard to case (RFC 6733 §4.3.1).
    is_name: bool,
}

impl Value {
    fn is(&self, data: &[u8]) -> bool {
        let is = |value: &Vec<u8>| match self.is_name {
            true => value.eq_ignore_ascii_case(data),
            false => value == data,
        };
        self.value.as_ref().is_none_or(is)
    }
}

/// How often an AVP may be there.
#[derive(Debug)]
struct Count {
    path: Vec<AvpKey>,
    name: String,
    min: u32,
    max: u32,
}

/// Application, command, and whether it is a request.
type Key = (u32, u32, bool);

/// Programs of all messages.
#[derive(Debug, Default)]
pub(crate) struct Avps(AHashMap<Key, Program>);

impl Avps {
    pub(super) fn load(reading: &mut Reading<'_>, blocked: &dyn Fn(u32, u32) -> bool) -> Self {
        let mut all = Self::default();
        let columns = [
            "Application_ID",
            "Command_Code",
            "Message_Type",
            "AVP_Name",
            "AVP_Value",
        ];
        let sheet = reading.sheet("SpecAVPScr_Config", &columns, 5);
        reading.each(&sheet, |row| all.add_value(row, blocked));
        let columns = [
            "Application_ID",
            "Command_Code",
            "Message_Type",
            "AVP_Name",
            "Minimum_Instance",
            "Maximum_Instance",
        ];
        let sheet = reading.sheet("AVPInstChk_Config", &columns, 6);
        reading.each(&sheet, |row| all.add_count(row, blocked));
        let columns = ["Application_ID", "Command_Code", "Message_Type", "AVP_Names"];
        let sheet = reading.sheet("AVPWLScr_Config", &columns, 4);
        reading.each(&sheet, |row| all.add_allowed(row, blocked));
        all
    }

    /// The program of a kind of message.
    pub(crate) fn program(&self, application: u32, command: u32, is_request: bool) -> Option<&Program> {
        self.0.get(&(application, command, is_request))
    }

    fn add_value(&mut self, row: &Row, blocked: &dyn Fn(u32, u32) -> bool) -> Result<(), String> {
        let (path, last) = path(row.field(3))?;
        let text = row.field(4);
        let value = match text {
            "*" => None,
            _ => Some(value_of(last, text)?),
        };
        for key in keys(row, blocked)? {
            let program = self.0.entry(key).or_default();
            let values = &mut program.values;
            let new = Value {
                path: path.clone(),
                name: row.field(3).to_owned(),
                value: value.clone(),
                is_name: matches!(last.kind, AvpType::DiameterIdentity),
            };
            let shadows = |known: &Value| {
                let value = new.value.as_ref();
                known.path == new.path && value.map_or(known.value.is_none(), |value| known.is(value))
            };
            if values.iter().any(shadows) {
                return Err("a row before it finds the same: it can never match".to_owned());
            }
            if let Some(top) = path.first() {
                program.tops.entry(*top).or_default().values.push(values.len());
            }
            values.push(new);
        }
        Ok(())
    }

    fn add_count(&mut self, row: &Row, blocked: &dyn Fn(u32, u32) -> bool) -> Result<(), String> {
        let (path, _) = path(row.field(3))?;
        let (min, max) = (
            number(row, 4, "a Minimum_Instance")?,
            number(row, 5, "a Maximum_Instance")?,
        );
        if min > max {
            return Err(format!("Minimum_Instance {min} is above Maximum_Instance {max}"));
        }
        for key in keys(row, blocked)? {
            let program = self.0.entry(key).or_default();
            let counts = &mut program.counts;
            if counts.iter().any(|known| known.path == path) {
                return Err("the same AVP of the same messages is there already".to_owned());
            }
            if let Some(top) = path.first() {
                program.tops.entry(*top).or_default().counts.push(counts.len());
            }
            counts.push(Count {
                path: path.clone(),
                name: row.field(3).to_owned(),
                min,
                max,
            });
        }
        Ok(())
    }

    fn add_allowed(&mut self, row: &Row, blocked: &dyn Fn(u32, u32) -> bool) -> Result<(), String> {
        let mut listed = Vec::new();
        for name in row.list(3) {
            listed.push(definition(name)?.key);
        }
        for key in keys(row, blocked)? {
            let allowed = self.0.entry(key).or_default().allowed.get_or_insert_default();
            for one in &listed {
                if !allowed.insert(*one) {
                    return Err(format!("the AVP {one} of the same messages is there already"));
                }
            }
        }
        Ok(())
    }
}

impl Program {
    /// Specific AVP screening.
    pub(crate) fn screen_values(&self, avps: &Walk<'_>) -> Result<(), Cow<'static, str>> {
        if self.values.is_empty() {
            return Ok(());
        }
        // The first row of the table that fits.
        let mut found: Option<usize> = None;
        for avp in avps.clone().map_while(Result::ok) {
            let Some(rows) = self.tops.get(&avp.key()) else {
                continue;
            };
            for row in rows
                .values
                .iter()
                .take_while(|row| found.is_none_or(|found| **row < found))
            {
                let Some(wanted) = self.values.get(*row) else {
                    continue;
                };
                let mut is = false;
                visit(&avp, &wanted.path, &mut |data| is |= wanted.is(data));
                if is {
                    found = Some(*row);
                    break;
                }
            }
        }
        match found.and_then(|row| self.values.get(row)) {
            Some(wanted) => Err(format!("{} has a value that is not permitted", wanted.name).into()),
            None => Ok(()),
        }
    }

    /// AVP multiple instance check.
    pub(crate) fn count(&self, avps: &Walk<'_>) -> Result<(), Cow<'static, str>> {
        if self.counts.is_empty() {
            return Ok(());
        }
        let mut counts: SmallVec<[u32; 64]> = SmallVec::from_elem(0, self.counts.len());
        for avp in avps.clone().map_while(Result::ok) {
            let Some(rows) = self.tops.get(&avp.key()) else {
                continue;
            };
            for row in &rows.counts {
                let (Some(wanted), Some(count)) = (self.counts.get(*row), counts.get_mut(*row)) else {
                    continue;
                };
                visit(&avp, &wanted.path, &mut |_| *count = count.saturating_add(1));
            }
        }
        for (wanted, count) in self.counts.iter().zip(counts) {
            if !(wanted.min..=wanted.max).contains(&count) {
                let Count { name, min, max, .. } = wanted;
                return Err(format!("{name} is there {count} times, not {min} to {max}").into());
            }
        }
        Ok(())
    }

    /// AVP white list screening.
    pub(crate) fn screen_names(&self, avps: &Walk<'_>) -> Result<(), Cow<'static, str>> {
        match &self.allowed {
            Some(allowed) => screen_group(allowed, avps.clone(), MAX_DEPTH),
            None => Ok(()),
        }
    }
}

/// Shows the data of each AVP at the end of a path that begins with this AVP.
fn visit(avp: &Avp<'_>, path: &[AvpKey], see: &mut dyn FnMut(&[u8])) {
    let [_, rest @ ..] = path else { return };
    let Some(next) = rest.first() else {
        see(avp.data);
        return;
    };
    for inner in avp
        .group()
        .map_while(Result::ok)
        .filter(|inner| inner.key() == *next)
    {
        visit(&inner, rest, see);
    }
}

fn screen_group(allowed: &AHashSet<AvpKey>, avps: Walk<'_>, depth: usize) -> Result<(), Cow<'static, str>> {
    let dictionary = Dictionary::standard();
    for avp in avps {
        let Ok(avp) = avp else {
            return Err("an AVP is framed wrong".into());
        };
        let key = avp.key();
        if !allowed.contains(&key) {
            return Err(format!("the AVP {key} is not listed").into());
        }
        let kind = dictionary.avp(key).map(|definition| definition.kind);
        match kind {
            Some(AvpType::Grouped) if depth <= 1 => {
                return Err(format!("groups are more than {MAX_DEPTH} levels deep").into());
            }
            Some(AvpType::Grouped) => screen_group(allowed, avp.group(), depth - 1)?,
            Some(AvpType::Utf8String) if std::str::from_utf8(avp.data).is_err() => {
                return Err(format!("the AVP {key} is not UTF-8").into());
            }
            Some(AvpType::DiameterIdentity) if !is_identity(avp.data) => {
                return Err(format!("the AVP {key} is not a DiameterIdentity").into());
            }
            Some(kind) if avp.data.len() < kind.min_len() => {
                return Err(format!("the AVP {key} is too short for its type").into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a name is one of DNS in ASCII (RFC 6733 §4.3.1): labels of letters, digits and hyphens.
pub(crate) fn is_identity(name: &[u8]) -> bool {
    let is_label = |label: &[u8]| {
        let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len())
            && label.iter().all(inner)
            && label.first() != Some(&b'-')
            && label.last() != Some(&b'-')
    };
    (1..=255).contains(&name.len()) && name.split(|byte| *byte == b'.').all(is_label)
}

/// The messages of a row.
fn keys(row: &Row, blocked: &dyn Fn(u32, u32) -> bool) -> Result<Vec<Key>, String> {
    let (application, command) = (application(row)?, command(row.field(1))?);
    if blocked(application, command) {
        return Err(format!(
            "AppIdWL or AppCmdCst lets no command {command} of application {application} pass: the row can never match"
        ));
    }
    let kinds: &[bool] = match row.field(2) {
        "Request" => &[true],
        "Answer" => &[false],
        "Both" => &[true, false],
        other => return Err(format!("Message_Type `{other}`; use Request, Answer or Both")),
    };
    Ok(kinds.iter().map(|kind| (application, command, *kind)).collect())
}

fn definition(name: &str) -> Result<&'static AvpDefinition, String> {
    let known = Dictionary::standard().avp_named(name);
    known.ok_or_else(|| format!("`{name}` is not an AVP of the dictionary: the row can never match"))
}

/// The AVP at the end of names with semicolons between, and the groups around it.
fn path(text: &str) -> Result<(Vec<AvpKey>, &'static AvpDefinition), String> {
    let names: Vec<_> = text.split(';').map(str::trim).collect();
    let (last, groups) = names.split_last().ok_or("names no AVP")?;
    if names.len() > MAX_PATH {
        return Err(format!("more than {MAX_PATH} levels of groups"));
    }
    let mut keys = Vec::new();
    for name in groups {
        let group = definition(name)?;
        if group.kind != AvpType::Grouped {
            return Err(format!("`{name}` is not a group: the row can never match"));
        }
        keys.push(group.key);
    }
    let last = definition(last)?;
    keys.push(last.key);
    Ok((keys, last))
}

/// The data of an AVP with this value: a number or its name, text, or hexadecimal digits behind `0x`.
fn value_of(avp: &AvpDefinition, text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{text}` is not a value of {} ({})", avp.name, avp.kind.name());
    if let Some(digits) = text.strip_prefix("0x") {
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes = (0..digits.len()).step_by(2).map(byte);
        return bytes.collect::<Option<_>>().ok_or_else(wrong);
    }
    let number = || avp.value_of(text).or_else(|| text.parse().ok()).ok_or_else(wrong);
    Ok(match avp.kind {
        AvpType::Integer32 | AvpType::Enumerated => i32::try_from(number()?)
            .map_err(|_| wrong())?
            .to_be_bytes()
            .to_vec(),
        AvpType::Unsigned32 | AvpType::Time => u32::try_from(number()?)
            .map_err(|_| wrong())?
            .to_be_bytes()
            .to_vec(),
        AvpType::Integer64 => number()?.to_be_bytes().to_vec(),
        AvpType::Unsigned64 => text.parse::<u64>().map_err(|_| wrong())?.to_be_bytes().to_vec(),
        AvpType::Grouped | AvpType::Float32 | AvpType::Float64 | AvpType::Address => {
            return Err(format!("{}; use 0x and hexadecimal digits, or *", wrong()));
        }
        _ => text.as_bytes().to_vec(),
    })
}
