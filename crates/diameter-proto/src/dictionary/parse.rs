//! Reads dictionary files. All mistakes are collected and reported together.

use std::fmt;

use super::{Application, AvpDefinition, Command, Dictionary, Grammar, MandatoryRule, Rule};
use crate::avp::AvpKey;
use crate::kind::AvpType;

/// The mistakes of dictionary files, each as `file:line: what is wrong`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DictionaryError {
    /// The mistakes, in the order they were met.
    pub mistakes: Vec<String>,
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mistakes.join("\n"))
    }
}

impl std::error::Error for DictionaryError {}

/// A grammar as written, to be resolved when every AVP is known.
struct Unresolved {
    place: Place,
    words: Vec<String>,
    of: Target,
}

#[derive(Clone, Copy)]
enum Target {
    Avp(usize),
    Request(usize),
    Answer(usize),
}

/// File and line.
#[derive(Clone, Debug)]
struct Place(String, usize);

#[derive(Default)]
struct Reader {
    dictionary: Dictionary,
    grammars: Vec<Unresolved>,
    mistakes: Vec<String>,
    namespace: u32,
}

pub(super) fn parse<'s>(
    sources: impl IntoIterator<Item = &'s (&'s str, &'s str)>,
) -> Result<Dictionary, DictionaryError> {
    let mut reader = Reader::default();
    reader.dictionary.vendors.push((0, "IETF".into()));
    for (name, text) in sources {
        reader.namespace = 0;
        for (place, entry) in entries(name, text) {
            reader.entry(&place, &entry);
        }
    }
    for grammar in std::mem::take(&mut reader.grammars) {
        reader.resolve(&grammar);
    }
    if reader.mistakes.is_empty() {
        Ok(reader.dictionary)
    } else {
        Err(DictionaryError {
            mistakes: reader.mistakes,
        })
    }
}

/// Entries without comments, continuation lines joined, each with file and line of its first word.
fn entries(name: &str, text: &str) -> Vec<(Place, String)> {
    let mut entries: Vec<(Place, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split_once('#').map_or(line, |(before, _)| before);
        if line.trim().is_empty() {
            continue;
        }
        match entries.last_mut() {
            Some((_, entry)) if line.starts_with(char::is_whitespace) => {
                entry.push(' ');
                entry.push_str(line.trim());
            }
            _ => entries.push((Place(name.to_owned(), number + 1), line.trim().to_owned())),
        }
    }
    entries
}

impl Reader {
    fn mistake(&mut self, place: &Place, what: impl fmt::Display) {
        self.mistakes.push(format!("{}:{}: {what}", place.0, place.1));
    }

    fn entry(&mut self, place: &Place, entry: &str) {
        let words: Vec<&str> = entry.split_whitespace().collect();
        let outcome = match words.as_slice() {
            ["vendor", id, name] => self.vendor(id, name),
            ["application", id, vendor, name] => self.application(id, vendor, name),
            ["namespace", name] => self.vendor_id(name).map(|id| self.namespace = id),
            ["avp", code, name, kind, flags] => self.avp(place, [code, name, kind, flags], &[]),
            ["avp", code, name, kind, flags, ":", rest @ ..] => {
                self.avp(place, [code, name, kind, flags], rest)
            }
            ["command", code, name, abbreviation, application, rest @ ..] => {
                self.command(place, [code, name, abbreviation, application], rest)
            }
            _ => Err(format!(
                "`{entry}` is none of: vendor ID NAME, application ID VENDOR NAME, namespace VENDOR, \
                 avp CODE NAME TYPE FLAGS [: …], command CODE NAME ABBREVIATION APPLICATION"
            )),
        };
        if let Err(what) = outcome {
            self.mistake(place, what);
        }
    }

    fn vendor(&mut self, id: &str, name: &str) -> Result<(), String> {
        self.dictionary.vendors.push((number(id)?, name.into()));
        Ok(())
    }

