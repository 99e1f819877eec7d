//! Names, types, flags, enumerations and grammars of commands and AVPs, as data.
//!
//! The data lies in `data/*.dict`, one file per specification, in a form one can read and extend; it is
//! embedded, and parsed when first asked for. An operator's own AVPs come in the same form through
//! [`Dictionary::parse`]; [`Dictionary::sources`] gives the embedded ones to put them after.
//!
//! ```text
//! vendor 10415 3GPP                                  a vendor
//! application 16777251 3GPP S6a                      an application, with the vendor that defined it
//! namespace 3GPP                                     AVPs that follow belong to this vendor (or IETF)
//! avp 1405 ULR-Flags Unsigned32 M                    M: must be set, -: may be, m: must not be
//! avp 1615 UE-SRVCC-Capability Enumerated - : 0=NOT_SUPPORTED 1=SUPPORTED
//! avp 1401 Terminal-Information Grouped M : [IMEI] [3GPP2-MEID] [Software-Version] *[AVP]
//! command 316 Update-Location UL S6a                 code, name, abbreviation, application (or *)
//!   request <Session-Id> {Origin-Host} … *[AVP]      lines that begin with a space go on
//!   answer <Session-Id> [Result-Code] … *[AVP]
//! ```
//!
//! Grammars are those of RFC 6733 §3.2: `<X>` fixed, `{X}` required, `[X]` optional, with `*`, `1*`, `*2` or
//! `1*2` before them for how often. Without `*[AVP]` nothing else may be there.

mod failed_avp;
mod parse;

use std::sync::OnceLock;

use ahash::AHashMap;

pub use parse::DictionaryError;

use crate::avp::{AvpFlags, AvpKey};
use crate::kind::AvpType;

/// The embedded files: name and content.
const SOURCES: &[(&str, &str)] = &[
    ("base.dict", include_str!("data/base.dict")),
    ("overload.dict", include_str!("data/overload.dict")),
    ("nasreq.dict", include_str!("data/nasreq.dict")),
    ("dcca.dict", include_str!("data/dcca.dict")),
    ("rx-gx.dict", include_str!("data/rx-gx.dict")),
    ("s6a.dict", include_str!("data/s6a.dict")),
    ("ims.dict", include_str!("data/ims.dict")),
    ("charging.dict", include_str!("data/charging.dict")),
];

/// What the M flag of an AVP has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MandatoryRule {
    /// Set.
    Must,
    /// Either.
    May,
    /// Not set.
    MustNot,
}

/// The definition of an AVP.
#[derive(Clone, Debug)]
pub struct AvpDefinition {
    /// The standard's name.
    pub name: Box<str>,
    /// Code and vendor.
    pub key: AvpKey,
    /// Type of the data.
    pub kind: AvpType,
    /// What the M flag has to be.
    pub mandatory: MandatoryRule,
    /// Names of values, by value.
    pub values: Vec<(i64, Box<str>)>,
    /// What a group consists of; open and empty for other types.
    pub members: Grammar,
}

impl AvpDefinition {
    /// The name of a value.
    #[must_use]
    pub fn value_name(&self, value: i64) -> Option<&str> {
        self.values
            .iter()
            .find(|(known, _)| *known == value)
            .map(|(_, name)| &**name)
    }

    /// The value of a name.
    #[must_use]
    pub fn value_of(&self, name: &str) -> Option<i64> {
        self.values
            .iter()
            .find(|(_, known)| **known == *name)
            .map(|(value, _)| *value)
    }

    /// Flags of the AVP when we send it.
    #[must_use]
    pub fn flags(&self) -> AvpFlags {
        let mandatory = if self.mandatory == MandatoryRule::Must {
            AvpFlags::MANDATORY.0
        } else {
            0
        };
        let vendor = if self.key.vendor == 0 {
            0
        } else {
            AvpFlags::VENDOR.0
        };
        AvpFlags(mandatory | vendor)
    }
}

/// Which AVPs a message or group consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grammar {
    /// What is named.
    pub rules: Vec<Rule>,
    /// Whether anything else may be there too.
    pub open: bool,
}

impl Default for Grammar {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            open: true,
        }
    }
}

