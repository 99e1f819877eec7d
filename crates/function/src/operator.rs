//! What an operator has set on an instance of a function, in the store: it outlives a restart.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Batch, Condition, DecodeError, IndexKeys, Key, Record, Store, TableSchema};

use crate::sbi::State;

/// A function whose operator's settings are stored.
pub trait Operated: Send + Sync + 'static {
    /// The table of the settings, without indexes.
    const TABLE: &'static TableSchema;
}

/// What an operator has set on an instance of the function `F`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound = "")]
pub struct OperatorSettings<F> {
    /// The instance that it holds for: others may use the same store.
    nf_instance_id: String,
    /// The operational state.
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    congestion_control: Option<Congestion>,
    #[serde(skip)]
    function: PhantomData<fn() -> F>,
}

/// Makes a change of an operator; answers with the state after it. The change is carried out also where the operator's
/// connection ends before: half of it would be stored and not apply.
pub async fn answer_after(
    change: impl Future<Output = Result<(), store::Error>> + Send + 'static,
    state: impl FnOnce() -> Value,
) -> Response {
    let why = match tokio::spawn(change).await {
        Ok(Ok(())) => return axum::Json(state()).into_response(),
        Ok(Err(error)) => error.to_string(),
        Err(panicked) => panicked.to_string(),
    };
    let text = format!("nothing has changed: {why}\n");
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// Congestion control as an operator has switched it, and as it was configured then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Congestion {
    on: bool,
    configured: bool,
}

impl<F> OperatorSettings<F> {
    /// What holds for an instance while no operator has set anything.
    #[must_use]
    pub fn new(nf_instance_id: &str) -> Self {
        Self {
            nf_instance_id: nf_instance_id.to_owned(),
            state: State::Serving,
            congestion_control: None,
            function: PhantomData,
        }
    }

    /// Whether congestion control is on, where the configuration says `configured`: what an operator has switched holds until
    /// the configuration says something else than it did then.
    #[must_use]
    pub fn congestion_control(&self, configured: bool) -> bool {
        match self.congestion_control {
            Some(congestion) if congestion.configured == configured => congestion.on,
            _ => configured,
        }
    }

    /// Switches congestion control, while the configuration says `configured`.
    pub fn switch_congestion_control(&mut self, on: bool, configured: bool) {
        self.congestion_control = Some(Congestion { on, configured });
    }
}

impl<F: Operated> OperatorSettings<F> {
    /// What an operator has set on an instance.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(store: &Store, nf_instance_id: &str) -> Result<Self, store::Error> {
        let stored = store.table::<Self>()?.get(nf_instance_id.as_bytes()).await?;
        Ok(stored.map_or_else(|| Self::new(nf_instance_id), |stored| stored.record))
    }

    /// Writes it, durably.
    ///
    /// # Errors
    /// When it was not written.
    pub async fn write(&self, store: &Store) -> Result<(), store::Error> {
        let mut batch = Batch::default();
        batch.put(&store.table::<Self>()?, self, Condition::Always);
        store.commit(batch).await.map(drop)
    }
}

impl<F> Clone for OperatorSettings<F> {
    fn clone(&self) -> Self {
        Self {
            nf_instance_id: self.nf_instance_id.clone(),
            function: PhantomData,
            ..*self
        }
    }
}

impl<F> fmt::Debug for OperatorSettings<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorSettings")
            .field("nf_instance_id", &self.nf_instance_id)
            .field("state", &self.state)
            .field("congestion_control", &self.congestion_control)
            .finish()
    }
}

impl<F: Operated> Record for OperatorSettings<F> {
    const TABLE: &'static TableSchema = F::TABLE;

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

    struct Any;

    impl Operated for Any {
        const TABLE: &'static TableSchema = &TableSchema {
            name: "any_operator",
            indexes: &[],
            by_modified: false,
            sql: None,
        };
    }

    #[test]
    fn a_changed_configuration_ends_what_an_operator_has_switched() {
        let mut settings = OperatorSettings::<Any>::new("0c6a2e4f-7d7e-4a53-9f36-6f1f0a8d8030");
        assert!(settings.congestion_control(true) && !settings.congestion_control(false));
        settings.state = State::Partial;
        settings.switch_congestion_control(true, false);
        let mut bytes = Vec::new();
        settings.encode(&mut bytes);
        let mut settings = OperatorSettings::<Any>::decode(&settings.key(), &bytes).unwrap();
        assert_eq!(settings.state, State::Partial);
        assert!(settings.congestion_control(false));
        settings.switch_congestion_control(false, false);
        assert!(settings.congestion_control(true));
    }

    #[tokio::test]
    async fn a_change_is_carried_out_also_when_its_operator_is_gone() {
        let (commit, committed) = tokio::sync::oneshot::channel::<()>();
        let (apply, applied) = tokio::sync::oneshot::channel();
        let change = async move {
            committed.await.expect("the test holds the other end");
            apply.send(()).expect("the test waits");
            Ok(())
        };
        let mut answer = Box::pin(answer_after(change, || Value::Null));
        tokio::select! {
            biased;
            _ = &mut answer => panic!("the store has not answered"),
            () = std::future::ready(()) => {}
        }
        drop(answer);
        commit.send(()).expect("the change still waits for the store");
        applied.await.expect("the change is carried out");
    }
}
