//! What configurations name by file.

use std::sync::Arc;

use super::Installed;
use crate::config::{self, Config};
use crate::rbar::Rbar;

/// Loads what configurations name by file, and keeps it while neither the file nor its settings change: a
/// million ranges take seconds to read.
#[derive(Debug, Default)]
pub struct Loader {
    kept: Vec<(config::Rbar, Option<Stamp>, Arc<Rbar>)>,
}

/// When a file was written, and its length.
type Stamp = (std::time::SystemTime, u64);

fn stamp(settings: &config::Rbar) -> Option<Stamp> {
    let metadata = std::fs::metadata(settings.file.as_ref()?).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl Loader {
    pub(super) fn load(&mut self, config: &Config) -> Result<Vec<Installed>, String> {
        let mut kept = Vec::new();
        let mut all = Vec::new();
        for application in &config.applications {
            let Some(settings) = &application.rbar else {
                all.push(Installed::Empty);
                continue;
            };
            let now = stamp(settings);
            let known = self
                .kept
                .iter()
                .find(|(of, then, _)| of == settings && *then == now);
            let rbar = match known {
                Some((.., rbar)) => rbar.clone(),
                None => {
                    let loaded = Rbar::load(settings);
                    Arc::new(loaded.map_err(|reason| format!("application {}: {reason}", application.name))?)
                }
            };
            kept.push((settings.clone(), now, rbar.clone()));
            all.push(Installed::Rbar(rbar));
        }
        self.kept = kept;
        Ok(all)
    }

    /// Whether a file has changed since it was read.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.kept
            .iter()
            .any(|(settings, then, _)| settings.file.is_some() && stamp(settings) != *then)
    }
}
