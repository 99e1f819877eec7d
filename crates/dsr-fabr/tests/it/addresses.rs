//! Where addresses are, and in which forms.

use std::sync::Arc;

use diameter_proto::{AvpWriter, MessageBuilder, known};
use dsr_fabr::Fabr;

use crate::support::{S6A, ULR, message, outcome, settings, written};

const IMSI: &str = "001010000000001";

/// A resolution by one entity and one AVP that knows one subscriber, at `a`; others are at `b`, and what is not valid is
/// dropped.
fn by(entity: &str, avps: &str, value: &str) -> Arc<Fabr> {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "s.csv", &format!("{entity},{value},a\n"));
    let config = settings(&format!(
        "file: {file}
lookups: [{{entities: [{{entity: {entity}, avps: [{avps}]}}], default: b}}]
onNoValidAddress: abandon
"
    ));
    Arc::new(Fabr::load(&config).unwrap())
}

/// `known`, `other` or `invalid`.
fn is(fabr: &Arc<Fabr>, fill: impl FnOnce(&mut MessageBuilder)) -> &'static str {
    match outcome(fabr, &message(S6A, ULR, fill)).as_str() {
        "hss.a.example/a.example" => "known",
        "hss.b.example/" => "other",
        "drop" => "invalid",
        other => panic!("{other}"),
    }
}

fn of_name(fabr: &Arc<Fabr>, name: &str) -> &'static str {
    is(fabr, |b| {
        b.put(known::USER_NAME, name);
    })
}

#[test]
fn an_imsi_is_read_in_each_form_of_3gpp() {
    let fabr = by("imsi", "userName", IMSI);
    for name in [
        IMSI,
        "001010000000001@ims.mnc001.mcc001.3gppnetwork.org",
        "001010000000001@IMS.MNC001.MCC001.3GPPNETWORK.ORG",
        "0001010000000001@nai.epc.mnc001.mcc001.3gppnetwork.org",
        "1001010000000001@wlan.mnc001.mcc001.3gppnetwork.org",
        "6001010000000001@nai.epc.mnc001.mcc001.3gppnetwork.org",
        "nai.epc.mnc001.mcc001.3gppnetwork.org!0001010000000001@nai.epc.mnc002.mcc002.3gppnetwork.org",
        "sip:001010000000001@ims.mnc001.mcc001.3gppnetwork.org",
        "SIP:001010000000001@ims.mnc001.mcc001.3gppnetwork.org:5060;transport=tcp",
        "001010000000001@operator.example",
    ] {
        assert_eq!(of_name(&fabr, name), "known", "{name}");
    }
    // An IMSI of 14 digits, with and without the digit before it.
    let short = by("imsi", "userName", "26201123456789");
    for name in [
        "26201123456789@ims.mnc001.mcc262.3gppnetwork.org",
        "026201123456789@nai.epc.mnc001.mcc262.3gppnetwork.org",
        "626201123456789@nai.epc.mnc001.mcc262.pub.3gppnetwork.org",
    ] {
        assert_eq!(of_name(&short, name), "known", "{name}");
    }
    for name in [
        "001010000000002",
        "001019",
        "00101001@ims.mnc001.mcc001.3gppnetwork.org",
    ] {
        assert_eq!(of_name(&fabr, name), "other", "{name}");
    }
    for name in [
        "",
        "00101",
        "1234567890123456",
        "00101000000000x",
        " 001010000000001",
        "4917012345678@operator.example",
        // A pseudonym and a fast re-authentication identity.
        "2001010000000001@nai.epc.mnc001.mcc001.3gppnetwork.org",
        "4001010000000001@nai.epc.mnc001.mcc001.3gppnetwork.org",
        "alice@ims.mnc001.mcc001.3gppnetwork.org",
        "@ims.mnc001.mcc001.3gppnetwork.org",
        "tel:+49170",
        "001010000000001@",
        "imsi-001010000000001",
        "\u{661}\u{661}\u{661}\u{661}\u{661}\u{661}",
        &"0".repeat(60_000),
        &format!("{IMSI}@{}", "a".repeat(60_000)),
    ] {
        let shown: String = name.chars().take(60).collect();
        let expected = if name == "001010000000001@" {
            "known"
        } else {
            "invalid"
        };
        assert_eq!(of_name(&fabr, name), expected, "{shown}");
    }
}

