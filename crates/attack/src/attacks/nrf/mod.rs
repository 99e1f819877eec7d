//! Clients of an NRF that want it to forget, to wait, or to grow.

mod bodies;
mod patches;
mod patterns;
mod queries;
mod subscriptions;

use crate::answer::{Ask, Got};
use crate::attack::Attack;
use crate::field::Field;
use http::Method;
use serde_json::Value;

pub(super) fn all() -> Vec<Attack> {
    [
        patches::ALL,
        patterns::ALL,
        bodies::ALL,
        queries::ALL,
        subscriptions::ALL,
    ]
    .concat()
}

/// The attacker's own instance with this number.
fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn instance(number: u32) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{}", id(number))
}

async fn put(field: &Field, number: u32, profile: &Value) -> Got {
    field
        .ask(&Ask::new(Method::PUT, instance(number)).json(profile))
        .await
}

async fn remove(field: &Field, number: u32) {
    field.ask(&Ask::new(Method::DELETE, instance(number))).await;
}

const PATCH: &str = "application/json-patch+json";
