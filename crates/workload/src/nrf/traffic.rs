//! The load on an NRF, and the check of its answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::setup::{self, Subscription};
use super::{Condition, Kind, Plan, Population, Queries, profiles};
use callmodel::nrf::NrfModel;
use loadgen::Weights;
use loadgen::{Answer, Draft, Fault, Interest, Ticket, Workload};
use simulators::network::population::{Function, instance_id};

/// The operations, in the order of [`Ticket::operation`].
pub const OPERATIONS: [&str; 16] = [
    "nfDiscover.slf",
    "nfDiscover.local",
    "nfDiscover.forwarded",
    "nfDiscover.fromNrf",
    "nfHeartbeat",
    "nfUpdate",
    "nfRegister",
    "nfDeregister",
    "nfStatusSubscribe",
    "nfStatusSubscribe.update",
    "nfStatusUnsubscribe",
    "nfProfileRetrieval",
    "nfListRetrieval",
    "nfAccessToken",
    "nfAccessToken.slf",
    "nfHeartbeat.load",
];

const DISCOVER_SLF: u16 = 0;
const DISCOVER_LOCAL: u16 = 1;
const DISCOVER_FORWARDED: u16 = 2;
const DISCOVER_FROM_NRF: u16 = 3;
const HEARTBEAT: u16 = 4;
const UPDATE: u16 = 5;
const REGISTER: u16 = 6;
const DEREGISTER: u16 = 7;
const SUBSCRIBE: u16 = 8;
const EXTEND: u16 = 9;
const UNSUBSCRIBE: u16 = 10;
const RETRIEVE: u16 = 11;
const LIST: u16 = 12;
const TOKEN: u16 = 13;
const TOKEN_SLF: u16 = 14;
const HEARTBEAT_LOAD: u16 = 15;

/// One answer in this many is parsed in full, even when an answer of its length was parsed before.
const SAMPLE: u32 = 2048;
/// Lengths cached per query.
const LENGTHS: usize = 64;

/// Requests that the load so far must have caused at the NRF.
#[derive(Debug, Default)]
pub struct Expected {
    /// Queries to the SLF.
    pub slf_queries: AtomicU64,
    /// Discoveries forwarded to another NRF.
    pub forwarded: AtomicU64,
    /// Notifications.
    pub notifications: AtomicU64,
}

fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// A function of the standing population whose requests this thread sends.
#[derive(Debug)]
struct Member {
    path: String,
    matching: u32,
    /// The load it reported last.
    load: u32,
    priority: u32,
}

/// The traffic of one generator thread.
#[derive(Debug)]
pub struct NrfWorkload {
    queries: Arc<Queries>,
    /// By query: lengths of answers that were parsed and found right.
    lengths: Vec<Vec<u64>>,
    sampled: u32,
    weights: Weights,
    members: Vec<Member>,
    next_member: usize,
    /// Notifications that heart-beats still have to cause.
    credit: f64,
    credit_per_heartbeat: f64,
    plan: Arc<Plan>,
    sinks: Vec<SocketAddr>,
    standing: VecDeque<Subscription>,
    removed: VecDeque<Condition>,
    in_removal: Vec<Option<Subscription>>,
    in_creation: Vec<Option<Condition>>,
    subscribed: usize,
    churn: Churn,
    expected: Arc<Expected>,
    extension: Bytes,
    heartbeat_s: u64,
    /// Consumers of tokens.
    amf: String,
    udm: String,
}

/// Functions that register and deregister.
#[derive(Debug)]
struct Churn {
    thread: u32,
    next: u32,
    registered: VecDeque<u32>,
    matching: u32,
}

impl Churn {
    fn function(&self, number: u32) -> Function {
        Function {
            kind: "SMF".into(),
            id: instance_id(0x80 + self.thread, number),
            number,
            // A cell that no query looks for.
            cell: 900 + self.thread,
            bytes: 5700,
        }
    }
}

/// Data that the threads of one run share when they are created.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The discoveries.
    pub queries: Arc<Queries>,
    /// The subscriptions.
    pub plan: Arc<Plan>,
    /// Receivers of notifications.
    pub sinks: Vec<SocketAddr>,
    /// Requests that the load must have caused at the NRF.
    pub expected: Arc<Expected>,
}

