//! What names are answered with.

use domain::base::Rtype;
use domain::base::iana::{OptRcode, Rcode};

use crate::support::{
    Client, config, expressions, is_negative, metric, name, naptrs, numbers, query, range, start,
};

const APEX: &str = "e164enum.net";

#[test]
fn a_number_of_a_range_has_the_records_of_its_profile() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    let answer = client.naptr(&name("436601234567", APEX));
    assert!(answer.header().aa() && answer.header().qr() && answer.header().rd() && !answer.header().ra());
    // Without a routing number there is no `tel:` record.
    let expected = "!^.*$!sip:+436601234567@ims.example.net!".to_owned();
    assert_eq!(naptrs(&answer), [(10, 10, "E2U+sip".to_owned(), expected)]);
    // Another type of a number that exists: NODATA.
    for kind in [Rtype::A, Rtype::AAAA, Rtype::SRV, Rtype::TXT] {
        let answer = client.ask(&query(2, &name("436601234567", APEX), kind, None));
        assert!(is_negative(&answer, Rcode::NOERROR), "{kind}");
    }
    assert_eq!(
        metric(&server, "signalbox_enum_answers_total{outcome=\"answered\"}"),
        1.0
    );
    assert_eq!(
        metric(
            &server,
            "signalbox_enum_queries_total{transport=\"udp\",type=\"naptr\"}"
        ),
        1.0
    );
}

/// RFC 8020: NXDOMAIN says that nothing is below the name either, so that it would end the dialling of a longer number.
#[test]
fn an_incomplete_number_is_no_data_and_an_unknown_one_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(
        &path,
        "msisdn,4312345,ims\nmsisdn,431234567,ims\nmsisdn,99,none\nmsisdn,9988,ims\n",
    );
    let mut wanted = config();
    wanted.numbers = Some(path);
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    for known in ["4312345", "431234567", "9988", "4366012345", "436601234567"] {
        assert_eq!(expressions(&client.naptr(&name(known, APEX))).len(), 1, "{known}");
    }
    for incomplete in [
        "4",
        "43",
        "431",
        "431234",
        "43123456",
        "43660",
        "436601234",
        "99",
        "998",
    ] {
        assert!(
            is_negative(&client.naptr(&name(incomplete, APEX)), Rcode::NOERROR),
            "{incomplete}"
        );
    }
    for unknown in [
        "5",
        "44",
        "43124",
        "4312346",
        "43123458",
        "4312345678",
        "4366012345678",
        "43660991",
        "99889",
        "997",
    ] {
        assert!(
            is_negative(&client.naptr(&name(unknown, APEX)), Rcode::NXDOMAIN),
            "{unknown}"
        );
    }
}

#[test]
fn what_is_not_a_number_does_not_exist() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    let long = name("1234567890123456", APEX);
    let twenty = name("12345678901234567890", APEX);
    for text in [
        "x.e164enum.net",
        "_sip._udp.e164enum.net",
        "12.e164enum.net",
        "0.x.0.6.6.3.4.e164enum.net",
        &long,
        &twenty,
    ] {
        assert!(is_negative(&client.naptr(text), Rcode::NXDOMAIN), "{text}");
    }
    // The tree of one country has 15 digits with those of its apex.
    assert!(is_negative(
        &client.naptr(&name("12345678901234", "3.4.e164.arpa")),
        Rcode::NXDOMAIN
    ));
}

