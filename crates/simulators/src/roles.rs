//! Roles of simulators: a request in, an answer out; no sockets.

use std::sync::Arc;

use super::{Notices, RoleName, Settings, Ues};
use crate::exchange::{Reply, Request};
use crate::network::profiles;
use crate::policy::{Amf, Chf, Udr};

/// A role, ready to play.
#[derive(Debug)]
pub enum Role {
    /// Takes notifications.
    Consumer,
    /// Answers with a body.
    Producer(Reply),
    /// Answers which group a subscriber belongs to.
    Slf(Vec<SlfRange>),
    /// Answers discoveries.
    Nrf {
        /// Answers by target type, made when first asked for.
        answers: Vec<(String, Reply)>,
        /// Profiles in each.
        profiles: u32,
        /// Bytes of each profile.
        bytes: u32,
    },
    /// Has policy data.
    Udr(Udr),
    /// Has policy counters.
    Chf(Chf),
    /// Delivers UE policies.
    Amf(Amf),
    /// Consumers of a PCF (an AMF, an SMF, an AF) whose notifications another thread waits for, and the UEs of the AMF.
    Consumers(Amf, Arc<Notices>, Ues),
    /// Takes notifications, which another part of the laboratory judges.
    Judged(Arc<dyn Judge>),
}

/// What judges notifications.
pub trait Judge: std::fmt::Debug + Send + Sync {
    /// Takes a notification; false if it makes no sense here.
    fn notified(&self, path: &str, body: &[u8]) -> bool;
}

/// A range of subscribers with its answer.
#[derive(Debug)]
pub struct SlfRange {
    nf_type: String,
    from: u64,
    to: u64,
    reply: Reply,
}

impl Role {
    /// The role of the settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        match settings.role {
            // Diameter roles are in `sim::diameter`; a wire has no role.
            RoleName::Consumer
            | RoleName::Hss
            | RoleName::PcfRx
            | RoleName::Pcrf
            | RoleName::Ocs
            | RoleName::ExposureHss
            | RoleName::SmsSc
            | RoleName::Wire
            | RoleName::NameServer => Self::Consumer,
            RoleName::Producer => {
                let padding = "x".repeat((settings.producer.body_bytes as usize).saturating_sub(11));
                Self::Producer(Reply::json(
                    settings.producer.status,
                    format!(r#"{{"data":"{padding}"}}"#),
                ))
            }
            RoleName::Slf => Self::Slf(
                settings
                    .slf
                    .groups
                    .iter()
                    .map(|range| SlfRange {
                        nf_type: range.nf_type.clone(),
                        from: range.from,
                        to: range.to,
                        reply: Reply::json(200, format!(r#"{{"{}":"{}"}}"#, range.nf_type, range.group)),
                    })
                    .collect(),
            ),
            RoleName::Nrf => Self::Nrf {
                answers: Vec::new(),
                profiles: settings.nrf.profiles,
                bytes: settings.nrf.profile_bytes,
            },
            RoleName::Udr => Self::Udr(Udr::new(&settings.udr)),
            RoleName::Chf => Self::Chf(Chf::new(&settings.chf)),
            RoleName::Amf => Self::Amf(Amf::default()),
        }
    }

    /// Consumers that pass their notifications on, and commands to their UEs.
    #[must_use]
    pub fn consumers(notices: Arc<Notices>, ues: Ues) -> Self {
        Self::Consumers(Amf::default(), notices, ues)
    }

    /// Answers a request; a status of 400 or 404 means that the request was invalid for the role.
    pub fn answer(&mut self, request: &Request<'_>) -> Reply {
        match self {
            Self::Consumer if request.method == b"POST" => Reply::empty(204),
            Self::Consumer => Reply::problem(405, "METHOD_NOT_ALLOWED"),
            Self::Producer(reply) => reply.clone(),
            Self::Udr(udr) => udr.answer(request),
            Self::Chf(chf) => chf.answer(request),
            Self::Amf(amf) => amf.answer(request),
            Self::Consumers(amf, notices, ues) => notified(amf, notices, ues, request),
            Self::Judged(judge) => {
                let path = std::str::from_utf8(path_of(request.path)).unwrap_or_default();
                match request.method == b"POST" && judge.notified(path, request.body) {
                    true => Reply::empty(204),
                    false => Reply::problem(404, "CALLBACK_NOT_FOUND"),
                }
            }
            Self::Slf(ranges) => locate(ranges, request.path),
            Self::Nrf {
                answers,
                profiles,
                bytes,
            } => {
                if path_of(request.path) != b"/nnrf-disc/v1/nf-instances" {
                    return Reply::problem(404, "RESOURCE_URI_STRUCTURE_NOT_FOUND");
                }
                let Some(target) = parameter(request.path, b"target-nf-type") else {
                    return Reply::problem(400, "MANDATORY_QUERY_PARAM_INCORRECT");
                };
                if let Some((_, reply)) = answers.iter().find(|(known, _)| known.as_bytes() == target) {
                    return reply.clone();
                }
                let target = String::from_utf8_lossy(target).into_owned();
                let reply = Reply::json(200, profiles::remote_answer(&target, *profiles, *bytes));
                answers.push((target, reply.clone()));
                reply
            }
        }
    }
}

/// Namf_Communication as an AMF; every other POST is a notification.
fn notified(amf: &mut Amf, notices: &Notices, ues: &mut Ues, request: &Request<'_>) -> Reply {
    let path = std::str::from_utf8(path_of(request.path)).unwrap_or_default();
    if path.starts_with("/namf-comm/") {
        ues.learn(path, request.body);
        return amf.answer(request);
    }
    match request.method {
        b"POST" if notices.put(path, request.body) => Reply::empty(204),
        b"POST" => Reply::problem(503, "INSUFFICIENT_RESOURCES"),
        _ => Reply::problem(405, "METHOD_NOT_ALLOWED"),
    }
}

/// TS 29.504 §6.1.3.2: the group of a subscriber for a type of function.
fn locate(ranges: &[SlfRange], path: &[u8]) -> Reply {
    if path_of(path) != b"/nudr-group-id-map/v1/nf-group-ids" {
        return Reply::problem(404, "RESOURCE_URI_STRUCTURE_NOT_FOUND");
    }
    let (Some(types), Some(subscriber)) = (parameter(path, b"nf-type"), parameter(path, b"subscriberId"))
    else {
        return Reply::problem(400, "MANDATORY_QUERY_PARAM_INCORRECT");
    };
    let digits = subscriber
        .iter()
        .rposition(|b| !b.is_ascii_digit())
        .map_or(subscriber, |at| &subscriber[at + 1..]);
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse::<u64>().ok());
    let Some(number) = number else {
        return Reply::problem(400, "MANDATORY_QUERY_PARAM_INCORRECT");
    };
    for wanted in types.split(|b| *b == b',') {
        let range = ranges
            .iter()
            .find(|r| r.nf_type.as_bytes() == wanted && (r.from..=r.to).contains(&number));
        if let Some(range) = range {
            return range.reply.clone();
        }
    }
    Reply::problem(404, "USER_NOT_FOUND")
}

