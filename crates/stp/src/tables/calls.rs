//! Number services of calls, compiled.

use settings::Faults;
use ss7_proto::Digits;
use ss7_proto::isup::{self, nature};
use ss7_proto::map::AddressString;

use super::numbers::decimal;
use super::{EIR, Hop, MANAGEMENT, Number, NumberServices, Points, Translations};
use crate::config::{Config, NumberForm, NumberServices as Settings, Subscriber, Unallocated};

/// Octets of signalling information that an MSU carries at most (Q.703 §2.3.8).
const MOST_SIGNALLING: usize = 272;

/// What calls need of the settings.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    subsystems: Vec<u8>,
    /// Of each application server and link set whether its IAMs are intercepted.
    intercept: Vec<bool>,
    prepaid: Vec<Prepaid>,
    pub(crate) releases: bool,
    pub(crate) form: NumberForm,
    pub(crate) routed_nature: u8,
    national_prefix: Digits,
    international_prefix: Digits,
}

/// A rule for InitialDP.
#[derive(Debug)]
pub(crate) struct Prepaid {
    pub(crate) service_keys: Vec<u32>,
    pub(crate) number: Subscriber,
    pub(crate) group: Option<u32>,
}

impl Calls {
    /// Reports what is wrong with the settings. `hops` are application servers, then link sets.
    pub(super) fn compile(
        config: &Settings,
        hops: &[Hop],
        translations: &Translations,
        faults: &mut Faults,
    ) -> Self {
        let calls = &config.calls;
        let key = |name: &str| format!("numberServices.calls.{name}");
        let intercept = hops.iter().map(|hop| calls.intercept.contains(&hop.name));
        for (index, name) in calls.intercept.iter().enumerate() {
            if !hops.iter().any(|hop| hop.name == *name) {
                let right = "the name of one of `applicationServers` or `linkSets`";
                let at = key(&format!("intercept[{index}]"));
                faults
                    .at(at)
                    .say("names no application server or link set", right);
            }
        }
        if calls.form == NumberForm::National && config.country_code.is_empty() {
            let what = "is `national`, and `numberServices.countryCode` is empty";
            faults
                .at(key("form"))
                .say(what, "a country code, or `international`");
        }
        Self {
            subsystems: calls.subsystems.clone(),
            intercept: intercept.collect(),
            prepaid: prepaid(config, translations, faults),
            releases: calls.unallocated == Unallocated::Release,
            form: calls.form,
            routed_nature: calls.routed_nature,
            national_prefix: decimal(&calls.national_prefix, key("nationalPrefix"), 0..=5, faults),
            international_prefix: decimal(
                &calls.international_prefix,
                key("internationalPrefix"),
                0..=5,
                faults,
            ),
        }
    }

    /// Whether InitialDP to a subsystem of this STP is served.
    pub(crate) fn serves(&self, ssn: u8) -> bool {
        self.subsystems.contains(&ssn)
    }

    /// Whether IAMs of a hop are intercepted.
    pub(crate) fn intercepts(&self, hop: Option<usize>) -> bool {
        hop.and_then(|hop| self.intercept.get(hop)).is_some_and(|is| *is)
    }

    /// The rules of a service key.
    pub(crate) fn rules(&self, service_key: i32) -> impl Iterator<Item = &Prepaid> {
        let rules = self.prepaid.iter();
        rules.filter(move |rule| {
            let mut keys = rule.service_keys.iter();
            keys.any(|key| i64::from(*key) == i64::from(service_key))
        })
    }
}

/// Reports what depends on other parts of the settings.
pub(super) fn check(config: &Config, faults: &mut Faults) {
    let calls = &config.number_services.calls;
    let key = |name: &str| format!("numberServices.calls.{name}");
    for (index, ssn) in calls.subsystems.iter().enumerate() {
        let what = match *ssn {
            0 => "is 0, which is not a subsystem",
            MANAGEMENT => "is SCCP management",
            EIR if config.equipment.is_some() => "is the equipment identity register of `equipment`",
            _ => continue,
        };
        let right = "a subsystem such as 12 or 146";
        faults.at(key(&format!("subsystems[{index}]"))).say(what, right);
    }
    if calls.routed_nature > 0x7f {
        let what = format!("is {}", calls.routed_nature);
        faults.at(key("routedNature")).say(what, "0 to 127, such as 8");
    }
    if !calls.prepaid.is_empty() && calls.subsystems.is_empty() {
        let what = "has rules, and `subsystems` is empty";
        faults
            .at(key("prepaid"))
            .say(what, "the subsystem of this STP that gets InitialDP");
    }
    let wanted = !calls.subsystems.is_empty() || !calls.intercept.is_empty();
    if wanted && config.number_services.file.is_none() {
        let what = "is absent, and `calls` needs it";
        faults
            .at("numberServices.file")
            .say(what, "a file of `signalbox numbers import`");
    }
}

