//! A member of a secure core (`signalbox up --secure`) that wants more than is its own.

use std::rc::Rc;

use anyhow::Context as _;
use http::Method;
use serde_json::json;

use crate::answer::Ask;
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Core;
use crate::stage::Stage::Secure;

const ALL: &[Attack] = &[
    attack(
        "secure.foreign-sessions",
        "an AF with a certificate reads and ends the session of an SMF",
        Secure,
        |f| Box::pin(foreign(f)),
    ),
    attack(
        "secure.forged-callbacks",
        "an AF with a certificate sends what UDR and CHF would",
        Secure,
        |f| Box::pin(forged(f)),
    ),
    attack(
        "secure.other-types",
        "an AF with a certificate registers as SMF, NRF and UDM",
        Secure,
        |f| Box::pin(types(f)),
    ),
];

pub(super) fn all() -> Vec<Attack> {
    ALL.to_vec()
}

fn core(field: &Field) -> anyhow::Result<(Core, String)> {
    let world = field.world.borrow();
    let core = world.core.clone().context("a stage without a core")?;
    Ok((core, world.session.clone().unwrap_or_default()))
}

async fn foreign(field: Rc<Field>) -> anyhow::Result<()> {
    let (core, session) = core(&field)?;
    let person = core.person()?;
    core.register(&person, "AF").await;
    let mut tokens = vec![None];
    for scope in [
        "npcf-smpolicycontrol",
        "npcf-am-policy-control",
        "npcf-ue-policy-control",
    ] {
        let token = core.token(&person, "PCF", scope).await;
        field.check(token.is_none(), format_args!("an AF gets a token for {scope}"));
        tokens.push(token);
    }
    tokens.push(core.token(&person, "PCF", "npcf-policyauthorization").await);
    for token in &tokens {
        let token = token.as_deref();
        let read = core.ask_pcf(&person, token, Ask::get(&*session)).await;
        field.check(
            matches!(read.status, 401 | 403 | 404),
            format_args!("an AF reads the session of an SMF: {}", read.status),
        );
        let update = Ask::new(Method::POST, format!("{session}/update")).json(&json!({"ratType": "NR"}));
        let got = core.ask_pcf(&person, token, update).await;
        field.check(
            matches!(got.status, 401 | 403 | 404),
            format_args!("an AF changes the session of an SMF: {}", got.status),
        );
        let delete = Ask::new(Method::POST, format!("{session}/delete")).json(&json!({}));
        let got = core.ask_pcf(&person, token, delete).await;
        field.check(
            matches!(got.status, 401 | 403 | 404),
            format_args!("an AF ends the session of an SMF: {}", got.status),
        );
    }
    Ok(())
}

async fn forged(field: Rc<Field>) -> anyhow::Result<()> {
    let (core, session) = core(&field)?;
    let person = core.person()?;
    let id = session.rsplit('/').next().unwrap_or_default();
    let gold = json!([{"ueId": "imsi-001010000000001", "smPolicyData": {"category": "gold"}}]);
    let limits = json!({"supi": "imsi-001010000000001", "statusInfos": {"c": {"policyCounterId": "c", "currentStatus": "gold"}}});
    for (path, body) in [
        (format!("policy-data-change/{id}"), &gold),
        (format!("spending-limits/{id}/notify"), &limits),
        (format!("spending-limits/{id}/terminate"), &limits),
    ] {
        let ask = Ask::new(Method::POST, format!("/signalbox-pcf/v1/{path}")).json(body);
        let got = core.ask_pcf(&person, None, ask).await;
        field.check(
            (400..500).contains(&got.status),
            format_args!("a forged {path} is answered {}", got.status),
        );
    }
    Ok(())
}

async fn types(field: Rc<Field>) -> anyhow::Result<()> {
    let core = core(&field)?.0;
    let person = core.person()?;
    let own = core.register(&person, "AF").await;
    field.check(
        matches!(own.status, 200 | 201),
        format_args!("an AF registers: {}", own.text()),
    );
    for nf_type in ["SMF", "NRF", "UDM"] {
        let got = core.register(&person, nf_type).await;
        field.check(
            (400..500).contains(&got.status),
            format_args!("an AF becomes {nf_type}: {}", got.status),
        );
    }
    let again = core.register(&person, "AF").await;
    field.check(
        matches!(again.status, 200 | 201),
        format_args!("the AF registers again: {}", again.text()),
    );
    Ok(())
}
