//! Commands of a PCF to UEs (TS 24.501 annex D, TS 29.518 §5.2.2.3), for a thread that plays the UEs.

use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use bytes::Bytes;
use sbi_proto::multipart;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Notices;

/// UEs whose messages a PCF subscribes to, at most; with one more all of them are forgotten.
const MOST_UES: usize = 65_536;
/// Where commands wait.
const QUEUE: &str = "commands";
/// MANAGE UE POLICY COMMAND and MANAGE UE POLICY COMPLETE (TS 24.501 §D.6.1).
const COMMAND: u8 = 1;
const COMPLETE: u8 = 2;
/// `Content-Id` of an N1 message.
const N1: &str = "n1";

/// A command for a UE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Where the PCF takes the answer of the UE: the URI of its subscription.
    pub callback: String,
    /// Procedure transaction identity.
    pub pti: u8,
}

impl Command {
    /// The content type and the body of the notification that the UE has stored all sections (TS 29.518 §5.2.2.3.5, TS
    /// 24.501 §D.5.2).
    #[must_use]
    pub fn complete(&self) -> (String, Vec<u8>) {
        let data = format!(
            r#"{{"n1MessageContainer":{{"n1MessageClass":"UPDP","n1MessageContent":{{"contentId":"{N1}"}}}}}}"#
        );
        multipart::write(&[
            multipart::Part {
                content_type: "application/json",
                id: None,
                body: data.as_bytes(),
            },
            multipart::Part {
                content_type: "application/vnd.3gpp.5gnas",
                id: Some(N1),
                body: &[self.pti, COMPLETE],
            },
        ])
    }
}

/// Commands that wait for their UEs; bounded as [`Notices`] are.
#[derive(Debug, Default)]
pub struct Commands(Notices);

impl Commands {
    /// Takes the next command, for which it waits as long as `patience`.
    #[must_use]
    pub fn take(&self, patience: Duration) -> Option<Command> {
        serde_json::from_slice(&self.0.take(QUEUE, patience)?).ok()
    }

    fn put(&self, command: &Command) {
        let text = serde_json::to_vec(command).map(Bytes::from);
        // One that has no room is sent again by the PCF.
        let _ = text.map(|text| self.0.put(QUEUE, &text));
    }
}

/// What an AMF knows of UEs with a subscription of a PCF.
#[derive(Debug, Default)]
pub struct Ues {
    /// Where messages of a UE go, by its SUPI.
    callbacks: AHashMap<Box<str>, String>,
    commands: Arc<Commands>,
}

impl Ues {
    /// UEs that another thread plays.
    #[must_use]
    pub fn new(commands: Arc<Commands>) -> Self {
        Self {
            callbacks: AHashMap::new(),
            commands,
        }
    }

    /// Learns from a request that the AMF has answered.
    pub(crate) fn learn(&mut self, path: &str, body: &[u8]) {
        let Some((supi, rest)) = path
            .strip_prefix("/namf-comm/v1/ue-contexts/")
            .and_then(|rest| rest.split_once('/'))
        else {
            return;
        };
        match rest {
            "n1-n2-messages/subscriptions" => {
                let data: Value = serde_json::from_slice(body).unwrap_or_default();
                if let Some(callback) = data["n1NotifyCallbackUri"].as_str() {
                    if self.callbacks.len() >= MOST_UES {
                        self.callbacks.clear();
                    }
                    self.callbacks.insert(supi.into(), callback.to_owned());
                }
            }
            "n1-n2-messages" => {
                if let (Some(callback), Some(pti)) = (self.callbacks.get(supi), command(body)) {
                    let callback = callback.clone();
                    self.commands.put(&Command { callback, pti });
                }
            }
            _ => {}
        }
    }
}

/// The procedure transaction identity of a command in the body of a transfer. A request to a simulator has no header fields: the
/// boundary is that of the first line.
fn command(body: &[u8]) -> Option<u8> {
    let line = body.split(|byte| *byte == b'\r').next()?;
    let boundary = std::str::from_utf8(line).ok()?.strip_prefix("--")?;
    let parts = multipart::read(&format!("multipart/related; boundary=\"{boundary}\""), body).ok()?;
    let message = parts.iter().find(|part| part.content_type.contains("5gnas"))?;
    match message.body {
        [pti, COMMAND, ..] => Some(*pti),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UE: &str = "/namf-comm/v1/ue-contexts/imsi-001010000000001/n1-n2-messages";

    fn transfer(message: &[u8]) -> Vec<u8> {
        let part = |content_type, id, body| multipart::Part {
            content_type,
            id,
            body,
        };
        let json = part("application/json", None, b"{}");
        multipart::write(&[json, part("application/vnd.3gpp.5gnas", Some("n1"), message)]).1
    }

    #[test]
    fn a_command_waits_for_its_ue_with_the_address_of_the_answer() {
        let commands = Arc::new(Commands::default());
        let mut ues = Ues::new(commands.clone());
        let callback = "http://127.0.0.1:8040/signalbox-pcf/v1/ue-policy/7";
        // Without a subscription the answer has no address.
        ues.learn(UE, &transfer(&[0x80, COMMAND, 0, 0]));
        let subscription = format!(r#"{{"n1MessageClass":"UPDP","n1NotifyCallbackUri":"{callback}"}}"#);
        ues.learn(&format!("{UE}/subscriptions"), subscription.as_bytes());
        ues.learn(UE, &transfer(&[0x81, COMMAND, 0, 0]));
        // Other messages, and bodies that are none.
        for body in [
            transfer(&[0x82, 4]),
            transfer(&[]),
            b"--\r\n".to_vec(),
            Vec::new(),
        ] {
            ues.learn(UE, &body);
        }
        let command = commands.take(Duration::ZERO).unwrap();
        assert_eq!((command.callback.as_str(), command.pti), (callback, 0x81));
        assert_eq!(commands.take(Duration::ZERO), None);
        let (content_type, body) = command.complete();
        let parts = multipart::read(&content_type, &body).unwrap();
        assert_eq!(parts[1].body, [0x81, COMPLETE]);
        assert_eq!(parts[1].id, Some(N1));
    }
}
