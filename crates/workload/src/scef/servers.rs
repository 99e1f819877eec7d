//! SCS/AS at T8: their requests, and the notifications that they get.

use std::sync::Arc;

use ahash::AHashMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::books::Subscription;
use super::messages::number_of_cell;
use super::{Books, Kind, OPERATIONS, Plan, number_in};
use callmodel::scef::external_id;
use loadgen::{Answer, Draft, Fault, Interest, Ticket, Weights, Workload};
use simulators::Judge;

/// Positions among the operations.
const MT_DATA: u16 = 0;
const SUBSCRIBE: u16 = 1;
const UNSUBSCRIBE: u16 = 2;
const TRIGGER: u16 = 3;
/// How long the SCEF may buffer data, and an SMS-SC may try a trigger, in seconds.
const PATIENCE: u32 = 600;
/// Reports of a subscription.
const REPORTS: u32 = 100_000;

/// `NiddConfiguration` of a device.
pub(super) fn configuration(plan: &Plan, device: u32) -> Value {
    let server = plan.server(device);
    json!({
        "externalId": external_id(device),
        "notificationDestination": plan.destination(server, 'n', device),
    })
}

/// `MonitoringEventSubscription` of this number, with its SCS/AS.
pub(super) fn subscription(plan: &Plan, number: u32) -> (u32, Value) {
    let device = number % plan.devices.max(1);
    let server = plan.server(device);
    let document = json!({
        "externalId": external_id(device),
        "notificationDestination": plan.destination(server, 'm', number),
        "monitoringType": "LOCATION_REPORTING",
        "locationType": "CURRENT_LOCATION",
        "maximumNumberOfReports": REPORTS,
    });
    (server, document)
}

/// Subscriptions of an SCS/AS.
pub(super) fn subscriptions(server: u32) -> String {
    format!("/3gpp-monitoring-event/v1/as{server}/subscriptions")
}

/// NIDD configurations of an SCS/AS.
pub(super) fn configurations(server: u32) -> String {
    format!("/3gpp-nidd/v1/as{server}/configurations")
}

/// The reference of a subscription by its URI.
pub(super) fn reference_of(location: &str) -> Option<u32> {
    u32::from_str_radix(location.rsplit('/').next()?, 16).ok()
}

/// Requests of SCS/AS, those of a generator thread.
#[derive(Debug)]
pub struct Servers {
    plan: Arc<Plan>,
    books: Arc<Books>,
    weights: Weights,
    /// Subscriptions to keep.
    level: usize,
    /// Last part of the URIs of what is being created, by operation and number.
    located: AHashMap<(u16, u32), u128>,
}

impl Servers {
    /// With the subscriptions that stand.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, books: &Arc<Books>) -> Self {
        Self {
            weights: Weights::new(
                [MT_DATA, SUBSCRIBE, UNSUBSCRIBE, TRIGGER].map(|at| plan.rates[usize::from(at)]),
            ),
            level: books.standing(),
            plan: plan.clone(),
            books: books.clone(),
            located: AHashMap::new(),
        }
    }

    fn downlink(&self, draft: &mut Draft) -> Ticket {
        let number = self.books.number(Kind::Data);
        let device = number % self.plan.devices.max(1);
        let configuration = self.plan.configurations.get(device as usize);
        draft
            .path
            .extend_from_slice(configuration.map(String::as_bytes).unwrap_or_default());
        draft.path.extend_from_slice(b"/downlink-data-deliveries");
        let body = json!({
            "externalId": external_id(device),
            "data": STANDARD.encode(self.plan.data(number)),
            "maximumLatency": PATIENCE,
        });
        post(draft, &body);
        Ticket {
            operation: MT_DATA,
            first: number,
            second: self.plan.server(device),
        }
    }

    fn subscribe(&self, draft: &mut Draft) -> Ticket {
        let number = self.books.subscription();
        let (server, body) = subscription(&self.plan, number);
        draft.path.extend_from_slice(subscriptions(server).as_bytes());
        post(draft, &body);
        Ticket {
            operation: SUBSCRIBE,
            first: number,
            second: server,
        }
    }

    fn unsubscribe(one: Subscription, draft: &mut Draft) -> Ticket {
        draft.method = "DELETE";
        let path = format!("{}/{:08x}", subscriptions(one.server), one.reference);
        draft.path.extend_from_slice(path.as_bytes());
        Ticket {
            operation: UNSUBSCRIBE,
            first: one.reference,
            second: one.server,
        }
    }

    fn trigger(&self, draft: &mut Draft) -> Ticket {
        let number = self.books.number(Kind::Trigger);
        let device = number % self.plan.devices.max(1);
        let server = self.plan.server(device);
        let path = format!("/3gpp-device-triggering/v1/as{server}/transactions");
        draft.path.extend_from_slice(path.as_bytes());
        let body = json!({
            "externalId": external_id(device),
            "notificationDestination": self.plan.destination(server, 't', number),
            "validityPeriod": PATIENCE,
            "priority": "NO_PRIORITY",
            "applicationPortId": 40_000,
            "triggerPayload": STANDARD.encode(number.to_be_bytes()),
        });
        post(draft, &body);
        Ticket {
            operation: TRIGGER,
            first: number,
            second: server,
        }
    }

    /// Whether the answer to data is right: 200 once the MME has it, 201 with where its delivery is.
    fn judge_data(&self, ticket: &Ticket, id: Option<u128>, answer: &Answer<'_>) -> Result<(), Fault> {
        let (number, server) = (ticket.first, ticket.second);
        match answer.status {
            200 => {
                self.books.owe(Kind::Data, number, server);
                let is_success = answer
                    .body
                    .is_some_and(|body| memmem::find(body, b"SUCCESS_NEXT_HOP").is_some());
                match is_success && self.books.has_come(number) {
                    true => Ok(()),
                    false => Err(Fault::Body("200 for data that the MME does not have".to_owned())),
                }
            }
            201 => {
                self.books.owe(Kind::Data, number, server);
                let id = id.ok_or_else(|| Fault::Body("no Location that names a delivery".to_owned()))?;
                self.books.owe(Kind::Status, id, server);
                Ok(())
            }
            _ => Err(Fault::Status),
        }
    }
}