impl NrfWorkload {
    /// The traffic of thread `index` of `count`, with its share of functions and subscriptions.
    #[must_use]
    pub fn new(
        model: &NrfModel,
        population: &Population,
        standing: &[Subscription],
        shared: &Shared,
        (index, count): (usize, usize),
    ) -> Self {
        let mine = |at: &usize| at % count == index;
        let plan = &shared.plan;
        let members: Vec<Member> = population
            .functions
            .iter()
            .enumerate()
            .filter(|(at, _)| mine(at))
            .map(|(_, function)| Member {
                path: format!("/nnrf-nfm/v1/nf-instances/{}", function.id),
                matching: plan.matching(function),
                load: 20,
                priority: 10 + function.number % 80,
            })
            .collect();
        let mut churn = Churn {
            thread: index as u32,
            next: 0,
            registered: VecDeque::new(),
            matching: 0,
        };
        churn.matching = plan.matching(&churn.function(0));
        let operations = &model.operations;
        let mean = members.iter().map(|m| f64::from(m.matching)).sum::<f64>() / members.len().max(1) as f64;
        let by_others = (operations.nf_register + operations.nf_deregister) * f64::from(churn.matching)
            + operations.nf_update * mean;
        let weights = [
            (DISCOVER_LOCAL, operations.nf_discover),
            (DISCOVER_FROM_NRF, operations.nf_discover_from_nrf),
            (HEARTBEAT, operations.nf_heartbeat),
            (UPDATE, operations.nf_update),
            (REGISTER, operations.nf_register + operations.nf_deregister),
            (
                SUBSCRIBE,
                operations.nf_status_subscribe + operations.nf_status_unsubscribe,
            ),
            (EXTEND, operations.nf_status_subscribe_update),
            (RETRIEVE, operations.nf_profile_retrieval),
            (LIST, operations.nf_list_retrieval),
            (TOKEN, operations.nf_access_token),
            (TOKEN_SLF, operations.nf_access_token_for_slf),
        ];
        let mut by_operation = vec![0.0; OPERATIONS.len()];
        for (operation, weight) in weights {
            by_operation[usize::from(operation)] = weight;
        }
        let standing: VecDeque<Subscription> = standing
            .iter()
            .enumerate()
            .filter(|(at, _)| mine(at))
            .map(|(_, s)| s.clone())
            .collect();
        let first = |kind| {
            population
                .of(kind)
                .next()
                .map_or_else(|| instance_id(0, 0), |f| f.id.clone())
        };
        Self {
            amf: first("AMF"),
            udm: first("UDM"),
            lengths: vec![Vec::new(); shared.queries.all().len()],
            queries: shared.queries.clone(),
            sampled: 0,
            weights: Weights::new(by_operation),
            members,
            next_member: 0,
            credit: 0.0,
            credit_per_heartbeat: ((model.outgoing.notifications - by_others)
                / operations.nf_heartbeat.max(1e-9))
            .max(0.0),
            plan: plan.clone(),
            sinks: shared.sinks.clone(),
            subscribed: standing.len(),
            standing,
            removed: VecDeque::new(),
            in_removal: Vec::new(),
            in_creation: Vec::new(),
            churn,
            expected: shared.expected.clone(),
            extension: plan.extension().into(),
            heartbeat_s: model.features.heartbeat.as_secs(),
        }
    }

    fn discover(&self, from_nrf: bool, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let at = self.queries.draw(random, from_nrf);
        let query = self.queries.get(at);
        if let Some(supi) = query.write(random, &mut draft.path) {
            let supi = String::from_utf8_lossy(&draft.path[supi]).into_owned();
            // TS 29.500 §5.2.3.2.20.
            draft.headers.push(("3gpp-sbi-correlation-info", supi));
        }
        let operation = match query.kind {
            _ if from_nrf => DISCOVER_FROM_NRF,
            Kind::Local => DISCOVER_LOCAL,
            Kind::Slf => DISCOVER_SLF,
            Kind::Forwarded => DISCOVER_FORWARDED,
        };
        Ticket {
            operation,
            first: at as u32,
            second: 0,
        }
    }

