//! Diameter requests for other realms and other hosts (RFC 6733 §6.1.4 to §6.1.6).

use std::time::Duration;

use diameter::endpoint::{Endpoint, SendOptions, To};
use diameter::proto::{CommandFlags, Dictionary, MessageBuilder, text};

use crate::diameter::{AAR, CCR_I, Peer, peer};
use crate::support::{Pcf, local, start};

const PCF: &str = "pcf.example.org";

/// Sends a CCR or AAR with these AVPs of destination: the answer, and whether it has flag E.
async fn ask(peer: &Endpoint<Peer>, session: &str, request: &str, destination: &str) -> (String, bool) {
    let application = if request.starts_with("CCR") {
        16_777_238
    } else {
        16_777_236
    };
    let (head, body) = request.split_once('\n').unwrap();
    let text = format!(
        "{head} app={application} flags=RP {{\nSession-Id = \"{session}\"\nAuth-Application-Id = {application}\n\
         Origin-Host = \"pgw.example.org\"\nOrigin-Realm = \"example.org\"\n{destination}\n{body}\n}}"
    );
    let message = text::parse(&text, Dictionary::standard()).unwrap();
    let mut builder = MessageBuilder::request(message.command(), message.application());
    builder.append_encoded(message.avps().remaining());
    let options = SendOptions {
        deadline: Duration::from_secs(60),
        failover: false,
    };
    let message = builder.finish().unwrap();
    let answer = peer.request(To::Peer(PCF), message, options).await.unwrap();
    let is_error = answer.flags().contains(CommandFlags::ERROR);
    (text::print(&answer, Dictionary::standard()).to_string(), is_error)
}

async fn judge(pcf: &Pcf, cases: &[(&str, &str)]) {
    let pgw = peer("pgw.example.org", pcf).await;
    for (number, (destination, result)) in cases.iter().enumerate() {
        let avps = destination.replace('/', "\n");
        for (request, what) in [(CCR_I, "gx"), (AAR, "rx")] {
            let session = format!("pgw;{what};{number}");
            let (answer, is_error) = ask(&pgw, &session, request, &avps).await;
            assert!(
                answer.contains(result),
                "{what} {destination}: no {result} in\n{answer}"
            );
            assert_eq!(is_error, *result != "DIAMETER_SUCCESS", "{answer}");
        }
    }
}

#[test]
fn requests_for_other_realms_and_hosts_are_not_served() {
    local(async {
        let pcf = start(|_| {});
        let cases = [
            ("Destination-Realm = \"EXAMPLE.org\"", "DIAMETER_SUCCESS"),
            (
                "Destination-Realm = \"example.org\"/Destination-Host = \"PCF.example.org\"",
                "DIAMETER_SUCCESS",
            ),
            // By its own name it is reached whatever the realm (RFC 6733 §6.1.4).
            (
                "Destination-Realm = \"other.example\"/Destination-Host = \"pcf.example.org\"",
                "DIAMETER_SUCCESS",
            ),
            (
                "Destination-Realm = \"other.example\"",
                "DIAMETER_REALM_NOT_SERVED",
            ),
            (
                "Destination-Realm = \"sub.example.org\"",
                "DIAMETER_REALM_NOT_SERVED",
            ),
            (
                "Destination-Realm = \"other.example\"/Destination-Host = \"pcf.other.example\"",
                "DIAMETER_REALM_NOT_SERVED",
            ),
            (
                "Destination-Realm = \"example.org\"/Destination-Host = \"pcf2.example.org\"",
                "DIAMETER_UNABLE_TO_DELIVER",
            ),
        ];
        judge(&pcf, &cases).await;
        assert_eq!(pcf.running().count(pcf::Event::DiameterRefused), 8);
        assert_eq!(pcf.running().count(pcf::Event::GxCreated), 3);
    });
}

#[test]
fn further_realms_and_hosts_are_served_as_the_settings_have_it() {
    local(async {
        let pcf = start(|config| {
            config.diameter.served_realms = vec!["other.example".to_owned(), ".example.net".to_owned()];
            config.diameter.served_hosts = vec!["pcf2.example.org".to_owned()];
        });
        let cases = [
            ("Destination-Realm = \"other.example\"", "DIAMETER_SUCCESS"),
            ("Destination-Realm = \"ims.example.net\"", "DIAMETER_SUCCESS"),
            ("Destination-Realm = \"example.net\"", "DIAMETER_REALM_NOT_SERVED"),
            (
                "Destination-Realm = \"example.org\"/Destination-Host = \"pcf2.example.org\"",
                "DIAMETER_SUCCESS",
            ),
            (
                "Destination-Realm = \"example.org\"/Destination-Host = \"pcf3.example.org\"",
                "DIAMETER_UNABLE_TO_DELIVER",
            ),
        ];
        judge(&pcf, &cases).await;
    });
}
