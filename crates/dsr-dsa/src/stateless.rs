//! The measures that need no state: each compares one message with the tables.

use std::borrow::Cow;

use diameter_proto::Avps;

use crate::facts::{Facts, s6a};
use crate::measure::Measure;
use crate::network::Network;
use crate::tables::{Direction, Program, Tables};

/// What is wrong with a message; `Ok`: nothing that this measure finds.
pub(crate) type Verdict = Result<(), Cow<'static, str>>;

/// One message on its way in one direction.
pub(crate) struct Scene<'s> {
    pub(crate) tables: &'s Tables,
    pub(crate) facts: &'s Facts<'s>,
    /// The AVPs of the message.
    pub(crate) avps: Avps<'s>,
    /// Of the request.
    pub(crate) direction: Direction,
}

impl Scene<'_> {
    /// What a measure finds; none: it needs state.
    pub(crate) fn judge(&self, measure: Measure) -> Option<Verdict> {
        Some(match measure {
            Measure::AppIdWL => self.application(),
            Measure::AppCmdCst => self.command(),
            Measure::RealmWLScr => self.realms(),
            Measure::OhOrCstChk => self.origin(),
            Measure::DrOrMatch => self.same_realm(),
            Measure::VplmnORCst => self.visited(),
            Measure::RealmIMSICst => self.realm_of_imsi(),
            Measure::SubsIdenValid => self.identity(),
            Measure::SpecAVPScr => self.program(Program::screen_values),
            Measure::AVPInstChk => self.program(Program::count),
            Measure::AVPWLScr => self.program(Program::screen_names),
            Measure::OhOrFrmChk => self.origin_format(),
            Measure::SesIdValChk => self.session(),
            Measure::DhDrFrmChk => self.destination(),
            _ => return None,
        })
    }

    fn program(&self, ask: impl FnOnce(&Program, &Avps<'_>) -> Verdict) -> Verdict {
        let Facts {
            application,
            command,
            is_request,
            ..
        } = *self.facts;
        match self.tables.avps.program(application, command, is_request) {
            Some(program) => ask(program, &self.avps),
            None => Ok(()),
        }
    }

    fn application(&self) -> Verdict {
        let application = self.facts.application;
        if self.tables.commands.has_application(application) {
            return Ok(());
        }
        Err(format!("application {application} is not in AppIdWL_Config").into())
    }

    fn command(&self) -> Verdict {
        let Facts {
            application, command, ..
        } = *self.facts;
        if self.tables.commands.has_command(application, command) {
            return Ok(());
        }
        Err(format!("command {command} of application {application} is not in AppCmdCst_Config").into())
    }

    /// What comes in has a foreign origin and one of our realms as its destination; what goes out the other way round.
    fn realms(&self) -> Verdict {
        let origin = self.facts.origin_realm.get("Origin-Realm")?;
        let destination = self.facts.destination_realm.get("Destination-Realm")?;
        let comes_in = self.direction == Direction::Ingress;
        for (name, realm, is_home) in [
            ("Origin-Realm", origin, !comes_in),
            ("Destination-Realm", destination, comes_in),
        ] {
            let Some(realm) = realm else {
                return Err(format!("{name} is absent").into());
            };
            let listed = self.tables.partners.realm(realm);
            if listed.is_none_or(|listed| listed.is_home != is_home) {
                let whose = if is_home { "home" } else { "foreign" };
                return Err(format!("{name} is not a {whose} realm of Realm_List").into());
            }
        }
        Ok(())
    }

    fn origin(&self) -> Verdict {
        let host = self.facts.origin_host.get("Origin-Host")?;
        let realm = self.facts.origin_realm.get("Origin-Realm")?;
        match (host, realm) {
            (Some(host), Some(realm)) if is_below(host, realm) => Ok(()),
            _ => Err("Origin-Host is not in Origin-Realm".into()),
        }
    }

    fn same_realm(&self) -> Verdict {
        let origin = self.facts.origin_realm.get("Origin-Realm")?;
        let destination = self.facts.destination_realm.get("Destination-Realm")?;
        match (origin, destination) {
            (Some(origin), Some(destination)) if origin.eq_ignore_ascii_case(destination) => {
                Err("Origin-Realm is the Destination-Realm".into())
            }
            _ => Ok(()),
        }
    }

    fn visited(&self) -> Verdict {
        let Facts {
            application, command, ..
        } = *self.facts;
        if !self.tables.commands.names_visited(application, command) {
            return Ok(());
        }
        let Some(data) = self.facts.visited.get("Visited-PLMN-Id")? else {
            return Err("Visited-PLMN-Id is absent".into());
        };
        let visited = Network::of_visited(data).ok_or("Visited-PLMN-Id is not a network")?;
        let realm = self.facts.origin_realm.get("Origin-Realm")?;
        match realm.and_then(|realm| self.tables.partners.network(realm)) {
            Some(network) if network == visited => Ok(()),
            Some(network) => {
                Err(format!("Visited-PLMN-Id is {visited}, Origin-Realm is of {network}").into())
            }
            None => Err("Origin-Realm is of no known network; give it one in Realm_List".into()),
        }
    }

    /// A serving node asks the home network of the subscriber; what the home network sends comes from there.
    fn realm_of_imsi(&self) -> Verdict {
        let Some(imsi) = &self.facts.subscriber()? else {
            return Ok(());
        };
        let origin = ("Origin-Realm", self.facts.origin_realm.get("Origin-Realm")?);
        let destination = (
            "Destination-Realm",
            self.facts.destination_realm.get("Destination-Realm")?,
        );
        let is_of_home_node = [s6a::CLR, s6a::IDR, s6a::DSR]
            .into_iter()
            .any(|command| self.facts.is_s6a(command));
        let (name, realm) = if is_of_home_node { origin } else { destination };
        let Some(realm) = realm else {
            return Err(format!("{name} is absent").into());
        };
        let Some(network) = self.tables.partners.network(realm) else {
            return Err(format!("{name} is of no known network; give it one in Realm_List").into());
        };
        if !network.has(imsi) {
            return Err(format!("the IMSI is not of {network}, the network of {name}").into());
        }
        if !self.tables.subscribers.is_assigned(network) {
            return Err(format!("{network} is not in RealmIMSICst_Config").into());
        }
        Ok(())
    }

    fn identity(&self) -> Verdict {
        let name = self.facts.user_name.get("User-Name")?;
        match &self.facts.subscriber()? {
            Some(imsi) if self.tables.subscribers.is_listed(imsi) => Ok(()),
            Some(_) => Err("the IMSI is of no network of MCC_MNC_List".into()),
            None if name.is_some() && self.facts.names_subscriber() => Err("User-Name is not an IMSI".into()),
            None => Ok(()),
        }
    }

    fn origin_format(&self) -> Verdict {
        for (name, place) in [
            ("Origin-Host", &self.facts.origin_host),
            ("Origin-Realm", &self.facts.origin_realm),
        ] {
            if place.count != 1 {
                return Err(format!("{name} is there {} times", place.count).into());
            }
            let is_name = |value: &[u8]| value.contains(&b'.') && crate::tables::is_identity(value);
            if !place.get(name)?.is_some_and(is_name) {
                return Err(format!("{name} is not a fully qualified domain name").into());
            }
        }
        Ok(())
    }

    /// RFC 6733 §8.8: Session-Id is the first AVP, and begins with the name of the node that made it.
    fn session(&self) -> Verdict {
        if self.facts.first != Some(263) {
            return Err("Session-Id is not the first AVP".into());
        }
        if self.facts.session_id.count > 1 {
            return Err("Session-Id is there more than once".into());
        }
        let value = self.facts.session_id.get("Session-Id")?.unwrap_or_default();
        let mut parts = value.split(|byte| *byte == b';');
        let host = parts.next().unwrap_or_default();
        if parts.next().is_none() || !crate::tables::is_identity(host) {
            return Err("Session-Id does not begin with a name and a semicolon".into());
        }
        Ok(())
    }

    fn destination(&self) -> Verdict {
        for (name, place) in [
            ("Destination-Host", &self.facts.destination_host),
            ("Destination-Realm", &self.facts.destination_realm),
        ] {
            if place.count > 1 {
                return Err(format!("{name} is there {} times", place.count).into());
            }
        }
        let host = self.facts.destination_host.get("Destination-Host")?;
        let realm = self.facts.destination_realm.get("Destination-Realm")?;
        match (host, realm) {
            (Some(host), Some(realm)) if !is_below(host, realm) => {
                Err("Destination-Host is not in Destination-Realm".into())
            }
            (Some(_), None) => Err("Destination-Realm is absent".into()),
            _ => Ok(()),
        }
    }
}

/// Whether a host is the name of a realm, or ends with it behind a full stop.
fn is_below(host: &[u8], realm: &[u8]) -> bool {
    let Some(front) = host.len().checked_sub(realm.len()) else {
        return false;
    };
    let (label, end) = host.split_at(front);
    !realm.is_empty() && end.eq_ignore_ascii_case(realm) && (label.is_empty() || label.ends_with(b"."))
}
