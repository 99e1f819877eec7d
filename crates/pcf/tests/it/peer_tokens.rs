//! Access tokens of the PCF at a BSF and a UDR that require them (TS 33.501 §13.4.1.1, TS 29.510 §5.4.2.2).

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use pcf::Event;
use pcf::config::{PeerTokens, UdrFallback};
use sbi::Response;
use sbi::problem::Problem;
use serde_json::json;
use testpeer::sbi::{Seen, Server, no_content};

use crate::support::{Pcf, SM_POLICIES, context, local, start, until};

/// An NRF that grants tokens, `N SCOPE` the Nth one, while `grants` is true.
struct Nrf {
    server: Server,
    granted: Rc<Cell<u32>>,
    grants: Rc<Cell<bool>>,
}

impl Nrf {
    fn start() -> Self {
        let (granted, grants) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(true)));
        let (count, may) = (granted.clone(), grants.clone());
        let server = Server::start(move |seen| match seen.path.as_str() {
            "/oauth2/token" if may.get() => {
                count.set(count.get() + 1);
                let body = String::from_utf8_lossy(&seen.body).into_owned();
                let scope = body.rsplit('=').next().unwrap_or_default().to_owned();
                let token = format!("{}.{scope}", count.get());
                let granted = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3_600});
                crate::judge::is("TS29510_Nnrf_AccessToken.yaml", "AccessTokenRsp", &granted);
                sbi::json::response(StatusCode::OK, &granted)
            }
            "/oauth2/token" => Problem::of_status(StatusCode::BAD_REQUEST).into_response(),
            _ => no_content(),
        });
        Self {
            server,
            granted,
            grants,
        }
    }

    /// The forms of the token requests since the last call.
    fn asked(&self) -> Vec<String> {
        let seen = self.server.take().into_iter();
        seen.filter(|seen| seen.path == "/oauth2/token")
            .map(|seen| String::from_utf8_lossy(&seen.body).into_owned())
            .collect()
    }
}

/// A producer that requires this token, whose number may change.
fn guarded(
    number: &Rc<Cell<u32>>,
    scope: &'static str,
    answer: impl Fn(&Seen) -> Response + 'static,
) -> Server {
    let number = number.clone();
    Server::start(move |seen| {
        match seen.header("authorization") == format!("Bearer {}.{scope}", number.get()) {
            true => answer(seen),
            false => Problem::of_status(StatusCode::UNAUTHORIZED).into_response(),
        }
    })
}

fn tokens_of(server: &Server) -> Vec<String> {
    let seen = server.take().into_iter();
    seen.map(|seen| seen.header("authorization").to_owned()).collect()
}

fn bsf(number: &Rc<Cell<u32>>) -> Server {
    guarded(number, "nbsf-management", |seen| match seen.method.as_str() {
        "POST" => {
            let made = sbi::Value::new(b"/nbsf-management/v1/pcfBindings/1").unwrap();
            sbi::json::response(StatusCode::CREATED, &seen.json()).with(sbi::name::LOCATION, made)
        }
        _ => no_content(),
    })
}

fn udr(number: &Rc<Cell<u32>>) -> Server {
    guarded(number, "nudr-dr", |_| {
        sbi::json::response(StatusCode::OK, &json!({"smPolicySnssaiData": {}}))
    })
}

async fn bound(pcf: &Pcf, count: u64) {
    until(|| pcf.running().count(Event::BindingRegistered) == count).await;
}

#[test]
fn a_bsf_that_asks_for_a_token_gets_one_and_a_refused_one_is_replaced_once() {
    local(async {
        let nrf = Nrf::start();
        let wanted = Rc::new(Cell::new(1));
        let server = bsf(&wanted);
        let (nrf_root, bsf_root) = (nrf.server.root(), server.root());
        let pcf = start(|config| {
            config.nf_instance_id = "6f1c7a52-0000-4000-8000-000000000001".to_owned();
            config.nrf.api_roots = vec![nrf_root];
            config.bsf.api_roots = vec![bsf_root];
        });
        pcf.session(&json!({"pduSessionId": 1})).await;
        bound(&pcf, 1).await;
        assert_eq!(
            nrf.asked(),
            [
                "grant_type=client_credentials&nfInstanceId=6f1c7a52-0000-4000-8000-000000000001&nfType=PCF&\
              targetNfType=BSF&scope=nbsf-management"
            ]
        );
        let first = "Bearer 1.nbsf-management";
        assert_eq!(tokens_of(&server), ["", first], "a 401, then the token");

        // The next request has the cached token from the start.
        pcf.session(&json!({"pduSessionId": 2})).await;
        bound(&pcf, 2).await;
        assert_eq!(
            (nrf.asked().len(), tokens_of(&server)),
            (0, vec![first.to_owned()])
        );

        // The BSF takes it for expired: one new token, one retry.
        wanted.set(2);
        pcf.session(&json!({"pduSessionId": 3})).await;
        bound(&pcf, 3).await;
        assert_eq!(nrf.asked().len(), 1);
        assert_eq!(tokens_of(&server), [first, "Bearer 2.nbsf-management"]);
        assert_eq!(pcf.running().count(Event::BindingRetried), 0);
        assert_eq!(pcf.running().count(Event::PeerTokenGranted), 2);
    });
}

