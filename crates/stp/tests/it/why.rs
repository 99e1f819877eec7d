//! What `stp why` says of MSUs as they are copied from a capture.

use ss7_proto::m2pa::{self, Content};
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::Msu;
use ss7_proto::{Plan, PointCode};
use stp::config::{Action, Rule, ScreeningList};

use crate::support::{Asp, start};
use crate::translation::{translating, why, why_from};

/// An MSU of MTP3 or of a link of M2PA names no routing context: who asks names what it comes from.
#[test]
fn why_screens_what_comes_from_a_name() {
    let mut settings = translating();
    settings.screening = vec![ScreeningList {
        name: "calls".to_owned(),
        rules: vec![Rule {
            name: "none".to_owned(),
            action: Action::Block,
            service_indicators: vec![5],
            ..Rule::default()
        }],
        ..ScreeningList::default()
    }];
    settings.application_servers[0].screening = Some("calls".to_owned());
    let stp = start(settings);
    let _two = Asp::active(stp.addresses()[0], 12, 12);
    // ISUP of 1 to 2, alone and in M2PA.
    let mut msu = Vec::new();
    let si = ServiceIndicator::ISUP;
    let (opc, dpc) = (PointCode(1), PointCode(2));
    Msu {
        si,
        ni: 2,
        priority: 0,
        dpc,
        opc,
        sls: 0,
        user_data: b"call",
    }
    .write(Plan::Itu, &mut msu);
    let mut framed = Vec::new();
    let content = Content::UserData {
        priority: 0,
        msu: &msu,
    };
    m2pa::Message {
        bsn: 0,
        fsn: 0,
        content,
    }
    .write(&mut framed);
    for octets in [&msu, &framed] {
        assert_eq!(why(&stp, octets)["outcome"], "sent");
        let explained = why_from(&stp, "one,", octets);
        assert_eq!(explained["cause"], "screened");
        assert!(
            explained["steps"]
                .to_string()
                .contains("rule `none` of `calls` fits")
        );
        assert_eq!(why_from(&stp, "two,", octets)["outcome"], "sent");
    }
    let error = why_from(&stp, "three-,", &msu)["error"].to_string();
    assert!(error.contains("`three-` is neither"), "{error}");
    assert!(why(&stp, &framed[..16])["error"].to_string().contains("M2PA"));
}
