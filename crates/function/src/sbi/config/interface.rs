//! Settings of a service-based interface that are judged together.

use sbi::identity::{IdentityMode, IdentitySettings};
use sbi::tls::TlsFiles;
use settings::{ByteSize, Faults, Listen};

use super::super::certified::contradiction;
use super::super::published::is_unspecified;
use super::tokens::Tokens;

/// Settings of a service-based interface, where a function with a store keeps them.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// `nfInstanceId`.
    pub nf_instance_id: &'a str,
    /// `listen`.
    pub listen: &'a Listen,
    /// The port that `listen` has by default.
    pub usual_port: u16,
    /// `apiRoot`.
    pub api_root: &'a str,
    /// `tls`.
    pub tls: Option<&'a TlsFiles>,
    /// `clientTls`.
    pub client_tls: Option<&'a TlsFiles>,
    /// `maxCandidates`; none: the function has no such setting.
    pub max_candidates: Option<usize>,
    /// `maxBodySize`.
    pub max_body_size: ByteSize,
    /// `store.maxBatchBytes`.
    pub max_batch_bytes: ByteSize,
    /// `tokens`.
    pub tokens: &'a Tokens,
    /// `identity`.
    pub identity: &'a IdentitySettings,
}

impl Interface<'_> {
    /// Adds the mistakes among them.
    pub fn validate(&self, faults: &mut Faults) {
        if !self.nf_instance_id.is_empty() && model::NfInstanceId::parse(self.nf_instance_id).is_err() {
            faults.at("nfInstanceId").say(
                "is not a UUID",
                "a UUID such as 4947a69a-f61b-4bc1-b9da-47c9c5d14b64, or nothing",
            );
        }
        if let Some(wrong) = contradiction(self.nf_instance_id, self.tls, self.client_tls) {
            faults
                .at("nfInstanceId")
                .say(wrong, "the instance that the certificate names");
        }
        if self.listen.first().is_none() {
            let right = format!("at least one address such as 127.0.0.1:{}", self.usual_port);
            faults.at("listen").say("is empty", right);
        }
        if !self.api_root.is_empty() && self.api_root.parse::<sbi::client::Origin>().is_err() {
            faults
                .at("apiRoot")
                .say("is not an API root", "http://host:port or https://host:port");
        }
        if is_unspecified(self.api_root) {
            faults.at("apiRoot").say(
                "is an address that others cannot use",
                "the name or address of this machine",
            );
        }
        if self.max_candidates.is_some_and(|most| most < 2) {
            faults
                .at("maxCandidates")
                .say("is too small to see that a query is ambiguous", "at least 2");
        }
        if self.max_body_size.as_usize() == 0 {
            faults.at("maxBodySize").say("is 0", "a size, such as 64KiB");
        }
        if self.max_body_size > self.max_batch_bytes {
            faults
                .at("maxBodySize")
                .say("is larger than store.maxBatchBytes", "a body that fits a batch");
        }
        faults.within("tokens", self.tokens);
        faults.within("identity", self.identity);
        let authorities = self.tls.and_then(|tls| tls.authorities.as_deref());
        let provable = self.tokens.required || self.identity.is_provable(authorities);
        if self.identity.mode == Some(IdentityMode::Required) && !provable {
            faults.at("identity.mode").say(
                "requires what no consumer can prove: tokens, mutual TLS and assertions are all off",
                "`tokens.required`, `tls.authorities`, `identity.assertions`, or `whenPresent`",
            );
        }
    }
}