/// How often one AVP may be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Which AVP.
    pub key: AvpKey,
    /// At least so often.
    pub min: u32,
    /// At most so often.
    pub max: u32,
}

/// The definition of a command.
#[derive(Clone, Debug)]
pub struct Command {
    /// The standard's name without `-Request` or `-Answer`.
    pub name: Box<str>,
    /// The standard's abbreviation without `R` or `A`.
    pub abbreviation: Box<str>,
    /// Command code.
    pub code: u32,
    /// The application it belongs to; none when the definition is for all.
    pub application: Option<u32>,
    /// Grammar of the request.
    pub request: Grammar,
    /// Grammar of the answer.
    pub answer: Grammar,
}

impl Command {
    /// `Update-Location-Request` or `Update-Location-Answer`.
    #[must_use]
    pub fn full_name(&self, request: bool) -> String {
        format!("{}-{}", self.name, if request { "Request" } else { "Answer" })
    }

    /// `ULR` or `ULA`.
    #[must_use]
    pub fn short_name(&self, request: bool) -> String {
        format!("{}{}", self.abbreviation, if request { "R" } else { "A" })
    }
}

/// An application.
#[derive(Clone, Debug)]
pub struct Application {
    /// Application-Id.
    pub id: u32,
    /// The vendor that defined it, 0 for the IETF.
    pub vendor: u32,
    /// The standard's name.
    pub name: Box<str>,
}

/// All that is known of commands and AVPs.
#[derive(Debug, Default)]
pub struct Dictionary {
    vendors: Vec<(u32, Box<str>)>,
    applications: Vec<Application>,
    avps: Vec<AvpDefinition>,
    by_key: AHashMap<AvpKey, usize>,
    /// The first definition of a name; later ones of other vendors are reached as `vendor/name`.
    by_name: AHashMap<Box<str>, usize>,
    commands: Vec<Command>,
    by_command: AHashMap<(u32, Option<u32>), usize>,
}

