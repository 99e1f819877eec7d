//! Over HTTP/2.

use std::rc::Rc;

use http::Method;
use serde_json::{Value, json};

use super::{APPLICATIONS, SESSIONS, application, context, end, place, post};
use crate::answer::Ask;
use crate::field::Field;
use crate::stage::{HONEST_ADDRESS, Server};

/// Depths at which what is kept could be one level too deep for what reads it: the parser takes 127.
const DEPTHS: [usize; 12] = [32, 60, 64, 65, 100, 118, 120, 122, 123, 124, 126, 127];

fn nest(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// A JSON object with one more member, whose value is text.
fn with(body: &Value, member: &str, value: &str) -> String {
    let text = body.to_string();
    format!("{{\"{member}\":{value},{}", text.trim_start_matches('{'))
}

/// Whatever is acknowledged can be read and deleted.
async fn lives(field: &Field, what: &str, path: &str, deletes: bool) {
    let read = field.ask(&Ask::get(path)).await;
    field.check(
        read.status == 200,
        format_args!("{what} was kept, and reading it is answered {}", read.text()),
    );
    let gone = match deletes {
        true => field.ask(&Ask::new(Method::DELETE, path)).await,
        false => end(field, path).await,
    };
    field.check(
        gone.status == 204,
        format_args!("{what} was kept, and deleting it is answered {}", gone.text()),
    );
}

pub(super) async fn nested(field: Rc<Field>) -> anyhow::Result<()> {
    for depth in DEPTHS {
        let sm = with(&context("10.62.0.1", 1, &json!({})), "x", &nest(depth));
        let got = field
            .ask(&Ask::new(Method::POST, SESSIONS).with("application/json", sm))
            .await;
        let what = format!("an SM policy nested {depth} deep");
        field.check(
            matches!(got.status, 201 | 400 | 413),
            format_args!("{what}: {}", got.text()),
        );
        if let Some(path) = place(&got) {
            lives(&field, &what, &path, false).await;
        }
        let good = post(&field, SESSIONS, &context("10.62.0.2", 2, &json!({}))).await;
        if let Some(path) = place(&good) {
            let update = with(&json!({"ratType": "NR"}), "x", &nest(depth));
            let update = Ask::new(Method::POST, format!("{path}/update")).with("application/json", update);
            let got = field.ask(&update).await;
            let what = format!("an update nested {depth} deep");
            field.check(got.status < 500, format_args!("{what}: {}", got.text()));
            lives(&field, &what, &path, false).await;
        }
        for service in ["npcf-am-policy-control", "npcf-ue-policy-control"] {
            let body = json!({
                "notificationUri": "http://127.0.0.1:9/amf", "supi": "imsi-001010000000003", "suppFeat": "0",
                "guami": {"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "0000ff"}
            });
            let body = with(&body, "x", &nest(depth));
            let path = format!("/{service}/v1/policies");
            let got = field
                .ask(&Ask::new(Method::POST, path).with("application/json", body))
                .await;
            let what = format!("{service} nested {depth} deep");
            field.check(got.status < 500, format_args!("{what}: {}", got.text()));
            if let Some(path) = place(&got) {
                lives(&field, &what, &path, true).await;
            }
        }
    }
    Ok(())
}

/// The honest client's session, and those of others at it, are as they were.
pub(super) async fn nested_neighbour(field: Rc<Field>) -> anyhow::Result<()> {
    for depth in DEPTHS {
        let body = with(
            &application(HONEST_ADDRESS, &json!({}))["ascReqData"],
            "x",
            &nest(depth),
        );
        let body = format!("{{\"ascReqData\":{body}}}");
        let got = field
            .ask(&Ask::new(Method::POST, APPLICATIONS).with("application/json", body))
            .await;
        field.check(
            got.status < 500,
            format_args!("an AF session nested {depth} deep: {}", got.text()),
        );
        // Another AF at the same session is served.
        let other = post(&field, APPLICATIONS, &application(HONEST_ADDRESS, &json!({}))).await;
        field.check(
            other.status == 201,
            format_args!("another AF after depth {depth}: {}", other.text()),
        );
        for path in [place(&got), place(&other)].into_iter().flatten() {
            let gone = post(
                &field,
                &format!("{path}/delete"),
                &json!({"events": [{"event": "PLMN_CHG"}]}),
            )
            .await;
            field.check(
                gone.status < 300,
                format_args!("ending an AF session of depth {depth}: {}", gone.text()),
            );
        }
    }
    Ok(())
}

pub(super) async fn forged_callbacks(field: Rc<Field>) -> anyhow::Result<()> {
    let session = field.world.borrow().session.clone().unwrap_or_default();
    let before = field.ask(&Ask::get(&*session)).await;
    // An AF learns something of the association by the name of its own session.
    let af = post(&field, APPLICATIONS, &application(HONEST_ADDRESS, &json!({}))).await;
    let af = place(&af).unwrap_or_default();
    let named = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let known = named(&af).split('.').next().unwrap_or_default().to_owned();
    let ue = "imsi-001010000000001";
    let gold = json!([{"ueId": ue, "smPolicyData": {"smPolicySnssaiData": {}, "category": "gold"}}]);
    let limits = json!({"supi": ue, "notifId": "1", "statusInfos": {"c": {"policyCounterId": "c", "currentStatus": "gold"}}});
    for id in [named(&session), known, named(&af)] {
        for (path, body) in [
            (format!("policy-data-change/{id}"), &gold),
            (format!("spending-limits/{id}/notify"), &limits),
            (format!("spending-limits/{id}/terminate"), &limits),
            (format!("n1-messages/{id}"), &limits),
        ] {
            let got = post(&field, &format!("/signalbox-pcf/v1/{path}"), body).await;
            field.check(
                (400..500).contains(&got.status),
                format_args!("a forged {path} is answered {}", got.status),
            );
        }
    }
    post(
        &field,
        &format!("{af}/delete"),
        &json!({"events": [{"event": "PLMN_CHG"}]}),
    )
    .await;
    let after = field.ask(&Ask::get(&*session)).await;
    field.check(
        before.body == after.body,
        "forged callbacks have changed the policy of a session",
    );
    Ok(())
}

pub(super) async fn forbidden_targets(field: Rc<Field>) -> anyhow::Result<()> {
    let (root, admin, victim) = {
        let world = field.world.borrow();
        (
            format!("http://{}", world.target),
            world.admin,
            world.session.clone().unwrap_or_default(),
        )
    };
    // A place beside the function, which only it should reach.
    let secret = Server::start(std::sync::Arc::new(|_| {
        sbi::json::response(http::StatusCode::NO_CONTENT, &json!({}))
    }))?;
    let port = secret.address.port();
    for uri in [
        format!("http://{admin}/livez"),
        format!("http://localhost:{}/livez", admin.port()),
        format!("http://[::ffff:127.0.0.1]:{port}/n"),
        format!("http://0.0.0.0:{port}/n"),
        format!("http://[::]:{port}/n"),
        format!("http://smf:secret@127.0.0.1:{port}/n"),
        format!("http://127.0.0.1:{port}/n?x="),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[fe80::1]/n".to_owned(),
        format!("{root}{victim}/delete?x="),
        format!("{root}{victim}"),
    ] {
        let more = json!({"notificationUri": uri});
        let got = post(&field, SESSIONS, &context("10.62.0.7", 7, &more)).await;
        field.check(got.status == 400, format_args!("an SMF at {uri}: {}", got.status));
        if let Some(path) = place(&got) {
            // Its notifications lead there.
            let af = post(&field, APPLICATIONS, &application("10.62.0.7", &json!({}))).await;
            if let Some(af) = place(&af) {
                post(
                    &field,
                    &format!("{af}/delete"),
                    &json!({"events": [{"event": "PLMN_CHG"}]}),
                )
                .await;
            }
            end(&field, &path).await;
        }
        let got = post(
            &field,
            APPLICATIONS,
            &application(HONEST_ADDRESS, &json!({"notifUri": uri})),
        )
        .await;
        field.check(got.status == 400, format_args!("an AF at {uri}: {}", got.status));
        if let Some(path) = place(&got) {
            post(
                &field,
                &format!("{path}/delete"),
                &json!({"events": [{"event": "PLMN_CHG"}]}),
            )
            .await;
        }
    }
    let left = field.ask(&Ask::get(&*victim)).await;
    field.check(
        left.status == 200,
        "the function has ended a session by a notification of another",
    );
    Ok(())
}

pub(super) async fn growing(field: Rc<Field>) -> anyhow::Result<()> {
    let got = post(&field, SESSIONS, &context("10.62.0.8", 8, &json!({}))).await;
    let Some(session) = place(&got) else {
        anyhow::bail!("a session is refused: {}", got.text());
    };
    let flow = |n: u32| {
        format!(
            "permit out 17 from 192.0.2.9 {} to 10.62.0.8 {}",
            10_000 + n,
            20_000 + n
        )
    };
    let component = |number: u32| {
        let flows: Vec<String> = (0..16)
            .flat_map(|n| [flow(100 * number + n), flow(100 * number + 50 + n)])
            .collect();
        json!({"medCompN": number, "medType": "AUDIO", "medSubComps": {"1": {"fNum": 1, "fDescs": flows}}})
    };
    let mut components = serde_json::Map::new();
    for number in 1..=17 {
        components.insert(number.to_string(), component(number));
    }
    let many = application("10.62.0.8", &json!({"medComponents": components}));
    let mut kept = 0;
    for _ in 0..field.of(32, 6) {
        let got = post(&field, APPLICATIONS, &many).await;
        kept += u32::from(got.status == 201);
        field.check(
            got.status < 500,
            format_args!("an AF session of 544 flows: {}", got.text()),
        );
    }
    let read = field.ask(&Ask::get(&*session)).await;
    field.note(format_args!(
        "{kept} AF sessions, a session of {} KiB",
        read.body.len() / 1_024
    ));
    field.check(
        read.body.len() < 1 << 20,
        format_args!("a session has grown to {} bytes", read.body.len()),
    );
    let gone = end(&field, &session).await;
    field.check(
        gone.status == 204,
        format_args!("ending it is answered {}", gone.text()),
    );
    Ok(())
}

pub(super) async fn crowded(field: Rc<Field>) -> anyhow::Result<()> {
    let mut crowd = Vec::new();
    for number in 0..12 {
        let got = post(&field, SESSIONS, &context("10.62.0.9", 900 + number, &json!({}))).await;
        crowd.extend(place(&got));
    }
    let honest = post(&field, SESSIONS, &context("10.62.0.9", 9, &json!({"dnn": "ims"}))).await;
    field.check(
        honest.status == 201,
        format_args!("the honest session: {}", honest.text()),
    );
    let af = post(
        &field,
        APPLICATIONS,
        &application("10.62.0.9", &json!({"dnn": "ims"})),
    )
    .await;
    field.check(
        af.status == 201,
        format_args!(
            "an AF at the honest session, behind {} others: {}",
            crowd.len(),
            af.text()
        ),
    );
    for path in crowd.iter().chain(place(&honest).iter()) {
        end(&field, path).await;
    }
    Ok(())
}

pub(super) async fn secrets(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    let page = crate::attacks::admin::get(admin, "/config").await?;
    field.check(
        page.contains("x-api-key") || page.contains("crm"),
        "the page shows no server",
    );
    field.check(!page.contains("k3y-of-the-crm"), "the page shows a secret header");
    Ok(())
}