#[test]
fn an_msisdn_is_read_in_each_form() {
    let fabr = by("msisdn", "userName", "49170123");
    for name in [
        "49170123",
        "+49170123",
        "tel:+49170123",
        "TEL:+49-170.(123)",
        "tel:+49170123;ext=7",
        "sip:+49170123@ims.example;user=phone",
        "sips:%2B49170123@ims.example:5061",
        "sip:+49170123;phone-context=x@ims.example",
    ] {
        assert_eq!(of_name(&fabr, name), "known", "{name}");
    }
    for name in ["4917012", "tel:+49170124", "sip:+4@x"] {
        assert_eq!(of_name(&fabr, name), "other", "{name}");
    }
    for name in [
        "",
        "+",
        "tel:49170123",
        "tel:0170123;phone-context=+49",
        "sip:49170123@ims.example",
        "sip:alice@ims.example",
        "sip:ims.example",
        "49170123@ims.example",
        "++49170123",
        "4917012345678901",
        "49 170",
    ] {
        assert_eq!(of_name(&fabr, name), "invalid", "{name}");
    }
    let fabr = by("msisdn", "msisdn", "49170123");
    let of_bytes = |bytes: &[u8]| {
        is(&fabr, |b| {
            b.put(known::MSISDN, bytes);
        })
    };
    assert_eq!(of_bytes(&[0x94, 0x71, 0x10, 0x32]), "known");
    assert_eq!(of_bytes(&[0x94, 0x71, 0x10, 0x32, 0xff]), "known");
    assert_eq!(of_bytes(&[0x94, 0x71, 0x10, 0xf2]), "other");
    // A filler in the middle, other halves, too many, none.
    for wrong in [
        &[0x94, 0xf1, 0x10, 0x32][..],
        &[0x94, 0xa1],
        &[0x11; 8],
        &[0xff],
        &[],
    ] {
        assert_eq!(of_bytes(wrong), "invalid", "{wrong:x?}");
    }
}

#[test]
fn names_are_compared_in_one_form_and_realms_have_wildcards() {
    let fabr = by("impu", "publicIdentity", "sip:Alice@ims.example");
    let of_identity = |fabr: &Arc<Fabr>, text: &str| {
        is(fabr, |b| {
            b.put(known::PUBLIC_IDENTITY, text);
        })
    };
    for text in [
        "sip:alice@ims.example",
        "SIP:ALICE@IMS.EXAMPLE:5060;user=phone?subject=x",
        "sip:alice:secret@ims.example",
        "sip:%61lic%65@ims.example",
        "sip:%41LICE@%69ms.example",
    ] {
        assert_eq!(of_identity(&fabr, text), "known", "{text}");
    }
    for text in [
        "sips:alice@ims.example",
        "sip:alice@ims.example.org",
        "tel:+49170",
    ] {
        assert_eq!(of_identity(&fabr, text), "other", "{text}");
    }
    for text in ["alice@ims.example", "sip:", "sip:a lice@ims.example", "tel:", ""] {
        assert_eq!(of_identity(&fabr, text), "invalid", "{text}");
    }
    let fabr = by("impu", "publicIdentity", "sip:*@ims.example");
    assert_eq!(of_identity(&fabr, "sip:bob@ims.example"), "known");
    assert_eq!(of_identity(&fabr, "sips:bob@ims.example"), "other");
    assert_eq!(of_identity(&fabr, "sip:bob@a.ims.example"), "other");
    let fabr = by("impu", "publicIdentity", "tel:+49-170");
    assert_eq!(of_identity(&fabr, "tel:+49(170);ext=1"), "known");
    let fabr = by("nai", "userName", "*@iot.example");
    for name in [
        "device7@iot.example",
        "@IOT.example",
        "iot.example!device7@visited.example",
    ] {
        assert_eq!(of_name(&fabr, name), "known", "{name}");
    }
    assert_eq!(of_name(&fabr, "device7@visited.example"), "other");
    for name in ["device7", "a@b@c", "a@", "!a@b"] {
        assert_eq!(of_name(&fabr, name), "invalid", "{name}");
    }
    let fabr = by("impi", "userName", "alice@ims.example");
    assert_eq!(of_name(&fabr, "Alice@IMS.example"), "known");
    assert_eq!(of_name(&fabr, IMSI), "invalid");
    let fabr = by("externalIdentifier", "externalIdentifier", "dev7@iot.example");
    assert_eq!(
        is(&fabr, |b| {
            b.put(known::EXTERNAL_IDENTIFIER, "dev7@iot.example");
        }),
        "known"
    );
}

