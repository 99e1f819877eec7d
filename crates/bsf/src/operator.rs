//! What an operator has set on this instance, in the store: it outlives a restart.

use serde::{Deserialize, Serialize};
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

use crate::state::State;

/// What an operator has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperatorSettings {
    /// The instance that it holds for: others may use the same store.
    nf_instance_id: String,
    pub(crate) state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    congestion_control: Option<Congestion>,
}

/// Congestion control as an operator has switched it, and as it was configured then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Congestion {
    on: bool,
    configured: bool,
}

impl OperatorSettings {
    pub(crate) fn new(nf_instance_id: &str) -> Self {
        Self {
            nf_instance_id: nf_instance_id.to_owned(),
            state: State::Serving,
            congestion_control: None,
        }
    }

    /// Whether congestion control is on, where the configuration says `configured`: what an operator has switched holds until
    /// the configuration says something else than it did then.
    pub(crate) fn congestion_control(&self, configured: bool) -> bool {
        match self.congestion_control {
            Some(congestion) if congestion.configured == configured => congestion.on,
            _ => configured,
        }
    }

    pub(crate) fn switch_congestion_control(&mut self, on: bool, configured: bool) {
        self.congestion_control = Some(Congestion { on, configured });
    }
}

impl Record for OperatorSettings {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "bsf_operator",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(self.nf_instance_id.as_bytes())
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        // Texts and flags: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_configuration_ends_what_an_operator_has_switched() {
        let mut settings = OperatorSettings::new("0c6a2e4f-7d7e-4a53-9f36-6f1f0a8d8030");
        assert!(settings.congestion_control(true) && !settings.congestion_control(false));
        settings.switch_congestion_control(true, false);
        let mut bytes = Vec::new();
        settings.encode(&mut bytes);
        assert_eq!(
            OperatorSettings::decode(&settings.key(), &bytes).unwrap(),
            settings
        );
        assert!(settings.congestion_control(false));
        settings.switch_congestion_control(false, false);
        assert!(settings.congestion_control(true));
    }
}
