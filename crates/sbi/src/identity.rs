//! The identity that the sender of a request has proved, and the NF instances for which it may act.
//!
//! A sender proves an NF instance in three ways: its certificate names it (`urn:uuid:…` among the names, TS 33.310
//! §6.1.3c.3), a client credentials assertion is signed by it (TS 33.501 §13.3.8), an access token was issued to it
//! (`sub`, TS 33.501 §13.4.1). All that a request shows must name the same instance; one that shows a stolen token
//! beside its own certificate is refused.
//!
//! A certificate says who is at the other end of the connection. Where that is a relay (an SCP), the assertion and the
//! token say who has sent the request.

use std::path::Path;

use sbi_proto::TlsPeer;
use sbi_proto::problem::{Cause, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};
use smallvec::SmallVec;

use crate::oauth::{AssertionMode, AssertionSettings};
use crate::tls::instance_of;

/// Identity that the sender of a request must prove, where the request concerns one NF instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum IdentityMode {
    /// Nothing.
    Off,
    /// An identity that it proves must be that of the instance. One that proves none is let through.
    #[default]
    WhenPresent,
    /// It must prove an identity, and it must be that of the instance.
    Required,
}

/// Settings that bind NF instances to the senders of requests for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct IdentitySettings {
    /// What is asked of the sender of a request that concerns one NF instance: its registration, its tokens, its
    /// subscriptions. Absent: `whenPresent`; at an NRF that asks every client for a certificate
    /// (`tls.requireClientCertificate`) `required`, since a certificate of an NF names its instance (TS 33.310
    /// §6.1.3c.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<IdentityMode>,
    /// Names (DNS names, or NF instance ids) in certificates of SCPs. Behind one of these an assertion or an access
    /// token identifies the sender of the request; without either it proves only the SCP itself.
    pub relays: Vec<String>,
    /// Names (DNS names, or NF instance ids) in certificates of clients that may act for every NF instance, such as an
    /// operator's tools and NRFs that forward requests.
    pub trusted: Vec<String>,
    /// Client credentials assertions, by which consumers prove their identity.
    pub assertions: AssertionSettings,
}

impl IdentitySettings {
    /// These settings with a mode: `required` where none is set and every client has `certificates`.
    #[must_use]
    pub fn settled(&self, certificates: bool) -> Self {
        let otherwise = match certificates {
            true => IdentityMode::Required,
            false => IdentityMode::WhenPresent,
        };
        Self {
            mode: Some(self.mode.unwrap_or(otherwise)),
            ..self.clone()
        }
    }

    /// Whether a client can prove an identity without a token to a server that checks certificates by these
    /// authorities.
    #[must_use]
    pub fn is_provable(&self, authorities: Option<&Path>) -> bool {
        authorities.is_some() || self.assertions.mode != AssertionMode::Ignore
    }
}

impl Validate for IdentitySettings {
    fn validate(&self, faults: &mut Faults) {
        faults.within("assertions", &self.assertions);
        for (key, names) in [("relays", &self.relays), ("trusted", &self.trusted)] {
            for (index, name) in names.iter().enumerate() {
                if name.trim().is_empty() {
                    faults
                        .at(format!("{key}[{index}]"))
                        .say("is empty", "a DNS name or NF instance id of a certificate");
                }
            }
        }
    }
}

/// Verified proofs of a request's sender. Only verified values belong here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown<'a> {
    /// The certificate of the peer of the TLS connection.
    pub peer: Option<&'a TlsPeer>,
    /// `sub` of the client credentials assertion.
    pub assertion: Option<&'a str>,
    /// `sub` of the access token.
    pub token: Option<&'a str>,
}

/// The sender of a request, by its proofs.
#[derive(Clone, Debug)]
pub struct Sender<'a> {
    mode: IdentityMode,
    /// The NF instances it may be; empty: it has proved none.
    instances: SmallVec<[&'a str; 2]>,
    /// Whether it may act for every instance.
    trusted: bool,
    /// Whether a certificate or an assertion has proved it, not only a token.
    authenticated: bool,
}

/// A [`Sender`] that outlives its request.
#[derive(Clone, Debug, Default)]
pub struct Actor {
    mode: IdentityMode,
    instances: SmallVec<[Box<str>; 1]>,
    trusted: bool,
}

/// Proofs that name different NF instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// The assertion is not of the instance that the certificate names.
    AssertionOfAnother,
    /// The token was not issued to the instance that the certificate names.
    TokenOfAnother,
    /// Token and assertion are of different instances.
    TokenAndAssertion,
}