fn prepaid(config: &Settings, translations: &Translations, faults: &mut Faults) -> Vec<Prepaid> {
    let mut rules = Vec::new();
    for (index, rule) in config.calls.prepaid.iter().enumerate() {
        let key = |name: &str| format!("numberServices.calls.prepaid[{index}].{name}");
        if rule.service_keys.is_empty() {
            faults
                .at(key("serviceKeys"))
                .say("is empty", "at least one service key");
        }
        let group = match &rule.group {
            None => None,
            Some(name) => match translations.other_group(name) {
                Ok(group) => Some(group),
                Err(what) => {
                    let right = "a group of `translation` without an own point code";
                    faults.at(key("group")).say(what, right);
                    None
                }
            },
        };
        rules.push(Prepaid {
            service_keys: rule.service_keys.clone(),
            number: rule.number,
            group,
        });
    }
    rules
}

impl NumberServices {
    /// The number of a party, as the file has it.
    pub(crate) fn of_party(&self, party: &isup::Number) -> Option<Number> {
        if !party.is_e164() {
            return None;
        }
        self.of_call(party.nature, &party.digits.without_st())
    }

    /// A number that a mobile has dialled, or the address of one (TS 24.008 §10.5.4.7: 1 = international, 2 = national).
    pub(crate) fn of_mobile(&self, party: &AddressString<'_>) -> Option<Number> {
        let nature = match party.nature {
            0 => nature::UNKNOWN,
            1 => nature::INTERNATIONAL,
            2 => nature::NATIONAL,
            _ => return None,
        };
        let is_e164 = party.plan == 1;
        is_e164.then(|| self.of_call(nature, &party.number.digits()?))?
    }

    fn of_call(&self, nature: u8, digits: &Digits) -> Option<Number> {
        let calls = &self.calls;
        let numbering = &self.numbering;
        if let Some(rest) = numbering.without_own_routing(digits) {
            let number = match calls.form {
                NumberForm::International => rest,
                NumberForm::National => numbering.international(&rest, Some(nature::NATIONAL))?,
            };
            return Number::new(numbers::Kind::Msisdn, number, true);
        }
        let (nature, digits) = match nature {
            nature::SUBSCRIBER | nature::NATIONAL | nature::INTERNATIONAL => (nature, *digits),
            // Of one that begins with both prefixes the longer counts: `00` begins with `0`.
            nature::UNKNOWN => {
                let without = |prefix: &Digits| {
                    let begins = !prefix.is_empty() && digits.starts_with(prefix);
                    begins.then(|| digits.skip(prefix.len()))
                };
                let international = without(&calls.international_prefix);
                let national = without(&calls.national_prefix);
                match (international, national) {
                    (Some(one), Some(other)) if other.len() < one.len() => (nature::NATIONAL, other),
                    (Some(one), _) => (nature::INTERNATIONAL, one),
                    (None, Some(other)) => (nature::NATIONAL, other),
                    (None, None) => return None,
                }
            }
            _ => return None,
        };
        let digits = numbering.international(&digits, Some(nature))?;
        Number::new(numbers::Kind::Msisdn, digits, false)
    }

    /// A number as the called party of a call that goes on, with its nature of address.
    pub(crate) fn for_call(&self, number: &Number) -> (u8, Digits) {
        match self.numbering.national(&number.digits) {
            Some(national) if self.calls.form == NumberForm::National => (nature::NATIONAL, national),
            _ => (nature::INTERNATIONAL, number.digits),
        }
    }
}

/// Whether an MSU has room for user data of a length beside the routing label of its plan.
pub(crate) fn fits_msu(points: &Points, user_data: usize) -> bool {
    // OPC, DPC and SLS: 4 octets where point codes have 14 bits, 5 with 16 bits, 7 with 24 bits.
    let label = match points.plan.bits() {
        ..=14 => 4,
        15..=16 => 5,
        _ => 7,
    };
    user_data + label <= MOST_SIGNALLING
}
