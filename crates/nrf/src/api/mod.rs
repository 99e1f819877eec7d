//! One file per 3GPP service: parse the request, call the domain, write the answer.

mod access_token;
mod bootstrapping;
mod discovery;
mod management;
mod subscriptions;