impl Contradiction {
    /// The answer.
    #[must_use]
    pub fn problem(self) -> Problem {
        match self {
            Self::AssertionOfAnother => Problem::new(Cause::CcaVerificationFailure)
                .detail("the client credentials assertion is of another NF instance than the certificate"),
            Self::TokenOfAnother => Problem::new(Cause::Forbidden)
                .detail("the access token was issued to another NF instance than the certificate names"),
            // TS 29.500 table 5.2.7.2-1.
            Self::TokenAndAssertion => Problem::new(Cause::TokenCcaMismatch)
                .detail("the access token was issued to another NF instance than the assertion names"),
        }
    }
}

/// Whether a name of a certificate is this name of the settings: a DNS name, a URI, or an NF instance id.
fn is_named(name: &str, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted) || instance_of(name).is_some_and(|id| id.eq_ignore_ascii_case(wanted))
}

impl<'a> Sender<'a> {
    /// The sender of a request that shows this.
    ///
    /// # Errors
    /// When what it shows names different instances.
    pub fn of(settings: &IdentitySettings, shown: &Shown<'a>) -> Result<Self, Contradiction> {
        let mode = settings.mode.unwrap_or_default();
        let mut sender = Self {
            mode,
            instances: SmallVec::new(),
            trusted: false,
            authenticated: false,
        };
        if mode == IdentityMode::Off {
            return Ok(sender);
        }
        let names = shown.peer.map(|peer| peer.names.as_slice()).unwrap_or_default();
        let any_of = |wanted: &[String]| {
            let mut names = names.iter();
            !wanted.is_empty() && names.any(|name| wanted.iter().any(|one| is_named(name, one)))
        };
        sender.trusted = any_of(&settings.trusted);
        // The certificate decides whether the assertion and the token, or the certificate itself, identify the sender.
        let bound = !sender.trusted && !any_of(&settings.relays);
        let silent = shown.assertion.or(shown.token).is_none();
        // Where an identity must be proved, a relay that proves no consumer acts for itself.
        if bound || (silent && mode == IdentityMode::Required) {
            let certified = names.iter().filter_map(|name| instance_of(name));
            sender.instances.extend(certified);
        }
        sender.authenticated = sender.trusted || !sender.instances.is_empty();
        if let Some(subject) = shown.assertion {
            sender.narrow(subject, Contradiction::AssertionOfAnother)?;
            sender.authenticated = true;
        }
        if let Some(subject) = shown.token {
            let why = match shown.assertion {
                Some(_) => Contradiction::TokenAndAssertion,
                None => Contradiction::TokenOfAnother,
            };
            sender.narrow(subject, why)?;
        }
        Ok(sender)
    }

    /// It is this instance, if it was not another before.
    fn narrow(&mut self, subject: &'a str, why: Contradiction) -> Result<(), Contradiction> {
        let fits = self.instances.is_empty() || self.is(subject);
        if !fits {
            return Err(why);
        }
        self.instances.clear();
        self.instances.push(subject);
        Ok(())
    }

    fn is(&self, instance: &str) -> bool {
        self.instances.iter().any(|id| id.eq_ignore_ascii_case(instance))
    }

    /// Whether a certificate or an assertion proves that it is this instance, whatever the mode.
    #[must_use]
    pub fn is_authenticated_as(&self, instance: &str) -> bool {
        self.authenticated && (self.trusted || self.is(instance))
    }

    /// Whether it may send a request that concerns this instance.
    ///
    /// # Errors
    /// The answer, when it may not.
    pub fn may_act_for(&self, instance: &str) -> Result<(), Problem> {
        let proved = self.instances.first().copied();
        judge(self.mode, self.trusted, proved, self.is(instance), instance)
    }

    /// Whether it has proved an identity of the kind that is required of every sender, whichever instance it is.
    ///
    /// # Errors
    /// The answer, when it has not.
    pub fn is_known(&self) -> Result<(), Problem> {
        let proved = self.instances.first().copied();
        judge(self.mode, self.trusted, proved, proved.is_some(), "")
    }

    /// A copy that outlives the request.
    #[must_use]
    pub fn to_actor(&self) -> Actor {
        Actor {
            mode: self.mode,
            instances: self.instances.iter().map(|id| Box::from(*id)).collect(),
            trusted: self.trusted,
        }
    }
}