#[test]
fn the_apex_has_soa_and_ns_and_nothing_else() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    for (kind, count) in [(Rtype::SOA, 1), (Rtype::NS, 2)] {
        let answer = client.ask(&query(1, "E164ENUM.net", kind, None));
        assert!(answer.header().aa());
        assert_eq!(answer.header_counts().ancount(), count, "{kind}");
    }
    assert!(is_negative(&client.naptr(APEX), Rcode::NOERROR));
    assert!(is_negative(&client.naptr("3.4.e164.arpa"), Rcode::NOERROR));
    for outside in [
        "e164.arpa",
        "example.net",
        "net",
        "1.3.e164.arpa",
        "xe164enum.net",
        "1\u{8}e164enum.net",
        ".",
    ] {
        let answer = client.naptr(outside);
        assert_eq!(answer.header().rcode(), Rcode::REFUSED, "{outside}");
        assert!(!answer.header().aa(), "{outside}");
    }
    for transfer in [Rtype::AXFR, Rtype::IXFR] {
        assert_eq!(
            client.ask(&query(1, APEX, transfer, None)).header().rcode(),
            Rcode::REFUSED
        );
    }
    // CHAOS is another class.
    let mut chaos = query(1, APEX, Rtype::TXT, None);
    *chaos.last_mut().unwrap() = 3;
    assert_eq!(client.ask(&chaos).header().rcode(), Rcode::REFUSED);
}

/// Resolvers put a random case into names, and drop answers that do not have it (draft-vixie-dnsext-dns0x20).
#[test]
fn the_case_of_the_question_is_kept() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    for text in [name("436601234567", "E164eNuM.NeT"), name("44", "e164ENUM.net")] {
        let asked = query(1, &text, Rtype::NAPTR, None);
        let answer = client.ask(&asked);
        assert_eq!(answer.as_slice()[12..asked.len()], asked[12..], "{text}");
        let first = answer
            .answer()
            .unwrap()
            .chain(answer.authority().unwrap())
            .next()
            .unwrap()
            .unwrap();
        assert!(text.ends_with(&first.owner().to_string()), "{}", first.owner());
    }
}

#[test]
fn any_is_answered_small_and_no_data_stays_so() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    for text in [name("436601234567", APEX), APEX.to_owned()] {
        let answer = client.ask(&query(1, &text, Rtype::ANY, None));
        let record = answer.answer().unwrap().next().unwrap().unwrap();
        assert_eq!(
            (answer.header_counts().ancount(), record.rtype()),
            (1, Rtype::HINFO),
            "{text}"
        );
    }
    let answer = client.ask(&query(1, &name("43", APEX), Rtype::ANY, None));
    assert!(is_negative(&answer, Rcode::NOERROR), "no type is there");
}

#[test]
fn the_closest_tree_answers_with_the_profile_of_its_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(
        &path,
        "msisdn,43112,enum=ims,public=ported,rn=+4366099\nmsisdn,43113,enum=ims\nmsisdn,43114,enum=gone\n",
    );
    let mut wanted = config();
    wanted.numbers = Some(path);
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    let carrier = expressions(&client.naptr(&name("43112", APEX)));
    assert_eq!(
        carrier,
        [
            "!^.*$!sip:+43112@ims.example.net!",
            "!^.*$!tel:+43112;npdi;rn=+4366099!"
        ]
    );
    let national = "3.4.e164.arpa";
    assert_eq!(expressions(&client.naptr(&name("112", national))).len(), 2);
    // A number without a profile for this tree exists and has no records.
    assert!(is_negative(&client.naptr(&name("113", national)), Rcode::NOERROR));
    let answer = client.naptr(&name("43114", APEX));
    assert_eq!(answer.header().rcode(), Rcode::SERVFAIL);
    let explained = crate::support::admin(&server, "GET", "/enum/why/+43114", "").1;
    assert!(explained.contains("profile `gone` does not exist"), "{explained}");
    let found = crate::support::admin(&server, "GET", "/enum/find/43-112", "").1;
    assert!(
        found.contains("rn=+4366099") && found.contains("3.4.e164.arpa"),
        "{found}"
    );
    let named = crate::support::admin(&server, "GET", "/enum/why/2.1.1.3.4.e164.arpa", "").1;
    assert!(named.contains("number +43112"), "{named}");
}