    fn vendor_id(&self, name: &str) -> Result<u32, String> {
        self.dictionary
            .vendor_named(name)
            .ok_or_else(|| format!("no vendor `{name}` above"))
    }

    fn application(&mut self, id: &str, vendor: &str, name: &str) -> Result<(), String> {
        let application = Application {
            id: number(id)?,
            vendor: self.vendor_id(vendor)?,
            name: name.into(),
        };
        self.dictionary.applications.push(application);
        Ok(())
    }

    fn avp(&mut self, place: &Place, head: [&str; 4], rest: &[&str]) -> Result<(), String> {
        let [code, name, kind, flags] = head;
        let key = AvpKey {
            vendor: self.namespace,
            code: number(code)?,
        };
        let kind = AvpType::from_name(kind).ok_or_else(|| format!("`{kind}` is not an AVP type"))?;
        let mandatory = match flags {
            "M" => MandatoryRule::Must,
            "-" => MandatoryRule::May,
            "m" => MandatoryRule::MustNot,
            other => {
                return Err(format!(
                    "flags `{other}`: expected M (must), - (may) or m (must not)"
                ));
            }
        };
        let index = self.dictionary.avps.len();
        let mut values = Vec::new();
        if kind == AvpType::Grouped {
            if !rest.is_empty() {
                let words = rest.iter().map(|&word| word.to_owned()).collect();
                self.grammars.push(Unresolved {
                    place: place.clone(),
                    words,
                    of: Target::Avp(index),
                });
            }
        } else {
            for word in rest {
                let (value, name) = word
                    .split_once('=')
                    .ok_or_else(|| format!("`{word}`: expected NUMBER=NAME"))?;
                let value = value
                    .parse()
                    .map_err(|_| format!("`{word}`: `{value}` is not a number"))?;
                values.push((value, name.into()));
            }
        }
        if self.dictionary.by_key.insert(key, index).is_some() {
            return Err(format!("AVP {key} is defined already"));
        }
        let vendor = self.dictionary.vendor(key.vendor).unwrap_or_default();
        self.dictionary
            .by_name
            .insert(format!("{vendor}/{name}").into(), index);
        self.dictionary.by_name.entry(name.into()).or_insert(index);
        let members = Grammar::default();
        self.dictionary.avps.push(AvpDefinition {
            name: name.into(),
            key,
            kind,
            mandatory,
            values,
            members,
        });
        Ok(())
    }

    fn command(&mut self, place: &Place, head: [&str; 4], rest: &[&str]) -> Result<(), String> {
        let [code, name, abbreviation, application] = head;
        let code = number(code)?;
        let application = match application {
            "*" => None,
            name => Some(
                self.dictionary
                    .application_named(name)
                    .ok_or_else(|| format!("no application `{name}` above"))?
                    .id,
            ),
        };
        let index = self.dictionary.commands.len();
        if self
            .dictionary
            .by_command
            .insert((code, application), index)
            .is_some()
        {
            return Err(format!("command {code} is defined already for this application"));
        }
        let mut target = None;
        for &word in rest {
            match word {
                "request" => target = Some(Target::Request(index)),
                "answer" => target = Some(Target::Answer(index)),
                _ => {
                    let of = target.ok_or("a grammar begins with `request` or `answer`")?;
                    match self.grammars.last_mut() {
                        Some(last) if same(last.of, of) => last.words.push(word.to_owned()),
                        _ => self.grammars.push(Unresolved {
                            place: place.clone(),
                            words: vec![word.to_owned()],
                            of,
                        }),
                    }
                }
            }
        }
        self.dictionary.commands.push(Command {
            name: name.into(),
            abbreviation: abbreviation.into(),
            code,
            application,
            request: Grammar::default(),
            answer: Grammar::default(),
        });
        Ok(())
    }

