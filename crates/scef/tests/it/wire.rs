//! curl as SCS/AS, and tshark as the judge of each Diameter message.

use std::process::Command;

use diameter::proto::MessageMut;
use diameter::proto::known::{self, application, command};
use serde_json::json;
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::network::{Node, put_location, reference_of};
use crate::support::{
    CONFIGURATIONS, SUBSCRIPTIONS, TRIGGERS, configuration, data, local, path_of, server, start,
    subscription, trigger,
};
use crate::tsp;

#[test]
fn curl_subscribes_and_reads() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({})).to_string();
        let uri = format!("{}{SUBSCRIPTIONS}", scef.api.origin);
        let arguments = [
            "--http2-prior-knowledge",
            "-s",
            "-i",
            "-H",
            "content-type: application/json",
            "-d",
            &body,
            &uri,
        ]
        .map(str::to_owned);
        let curl = tokio::task::spawn_blocking(move || {
            let mut command = Command::new("curl");
            testpeer::skip::output(command.args(arguments))
        });
        let served = tokio::time::timeout(std::time::Duration::from_secs(20), hss.configure());
        let (output, served) = tokio::join!(curl, served);
        let Some(output) = output.unwrap() else { return };
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(served.is_ok(), "{text}");
        assert!(
            text.starts_with("HTTP/2 201") && text.contains("location: "),
            "{text}"
        );
        scef.stop();
    });
}

#[test]
fn tshark_reads_each_message() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let mut messages: Vec<MessageMut> = Vec::new();
        let location = json!({"monitoringType": "LOCATION_REPORTING", "monitorExpireTime": "2100-01-01T00:00:00Z",
            "accuracy": "CGI_ECGI", "mtcProviderId": "meters"});
        let body = subscription(&server.root(), &location);
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&got);
        let report = hss.report(application::S6T, 7, reference_of(&cir), put_location);
        messages.extend([cir, hss.ask(&report).await]);
        let body = configuration(&server.root(), &json!({"duration": "2100-01-01T00:00:00Z"}));
        let (got, nir) = tokio::join!(scef.api.post(CONFIGURATIONS, &body), hss.authorize());
        let path = path_of(&got);
        messages.push(nir);
        let establish = mme.establish();
        messages.push(mme.ask(&establish).await);
        let uplink = mme.request((command::MO_DATA, application::T6A), 2, |out| {
            out.put(known::NON_IP_DATA, &[1, 2, 3]);
        });
        messages.push(mme.ask(&uplink).await);
        let downlinks = format!("{path}/downlink-data-deliveries");
        let answer = async {
            let tdr = mme.downlink().await;
            mme.answer(&tdr, |_| {}).await;
            tdr
        };
        let (_, tdr) = tokio::join!(scef.api.post(&downlinks, data("AAAA", &json!({}))), answer);
        let (_, release) = tokio::join!(scef.api.delete(&path), mme.expect(command::CONNECTION_MANAGEMENT));
        messages.extend([tdr, release]);
        let mut sms_sc = Node::sms_sc(scef.diameter()).await;
        let taken = async {
            let sir = hss.locate_for_trigger(None).await;
            [sir, sms_sc.accept().await]
        };
        let body = trigger(&server.root(), &json!({}));
        let (_, taken) = tokio::join!(scef.api.post(TRIGGERS, &body), taken);
        let report = sms_sc.delivery(3, taken[1].require(known::REFERENCE_NUMBER).unwrap(), 2);
        messages.extend(taken);
        messages.push(sms_sc.ask(&report).await);
        let mut scs = Node::scs(scef.diameter()).await;
        let dar = tsp::dar(&scs, tsp::TRIGGER, 9, None);
        let (daa, _, dtr) = tokio::join!(scs.ask(&dar), hss.locate_for_trigger(None), sms_sc.accept());
        let report = sms_sc.delivery(4, dtr.require(known::REFERENCE_NUMBER).unwrap(), 2);
        sms_sc.ask(&report).await;
        messages.extend([daa, scs.expect(command::DEVICE_NOTIFICATION).await]);
        scef.stop();

        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("scef.pcap");
        std::fs::write(&file, pcap(&messages)).unwrap();
        let Some(complaints) = tshark(&["-Y", COMPLAINTS], &file) else {
            return;
        };
        assert_eq!(complaints, "");
        let fields = ["-Y", "diameter", "-T", "fields", "-e", "diameter.cmd.code"];
        let codes = tshark(&fields, &file).unwrap();
        assert_eq!(codes.lines().count(), messages.len(), "{codes}");
    });
}

/// A capture with these messages over SCTP (link type 248), one a packet.
fn pcap(messages: &[MessageMut]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 0xffff, 248] {
        file.extend(word.to_ne_bytes());
    }
    // Major and minor version are halves.
    file[4..8].copy_from_slice(&[2_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat());
    for (number, message) in messages.iter().enumerate() {
        let data = message.as_bytes();
        let length = 16 + data.len();
        let mut packet = Vec::new();
        for port in [3868_u16, 3868] {
            packet.extend(port.to_be_bytes());
        }
        packet.extend([0_u8; 8]);
        // A whole DATA chunk with payload protocol 46, Diameter.
        packet.extend([0, 3]);
        packet.extend((length as u16).to_be_bytes());
        packet.extend((number as u32).to_be_bytes());
        packet.extend([0_u8; 4]);
        packet.extend(46_u32.to_be_bytes());
        packet.extend(data);
        let captured = packet.len() as u32;
        for word in [0, 0, captured, captured] {
            file.extend(word.to_ne_bytes());
        }
        file.extend(packet);
    }
    file
}
