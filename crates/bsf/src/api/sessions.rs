//! `/pcfBindings`: bindings of PDU sessions (TS 29.521 §5.3.2, §5.3.3).

use function::records::{Attempt, ChangeFault};
use http::StatusCode;
use model::shape::Shape;
use model::{Ipv6Prefix, SupportedFeatures};
use sbi::problem::Cause;
use sbi::query::json_text;
use sbi::{Request, Response};
use serde_json::Value;

use super::bindings::Served;
use super::fault::Fault;
use super::{bad_query, features_of, no_content, pairs, text_of};
use crate::binding::{
    EXTENDED_SAME_PCF, MULTI_UE_ADDR, PcfBinding, Place, Query, SAME_PCF, Selection, own, select, shape,
};
use crate::events::Event;
use crate::worker::Worker;

impl Served for PcfBinding {
    const NAME: &'static str = "pcfBindings";
    const SHAPE: &'static Shape = &shape::PCF_BINDING;
    const PATCH: &'static [&'static str] = shape::SESSION_PATCH;
    const EVENTS: [Event; 3] = [Event::Registered, Event::Updated, Event::Deregistered];

    async fn write(&self, worker: &Worker, features: &SupportedFeatures) -> Result<(), Fault> {
        let repository = worker.repository();
        if !wants_same_pcf(self, features) {
            return Ok(repository.add(&repository.sessions, self).await.map(drop)?);
        }
        let combination = Combination::of(self)?;
        // Of PCFs that ask at the same moment, at whatever instance, all but one find the guard changed, and look again.
        let attempt = async || {
            let guard = repository.guard_of(combination.supi).await?;
            if let Some(holder) = combination
                .holder(worker, self)
                .await
                .map_err(ChangeFault::Refused)?
            {
                return Err(ChangeFault::Refused(existing(worker, &holder)));
            }
            Ok(if repository.add_guarded(self, guard).await? {
                Attempt::Done(())
            } else {
                Attempt::Overtaken
            })
        };
        Ok(repository
            .turns
            .change(combination.supi.as_bytes(), attempt)
            .await?)
    }

    async fn discover(worker: &Worker, request: &Request) -> Result<Response, Fault> {
        let (query, features) = query_of(request.query())?;
        let matching = worker.repository().matching(&query).await?;
        match select(&matching, &query) {
            Selection::None => {
                worker.count(Event::FoundNothing);
                Ok(no_content())
            }
            Selection::Ambiguous => {
                worker.count(Event::FoundSeveral);
                Err(Fault::Ambiguous(matching.len()))
            }
            Selection::One(binding) => {
                worker.count(Event::Discovered);
                Ok(answer(binding, features))
            }
        }
    }

    /// A notification says which PCF has the session, and where it is.
    fn is_news(&self, before: &Self) -> bool {
        let differs = |name: &&str| self.0.member(name) != before.0.member(name);
        ["pcfId", "pcfFqdn", "pcfIpEndPoints"].iter().any(differs)
    }
}

/// Whether the PCF wants to know of another that has the same subscriber, DNN and slice.
fn wants_same_pcf(binding: &PcfBinding, features: &SupportedFeatures) -> bool {
    (features.has(SAME_PCF) || features.has(EXTENDED_SAME_PCF)) && binding.0.member("paraCom").is_some()
}

/// What one PCF may have (`paraCom`, TS 29.521 §4.2.2.2).
struct Combination<'b> {
    supi: &'b str,
    query: Query,
}

impl<'b> Combination<'b> {
    fn of(binding: &'b PcfBinding) -> Result<Self, Fault> {
        let member = |name: &str| binding.0.member("paraCom").and_then(|wanted| wanted.get(name));
        let supi = member("supi")
            .and_then(Value::as_str)
            .or(binding.0.text_of("supi"))
            .ok_or(Fault::Member {
                pointer: "/paraCom/supi",
                cause: Cause::MandatoryIeMissing,
                expected: "mandatory, unless /supi is present",
            })?;
        let query = Query {
            supi: Some(supi.to_owned()),
            dnn: member("dnn").and_then(Value::as_str).map(str::to_owned),
            snssai: member("snssai").and_then(|slice| serde_json::from_value(slice.clone()).ok()),
            ..Query::default()
        };
        Ok(Self { supi, query })
    }