    fn heartbeat(&mut self, draft: &mut Draft) -> Ticket {
        let at = self.next_member;
        self.next_member = (self.next_member + 1) % self.members.len().max(1);
        self.credit += self.credit_per_heartbeat;
        let member = &mut self.members[at];
        let changes_load = self.credit >= f64::from(member.matching) && member.matching > 0;
        if changes_load {
            self.credit -= f64::from(member.matching);
            member.load = if member.load == 20 { 70 } else { 20 };
        }
        patch(draft, &member.path);
        draft.body = format!(
            r#"[{{"op":"replace","path":"/nfStatus","value":"REGISTERED"}},{{"op":"replace","path":"/load","value":{}}}]"#,
            member.load
        )
        .into();
        let operation = if changes_load { HEARTBEAT_LOAD } else { HEARTBEAT };
        Ticket {
            operation,
            first: at as u32,
            second: 0,
        }
    }

    fn update(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let at = random.random_range(0..self.members.len().max(1));
        let member = &mut self.members[at];
        member.priority = if member.priority == 99 {
            10
        } else {
            member.priority + 1
        };
        patch(draft, &member.path);
        draft.body = format!(
            r#"[{{"op":"replace","path":"/priority","value":{}}}]"#,
            member.priority
        )
        .into();
        Ticket {
            operation: UPDATE,
            first: at as u32,
            second: 0,
        }
    }

    /// Registers a new function or removes one that came earlier, in turn.
    fn come_or_go(&mut self, draft: &mut Draft) -> Ticket {
        if let Some(number) = self.churn.registered.pop_front() {
            draft.method = "DELETE";
            let function = self.churn.function(number);
            draft
                .path
                .extend_from_slice(format!("/nnrf-nfm/v1/nf-instances/{}", function.id).as_bytes());
            return Ticket {
                operation: DEREGISTER,
                first: number,
                second: 0,
            };
        }
        let number = self.churn.next;
        self.churn.next += 1;
        let function = self.churn.function(number);
        draft.method = "PUT";
        draft
            .path
            .extend_from_slice(format!("/nnrf-nfm/v1/nf-instances/{}", function.id).as_bytes());
        draft.content_type = Some("application/json");
        draft.body = profiles::profile(&function, self.heartbeat_s, None).into();
        Ticket {
            operation: REGISTER,
            first: number,
            second: 0,
        }
    }

    /// Ends a subscription, or recreates it when one was ended, so that the limit is never exceeded.
    fn subscribe_or_not(&mut self, draft: &mut Draft) -> Ticket {
        if let Some(condition) = self.removed.pop_front() {
            let request = setup::subscription(&self.plan, &condition, &self.sinks, self.subscribed);
            self.subscribed += 1;
            draft.method = request.method;
            draft.path.extend_from_slice(request.path.as_bytes());
            draft.content_type = request.content_type;
            draft.body = request.body;
            self.in_creation.push(Some(condition));
            return Ticket {
                operation: SUBSCRIBE,
                first: self.in_creation.len() as u32 - 1,
                second: 0,
            };
        }
        let Some(subscription) = self.standing.pop_front() else {
            return self.heartbeat(draft);
        };
        draft.method = "DELETE";
        draft
            .path
            .extend_from_slice(format!("/nnrf-nfm/v1/subscriptions/{}", subscription.id).as_bytes());
        self.in_removal.push(Some(subscription));
        Ticket {
            operation: UNSUBSCRIBE,
            first: self.in_removal.len() as u32 - 1,
            second: 0,
        }
    }

    fn extend(&self, random: &mut SmallRng, draft: &mut Draft) -> Option<Ticket> {
        // The front ones are about to be removed; the back ones stay for long.
        let half = self.standing.len() / 2;
        let subscription = self
            .standing
            .get(random.random_range(half..self.standing.len().max(half + 1)))?;
        patch(draft, &format!("/nnrf-nfm/v1/subscriptions/{}", subscription.id));
        draft.body = self.extension.clone();
        Some(Ticket {
            operation: EXTEND,
            first: 0,
            second: 0,
        })
    }

