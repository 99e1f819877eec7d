//! An MME that updates locations through the Diameter router (TS 29.272 §5.2.1), one request after the other.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use diameter_proto::known::application;

use crate::diameter_client::{DiameterClient, update_location};
use loadgen::diameter::Introduction;
use simulators::network::REALM;

/// The MME and its connection.
pub(super) struct Mme(DiameterClient);

impl Mme {
    /// Connects, and exchanges capabilities.
    pub(super) fn connect(router: SocketAddr, number: usize, patience: Duration) -> io::Result<Self> {
        let host = format!("mme{number:03}.{REALM}");
        let introduction = Introduction::new(host, REALM, application::S6A);
        DiameterClient::connect(router, introduction, None, patience).map(Self)
    }

    /// Sends an Update-Location-Request to the realm; the result of its answer.
    pub(super) fn update_location(&mut self, number: u32) -> io::Result<u32> {
        let request = update_location(self.0.own(), REALM, None, number);
        self.0.ask(request, number)
    }

    /// Answers watchdogs of the router that have come meanwhile.
    pub(super) fn attend(&mut self) -> io::Result<()> {
        self.0.attend()
    }
}