/// Subscription-Ids of these types and data.
fn subscriptions(ids: &[(i32, &str)], builder: &mut AvpWriter) {
    for (kind, data) in ids {
        builder.group(known::SUBSCRIPTION_ID, |group| {
            group
                .put(known::SUBSCRIPTION_ID_TYPE, *kind)
                .put(known::SUBSCRIPTION_ID_DATA, data);
        });
    }
}

#[test]
fn subscription_ids_count_by_their_type() {
    let ids = [
        (0, "49170123"),
        (1, IMSI),
        (2, "sip:alice@ims.example"),
        (3, "alice@ims.example"),
        (4, "dev7@iot.example"),
    ];
    for (entity, avp, value) in [
        ("msisdn", "subscriptionIdE164", "49170123"),
        ("imsi", "subscriptionIdImsi", IMSI),
        ("impu", "subscriptionIdSipUri", "sip:alice@ims.example"),
        ("nai", "subscriptionIdNai", "alice@ims.example"),
        ("externalIdentifier", "subscriptionIdPrivate", "dev7@iot.example"),
    ] {
        let fabr = by(entity, avp, value);
        let top = |b: &mut MessageBuilder| {
            for id in ids {
                b.group(known::SUBSCRIPTION_ID, |group| {
                    group
                        .put(known::SUBSCRIPTION_ID_TYPE, id.0)
                        .put(known::SUBSCRIPTION_ID_DATA, id.1);
                });
            }
        };
        assert_eq!(is(&fabr, top), "known", "{avp}");
        let within = |b: &mut MessageBuilder| {
            b.group(known::SERVICE_INFORMATION, |group| subscriptions(&ids, group));
        };
        assert_eq!(is(&fabr, within), "known", "{avp} of an offline charging request");
        let wrong = |b: &mut MessageBuilder| {
            b.put(known::USER_NAME, value);
        };
        assert_eq!(is(&fabr, wrong), "invalid", "{avp}");
    }
    // Of two that disagree the first valid one counts.
    let fabr = by("imsi", "subscriptionIdImsi", IMSI);
    let two = |first: &'static str, second: &'static str| {
        is(&fabr, |b| {
            b.group(known::SERVICE_INFORMATION, |group| {
                subscriptions(&[(1, first), (1, second)], group);
            });
        })
    };
    assert_eq!(two(IMSI, "001010000000002"), "known");
    assert_eq!(two("001010000000002", IMSI), "other");
    assert_eq!(two("none", IMSI), "known");
}

#[test]
fn groups_are_read_one_deep_and_broken_ones_have_nothing() {
    for (avp, fill) in [("userIdentityMsisdn", 700), ("userIdentifierMsisdn", 3102)] {
        let fabr = by("msisdn", avp, "49170");
        let tag = match fill {
            700 => known::USER_IDENTITY,
            _ => known::USER_IDENTIFIER,
        };
        let got = is(&fabr, |b| {
            b.group(tag, |group| {
                group.put(known::MSISDN, &[0x94, 0x71, 0xf0]);
            });
        });
        assert_eq!(got, "known", "{avp}");
        // Seventeen deep, and bytes that are not AVPs.
        let mut deep = AvpWriter::with_capacity(64);
        deep.put(known::MSISDN, &[0x94, 0x71, 0xf0]);
        for _ in 0..17 {
            let inner = deep.into_bytes();
            deep = AvpWriter::with_capacity(64);
            deep.put_raw(tag.key, diameter_proto::AvpFlags::default(), &inner);
        }
        let bytes = deep.into_bytes();
        let got = is(&fabr, |b| {
            b.append_encoded(&bytes);
        });
        assert_eq!(got, "invalid", "{avp}");
        let got = is(&fabr, |b| {
            b.put_raw(tag.key, diameter_proto::AvpFlags::default(), &[0xff; 31]);
        });
        assert_eq!(got, "invalid", "{avp}");
    }
    let fabr = by("imsi", "userIdentifierUserName", IMSI);
    let got = is(&fabr, |b| {
        b.group(known::USER_IDENTIFIER, |group| {
            group.put(known::USER_NAME, IMSI);
        });
    });
    assert_eq!(got, "known");
}