    /// The binding of another PCF that has it.
    async fn holder(&self, worker: &Worker, binding: &PcfBinding) -> Result<Option<PcfBinding>, Fault> {
        let held = worker.repository().of_subscriber(self.supi).await?;
        let mut held = held.into_iter().map(|held| held.record);
        Ok(held.find(|held| self.query.matches(held) && !held.same_pcf(binding)))
    }
}

/// Where the other PCF is.
fn existing(worker: &Worker, holder: &PcfBinding) -> Fault {
    worker.count(Event::ExistingFound);
    let member = |name| Some((name, holder.0.member(name)?.clone()));
    let members = ["pcfSmFqdn", "pcfSmIpEndPoints"].into_iter().filter_map(member);
    Fault::Existing(members.collect())
}

/// 200 with the binding, without what the consumer does not support.
fn answer(binding: &PcfBinding, features: Option<SupportedFeatures>) -> Response {
    let Some(features) = features else {
        return sbi::json::response_of(StatusCode::OK, binding.0.text().clone());
    };
    let mut shown = binding.0.clone();
    let common = own().common(&features);
    shown.change(|members| {
        if !common.has(MULTI_UE_ADDR) {
            members.shift_remove("addIpv6Prefixes");
            members.shift_remove("addMacAddrs");
        }
        members.insert("suppFeat".to_owned(), Value::String(common.to_string()));
    });
    sbi::json::response_of(StatusCode::OK, shown.text().clone())
}

/// The parameters of a query that mean something here.
const PARAMETERS: &[&str] = &[
    "ipv4Addr",
    "ipv6Prefix",
    "macAddr48",
    "dnn",
    "supi",
    "gpsi",
    "ipDomain",
    "snssai",
    "supp-feat",
];

/// The question of a query string (TS 29.521 table 5.3.2.3.2-1).
pub(crate) fn query_of(query_string: Option<&str>) -> Result<(Query, Option<SupportedFeatures>), Fault> {
    let mut query = Query::default();
    let mut features = None;
    for (name, value) in &pairs(query_string, PARAMETERS)? {
        let text = || text_of(name, value).map(|text| Some(text.to_owned()));
        match &**name {
            "ipv4Addr" => {
                let parsed = value
                    .parse()
                    .map_err(|_| bad_query(name, "expected an IPv4 address"))?;
                query.ipv4 = Some(parsed);
            }
            "ipv6Prefix" => {
                let parsed: Result<Ipv6Prefix, _> = value.parse();
                query.ipv6 = Some(parsed.map_err(|expected| bad_query(name, expected))?);
            }
            "macAddr48" => match Place::mac(value) {
                Some(Place::Mac(mac)) => query.mac = Some(mac),
                _ => {
                    return Err(bad_query(
                        name,
                        "expected a MAC address such as 00-1b-21-3c-9d-f0",
                    ));
                }
            },
            "dnn" => query.dnn = text()?,
            "supi" => query.supi = text()?,
            "gpsi" => query.gpsi = text()?,
            "ipDomain" => query.ip_domain = text()?,
            "snssai" => {
                let parsed = serde_json::from_str(&json_text(value));
                query.snssai = Some(parsed.map_err(|error| {
                    bad_query(name, format!("expected a slice such as {{\"sst\":1}}: {error}"))
                })?);
            }
            "supp-feat" => features = Some(features_of(name, value)?),
            // Parameters of later releases are not for us (TS 29.500 §5.2.9).
            _ => {}
        }
    }
    if !query.is_searchable() {
        return Err(Fault::QueryMissing {
            name: "ipv4Addr",
            expected: "expected ipv4Addr, ipv6Prefix, macAddr48, supi or gpsi",
        });
    }
    Ok((query, features))
}
