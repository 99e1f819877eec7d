//! NIR of the HSS: the authorization of a device for NIDD has changed (TS 29.336 §7.2.4, §8.4.57).

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Fault, MessageMut, ResultCode};
use store::Stored;

use super::senders::{self, Role};
use super::{result, unable};
use crate::clock::now;
use crate::ending;
use crate::record::Configuration;
use crate::worker::Worker;
use crate::{identity, s6t};

/// Until when the HSS grants NIDD, and for which APN; without one for all.
struct Granted<'a> {
    apn: Option<&'a str>,
    until: u64,
}

/// Takes over until when NIDD is granted; what has no time left ends, and its SCS/AS is notified. A duplicate does the same again. An
/// HSS changes what it has authorized.
pub(super) async fn update(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let message = &request.message;
    let unknown =
        || Fault::new(ResultCode(5001), "the device has no NIDD configuration").of_vendor(known::VENDOR_3GPP);
    let imsi = identity::imsi(message.require(known::USER_IDENTIFIER)?)?.ok_or_else(unknown)?;
    let mut granted = Vec::new();
    let update = message.require(known::NIDD_AUTHORIZATION_UPDATE)?;
    for avp in update.map_while(Result::ok) {
        if avp.is(known::APN_VALIDITY_TIME) {
            let until = avp.group().require(known::GRANTED_VALIDITY_TIME)?;
            granted.push(Granted {
                apn: avp.group().get(known::SERVICE_SELECTION)?,
                until: s6t::micros(until),
            });
        }
    }
    let found = worker
        .repository()
        .configurations_of(&imsi)
        .await
        .map_err(unable)?;
    if found.is_empty() {
        return Err(unknown());
    }
    let granted_to = |one: &Configuration| granted.iter().find(|granted| one.is_for(granted.apn));
    let mut is_known = false;
    for one in &found {
        let asked = Some(&*one.hss).filter(|hss| !hss.is_empty());
        let is_own = senders::is_from(request, worker.config(), Role::Hss, asked)?;
        if !is_own && granted_to(one).is_some() {
            return Err(senders::refused(worker, Role::Hss));
        }
        is_known |= is_own;
    }
    if !is_known {
        return Err(senders::refused(worker, Role::Hss));
    }
    for one in found {
        if let Some(until) = granted_to(&one).map(|granted| granted.until) {
            apply(worker, one, until).await?;
        }
    }
    result(request, (0, ResultCode::SUCCESS.0))
}

async fn apply(worker: &Worker, mut found: Stored<Configuration>, until: u64) -> Result<(), Fault> {
    let (repository, scef) = (worker.repository(), worker.shared());
    loop {
        let done = if until <= now() {
            let notice = ending::notice(scef, &found, "TERMINATED_UE_NOT_AUTHORIZED");
            let count = |event| worker.count(event);
            ending::end(scef, &found, Some(&notice), count)
                .await
                .map_err(unable)?
        } else {
            let (document, expires) = s6t::within_grant(found.document.clone(), Some(until));
            let changed = Configuration {
                document,
                expires,
                granted: Some(until),
                ..found.record.clone()
            };
            let updated = repository
                .update(&repository.configurations, &found, changed)
                .await;
            updated.map_err(unable)?.is_some()
        };
        if done {
            return Ok(());
        }
        let again = repository
            .configurations
            .get(&found.id.key())
            .await
            .map_err(unable)?;
        let Some(again) = again else { return Ok(()) };
        found = again;
    }
}
