//! Arbitrary bytes for each parser.

use fuzz_support::run;
use nrf::fuzzing;

#[test]
fn profiles() {
    run("nrf_profile", 2000, fuzzing::profile);
}

#[test]
fn discoveries() {
    run("nrf_discovery", 2000, fuzzing::discovery);
}

#[test]
fn subscriptions() {
    run("nrf_subscription", 3000, fuzzing::subscription);
}

#[test]
fn token_requests() {
    run("nrf_token_request", 10000, fuzzing::token_request);
}
