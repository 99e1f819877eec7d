//! Nnrf_NFManagement, subscriptions (TS 29.510 §6.1.3.4, §6.1.3.5).

use std::rc::Rc;

use http::header::LOCATION;
use http::{HeaderValue, Method, StatusCode};
use sbi::problem::Problem;
use sbi::{Request, Response};

use crate::registry::registrar::{Done, What};
use crate::service::Worker;

/// Largest subscription.
const MAX_SIZE: usize = 256 * 1024;

/// `/subscriptions`.
pub(crate) async fn collection(worker: Rc<Worker>, request: Request) -> Response {
    if *request.method() != Method::POST {
        return super::method_not_allowed(request.method(), "POST");
    }
    let headers = &request.head.headers;
    let body = sbi::json::expect_type(headers, "application/json")
        .and_then(|()| sbi::coding::decode(headers, request.body, MAX_SIZE));
    let outcome = match body {
        Ok(body) => {
            worker
                .write(What::Subscribe {
                    // A hyphen would set off a PLMN (TS 29.510 §6.1.6.2.16, subscriptionId).
                    id: uuid::Uuid::new_v4().simple().to_string(),
                    body: body.into_bytes(),
                })
                .await
        }
        Err(problem) => Err(problem),
    };
    answer(&worker, outcome)
}

/// `/subscriptions/{subscriptionID}`.
pub(crate) async fn subscription(worker: Rc<Worker>, request: Request, id: String) -> Response {
    let headers = &request.head.headers;
    let what = match request.head.method {
        Method::DELETE => Ok(What::Unsubscribe { id }),
        Method::PATCH => sbi::json::expect_type(headers, sbi::json::JSON_PATCH)
            .and_then(|()| sbi::coding::decode(headers, request.body, MAX_SIZE))
            .map(|body| What::PatchSubscription {
                id,
                body: body.into_bytes(),
            }),
        ref other => return super::method_not_allowed(other, "PATCH, DELETE"),
    };
    let outcome = match what {
        Ok(what) => worker.write(what).await,
        Err(problem) => Err(problem),
    };
    answer(&worker, outcome)
}

fn answer(worker: &Worker, outcome: Result<Done, Problem>) -> Response {
    match outcome {
        Ok(Done::Subscribed(subscription)) => {
            let mut response = sbi::json::response(StatusCode::CREATED, &subscription.document);
            let uri = format!("{}/nnrf-nfm/v1/subscriptions/{}", worker.root(), subscription.id);
            if let Ok(location) = HeaderValue::from_str(&uri) {
                response.headers_mut().insert(LOCATION, location);
            }
            response
        }
        Ok(Done::SubscriptionChanged(subscription)) => {
            sbi::json::response(StatusCode::OK, &subscription.document)
        }
        Ok(_) => super::management::no_content(),
        Err(problem) => problem.into_response(),
    }
}
