//! Text to messages.

use std::fmt;

use crate::avp::AvpWriter;
use crate::avp::{AvpFlags, AvpKey};
use crate::build::MessageBuilder;
use crate::check;
use crate::dictionary::{AvpDefinition, Dictionary};
use crate::header::{CommandFlags, Header, VERSION};
use crate::kind::{Address, AvpType, Kind, TimeValue};
use crate::message::Message;

/// What is wrong with the text, and where: `line:column: what`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for TextError {}

/// Reads a message in the form of [`crate::text`]. Whatever comes after `#` on a line is left out. The header
/// needs only the command; `app=`, `flags=`, `hbh=`, `e2e=` have defaults.
///
/// # Errors
/// The first mistake, with line and column.
pub fn parse(text: &str, dictionary: &Dictionary) -> Result<Message, TextError> {
    let mut parser = Parser {
        text,
        at: 0,
        dictionary,
    };
    let message = parser.message()?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.error(parser.at, "expected the end after `}`"));
    }
    Ok(message)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    dictionary: &'t Dictionary,
}

type Outcome<T> = Result<T, TextError>;

impl<'t> Parser<'t> {
    fn error(&self, at: usize, what: impl Into<String>) -> TextError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        TextError {
            line,
            column,
            what: what.into(),
        }
    }

    fn blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// The next word: up to a blank, a brace, `=` or the end. May be empty.
    fn word(&mut self) -> (usize, &'t str) {
        self.blanks();
        let start = self.at;
        let rest = &self.text[start..];
        let end = rest
            .find(|c: char| c.is_whitespace() || "{}=\"#".contains(c))
            .unwrap_or(rest.len());
        self.at += end;
        (start, &rest[..end])
    }

    fn peek(&mut self) -> Option<char> {
        self.blanks();
        self.text[self.at..].chars().next()
    }

    fn expect(&mut self, wanted: char) -> Outcome<()> {
        if self.peek() == Some(wanted) {
            self.at += wanted.len_utf8();
            Ok(())
        } else {
            Err(self.error(self.at, format!("expected `{wanted}`")))
        }
    }

    fn message(&mut self) -> Outcome<Message> {
        let (at, name) = self.word();
        let settings = self.settings()?;
        let application = settings.application;
        let (code, app, request) = if let Ok(code) = name.parse::<u32>() {
            (code, application.unwrap_or(0), None)
        } else {
            let (command, request) = self.dictionary.command_named(name, application).ok_or_else(|| {
                self.error(
                    at,
                    format!("no command `{name}`; use a name of the dictionary or a command code"),
                )
            })?;
            (
                command.code,
                application.or(command.application).unwrap_or(0),
                Some(request),
            )
        };
        let proxiable = if app == 0 {
            CommandFlags::default()
        } else {
            CommandFlags::PROXIABLE
        };
        let default = match request {
            Some(false) => proxiable,
            _ => proxiable.with(CommandFlags::REQUEST),
        };
        let mut builder = MessageBuilder::new(Header {
            version: VERSION,
            length: 0,
            flags: settings.flags.unwrap_or(default),
            command: code,
            application: app,
            hop_by_hop: settings.hop_by_hop,
            end_to_end: settings.end_to_end,
        });
        self.expect('{')?;
        self.members(&mut builder, 0)?;
        builder
            .finish()
            .map(Message::freeze)
            .map_err(|error| self.error(self.at, error.to_string()))
    }

    fn settings(&mut self) -> Outcome<Settings> {
        let mut settings = Settings::default();
        while self.peek().is_some_and(|next| next != '{') {
            let (at, key) = self.word();
            self.expect('=')?;
            let (value_at, value) = self.word();
            match key {
                "app" => settings.application = Some(self.number(value_at, value)?),
                "hbh" => settings.hop_by_hop = self.number(value_at, value)?,
                "e2e" => settings.end_to_end = self.number(value_at, value)?,
                "flags" => {
                    let letters =
                        [("R", 0x80), ("P", 0x40), ("E", 0x20), ("T", 0x10)].map(|(name, bit)| (name, bit));
                    settings.flags = Some(CommandFlags(self.flags(value_at, value, &letters)?));
                }
                _ => return Err(self.error(at, format!("`{key}`: expected app, flags, hbh, e2e or `{{`"))),
            }
        }
        Ok(settings)
    }

    fn number(&self, at: usize, word: &str) -> Outcome<u32> {
        let parsed = match word.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => word.parse(),
        };
        parsed.map_err(|_| self.error(at, format!("`{word}` is not a number of 32 bits")))
    }

    /// Letters, then perhaps `r` and the reserved bits in hexadecimal; `-` for none.
    fn flags(&self, at: usize, word: &str, letters: &[(&str, u8)]) -> Outcome<u8> {
        let (named, reserved) = word.split_once('r').unwrap_or((word, "0"));
        let mut flags = u8::from_str_radix(reserved, 16).map_err(|_| {
            self.error(
                at,
                format!("flags `{word}`: `{reserved}` is not a hexadecimal byte"),
            )
        })?;
        for letter in named.chars().filter(|&letter| letter != '-') {
            let known = letters.iter().find(|(name, _)| name.starts_with(letter));
            let (_, bit) = known
                .ok_or_else(|| self.error(at, format!("flags `{word}`: `{letter}` is not one of them")))?;
            flags |= bit;
        }
        Ok(flags)
    }

    fn members(&mut self, out: &mut AvpWriter, depth: usize) -> Outcome<()> {
        loop {
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => self.avp(out, depth)?,
                None => return Err(self.error(self.at, "expected an AVP or `}`")),
            }
        }
    }

    fn avp(&mut self, out: &mut AvpWriter, depth: usize) -> Outcome<()> {
        let (at, name) = self.word();
        let definition;
        let key = if name == "avp" {
            let (key_at, key) = self.word();
            definition = None;
            self.key(key_at, key)?
        } else {
            let found = self
                .dictionary
                .avp_named(name)
                .ok_or_else(|| self.no_such_avp(at, name))?;
            definition = Some(found);
            found.key
        };
        let mut flags = definition.map_or(AvpFlags::default(), AvpDefinition::flags);
        if self.peek() == Some('f') {
            let (flags_at, word) = self.word();
            if word != "flags" {
                return Err(self.error(flags_at, format!("`{word}`: expected `flags=` or `=`")));
            }
            self.expect('=')?;
            let (value_at, value) = self.word();
            flags = AvpFlags(self.flags(value_at, value, &[("V", 0x80), ("M", 0x40), ("P", 0x20)])?);
        }
        self.expect('=')?;
        let data = self.value(definition, depth)?;
        out.put_raw(key, flags, &data);
        Ok(())
    }

    fn key(&self, at: usize, word: &str) -> Outcome<AvpKey> {
        let (vendor, code) = word.split_once(':').unwrap_or(("0", word));
        Ok(AvpKey {
            vendor: self.number(at, vendor)?,
            code: self.number(at, code)?,
        })
    }

    fn no_such_avp(&self, at: usize, name: &str) -> TextError {
        let near = self
            .dictionary
            .avps()
            .map(|avp| &*avp.name)
            .min_by_key(|known| distance(known, name));
        let hint = near
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        self.error(
            at,
            format!("no AVP `{name}` (write `avp CODE` or `avp VENDOR:CODE` for one){hint}"),
        )
    }

    fn value(&mut self, definition: Option<&AvpDefinition>, depth: usize) -> Outcome<Vec<u8>> {
        self.blanks();
        let at = self.at;
        match self.peek() {
            Some('{') => {
                if depth >= check::MAX_DEPTH {
                    return Err(self.error(at, "groups are nested too deep"));
                }
                self.at += 1;
                let mut group = AvpWriter::default();
                self.members(&mut group, depth + 1)?;
                Ok(group.into_bytes().to_vec())
            }
            Some('"') => {
                let text = self.quoted()?;
                let kind = definition.map_or(AvpType::OctetString, |avp| avp.kind);
                let textual = !matches!(
                    kind,
                    AvpType::Integer32
                        | AvpType::Integer64
                        | AvpType::Unsigned32
                        | AvpType::Unsigned64
                        | AvpType::Enumerated
                        | AvpType::Time
                        | AvpType::Address
                        | AvpType::Grouped
                        | AvpType::Float32
                        | AvpType::Float64
                );
                if textual {
                    Ok(text.into_bytes())
                } else {
                    Err(self.error(at, format!("text where {} is due", kind.name())))
                }
            }
            _ => {
                let (at, word) = self.word();
                match word {
                    "raw" => {
                        let (at, bytes) = self.word();
                        self.hex(at, bytes)
                    }
                    "time" => {
                        let (at, seconds) = self.word();
                        self.time(at, seconds)
                    }
                    _ => self.plain(at, word, definition),
                }
            }
        }
    }

    fn plain(&self, at: usize, word: &str, definition: Option<&AvpDefinition>) -> Outcome<Vec<u8>> {
        if word.starts_with("0x") {
            return self.hex(at, word);
        }
        let Some(definition) = definition else {
            return Err(self.error(at, format!("`{word}`: expected 0x…, \"text\" or {{ … }}")));
        };
        let kind = definition.kind;
        let wrong = || {
            let names: Vec<_> = definition.values.iter().map(|(_, name)| &**name).collect();
            let nearest = names.iter().min_by_key(|name| distance(name, word));
            let hint = nearest
                .map(|name| format!("; did you mean {name}?"))
                .unwrap_or_default();
            self.error(
                at,
                format!(
                    "`{word}` is not a value of {} ({}){hint}",
                    definition.name,
                    kind.name()
                ),
            )
        };
        let number = || {
            definition
                .value_of(word)
                .or_else(|| word.parse::<i64>().ok())
                .ok_or_else(wrong)
        };
        Ok(match kind {
            AvpType::Integer32 | AvpType::Enumerated => i32::try_from(number()?)
                .map_err(|_| wrong())?
                .to_be_bytes()
                .to_vec(),
            AvpType::Unsigned32 => u32::try_from(number()?)
                .map_err(|_| wrong())?
                .to_be_bytes()
                .to_vec(),
            AvpType::Integer64 => word.parse::<i64>().map_err(|_| wrong())?.to_be_bytes().to_vec(),
            AvpType::Unsigned64 => match definition.value_of(word) {
                Some(value) => value.to_be_bytes().to_vec(),
                None => word.parse::<u64>().map_err(|_| wrong())?.to_be_bytes().to_vec(),
            },
            AvpType::Address => {
                let ip: std::net::IpAddr = word.parse().map_err(|_| wrong())?;
                let mut out = bytes::BytesMut::new();
                Address::write(ip.into(), &mut out);
                out.to_vec()
            }
            _ => return Err(wrong()),
        })
    }

    fn time(&self, at: usize, word: &str) -> Outcome<Vec<u8>> {
        let time = word.parse().ok().and_then(TimeValue::from_unix_seconds);
        let time = time.ok_or_else(|| {
            let expected = "a number of seconds since 1970, for a time from 1968 to 2104";
            self.error(at, format!("`{word}`: expected {expected}"))
        })?;
        Ok(time.0.to_be_bytes().to_vec())
    }

    fn hex(&self, at: usize, word: &str) -> Outcome<Vec<u8>> {
        let wrong = || self.error(at, format!("`{word}`: expected 0x and an even number of digits"));
        let digits = word.strip_prefix("0x").ok_or_else(wrong)?;
        if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
            return Err(wrong());
        }
        (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong()))
            .collect()
    }

    fn quoted(&mut self) -> Outcome<String> {
        let start = self.at;
        let mut out = String::new();
        let mut letters = self.text[start + 1..].char_indices();
        while let Some((offset, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.at = start + 1 + offset + 1;
                    return Ok(out);
                }
                '\\' => match letters.next().map(|(_, letter)| letter) {
                    Some('n') => out.push('\n'),
                    Some('r') => out.push('\r'),
                    Some('t') => out.push('\t'),
                    Some('u') => {
                        let code: String = letters
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip(1)
                            .take_while(|&c| c != '}')
                            .collect();
                        let letter = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                        out.push(letter.ok_or_else(|| {
                            self.error(start, format!("`\\u{{{code}}}` is not a character"))
                        })?);
                    }
                    Some(other) => out.push(other),
                    None => break,
                },
                other => out.push(other),
            }
        }
        Err(self.error(start, "the closing quote is missing"))
    }
}

#[derive(Default)]
struct Settings {
    application: Option<u32>,
    flags: Option<CommandFlags>,
    hop_by_hop: u32,
    end_to_end: u32,
}

/// How many letters have to change between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
