//! Consumers of a PCF that harm others: SMFs, AFs, forged callbacks, Diameter peers.

mod diameter;
mod sessions;

use http::Method;
use serde_json::{Value, json};

use crate::answer::{Ask, Got};
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::stage::Stage::{Pcf, PcfTls};

pub(super) const SESSIONS: &str = "/npcf-smpolicycontrol/v1/sm-policies";
pub(super) const APPLICATIONS: &str = "/npcf-policyauthorization/v1/app-sessions";

/// Attacks that make much work of few bytes: it is bounded, and not free.
const WORK: Bars = Bars {
    cpu_s: 20.0,
    ..Bars::DEFAULT
};

const ALL: &[Attack] = &[
    attack(
        "pcf.nested-bodies",
        "bodies nested as deep as a parser takes: each that is kept is read, changed and deleted",
        Pcf,
        |f| Box::pin(sessions::nested(f)),
    ),
    attack(
        "pcf.nested-neighbour",
        "an AF's nested body at the address of the honest client's session",
        Pcf,
        |f| Box::pin(sessions::nested_neighbour(f)),
    ),
    attack(
        "pcf.forged-callbacks",
        "notifications that no UDR, CHF or AMF sent, for the honest client's session",
        Pcf,
        |f| Box::pin(sessions::forged_callbacks(f)),
    ),
    attack(
        "pcf.forbidden-targets",
        "URIs for notifications at this machine's other ports, at the function itself, link-local",
        Pcf,
        |f| Box::pin(sessions::forbidden_targets(f)),
    ),
    attack(
        "pcf.growing-session",
        "AF sessions of thousands of flows at one session",
        Pcf,
        |f| Box::pin(sessions::growing(f)),
    )
    .with_bars(WORK),
    attack(
        "pcf.crowded-address",
        "more sessions at an address than a look-up reads, before an honest one",
        Pcf,
        |f| Box::pin(sessions::crowded(f)),
    )
    .with_settings(|| json!({"maxCandidates": 8})),
    attack(
        "pcf.foreign-gx",
        "a peer that acts on the Gx sessions of another",
        Pcf,
        |f| Box::pin(diameter::foreign_gx(f)),
    ),
    attack(
        "pcf.foreign-rx",
        "a peer that acts on the Rx sessions of another",
        Pcf,
        |f| Box::pin(diameter::foreign_rx(f)),
    ),
    attack(
        "pcf.session-names",
        "Gx sessions named as the Rx sessions of others are filed",
        Pcf,
        |f| Box::pin(diameter::names(f)),
    ),
    attack(
        "pcf.unproven-peers",
        "Diameter peers over TLS without a certificate, and with one of another name",
        PcfTls,
        |f| Box::pin(diameter::unproven(f)),
    ),
    attack(
        "pcf.secrets",
        "headers of an operator's server, read at the admin endpoint",
        Pcf,
        |f| Box::pin(sessions::secrets(f)),
    )
    .with_settings(|| {
        json!({"notifier": {"servers": {"crm": {"url": "http://127.0.0.1:9/", "headers": {"x-api-key": "k3y-of-the-crm"}}}}})
    }),
];

pub(super) fn all() -> Vec<Attack> {
    ALL.to_vec()
}

/// `SmPolicyContextData` of a session at this address; members of `more` are added.
pub(super) fn context(address: &str, number: u32, more: &Value) -> Value {
    let mut context = json!({
        "supi": format!("imsi-0010100{number:08}"), "pduSessionId": 1, "pduSessionType": "IPV4", "dnn": "internet",
        "notificationUri": "http://127.0.0.1:9/smf", "sliceInfo": {"sst": 1}, "ipv4Address": address
    });
    if let (Some(context), Some(more)) = (context.as_object_mut(), more.as_object()) {
        context.extend(more.clone());
    }
    context
}

/// `AppSessionContext` of an AF for this address; members of `more` are added to the request data.
pub(super) fn application(address: &str, more: &Value) -> Value {
    let mut data =
        json!({"notifUri": "http://127.0.0.1:9/af", "suppFeat": "0", "ueIpv4": address, "afAppId": "IMS"});
    if let (Some(data), Some(more)) = (data.as_object_mut(), more.as_object()) {
        data.extend(more.clone());
    }
    json!({"ascReqData": data})
}

/// The path of what was created.
pub(super) fn place(got: &Got) -> Option<String> {
    let location = got.headers.get("location")?.to_str().ok()?;
    Some(location.parse::<http::Uri>().ok()?.path().to_owned())
}

pub(super) async fn post(field: &Field, path: &str, body: &Value) -> Got {
    field.ask(&Ask::new(Method::POST, path).json(body)).await
}

/// Ends a session of the attacker's.
pub(super) async fn end(field: &Field, session: &str) -> Got {
    post(field, &format!("{session}/delete"), &json!({})).await
}