impl Actor {
    /// As [`Sender::may_act_for`].
    ///
    /// # Errors
    /// The answer, when it may not.
    pub fn may_act_for(&self, instance: &str) -> Result<(), Problem> {
        let is = self.instances.iter().any(|id| id.eq_ignore_ascii_case(instance));
        let proved = self.instances.first().map(|id| &**id);
        judge(self.mode, self.trusted, proved, is, instance)
    }

    /// As [`Sender::may_act_for`], of what may have no owner: where identities are required, a trusted sender alone
    /// may change that.
    ///
    /// # Errors
    /// The answer, when it may not.
    pub fn may_change(&self, owner: Option<&str>) -> Result<(), Problem> {
        match owner {
            Some(owner) => self.may_act_for(owner),
            None if self.mode == IdentityMode::Required && !self.trusted => {
                Err(Problem::new(Cause::Forbidden)
                    .detail("its owner is unknown, so only a trusted sender may change it"))
            }
            None => Ok(()),
        }
    }

    /// As [`Self::may_act_for`], of what an instance has created that had proved its identity: who proves none may not.
    ///
    /// # Errors
    /// The answer, when it may not.
    pub fn may_use_what_is_of(&self, instance: &str) -> Result<(), Problem> {
        let mode = match self.mode {
            IdentityMode::Off => IdentityMode::Off,
            IdentityMode::WhenPresent | IdentityMode::Required => IdentityMode::Required,
        };
        let is = self.instances.iter().any(|id| id.eq_ignore_ascii_case(instance));
        let proved = self.instances.first().map(|id| &**id);
        judge(mode, self.trusted, proved, is, instance)
    }

    /// The one instance it is, where it acts for itself and has proved just one.
    #[must_use]
    pub fn instance(&self) -> Option<&str> {
        match self.instances.as_slice() {
            [one] if !self.trusted => Some(one),
            _ => None,
        }
    }
}

