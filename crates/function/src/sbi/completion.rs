//! What the answers of a function have whatever they say: who refuses, when to try again, how busy the function is.

use std::sync::Arc;
use std::time::Instant;

use ::sbi::Response;
use ::sbi::headers::Scope;
use ::sbi::name::{RETRY_AFTER, SERVER};
use http::StatusCode;

use super::own_load::{Conveying, OwnLoad};
use crate::shedder::Shedder;

/// Seconds after which a request may be sent again that was refused for now.
const RETRY_SECONDS: u64 = 1;

/// Completes answers, by what is in effect. Clones share the load.
#[derive(Clone, Debug)]
pub struct Completion {
    /// NF type and instance (TS 29.500 §5.2.2.2).
    server: Arc<str>,
    own_load: Arc<OwnLoad>,
    settings: Conveying,
}

impl Completion {
    /// Of an instance with this number of workers; what `before` has measured stays while the settings do.
    #[must_use]
    pub fn new(
        nf_type: &str,
        instance: &str,
        settings: &Conveying,
        workers: usize,
        before: Option<&Self>,
    ) -> Self {
        if let Some(before) = before.filter(|before| before.settings == *settings) {
            return before.clone();
        }
        let scope = Scope::NfInstance(instance.to_owned(), None);
        Self {
            server: format!("{nf_type}-{instance}").into(),
            own_load: Arc::new(OwnLoad::new(settings, scope, workers)),
            settings: settings.clone(),
        }
    }

    /// A worker has sampled its load.
    pub fn measured(&self, worker: usize, shedder: &Shedder) {
        let percent = |value: f64| value.clamp(0.0, 100.0).round() as u8;
        let (load, reduction) = (percent(shedder.load()), percent(shedder.reduction() * 100.0));
        self.own_load.update(worker, load, reduction, Instant::now());
    }

    /// Adds what an answer lacks: `Server` where it refuses or fails (TS 29.500 §5.2.2.2), `Retry-After` where that is for now
    /// (§6.4.2.3), load and overload where the settings want them (§6.3, §6.4).
    pub fn complete(&self, response: &mut Response) {
        let status = response.status();
        let headers = response.headers_mut();
        if (status.is_client_error() || status.is_server_error()) && !headers.contains(SERVER) {
            headers.set_printed(SERVER, &self.server);
        }
        let for_now = matches!(
            status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        );
        if for_now && !headers.contains(RETRY_AFTER) {
            headers.set_number(RETRY_AFTER, RETRY_SECONDS);
        }
        if self.settings.lci || self.settings.oci {
            self.own_load.add_to(headers);
        }
    }
}
