//! Producers that redirect requests to others (307, 308, TS 29.500 §6.10.9).

use std::time::Duration;

use http::{Method, StatusCode};
use sbi::Response;
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};

use crate::support::{SM_POLICIES, ask_sources, context, local, path_of, start, until};

/// A server that redirects each request to the same path at a root.
fn redirecting(root: String, status: StatusCode) -> Server {
    Server::start(move |seen| elsewhere(&root, status, seen))
}

fn elsewhere(root: &str, status: StatusCode, seen: &Seen) -> Response {
    let mut answer = Problem::of_status(status).into_response();
    let location = format!("{root}{}", seen.path);
    answer.headers_mut().set_printed(sbi::name::LOCATION, location);
    answer
}

/// A producer that names what it creates by a path alone.
fn producer(path: &'static str, body: impl Fn(&Seen) -> Value + 'static) -> Server {
    Server::start(move |seen| match seen.method {
        Method::POST => {
            let mut answer = sbi::json::response(StatusCode::CREATED, &body(seen));
            let location = format!("{path}/1");
            answer.headers_mut().set_printed(sbi::name::LOCATION, location);
            answer
        }
        Method::GET => sbi::json::response(StatusCode::OK, &json!({"smPolicySnssaiData": {}})),
        _ => no_content(),
    })
}

fn methods(server: &Server) -> Vec<Method> {
    let mut methods: Vec<Method> = server.seen().into_iter().map(|seen| seen.method).collect();
    methods.sort_by_key(ToString::to_string);
    methods
}

#[test]
fn udr_chf_and_bsf_that_redirect_are_followed() {
    local(async {
        let udr = producer("/nudr-dr/v2/policy-data/subs-to-notify", Seen::json);
        let counters = |_: &Seen| json!({"statusInfos": {}});
        let chf = producer("/nchf-spendinglimitcontrol/v1/subscriptions", counters);
        let bsf = producer("/nbsf-management/v1/pcfBindings", Seen::json);
        let temporary = StatusCode::TEMPORARY_REDIRECT;
        let front = [
            redirecting(udr.root(), temporary),
            redirecting(chf.root(), StatusCode::PERMANENT_REDIRECT),
            redirecting(bsf.root(), temporary),
        ];
        let pcf = start(|config| {
            ask_sources(config, Some(&front[0]), Some(&front[1]));
            config.bsf.api_roots = vec![front[2].root()];
        });
        let path = path_of(&pcf.post(SM_POLICIES, &context(&json!({}))).await);
        until(|| bsf.count() == 1).await;
        assert_eq!(methods(&udr), [Method::GET, Method::POST]);
        assert_eq!(methods(&chf), [Method::POST]);
        // What was created is where the redirection led to.
        let deleted = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        until(|| {
            [&udr, &chf]
                .iter()
                .all(|server| methods(server).contains(&Method::DELETE))
        })
        .await;
        assert!(
            !front
                .iter()
                .any(|server| methods(server).contains(&Method::DELETE))
        );
    });
}

#[test]
fn a_udr_that_redirects_in_a_circle_leaves_the_fallback_to_decide() {
    local(async {
        let circle = Server::start(|_| no_content());
        let own = circle.root();
        circle.answers(move |seen| elsewhere(&own, StatusCode::TEMPORARY_REDIRECT, seen));
        let pcf = start(|config| {
            ask_sources(config, Some(&circle), None);
            config.pds.udr.subscribe = false;
        });
        let body = context(&json!({}));
        let made = tokio::time::timeout(Duration::from_secs(120), pcf.post(SM_POLICIES, &body));
        assert_eq!(made.await.unwrap().status, StatusCode::CREATED);
        assert_eq!(circle.count(), 3);
    });
}