/// `proved`: the instance that the sender has proved to be; `wanted`: the one for which it acts.
fn judge(
    mode: IdentityMode,
    trusted: bool,
    proved: Option<&str>,
    is: bool,
    wanted: &str,
) -> Result<(), Problem> {
    let unknown = proved.is_none();
    let refused = |detail: &str| Err(Problem::new(Cause::Forbidden).detail(detail));
    match mode {
        IdentityMode::Off => Ok(()),
        _ if trusted || is => Ok(()),
        IdentityMode::WhenPresent if unknown => Ok(()),
        _ if unknown => refused(
            "the sender has proved no NF instance id: by its certificate, an assertion, or an access token",
        ),
        _ => refused(&format!(
            "the sender is another NF instance: it has proved to be {}, and the request is of {wanted}",
            proved.unwrap_or("none")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMF: &str = "00000000-0000-4000-8000-0000000000a1";
    const UDM: &str = "00000000-0000-4000-8000-0000000000b1";
    const SCP: &str = "00000000-0000-4000-8000-0000000000c1";

    fn settings(mode: IdentityMode) -> IdentitySettings {
        IdentitySettings {
            mode: Some(mode),
            relays: vec![SCP.to_uppercase(), "scp.test".into()],
            trusted: vec!["tools.test".into()],
            ..IdentitySettings::default()
        }
    }

    fn peer(names: &[&str]) -> TlsPeer {
        TlsPeer {
            names: names.iter().map(ToString::to_string).collect(),
            ..TlsPeer::default()
        }
    }

    /// Whether a sender may act for the AMF and for the UDM, in the modes `whenPresent` and `required`; `None`
    /// where what it shows contradicts itself.
    type Rights = Option<[(bool, bool); 2]>;

    fn rights(names: &[&str], assertion: Option<&str>, token: Option<&str>) -> Rights {
        let of = |mode| {
            let peer = peer(names);
            let shown = Shown {
                peer: Some(&peer),
                assertion,
                token,
            };
            let settings = settings(mode);
            let sender = Sender::of(&settings, &shown).ok()?;
            let may = |id| {
                let (now, later) = (sender.may_act_for(id), sender.to_actor().may_act_for(id));
                assert_eq!(now, later);
                now.is_ok()
            };
            Some((may(AMF), may(UDM)))
        };
        Some([of(IdentityMode::WhenPresent)?, of(IdentityMode::Required)?])
    }

    #[test]
    fn senders_act_for_the_instances_they_prove() {
        let (amf, udm, scp) = (
            format!("urn:uuid:{AMF}"),
            format!("URN:UUID:{}", UDM.to_uppercase()),
            format!("urn:uuid:{SCP}"),
        );
        let (amf, udm, scp) = (amf.as_str(), udm.as_str(), scp.as_str());
        let (all, none, as_amf, as_udm) = ((true, true), (false, false), (true, false), (false, true));
        for (names, assertion, token, wanted) in [
            // Nothing is proved.
            (&[][..], None, None, Some([all, none])),
            (&["amf.test"], None, None, Some([all, none])),
            // A certificate names no instance but by urn:uuid.
            (&[AMF, "urn:uuid:a1"], None, None, Some([all, none])),
            // One proof.
            (&["amf.test", amf], None, None, Some([as_amf, as_amf])),
            (&[udm], None, None, Some([as_udm, as_udm])),
            (&[], Some(UDM), None, Some([as_udm, as_udm])),
            (&[], None, Some(AMF), Some([as_amf, as_amf])),
            // Several that agree; a certificate of several instances is narrowed to one.
            (&[amf], Some(AMF), Some(AMF), Some([as_amf, as_amf])),
            (&[amf, udm], None, None, Some([all, all])),
            (&[amf, udm], None, Some(UDM), Some([as_udm, as_udm])),
            // Several that do not.
            (&[amf], None, Some(UDM), None),
            (&[amf], Some(UDM), None, None),
            (&[amf], Some(AMF), Some(UDM), None),
            (&[], Some(AMF), Some(UDM), None),
            // Through a relay the assertion or the token counts.
            (&[scp], Some(AMF), None, Some([as_amf, as_amf])),
            (&["scp.test"], None, Some(UDM), Some([as_udm, as_udm])),
            (&[scp], Some(AMF), Some(UDM), None),
            (&[scp], None, None, Some([all, none])),
            // A trusted sender acts for all, and shows nothing that contradicts itself.
            (&["TOOLS.test"], None, None, Some([all, all])),
            (&["tools.test", amf], None, Some(UDM), Some([all, all])),
        ] {
            assert_eq!(
                rights(names, assertion, token),
                wanted,
                "{names:?} {assertion:?} {token:?}"
            );
        }
    }

    #[test]
    fn a_relay_without_assertion_acts_for_itself() {
        let peer = peer(&[&format!("urn:uuid:{SCP}")]);
        let shown = Shown {
            peer: Some(&peer),
            ..Shown::default()
        };
        let settings = settings(IdentityMode::Required);
        let sender = Sender::of(&settings, &shown).unwrap();
        assert!(sender.may_act_for(SCP).is_ok() && sender.may_act_for(AMF).is_err());
        assert!(
            !sender.is_authenticated_as(AMF) && sender.is_authenticated_as(SCP),
            "its certificate is its own"
        );
    }

    #[test]
    fn a_token_alone_does_not_authenticate() {
        let token = Shown {
            token: Some(AMF),
            ..Shown::default()
        };
        let settings = settings(IdentityMode::Required);
        let sender = Sender::of(&settings, &token).unwrap();
        assert!(sender.may_act_for(AMF).is_ok() && !sender.is_authenticated_as(AMF));
        assert!(sender.is_known().is_ok());
        assert!(
            Sender::of(&settings, &Shown::default())
                .unwrap()
                .is_known()
                .is_err()
        );
        let shown = Shown {
            assertion: Some(AMF),
            ..token
        };
        assert!(Sender::of(&settings, &shown).unwrap().is_authenticated_as(AMF));
    }

    #[test]
    fn a_resource_without_owner_cannot_change_where_identities_are_required() {
        let actor = |mode, token| {
            let shown = Shown {
                token,
                ..Shown::default()
            };
            Sender::of(&settings(mode), &shown).unwrap().to_actor()
        };
        let required = actor(IdentityMode::Required, Some(AMF));
        assert!(required.may_change(Some(AMF)).is_ok() && required.may_change(Some(UDM)).is_err());
        assert!(required.may_change(None).is_err());
        assert!(
            actor(IdentityMode::WhenPresent, Some(AMF))
                .may_change(None)
                .is_ok()
        );
        assert!(
            actor(IdentityMode::WhenPresent, None)
                .may_change(Some(AMF))
                .is_ok()
        );
        assert!(actor(IdentityMode::Off, Some(AMF)).may_change(Some(UDM)).is_ok());
        assert_eq!(required.instance(), Some(AMF));
    }
}