#[test]
fn an_answer_has_at_most_the_octets_that_the_client_takes() {
    let mut wanted = config();
    wanted.trees[0].ranges.push(range("1", "many", 5, 5));
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    let text = name("12345", APEX);
    let whole = {
        let mut stream = crate::support::connect(server.addresses()[0]);
        crate::support::send(&mut stream, &[query(9, &text, Rtype::NAPTR, None)]);
        crate::support::receive(&mut stream).unwrap()
    };
    assert_eq!((naptrs(&whole).len(), whole.header().tc()), (12, false));
    let length = whole.as_slice().len();
    assert!((512..1_232).contains(&length), "{length}");
    for size in [
        None,
        Some(0),
        Some(511),
        Some(512),
        Some(700),
        Some(1_200),
        Some(4_096),
        Some(65_535),
    ] {
        let answer = client.ask(&query(1, &text, Rtype::NAPTR, size));
        let most = usize::from(size.unwrap_or(512)).clamp(512, 1_232);
        assert!(answer.as_slice().len() <= most, "{size:?}");
        assert_eq!(answer.opt().is_some(), size.is_some());
        let fits = length + if size.is_some() { 11 } else { 0 } <= most;
        assert_eq!(answer.header().tc(), !fits, "{size:?}");
        // Whole, or not at all.
        assert_eq!(naptrs(&answer).len(), if fits { 12 } else { 0 }, "{size:?}");
    }
}

#[test]
fn unknown_versions_and_wrong_options_of_edns_are_answered_as_rfc_6891_says() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    let text = name("436601234567", APEX);
    let mut later = query(1, &text, Rtype::NAPTR, Some(1_232));
    let version = later.len() - 5;
    later[version] = 1;
    let answer = client.ask(&later);
    let opt = answer.opt().unwrap();
    assert_eq!(
        (opt.rcode(answer.header()), opt.version()),
        (OptRcode::BADVERS, 0)
    );
    assert_eq!(answer.header_counts().ancount(), 0);
    // DO is copied (RFC 3225 §3), options that are unknown are ignored.
    let mut with_option = query(1, &text, Rtype::NAPTR, Some(1_232));
    let flags = with_option.len() - 4;
    with_option[flags] = 0x80;
    let length = with_option.len() - 1;
    with_option[length] = 6;
    with_option.extend_from_slice(&[0xfd, 0xe9, 0, 2, 1, 2]);
    let answer = client.ask(&with_option);
    assert!(answer.opt().unwrap().dnssec_ok());
    assert_eq!(naptrs(&answer).len(), 1);
    // Two of them, and an option that is longer than the record.
    let one = query(1, &text, Rtype::NAPTR, Some(1_232));
    let mut twice = one.clone();
    twice.extend_from_slice(&one[one.len() - 11..]);
    twice[11] = 2;
    let mut lying = with_option.clone();
    let at = lying.len() - 3;
    lying[at] = 9;
    for wrong in [twice, lying] {
        assert_eq!(client.ask(&wrong).header().rcode(), Rcode::FORMERR);
    }
}

/// RFC 8020 §2: a name above another one exists.
#[test]
fn a_name_above_the_apex_of_another_tree_exists() {
    let mut wanted = config();
    wanted.trees.push(crate::support::tree("e164.arpa", ""));
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    let ask = |text: &str| client.ask(&query(1, text, Rtype::NS, None));
    assert!(is_negative(&ask("4.e164.arpa"), Rcode::NOERROR));
    assert!(is_negative(&ask("5.e164.arpa"), Rcode::NXDOMAIN));
}

/// RFC 1995 §3: the query has the SOA of the client.
#[test]
fn an_incremental_transfer_is_refused_with_opt() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    let mut octets = query(1, APEX, Rtype::IXFR, Some(1_232));
    let soa = [&[0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0][..], &[0; 20]].concat();
    let opt = octets.len() - 11;
    octets.splice(opt..opt, soa);
    octets[9] = 1;
    let answer = client.ask(&octets);
    assert_eq!(answer.header().rcode(), Rcode::REFUSED);
    assert!(answer.opt().is_some());
}
