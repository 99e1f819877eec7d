//! Diameter names of the PCFs of a set, for the agents of all workers (`PcfInfo`, TS 29.510 §6.1.6.2.20).

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bounded::{Cache, Limits};
use nrf_client::Nrfs;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait for the control thread, and sets that are remembered.
const QUESTIONS: usize = 256;
const SETS: usize = 4_096;
/// How long an answer holds, also one that there is none: PCFs of a set come and go.
const VALIDITY: Duration = Duration::from_secs(10);
/// How long an agent waits.
const PATIENCE: Duration = Duration::from_secs(2);

struct Question {
    set: String,
    hosts: oneshot::Sender<Arc<[String]>>,
}

/// Asks for the PCFs of a set, from any thread.
#[derive(Clone, Debug)]
pub(crate) struct Sets(mpsc::Sender<Question>);

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Question").field(&self.set).finish()
    }
}

/// The other end of [`Sets`].
#[derive(Debug)]
pub(crate) struct Questions(mpsc::Receiver<Question>);

impl Sets {
    pub(crate) fn new() -> (Self, Questions) {
        let (sender, receiver) = mpsc::channel(QUESTIONS);
        (Self(sender), Questions(receiver))
    }

    /// The DiameterIdentities of a set's PCFs, as the NRF orders them; empty when it knows none or does not answer.
    pub(crate) async fn diameter_hosts(&self, set: &str) -> Arc<[String]> {
        let (hosts, answer) = oneshot::channel();
        let set = set.to_owned();
        if self.0.try_send(Question { set, hosts }).is_err() {
            return Arc::default();
        }
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        answer.ok().and_then(Result::ok).unwrap_or_default()
    }
}

impl Questions {
    /// Answers until dropped.
    pub(crate) async fn answer(mut self, nrfs: Rc<Nrfs>) {
        let mut known: Cache<String, (Instant, Arc<[String]>)> = Cache::new(Limits::entries(SETS));
        while let Some(Question { set, hosts }) = self.0.recv().await {
            let now = Instant::now();
            let held = known.get_if(set.as_str(), |(until, _)| *until > now);
            let found = match held.map(|(_, found)| found.clone()) {
                Some(found) => found,
                None => {
                    let found = ask(&nrfs, &set).await;
                    known.insert(set, (Instant::now() + VALIDITY, found.clone()));
                    found
                }
            };
            // The agent may wait no longer.
            let _ = hosts.send(found);
        }
    }
}

async fn ask(nrfs: &Nrfs, set: &str) -> Arc<[String]> {
    if nrfs.is_empty() {
        return Arc::default();
    }
    let path = format!(
        "/nnrf-disc/v1/nf-instances?target-nf-type=PCF&requester-nf-type=BSF&target-nf-set-id={}",
        utf8_percent_encode(set, NON_ALPHANUMERIC)
    );
    let Some(body) = nrfs.get(&path).await else {
        tracing::warn!(set, "failed to discover the PCFs of a set");
        return Arc::default();
    };
    let found: Value = serde_json::from_slice(&body).unwrap_or_default();
    let instances = found.get("nfInstances").and_then(Value::as_array);
    instances.into_iter().flatten().filter_map(host_of).collect()
}

/// `rxDiamHost` of a profile's `pcfInfo`, or of the first entry of its `pcfInfoList`.
fn host_of(profile: &Value) -> Option<String> {
    let own = profile.get("pcfInfo").into_iter();
    let list = profile.get("pcfInfoList").and_then(Value::as_object);
    let all = own.chain(list.into_iter().flat_map(|list| list.values()));
    let mut hosts = all.filter_map(|info| info.get("rxDiamHost")?.as_str());
    hosts.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_stand_in_the_information_of_the_pcf() {
        let host = |profile: Value| host_of(&profile);
        assert_eq!(
            host(json!({"pcfInfo": {"rxDiamHost": "a.example"}})),
            Some("a.example".to_owned())
        );
        assert_eq!(
            host(json!({"pcfInfoList": {"1": {}, "2": {"rxDiamHost": "b.example"}}})),
            Some("b.example".to_owned())
        );
        assert_eq!(
            host(json!({"pcfInfo": {"rxDiamHost": 7}, "fqdn": "c.example"})),
            None
        );
    }
}
