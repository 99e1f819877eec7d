//! What `signalbox up` makes of a configuration: functions of one process find each other, and are secure where that is
//! wanted.

use std::sync::{Arc, OnceLock};

use crate::config::Config;
use crate::secure::{Secure, register_last};

/// How a configuration is adapted, whenever it is read.
pub(crate) struct Core {
    /// Whether functions find each other; otherwise the configuration stays as it is.
    joined: bool,
    secure: Option<Arc<Secure>>,
    nrf: OnceLock<String>,
    bsf: OnceLock<String>,
}

impl Core {
    pub(crate) fn new(joined: bool, secure: Option<Arc<Secure>>) -> Self {
        Self {
            joined,
            secure,
            nrf: OnceLock::new(),
            bsf: OnceLock::new(),
        }
    }

    /// The NRF of this process listens here.
    pub(crate) fn found_nrf(&self, root: Option<&str>) {
        let Some(root) = root.filter(|_| self.joined) else {
            return;
        };
        // It listens at one place as long as the process runs.
        let _ = self.nrf.set(root.to_owned());
        if let Some(secure) = &self.secure {
            secure.found_nrf(root);
        }
    }

    /// The BSF of this process listens here.
    pub(crate) fn found_bsf(&self, root: Option<&str>) {
        if let Some(root) = root.filter(|_| self.joined) {
            // It listens at one address as long as the process runs.
            let _ = self.bsf.set(root.to_owned());
        }
    }

    /// Changes a configuration to what runs here.
    pub(crate) fn adapt(&self, config: &mut Config) {
        // A PCF without a BSF registers its bindings at the one beside it. With TLS, only `--secure` has certificates for both.
        let reachable = |root: &&String| self.secure.is_some() || root.starts_with("http://");
        let bsf = self.bsf.get().filter(reachable);
        if let Some(bsf) = bsf.filter(|_| config.pcf.bsf.api_roots.is_empty() && !config.pcf.bsf.discover) {
            config.pcf.bsf.api_roots = vec![bsf.clone()];
        }
        if let Some(secure) = &self.secure {
            return secure.apply(config);
        }
        // An SCP with the default settings of its NRF asks the one beside it, on whatever port that is.
        if let Some(nrf) = self.nrf.get()
            && config.scp.nrf.roots == scp::config::Nrf::default().roots
        {
            config.scp.nrf.roots = vec![nrf.clone()];
        }
        // A PCF without an NRF registers at the one beside it.
        if let Some(nrf) = self.nrf.get().filter(|_| config.pcf.nrf.api_roots.is_empty()) {
            register_last(&mut config.pcf, nrf);
        }
    }
}
