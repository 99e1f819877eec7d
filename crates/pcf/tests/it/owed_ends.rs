//! What an ended association leaves behind at other functions: another process removes it after a kill.

use std::cell::Cell;
use std::rc::Rc;

use http::{Method, StatusCode};
use pcf::Config;
use sbi::Response;
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};

use crate::process::Process;
use crate::support::{
    SM_POLICIES, ask_sources, client, config, context, judged, local, path_of, request, until,
};

/// A function that deletes nothing for a time.
struct Function {
    server: Server,
    deletes: Rc<Cell<bool>>,
}

impl Function {
    fn start(path: &'static str, body: impl Fn(&Seen) -> Value + 'static) -> Self {
        let deletes = Rc::new(Cell::new(false));
        let server = Server::start(|_| no_content());
        let (root, state) = (server.root(), deletes.clone());
        server.answers(move |seen| match seen.method {
            Method::POST => {
                let mut response: Response = sbi::json::response(StatusCode::CREATED, &body(seen));
                let headers = response.headers_mut();
                headers.set_printed(sbi::name::LOCATION, format!("{root}{path}/1"));
                response
            }
            Method::DELETE if !state.get() => {
                Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response()
            }
            Method::GET => sbi::json::response(StatusCode::OK, &json!({})),
            _ => no_content(),
        });
        Self { server, deletes }
    }

    /// Deletions that it has been asked for.
    fn deleted(&self) -> usize {
        let seen = self.server.seen();
        seen.iter().filter(|seen| seen.method == Method::DELETE).count()
    }
}

fn settings(folder: &std::path::Path, [udr, chf, bsf]: [&Function; 3]) -> Config {
    let mut settings = config(folder);
    ask_sources(&mut settings, Some(&udr.server), Some(&chf.server));
    settings.bsf.api_roots = vec![bsf.server.root()];
    settings.bsf.attempts = 1;
    settings
}

#[test]
fn subscriptions_and_bindings_that_were_to_be_removed_at_a_kill_are_removed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = Function::start("/nudr-dr/v2/policy-data/subs-to-notify", Seen::json);
        let counters = |_: &Seen| json!({"statusInfos": {"monthly": {"policyCounterId": "monthly", "currentStatus": "low"}}});
        let chf = Function::start("/nchf-spendinglimitcontrol/v1/subscriptions", counters);
        let bsf = Function::start("/nbsf-management/v1/pcfBindings", Seen::json);
        let all = [&udr, &chf, &bsf];
        let settings = settings(folder.path(), all);
        let before = Process::start(&settings);
        let post =
            |path: &str, body: &Value| request(Method::POST, path, "application/json", body.to_string());
        let created = judged(&client(), &before.origin, post(SM_POLICIES, &context(&json!({})))).await;
        let path = path_of(&created);
        until(|| bsf.server.count() > 0).await;
        // The binding is known when a change of the address reaches the BSF by PATCH.
        let moved = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.1", "ipv4Address": "10.0.0.2"});
        judged(&client(), &before.origin, post(&format!("{path}/update"), &moved)).await;
        until(|| bsf.server.seen().iter().any(|seen| seen.method == Method::PATCH)).await;
        let ended = judged(
            &client(),
            &before.origin,
            post(&format!("{path}/delete"), &json!({})),
        )
        .await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        drop(before);

        let refused = all.map(Function::deleted);
        for one in all {
            one.deletes.set(true);
        }
        let _after = Process::start(&settings);
        until(|| (0..3).all(|at| all[at].deleted() > refused[at])).await;
    });
}
