//! What the threads of an SCP share.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use routing::network::Network;
use sbi::tls::ClientTls;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::config::Config;
use crate::pipeline::{self, Question, Shared};

/// What the threads of an SCP share.
pub struct Scp {
    pub(crate) shared: Shared,
    pub(crate) client_tls: Option<ClientTls>,
    /// Load of this SCP in percent, for the own NF profile.
    pub(crate) load: Arc<AtomicU8>,
    /// The settings in effect, for the thread that learns the network.
    pub(crate) settings: watch::Sender<Arc<Config>>,
    pub(crate) questions: mpsc::Sender<Question>,
    /// Taken by the first worker, which answers them.
    pub(crate) asked: Mutex<Option<mpsc::Receiver<Question>>>,
    /// Replaced feeds, until they have sent their remaining copies.
    pub(crate) retiring: Mutex<Vec<JoinHandle<()>>>,
}

impl Scp {
    /// The network as of now.
    #[must_use]
    pub fn network(&self) -> Arc<Network> {
        self.shared.network.load_full()
    }

    /// Every service instance it could send to, in the order of service, priority and distance.
    #[must_use]
    pub fn routes(&self) -> Value {
        pipeline::routes(&self.shared.network.load(), &self.shared.live.load())
    }

    /// Explains the route of a request. `asked` are `method` and `path`, `apiroot`, `nfinst`, `nfset`,
    /// headers, and discovery parameters. The steps of the first worker answer, by what it knows of producers.
    pub fn why(&self, asked: &[(String, String)]) -> impl Future<Output = Value> + Send + use<> {
        let question = Question::new(asked);
        let questions = self.questions.clone();
        async move {
            let (question, answered) = match question {
                Ok(question) => question,
                Err(fault) => return json!({"error": fault}),
            };
            if questions.try_send(question).is_err() {
                return json!({"error": "too many requests of scp why are pending, or the SCP is stopping"});
            }
            let stopping = |_| json!({"error": "the SCP is stopping"});
            answered.await.unwrap_or_else(stopping)
        }
    }

    /// Group, rule and number of messages to which each mediation rule has applied.
    #[must_use]
    pub fn mediation(&self) -> Vec<(String, String, u64)> {
        let live = self.shared.live.load();
        let applied = live.engine.applied();
        applied
            .map(|(group, rule, count)| (group.to_owned(), rule.to_owned(), count))
            .collect()
    }
}