fn path_of(path: &[u8]) -> &[u8] {
    path.split(|b| *b == b'?').next().unwrap_or_default()
}

/// The value of a query parameter as it is written; what the lab asks for needs no percent-decoding beyond
/// the comma of a list, which may be written `%2C`.
fn parameter<'a>(path: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let query = &path[path.iter().position(|b| *b == b'?')? + 1..];
    query
        .split(|b| *b == b'&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GroupRange;

    fn get(role: &mut Role, path: &str) -> (u16, String) {
        let reply = role.answer(&Request {
            method: b"GET",
            path: path.as_bytes(),
            body: b"",
        });
        (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
    }

    #[test]
    fn the_slf_answers_groups_by_range() {
        let mut settings = Settings {
            role: RoleName::Slf,
            ..Settings::default()
        };
        for (from, to, group) in [(100, 199, "near"), (200, 299, "far")] {
            settings.slf.groups.push(GroupRange {
                nf_type: "UDM".into(),
                from,
                to,
                group: group.into(),
            });
        }
        let mut role = Role::new(&settings);
        let path = "/nudr-group-id-map/v1/nf-group-ids?nf-type=AUSF,UDM&subscriberId=imsi-000000000000250";
        assert_eq!(get(&mut role, path), (200, r#"{"UDM":"far"}"#.to_owned()));
        assert_eq!(get(&mut role, &path.replace("250", "350")).0, 404);
        assert_eq!(get(&mut role, &path.replace("imsi-000000000000250", "x")).0, 400);
        assert_eq!(get(&mut role, "/nudr-dr/v1/x").0, 404);
    }

    #[test]
    fn another_nrf_answers_with_the_configured_number_of_profiles() {
        let mut role = Role::new(&Settings {
            role: RoleName::Nrf,
            ..Settings::default()
        });
        let (status, body) = get(
            &mut role,
            "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF",
        );
        let result: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (status, result["nfInstances"].as_array().unwrap().len()),
            (200, 6)
        );
        assert_eq!(get(&mut role, "/nnrf-disc/v1/nf-instances").0, 400);
    }

    #[test]
    fn a_producer_answers_with_the_configured_size() {
        let mut role = Role::new(&Settings {
            role: RoleName::Producer,
            ..Settings::default()
        });
        assert_eq!(get(&mut role, "/any").1.len(), 1000);
    }
}