fn post(draft: &mut Draft, body: &Value) {
    draft.method = "POST";
    draft.content_type = Some("application/json");
    draft.body = body.to_string().into();
}

impl Workload for Servers {
    fn operations(&self) -> Vec<String> {
        OPERATIONS.map(str::to_owned).into()
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("user-agent", "AS-lab".to_owned())]
    }

    fn next(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let standing = self.books.standing();
        // As many begin as end, but by chance one may lead: then it is held back.
        let drawn = match self.weights.draw(random) as u16 {
            UNSUBSCRIBE if standing < self.level / 2 => SUBSCRIBE,
            SUBSCRIBE if standing > self.level * 2 => UNSUBSCRIBE,
            other => other,
        };
        match drawn {
            MT_DATA => self.downlink(draft),
            TRIGGER => self.trigger(draft),
            UNSUBSCRIBE => match self.books.oldest() {
                Some(one) => Self::unsubscribe(one, draft),
                None => self.subscribe(draft),
            },
            _ => self.subscribe(draft),
        }
    }

    fn interest(&mut self, ticket: &Ticket, status: u16, _: Option<u64>) -> Interest {
        match (ticket.operation, status) {
            (MT_DATA, 200) => Interest::Body,
            _ => Interest::Skip,
        }
    }

    fn located(&mut self, ticket: &Ticket, location: &[u8]) {
        let last = std::str::from_utf8(location)
            .ok()
            .and_then(|uri| uri.rsplit('/').next());
        if let Some(id) = last.and_then(|id| u128::from_str_radix(id, 16).ok()) {
            self.located.insert((ticket.operation, ticket.first), id);
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        let id = self.located.remove(&(ticket.operation, ticket.first));
        let server = ticket.second;
        match (ticket.operation, answer.status) {
            (MT_DATA, _) => self.judge_data(ticket, id, answer),
            (SUBSCRIBE, 201) => {
                let reference = id.and_then(|id| u32::try_from(id).ok());
                let reference = reference
                    .ok_or_else(|| Fault::Body("no Location that names a subscription".to_owned()))?;
                self.books.subscribed(Subscription { reference, server });
                Ok(())
            }
            (UNSUBSCRIBE, 204) => Ok(()),
            (TRIGGER, 201) => {
                self.books.owe(Kind::Trigger, ticket.first, server);
                Ok(())
            }
            _ => Err(Fault::Status),
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        self.located.remove(&(ticket.operation, ticket.first));
    }
}

/// What SCS/AS do with notifications.
#[derive(Debug)]
pub struct Judging(pub Arc<Books>);

impl Judging {
    fn take(&self, path: &str, body: &[u8]) -> Option<()> {
        let mut parts = path.strip_prefix("/s")?.split('/');
        let server: u32 = parts.next()?.parse().ok()?;
        let (kind, number) = (parts.next()?, parts.next()?);
        let body: Value = serde_json::from_slice(body).ok()?;
        match kind {
            "m" => {
                for report in body["monitoringEventReports"].as_array()? {
                    let cell = report["locationInfo"]["cellId"].as_str()?;
                    self.0.came(Kind::Report, number_of_cell(cell)?, server);
                }
            }
            "n" => match body["data"].as_str() {
                Some(data) => {
                    let number = number_in(&STANDARD.decode(data).ok()?)?;
                    self.0.came(Kind::Uplink, number, server);
                }
                None => {
                    let status = body["deliveryStatus"].as_str()?;
                    let transfer = body["niddDownlinkDataTransfer"].as_str()?.rsplit('/').next()?;
                    let id = u128::from_str_radix(transfer, 16).ok()?;
                    if !status.starts_with("SUCCESS") {
                        return None;
                    }
                    self.0.came(Kind::Status, id, server);
                }
            },
            "t" if body["result"] == "SUCCESS" => {
                self.0.came(Kind::Trigger, number.parse::<u32>().ok()?, server);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Judge for Judging {
    fn notified(&self, path: &str, body: &[u8]) -> bool {
        self.take(path, body).is_some()
    }
}
