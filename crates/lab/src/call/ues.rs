//! The UEs of calls: each stores the UE policy that the PCF commands it, and says so through its AMF (TS 24.501 annex D, TS
//! 29.518 §5.2.2.3.5).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Board;
use super::caller::Peers;
use crate::identity::Identity;
use loadgen::client::{Client, Request};
use simulators::{Command, Commands};

/// The UEs, and the AMF's connections to PCFs.
pub(crate) struct Ues {
    commands: Arc<Commands>,
    /// The AMF; absent in cleartext.
    amf: Option<Identity>,
    pcfs: BTreeMap<SocketAddr, Client>,
    patience: Duration,
}

impl Ues {
    pub(crate) fn new(board: &Board, peers: &Peers) -> Self {
        Self {
            commands: board.commands(),
            amf: peers.secure.as_ref().map(|secure| secure.amf.clone()),
            pcfs: BTreeMap::new(),
            patience: peers.patience,
        }
    }

    /// Answers the next command, for which it waits as long as `patience`. An association may have ended meanwhile, of which the PCF
    /// says 404: that is right as well.
    pub(crate) fn answer_next(&mut self, patience: Duration) -> Option<Result<(), String>> {
        let command = self.commands.take(patience)?;
        Some(match self.answer(&command) {
            Ok(200..=299 | 404) => Ok(()),
            Ok(status) => Err(format!("answered {status}")),
            Err(error) => Err(error),
        })
    }

    fn answer(&mut self, command: &Command) -> Result<u16, String> {
        let (pcf, path) =
            address(&command.callback).ok_or_else(|| format!("{} is not at an address", command.callback))?;
        let (content_type, body) = command.complete();
        let mut request = Request::new("POST", path).header("content-type", content_type);
        request.body = body.into();
        let mut client = match (self.pcfs.remove(&pcf), &self.amf) {
            (Some(client), _) => client,
            (None, Some(amf)) => amf
                .connect(pcf, self.patience)
                .map_err(|error| error.to_string())?,
            (None, None) => Client::connect(pcf, self.patience).map_err(|error| error.to_string())?,
        };
        let answers = client.exchange(&[request]).map_err(|error| error.to_string())?;
        // One that has failed is not used again.
        self.pcfs.insert(pcf, client);
        answers
            .first()
            .map(|answer| answer.status)
            .ok_or_else(|| "no answer".to_owned())
    }
}

/// The address and the path of a URI whose host is an address.
fn address(uri: &str) -> Option<(SocketAddr, String)> {
    let (authority, path) = uri.split_once("://")?.1.split_once('/')?;
    Some((authority.parse().ok()?, format!("/{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_has_an_address_and_a_path() {
        let found = address("https://127.0.0.1:8040/signalbox-pcf/v1/ue-policy/7").unwrap();
        assert_eq!(
            (found.0.port(), found.1.as_str()),
            (8040, "/signalbox-pcf/v1/ue-policy/7")
        );
        for odd in ["http://pcf:8040/x", "127.0.0.1:8040/x", "http://127.0.0.1:8040"] {
            assert!(address(odd).is_none(), "{odd}");
        }
    }
}
