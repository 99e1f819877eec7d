//! Connections of devices: which MME has one, and how one ends.

use diameter::proto::known;
use serde_json::json;

use crate::network::Node;
use crate::support::{configured, local, notified, server, start};

const SUCCESS: (u32, u32) = (0, 2001);
const NOT_CONNECTED: (u32, u32) = (known::VENDOR_3GPP, 5651);
const ESTABLISH: u32 = 0;
const RELEASE: u32 = 1;
const UPDATE: u32 = 2;

#[test]
fn an_mme_that_does_not_have_the_connection_neither_uses_nor_releases_it() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let mut other = Node::mme_named(scef.diameter(), "mme2.example.org").await;
        configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        assert_eq!(other.uplink(b"forged", 1).await, NOT_CONNECTED);
        assert_eq!(other.manage(RELEASE, 2).await, NOT_CONNECTED);
        assert_eq!(mme.uplink(b"first", 2).await, SUCCESS);
        // The device has moved: a CMR of the new MME says so.
        assert_eq!(other.manage(UPDATE, 3).await, SUCCESS);
        assert_eq!(mme.uplink(b"late", 3).await, NOT_CONNECTED);
        assert_eq!(mme.manage(RELEASE, 4).await, NOT_CONNECTED);
        assert_eq!(other.uplink(b"second", 4).await, SUCCESS);
        let seen = notified(&server, 2).await;
        let octets: Vec<_> = seen.iter().map(|one| &one["data"]).collect();
        assert_eq!(octets, [&json!("Zmlyc3Q="), &json!("c2Vjb25k")]);
        scef.stop();
    });
}