    fn token(&self, operation: u16, draft: &mut Draft) -> Ticket {
        draft.method = "POST";
        draft.path.extend_from_slice(b"/oauth2/token");
        draft.content_type = Some("application/x-www-form-urlencoded");
        let (own, target, scope) = if operation == TOKEN {
            ("AMF", "UDM", "nudm-sdm")
        } else {
            ("UDM", "UDR", "nudr-group-id-map")
        };
        let id = if operation == TOKEN { &self.amf } else { &self.udm };
        draft.body = format!(
            "grant_type=client_credentials&nfInstanceId={id}&nfType={own}&targetNfType={target}&scope={scope}"
        )
        .into();
        Ticket {
            operation,
            first: 0,
            second: 0,
        }
    }

    fn judge_discovery(&mut self, at: usize, answer: &Answer<'_>) -> Result<(), Fault> {
        let Some(body) = answer.body else {
            return Ok(());
        };
        let query = self.queries.get(at);
        search_result(body, &query.target, query.profiles)
            .map_err(|why| Fault::Body(format!("{why}: {}", String::from_utf8_lossy(&query.path))))?;
        let known = &mut self.lengths[at];
        if !known.contains(&answer.length) {
            if known.len() >= LENGTHS {
                known.remove(0);
            }
            known.push(answer.length);
        }
        Ok(())
    }
}

fn patch(draft: &mut Draft, path: &str) {
    draft.method = "PATCH";
    draft.path.extend_from_slice(path.as_bytes());
    draft.content_type = Some("application/json-patch+json");
}

/// Checks a `SearchResult` (TS 29.510 §6.2.6.2.2): its shape, and the expected number of valid profiles.
fn search_result(body: &[u8], target: &str, profiles: u32) -> Result<(), String> {
    let result: Value = serde_json::from_slice(body).map_err(|error| format!("not JSON ({error})"))?;
    if !result.get("validityPeriod").is_some_and(Value::is_u64) {
        return Err("no validityPeriod".to_owned());
    }
    let Some(instances) = result.get("nfInstances").and_then(Value::as_array) else {
        return Err("no nfInstances".to_owned());
    };
    if instances.len() != profiles as usize {
        return Err(format!("{} profiles instead of {profiles}", instances.len()));
    }
    for instance in instances {
        let text = |key: &str| instance.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("nfType") != target || text("nfStatus") != "REGISTERED" || text("nfInstanceId").len() != 36 {
            return Err(format!("a profile is not a registered {target}"));
        }
        if !instance.get("nfServices").is_some_and(Value::is_array) && instance.get("nfServiceList").is_none()
        {
            return Err("a profile without services".to_owned());
        }
    }
    Ok(())
}