    fn resolve(&mut self, unresolved: &Unresolved) {
        let mut grammar = Grammar {
            rules: Vec::new(),
            open: false,
        };
        for word in &unresolved.words {
            match self.rule(word) {
                Ok(Some(rule)) => grammar.rules.push(rule),
                Ok(None) => grammar.open = true,
                Err(what) => self.mistake(&unresolved.place, what),
            }
        }
        // The indexes were given when the definitions were pushed; one whose head was wrong has none.
        match unresolved.of {
            Target::Avp(index) => {
                if let Some(avp) = self.dictionary.avps.get_mut(index) {
                    avp.members = grammar;
                }
            }
            Target::Request(index) => {
                if let Some(command) = self.dictionary.commands.get_mut(index) {
                    command.request = grammar;
                }
            }
            Target::Answer(index) => {
                if let Some(command) = self.dictionary.commands.get_mut(index) {
                    command.answer = grammar;
                }
            }
        }
    }

    /// One word of a grammar; `None` for `*[AVP]`.
    fn rule(&self, word: &str) -> Result<Option<Rule>, String> {
        let start = word
            .find(['<', '{', '['])
            .ok_or_else(|| format!("`{word}`: expected <X>, {{X}} or [X]"))?;
        let (count, bracketed) = word.split_at(start);
        let required = !bracketed.starts_with('[');
        let close = match bracketed.as_bytes()[0] {
            b'<' => '>',
            b'{' => '}',
            _ => ']',
        };
        let name = bracketed[1..]
            .strip_suffix(close)
            .ok_or_else(|| format!("`{word}`: `{close}` is missing"))?;
        if name == "AVP" {
            return Ok(None);
        }
        let (min, max) = match count.split_once('*') {
            None if count.is_empty() => (u32::from(required), 1),
            None => return Err(format!("`{word}`: `{count}` is not of the form MIN*MAX")),
            Some((min, max)) => (
                if min.is_empty() {
                    u32::from(required)
                } else {
                    number(min)?
                },
                if max.is_empty() { u32::MAX } else { number(max)? },
            ),
        };
        let definition = self
            .dictionary
            .avp_named(name)
            .ok_or_else(|| format!("no AVP `{name}`"))?;
        Ok(Some(Rule {
            key: definition.key,
            min,
            max,
        }))
    }
}

fn same(a: Target, b: Target) -> bool {
    matches!(
        (a, b),
        (Target::Request(x), Target::Request(y)) | (Target::Answer(x), Target::Answer(y)) if x == y
    )
}

fn number(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("`{word}` is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_dictionary_is_right() {
        if let Err(error) = Dictionary::parse(Dictionary::sources()) {
            panic!("{error}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_with_file_and_line() {
        let text = "avp 1 A Unsigned33 M\n\navp x B Unsigned32 M\navp 2 C Unsigned32 Q\navp 3 G Grouped M :\n  {Unknown}\n  [C\n\
                    nonsense\ncommand 5 X X S7\napplication 1 Mars X\navp 4 D Enumerated M : ONE\n";
        let error = Dictionary::parse(&[("own.dict", text)]).unwrap_err();
        let lines: Vec<_> = error
            .mistakes
            .iter()
            .map(|m| m.split(':').nth(1).unwrap())
            .collect();
        assert_eq!(lines, ["1", "3", "4", "8", "9", "10", "11", "5", "5"], "{error}");
    }

    #[test]
    fn counts_are_those_of_the_rfc() {
        let text = "avp 1 A Unsigned32 M\navp 2 G Grouped M : <A> *[A] 1*{A} *3[A] 2*4[A]\n";
        let dictionary = Dictionary::parse(&[("own.dict", text)]).unwrap();
        let group = &dictionary.avp_named("G").unwrap().members;
        let counts: Vec<_> = group.rules.iter().map(|rule| (rule.min, rule.max)).collect();
        assert_eq!(counts, [(1, 1), (0, u32::MAX), (1, u32::MAX), (0, 3), (2, 4)]);
        assert!(!group.open);
    }
}