impl Dictionary {
    /// The embedded dictionary.
    ///
    /// # Panics
    /// Never: a test parses the same embedded files.
    #[must_use]
    #[allow(clippy::expect_used)]
    pub fn standard() -> &'static Self {
        static STANDARD: OnceLock<Dictionary> = OnceLock::new();
        STANDARD.get_or_init(|| Self::parse(SOURCES).expect("the embedded dictionary is tested to parse"))
    }

    /// The embedded files, name and content, in the order they have to be parsed.
    #[must_use]
    pub const fn sources() -> &'static [(&'static str, &'static str)] {
        SOURCES
    }

    /// Parses dictionary files, given as name and content. Groups may name AVPs of any of them.
    ///
    /// # Errors
    /// All mistakes, each with file and line.
    pub fn parse<'s>(
        sources: impl IntoIterator<Item = &'s (&'s str, &'s str)>,
    ) -> Result<Self, DictionaryError> {
        parse::parse(sources)
    }

    /// The definition of an AVP.
    #[inline]
    #[must_use]
    pub fn avp(&self, key: AvpKey) -> Option<&AvpDefinition> {
        self.by_key.get(&key).map(|index| &self.avps[*index])
    }

    /// The AVP of that name, as `Name` or, where vendors share a name, as `Vendor/Name`.
    #[must_use]
    pub fn avp_named(&self, name: &str) -> Option<&AvpDefinition> {
        self.by_name.get(name).map(|index| &self.avps[*index])
    }

    /// The shortest name that [`Dictionary::avp_named`] finds this definition under.
    #[must_use]
    pub fn unique_name(&self, definition: &AvpDefinition) -> String {
        match self.avp_named(&definition.name) {
            Some(found) if found.key == definition.key => definition.name.to_string(),
            _ => format!(
                "{}/{}",
                self.vendor(definition.key.vendor).unwrap_or("IETF"),
                definition.name
            ),
        }
    }

    /// Every AVP, in the order of the files.
    pub fn avps(&self) -> impl Iterator<Item = &AvpDefinition> {
        self.avps.iter()
    }

    /// The command of that code in that application, else the one that is for all.
    #[must_use]
    pub fn command(&self, code: u32, application: u32) -> Option<&Command> {
        let index = self
            .by_command
            .get(&(code, Some(application)))
            .or_else(|| self.by_command.get(&(code, None)));
        index.map(|index| &self.commands[*index])
    }

    /// The first command known under that code, whatever the application: for names in logs.
    #[must_use]
    pub fn command_any(&self, code: u32) -> Option<&Command> {
        self.commands.iter().find(|command| command.code == code)
    }

    /// The command of a full or short name (`Update-Location-Request`, `ULR`) and whether it is the request.
    /// Where applications share the name, `application` decides, else the first is taken.
    #[must_use]
    pub fn command_named(&self, name: &str, application: Option<u32>) -> Option<(&Command, bool)> {
        let matching = |command: &&Command| {
            command.full_name(true) == name
                || command.full_name(false) == name
                || command.short_name(true) == name
                || command.short_name(false) == name
        };
        let command = self
            .commands
            .iter()
            .filter(|command| application.is_some() && command.application == application)
            .find(matching)
            .or_else(|| self.commands.iter().find(matching))?;
        Some((
            command,
            command.full_name(true) == name || command.short_name(true) == name,
        ))
    }

    /// Every command, in the order of the files.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter()
    }

    /// The application of that id.
    #[must_use]
    pub fn application(&self, id: u32) -> Option<&Application> {
        self.applications.iter().find(|application| application.id == id)
    }

    /// The application of that name.
    #[must_use]
    pub fn application_named(&self, name: &str) -> Option<&Application> {
        self.applications
            .iter()
            .find(|application| *application.name == *name)
    }

    /// Every application, in the order of the files.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.applications.iter()
    }

    /// The name of a vendor.
    #[must_use]
    pub fn vendor(&self, id: u32) -> Option<&str> {
        self.vendors
            .iter()
            .find(|(known, _)| *known == id)
            .map(|(_, name)| &**name)
    }

    /// The id of a vendor.
    #[must_use]
    pub fn vendor_named(&self, name: &str) -> Option<u32> {
        self.vendors
            .iter()
            .find(|(_, known)| **known == *name)
            .map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    #[test]
    fn our_constants_are_those_of_the_dictionary() {
        let dictionary = Dictionary::standard();
        for (name, key, kind, mandatory) in known::ALL {
            let definition = dictionary
                .avp(*key)
                .unwrap_or_else(|| panic!("{name} is not there"));
            assert_eq!((&*definition.name, definition.kind), (*name, *kind));
            assert_eq!(
                *mandatory,
                definition.mandatory == MandatoryRule::Must,
                "M flag of {name}"
            );
        }
    }

    #[test]
    fn commands_are_found_by_application_and_by_name() {
        let dictionary = Dictionary::standard();
        let gx = dictionary.command(272, known::application::GX).unwrap();
        assert!(
            gx.request.rules.iter().any(|rule| rule.key.code == 1006),
            "a CCR of Gx has Event-Triggers"
        );
        let gy = dictionary
            .command(272, known::application::CREDIT_CONTROL)
            .unwrap();
        assert!(gy.request.rules.iter().all(|rule| rule.key.code != 1006));
        assert_eq!(dictionary.command(280, 0).unwrap().short_name(true), "DWR");
        let (ulr, request) = dictionary.command_named("ULR", None).unwrap();
        assert_eq!((ulr.code, request), (known::command::UPDATE_LOCATION, true));
        let (rar, _) = dictionary
            .command_named("Re-Auth-Answer", Some(known::application::RX))
            .unwrap();
        assert_eq!(rar.application, Some(known::application::RX));
        assert_eq!(
            dictionary.application_named("S6a").unwrap().id,
            known::application::S6A
        );
    }

    #[test]
    fn names_that_vendors_share_are_told_apart() {
        let dictionary = Dictionary::standard();
        assert_eq!(dictionary.avp_named("Termination-Cause").unwrap().key.code, 295);
        let other = dictionary.avp_named("3GPP/Termination-Cause").unwrap();
        assert_eq!(other.key.code, 2548);
        assert_eq!(dictionary.unique_name(other), "3GPP/Termination-Cause");
        for avp in dictionary.avps() {
            assert_eq!(
                dictionary.avp_named(&dictionary.unique_name(avp)).unwrap().key,
                avp.key
            );
        }
    }
}