impl Workload for NrfWorkload {
    fn operations(&self) -> Vec<String> {
        OPERATIONS.iter().map(|name| (*name).to_owned()).collect()
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("user-agent", "AMF-lab".to_owned()),
            ("accept", "application/json, application/problem+json".to_owned()),
        ]
    }

    fn next(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        match self.weights.draw(random) as u16 {
            DISCOVER_FROM_NRF => {
                draft.headers.push(("via", "2.0 NRF-nrf.set2.lab".to_owned()));
                self.discover(true, random, draft)
            }
            UPDATE if !self.members.is_empty() => self.update(random, draft),
            REGISTER => self.come_or_go(draft),
            SUBSCRIBE => self.subscribe_or_not(draft),
            EXTEND => match self.extend(random, draft) {
                Some(ticket) => ticket,
                None => self.heartbeat(draft),
            },
            RETRIEVE if !self.members.is_empty() => {
                let at = random.random_range(0..self.members.len());
                draft.path.extend_from_slice(self.members[at].path.as_bytes());
                Ticket {
                    operation: RETRIEVE,
                    first: at as u32,
                    second: 0,
                }
            }
            LIST => {
                draft
                    .path
                    .extend_from_slice(b"/nnrf-nfm/v1/nf-instances?nf-type=UDM&limit=20");
                Ticket {
                    operation: LIST,
                    first: 0,
                    second: 0,
                }
            }
            operation @ (TOKEN | TOKEN_SLF) => self.token(operation, draft),
            HEARTBEAT if !self.members.is_empty() => self.heartbeat(draft),
            _ => self.discover(false, random, draft),
        }
    }

    fn interest(&mut self, ticket: &Ticket, status: u16, length: Option<u64>) -> Interest {
        match ticket.operation {
            DISCOVER_LOCAL | DISCOVER_SLF | DISCOVER_FORWARDED | DISCOVER_FROM_NRF if status == 200 => {
                self.sampled += 1;
                let known = &self.lengths[ticket.first as usize];
                let seen = length.is_some_and(|length| known.contains(&length));
                if seen && !self.sampled.is_multiple_of(SAMPLE) {
                    Interest::Skip
                } else {
                    Interest::Body
                }
            }
            SUBSCRIBE | TOKEN | TOKEN_SLF | LIST | RETRIEVE => Interest::Body,
            _ => Interest::Skip,
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        let right: &[u16] = match ticket.operation {
            REGISTER | SUBSCRIBE => &[201],
            DEREGISTER | UNSUBSCRIBE => &[204],
            HEARTBEAT | HEARTBEAT_LOAD | UPDATE | EXTEND => &[200, 204],
            _ => &[200],
        };
        if !right.contains(&answer.status) {
            self.lost(ticket);
            return Err(Fault::Status);
        }
        let body = answer.body.unwrap_or_default();
        let holds = |what: &str| memchr::memmem::find(body, what.as_bytes()).is_some();
        match ticket.operation {
            DISCOVER_LOCAL => self.judge_discovery(ticket.first as usize, answer),
            DISCOVER_SLF | DISCOVER_FORWARDED | DISCOVER_FROM_NRF => {
                let kind = self.queries.get(ticket.first as usize).kind;
                add(&self.expected.slf_queries, u64::from(kind != Kind::Local));
                add(&self.expected.forwarded, u64::from(kind == Kind::Forwarded));
                self.judge_discovery(ticket.first as usize, answer)
            }
            HEARTBEAT_LOAD | UPDATE => {
                let member = &self.members[ticket.first as usize];
                add(&self.expected.notifications, u64::from(member.matching));
                Ok(())
            }
            REGISTER => {
                self.churn.registered.push_back(ticket.first);
                add(&self.expected.notifications, u64::from(self.churn.matching));
                Ok(())
            }
            DEREGISTER => {
                add(&self.expected.notifications, u64::from(self.churn.matching));
                Ok(())
            }
            UNSUBSCRIBE => {
                if let Some(gone) = self
                    .in_removal
                    .get_mut(ticket.first as usize)
                    .and_then(Option::take)
                {
                    self.removed.push_back(gone.condition);
                }
                Ok(())
            }
            SUBSCRIBE => {
                let condition = self
                    .in_creation
                    .get_mut(ticket.first as usize)
                    .and_then(Option::take);
                match (setup::subscription_id(body), condition) {
                    (Some(id), Some(condition)) => {
                        self.standing.push_back(Subscription { id, condition });
                        Ok(())
                    }
                    _ => Err(Fault::Body("no subscriptionId".to_owned())),
                }
            }
            RETRIEVE if !holds("\"nfInstanceId\"") => Err(Fault::Body("not a profile".to_owned())),
            LIST if !holds("\"_links\"") => Err(Fault::Body("no _links".to_owned())),
            TOKEN | TOKEN_SLF if !holds("\"access_token\"") => Err(Fault::Body("no access_token".to_owned())),
            _ => Ok(()),
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        match ticket.operation {
            UNSUBSCRIBE => {
                // Whether it still exists is unknown; it is not queried again.
                let _ = self
                    .in_removal
                    .get_mut(ticket.first as usize)
                    .and_then(Option::take);
            }
            SUBSCRIBE => {
                if let Some(condition) = self
                    .in_creation
                    .get_mut(ticket.first as usize)
                    .and_then(Option::take)
                {
                    self.removed.push_back(condition);
                }
            }
            _ => {}
        }
    }
}