#[test]
fn requests_carry_tokens_up_front_each_for_its_service() {
    local(async {
        let nrf = Nrf::start();
        let (for_udr, for_bsf) = (Rc::new(Cell::new(1)), Rc::new(Cell::new(2)));
        let (udr, bsf) = (udr(&for_udr), bsf(&for_bsf));
        let roots = [nrf.server.root(), udr.root(), bsf.root()];
        let pcf = start(|config| {
            let [nrf, udr, bsf] = roots.map(|root| vec![root]);
            (config.nrf.api_roots, config.bsf.api_roots) = (nrf, bsf);
            config.peer_tokens = PeerTokens::Always;
            config.pds.deadline = settings::Period::from_secs(60);
            config.pds.udr.enabled = true;
            config.pds.udr.subscribe = false;
            config.pds.udr.fallback = UdrFallback::Reject;
            config.pds.udr.api_roots = udr;
        });
        pcf.session(&json!({})).await;
        bound(&pcf, 1).await;
        let scopes: Vec<String> = nrf
            .asked()
            .iter()
            .filter_map(|form| Some(form.split_once("targetNfType=")?.1.to_owned()))
            .collect();
        assert_eq!(scopes, ["UDR&scope=nudr-dr", "BSF&scope=nbsf-management"]);
        assert_eq!(tokens_of(&udr), ["Bearer 1.nudr-dr"]);
        assert_eq!(tokens_of(&bsf), ["Bearer 2.nbsf-management"]);
    });
}

#[test]
fn a_flood_of_refusals_costs_the_nrf_few_requests() {
    local(async {
        let nrf = Nrf::start();
        // A UDR that refuses each token.
        let server = udr(&Rc::new(Cell::new(u32::MAX)));
        let roots = [nrf.server.root(), server.root()];
        let pcf = start(|config| {
            let [nrf, udr] = roots.map(|root| vec![root]);
            config.nrf.api_roots = nrf;
            config.pds.udr.enabled = true;
            config.pds.udr.subscribe = false;
            config.pds.udr.fallback = UdrFallback::Reject;
            config.pds.udr.api_roots = udr;
        });
        let began = std::time::Instant::now();
        for number in 1..=50 {
            let context = context(&json!({"pduSessionId": number}));
            let refused = pcf.post(SM_POLICIES, &context).await;
            assert_eq!(
                refused.status,
                StatusCode::SERVICE_UNAVAILABLE,
                "{}",
                refused.json
            );
        }
        // One at first, and at most one a second to replace it.
        let most = 2 + began.elapsed().as_secs();
        let granted = u64::from(nrf.granted.get());
        assert!((1..=most).contains(&granted), "{granted} of {most}");

        // An NRF that grants nothing is counted, and the producer still gets the request.
        nrf.grants.set(false);
        drop(server.take());
        tokio::time::timeout(Duration::from_secs(60), async {
            while pcf.running().count(Event::PeerTokenFailed) == 0 {
                pcf.post(SM_POLICIES, &context(&json!({}))).await;
            }
        })
        .await
        .unwrap();
        let before = server.count();
        pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(server.count(), before + 1);
    });
}

#[test]
fn without_tokens_a_401_is_final() {
    local(async {
        let nrf = Nrf::start();
        let server = udr(&Rc::new(Cell::new(1)));
        let roots = [nrf.server.root(), server.root()];
        let pcf = start(|config| {
            let [nrf, udr] = roots.map(|root| vec![root]);
            config.nrf.api_roots = nrf;
            config.peer_tokens = PeerTokens::Never;
            config.pds.udr.enabled = true;
            config.pds.udr.subscribe = false;
            config.pds.udr.fallback = UdrFallback::Reject;
            config.pds.udr.api_roots = udr;
        });
        let refused = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!((server.count(), nrf.asked().len()), (1, 0));
    });
}
