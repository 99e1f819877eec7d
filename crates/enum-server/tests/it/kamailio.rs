//! Kamailio's module `enum` as a client: it makes Request-URIs of answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use enum_server::config::{Profile, Record};
use settings::{Listen, Period};
use testpeer::kamailio::EnumProxy;
use testpeer::sip::Sip;

use crate::support::{config, numbers, range, record, start, until};

const APEX: &str = "e164enum.net";

/// An address of loopback whose port 53 is free; none where this user may not listen there.
fn name_server() -> Option<IpAddr> {
    let [high, low] = free_ports::port().unwrap().to_be_bytes();
    let address = IpAddr::V4(Ipv4Addr::new(127, 53, high, low));
    match UdpSocket::bind((address, 53)) {
        Ok(_) => Some(address),
        Err(error) => {
            testpeer::skip::unavailable(&format!("port 53: {error}"));
            None
        }
    }
}

/// Records of one number whose order in the answer is not that of a list: preferences, services, a second order.
fn several() -> Profile {
    let sip = |order: u16, preference: u16, host: &str| Record {
        order,
        ..record(preference, "E2U+sip", &format!("!^.*$!sip:+{{number}}@{host}!"))
    };
    Profile {
        name: "several".to_owned(),
        ttl: Period::from_secs(60),
        records: vec![
            sip(100, 20, "second.example.net"),
            record(5, "E2U+mailto", "!^.*$!mailto:info@example.net!"),
            sip(100, 10, "first.example.net"),
            sip(200, 1, "third.example.net"),
        ],
    }
}

/// The Request-URI that Kamailio makes of a number, and its further branches with their q; the status alone where it finds none.
fn resolved(sip: &Sip, proxy: &EnumProxy, number: &str, service: Option<&str>) -> Vec<String> {
    let id = format!("call{number}{}", service.unwrap_or_default());
    let service = service.map_or(String::new(), |service| format!("X-Service: {service}\r\n"));
    let request = format!(
        "OPTIONS sip:+{number}@proxy.example.net SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bK{id}\r\nMax-Forwards: 70\r\n\
         From: <sip:a@example.net>;tag=a\r\nTo: <sip:+{number}@proxy.example.net>\r\nCall-ID: {id}\r\nCSeq: 1 OPTIONS\r\n\
         {service}Content-Length: 0\r\n\r\n",
        sip.address
    );
    sip.send(proxy.sip, &request);
    let answer = sip.receive("SIP/2.0", &id);
    let values = answer.split("\r\n").filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        matches!(name, "X-Target" | "X-Branch").then(|| value.to_owned())
    });
    let values: Vec<String> = values.collect();
    if values.is_empty() {
        let status = answer.split(' ').nth(1).unwrap_or_default();
        return vec![status.to_owned()];
    }
    values
}

#[test]
fn kamailio_makes_the_request_uri_that_the_profile_says() {
    let Some(address) = name_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(&path, "msisdn,43112,ported,rn=+4366099\nmsisdn,43113,ported\n");
    let mut wanted = config();
    wanted.listen = Listen(vec![SocketAddr::new(address, 53)]);
    wanted.numbers = Some(path);
    wanted.profiles.push(several());
    wanted.trees[0].ranges.push(range("1", "several", 5, 5));
    wanted.trees[0].ranges.push(range("2", "many", 5, 5));
    let _server = start(wanted);
    let Some(proxy) = EnumProxy::start(folder.path(), address, APEX) else {
        return;
    };
    let sip = Sip::bind("caller");
    until_it_answers(&proxy);
    let ask = |number, service| resolved(&sip, &proxy, number, service);
    // From a range, and one whose entry lacks a parameter: what is left of the profile.
    assert_eq!(ask("436601234567", None), ["sip:+436601234567@ims.example.net"]);
    assert_eq!(ask("43113", None), ["sip:+43113@ims.example.net"]);
    // Ported: the URI of the number with its routing number is of another service (RFC 4769), whose name Kamailio takes with the
    // subtype that it knows, or in its form for several.
    assert_eq!(ask("43112", None), ["sip:+43112@ims.example.net"]);
    assert_eq!(ask("43112", Some("+pstn:tel")), ["tel:+43112;npdi;rn=+4366099"]);
    assert_eq!(ask("43113", Some("+pstn:tel")), ["404"]);
    // By order, then by preference, whatever the order in the profile; each further one has a lower q (of 1000).
    assert_eq!(
        ask("12345", None),
        [
            "sip:+12345@first.example.net",
            "sip:+12345@second.example.net 980",
            "sip:+12345@third.example.net 970",
        ]
    );
    // Twelve records: more than 512 octets, so the resolver asks again over TCP.
    let many = ask("23456", None);
    assert_eq!(many.len(), 12, "{many:?}");
    assert_eq!(many[0], "sip:+23456@proxy-0.ims.mnc001.mcc232.3gppnetwork.org");
    // Unknown (NXDOMAIN), incomplete (NODATA), carved out of a range, one digit too many.
    for unknown in ["44123456", "4366", "436609912345", "4366012345678901"] {
        assert_eq!(ask(unknown, None), ["404"], "{unknown}");
    }
}

/// Kamailio answers requests once it has started: those before are lost.
fn until_it_answers(proxy: &EnumProxy) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let from = socket.local_addr().unwrap();
    let request = format!(
        "OPTIONS sip:a@proxy.example.net SIP/2.0\r\nVia: SIP/2.0/UDP {from};branch=z9hG4bKup\r\nMax-Forwards: 70\r\n\
         From: <sip:a@example.net>;tag=a\r\nTo: <sip:b@example.net>\r\nCall-ID: up\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
    );
    until("Kamailio does not answer", || {
        // Until it listens, the next receive reports that it does not.
        let _ = socket.send_to(request.as_bytes(), proxy.sip);
        socket.recv(&mut [0; 2048]).is_ok()
    });
}
