//! InitialDP for prepaid subscribers, at the wire.

use ss7_proto::m3ua::MessageType;
use ss7_proto::sccp::{Address, Format, ReturnCause};
use stp::config::{NextRouting, Prepaid, Subscriber};

use crate::calls::{CAP_2, answered, argument, begin, calls, party, stp_with};
use crate::support::{Asp, OWN, data};
use crate::translation::{parsed, subsystem, title, to_stp, udt};

/// Rules for service keys 100 to 102.
fn with_rules(config: &mut stp::Config) {
    let rule = |key, number, group: Option<&str>| Prepaid {
        service_keys: vec![key],
        number,
        group: group.map(str::to_owned),
    };
    config.number_services.routing = NextRouting::Subsystem;
    config.number_services.calls.prepaid = vec![
        rule(100, Subscriber::Calling, None),
        rule(101, Subscriber::Called, None),
        rule(100, Subscriber::Imsi, None),
        rule(102, Subscriber::Calling, Some("scp")),
    ];
}

#[test]
fn initial_dp_of_prepaid_subscribers_goes_to_their_service_control_point() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), with_rules);
    let at = stp.addresses()[0];
    let (mut one, mut three) = (Asp::active(at, 11, 11), Asp::active(at, 13, 13));
    let (own, by_title, ssp) = (
        subsystem(146, Some(OWN)),
        title("4367099", 146),
        subsystem(146, None),
    );
    let (mine, other) = (party(4, "43660123"), party(4, "43664567"));
    let imsi = [0x32, 0x12, 0, 0, 0, 0, 0, 0xf1];
    let key = |key: u8, octets: Vec<u8>| {
        let mut octets = octets;
        octets[4] = key;
        octets
    };
    let by_calling = argument(&[(&[0x82], &other), (&[0x83], &mine)]);
    let by_imsi = argument(&[(&[0x82], &other), (&[0x83], &other), (&[0x9f, 0x32], &imsi)]);
    let by_called = key(101, argument(&[(&[0x82], &mine)]));
    let by_rule = key(102, argument(&[(&[0x82], &other)]));
    // InitialDPSMS: the calling number is an address of MAP.
    let short = argument(&[(&[0x82], &[0x91, 0x34, 0x66, 0x10, 0x32])]);
    for (operation, argument) in [
        (0, by_calling),
        (0, by_imsi),
        (0, by_called),
        (0, by_rule),
        (60, short),
    ] {
        for called in [&own, &by_title] {
            let request = begin(CAP_2, operation, &argument);
            one.send(&to_stp(11, 1, &udt(called, &ssp, &request)));
            let received = three.expect(MessageType::Data);
            let relayed = parsed(&received);
            assert_eq!((data(&received).opc.0, data(&received).dpc.0), (OWN, 3));
            assert_eq!(relayed.data, request);
            let called = Address::parse(relayed.called, Format::Itu).unwrap();
            assert_eq!((called.route_on_title, called.ssn), (false, Some(146)));
            // The answer goes to the switch.
            let calling = Address::parse(relayed.calling, Format::Itu).unwrap();
            assert_eq!(calling.point_code.map(|code| code.0), Some(1));
        }
    }
    assert_eq!(calls(&stp, "query", "prepaid"), 10.0);
    // Another service key, and numbers without a service control point: the query is answered.
    for argument in [
        key(99, argument(&[(&[0x82], &other), (&[0x83], &mine)])),
        argument(&[(&[0x82], &mine), (&[0x83], &other)]),
        key(101, argument(&[(&[0x82], &other)])),
    ] {
        answered(&mut one, &begin(CAP_2, 0, &argument));
    }
    assert_eq!(calls(&stp, "query", "prepaid"), 10.0);
}

/// Q.714 §4: what cannot be delivered returns to the switch, which has a default for the call.
#[test]
fn initial_dp_returns_while_its_service_control_point_is_unreachable() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), with_rules);
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mine = party(4, "43660123");
    let request = begin(CAP_2, 0, &argument(&[(&[0x83], &mine)]));
    let own = subsystem(146, Some(OWN));
    one.send(&to_stp(11, 1, &udt(&own, &subsystem(146, Some(1)), &request)));
    let received = one.expect(MessageType::Data);
    let returned = parsed(&received);
    assert_eq!(returned.return_cause(), Some(ReturnCause::MTP_FAILURE));
    assert_eq!((returned.calling, returned.data), (&own[..], &request[..]));
}
