//! Headers of a forwarded request that describe its route: sender and receiver (`3gpp-Sbi-NF-Peer-Info`), and whether
//! it is a retransmission (`3gpp-Sbi-Request-Info`).

use sbi::Fields;
use sbi::headers::{NfPeerInfo, SbiHeader as _, names};

use super::message::Target;

/// Adds to `3gpp-Sbi-Request-Info` that the request is a retransmission, to this producer or to another; the values of
/// the consumer stay.
pub(super) fn say_retransmitted(headers: &mut Fields) {
    const SAID: &str = "retrans=true";
    let said = headers
        .get(names::REQUEST_INFO)
        .and_then(|value| value.to_str().ok());
    match said.map(str::to_owned) {
        Some(said) if said.to_ascii_lowercase().contains(SAID) => {}
        Some(said) => {
            headers.set_printed(names::REQUEST_INFO, format_args!("{said}; {SAID}"));
        }
        None => {
            headers.set_printed(names::REQUEST_INFO, SAID);
        }
    }
}

/// Names this SCP as the sender in `3gpp-Sbi-NF-Peer-Info`, and the next SCP or the producer as the receiver; the
/// consumer stays as it is named.
pub(super) fn name_peers(headers: &mut Fields, own: &str, target: &Target, hop: usize) {
    let Ok(Some(NfPeerInfo(mut peers))) = NfPeerInfo::of(headers) else {
        return;
    };
    peers.retain(|(kind, _)| kind.starts_with("src") && kind != "srcscp" && kind != "srcsepp");
    peers.push(("srcscp".to_owned(), own.to_owned()));
    match (target.hop(hop), &target.service) {
        (Some(hop), _) => peers.push(("dstscp".to_owned(), format!("SCP-{}", hop.origin.host()))),
        (None, Some(service)) => {
            peers.push(("dstinst".to_owned(), service.producer.id.to_string()));
            peers.push(("dstservinst".to_owned(), service.service().instance.to_string()));
        }
        (None, None) => {}
    }
    NfPeerInfo(peers).set_in(headers);
}
