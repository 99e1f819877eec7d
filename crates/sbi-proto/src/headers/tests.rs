use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::*;
use time::OffsetDateTime;

use super::*;

fn same<H: SbiHeader + PartialEq + Debug>(header: &H) {
    let printed = header.to_string();
    assert_eq!(&H::parse(&printed).unwrap(), header, "{printed}");
    assert!(header.to_value().is_some(), "{printed}");
}

#[test]
fn examples_of_the_standard() {
    let oci = Oci::parse(
        r#"Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; NF-Instance: 54804518-4191-46b3-955c-ac631f953ed8"#,
    )
    .unwrap();
    assert_eq!(
        (oci.0[0].validity, oci.0[0].reduction),
        (Duration::from_secs(75), 50)
    );
    same(&oci);
    let lci = Lci::parse(
        r#"Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; Load-Metric: 25%; NF-Set: set1.udmset; S-NSSAI: 1-00001a & 2; DNN: internet & ims; Relative-Capacity: 20%"#,
    )
    .unwrap();
    same(&lci);
    let Scope::NfSet(set, Some(slices)) = &lci.0[0].scope else {
        panic!("{lci}")
    };
    assert_eq!(
        (set.as_str(), slices.dnns.len(), slices.relative_capacity),
        ("set1.udmset", 2, Some(20))
    );

    let binding = RoutingBinding::parse(
        "bl=nf-set; nfinst=54804518-4191-46b3-955c-ac631f953ed8; nfset=set1.udmset.5gc.mnc012.mcc345",
    )
    .unwrap();
    assert_eq!(binding.nf_set(), Some("set1.udmset.5gc.mnc012.mcc345"));
    same(&binding);
    let binding = Binding::parse(
        r#"bl=nfservice-instance; nfservinst=xyz; nfinst=a; recoverytime="Tue, 04 Feb 2020 08:49:37 GMT", bl=nf-set; nfset=s; scope=callback; nr=https://x.example/a;b=1"#,
    );
    assert_eq!(binding.unwrap().0.len(), 2);

    let target = TargetApiRoot::parse(" https://UDM1.example.com:8443/a/b/ ").unwrap();
    assert_eq!(target.to_string(), "https://udm1.example.com:8443/a/b");
    assert_eq!(MaxForwardHops::parse("10; nodetype=scp").unwrap().0, 10);
    let timestamp = SenderTimestamp::parse("Sun, 04 Aug 2019 08:49:37.845 GMT").unwrap();
    assert_eq!(timestamp.to_string(), "Sun, 04 Aug 2019 08:49:37.845 GMT");
    let network = OriginatingNetworkId::parse("123-45-000007ed9d5; src: SCP-scp1.operator.com").unwrap();
    assert_eq!(network.source.as_deref(), Some("SCP-scp1.operator.com"));
    same(&network);
    let consumer = ConsumerInfo::parse(
        r#"service=nudm-sdm; apiversion=(1 2); supportedfeatures=3f; acceptencoding="gzip;q=1, br""#,
    );
    assert_eq!(consumer.unwrap().0[0].versions, [1, 2]);
    let correlation = CorrelationInfo::parse("imsi-345012123123123; nai-u@x-y.org").unwrap();
    assert_eq!(correlation.get("nai"), Some("u@x-y.org"));
    same(&correlation);
}

#[test]
fn what_the_abnf_does_not_allow() {
    assert!(MessagePriority::parse("32").is_err() && MessagePriority::parse("01").is_err());
    assert!(MaxRspTime::parse("100000").is_err() && MaxRspTime::parse("").is_err());
    assert!(MaxForwardHops::parse("5").is_err());
    assert!(TargetApiRoot::parse("udm1:80").is_err() && TargetApiRoot::parse("http://a/b?c").is_err());
    assert!(RoutingBinding::parse("bl=nf-set").is_err() && RoutingBinding::parse("nfset=a").is_err());
    assert!(ProducerId::parse("nfset=a").is_err());
    assert!(Callback::parse("A B").is_err() && Callback::parse("A; x=1").is_err());
    assert!(ClientCredentials::parse("a.b").is_err());
    assert!(Oci::parse(r#"Timestamp: "x"; Period-of-Validity: 1s"#).is_err());
}

#[test]
fn several_lines_are_one_list() {
    let mut headers = Fields::new();
    let line =
        |load| format!(r#"Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; Load-Metric: {load}%; SCP-FQDN: a.b"#);
    assert_eq!(Lci::of(&headers), Ok(None));
    for load in [1, 2, 3] {
        headers.append_printed(names::LCI, line(load));
    }
    let loads: Vec<u8> = Lci::of(&headers)
        .unwrap()
        .unwrap()
        .0
        .iter()
        .map(|element| element.load)
        .collect();
    assert_eq!(loads, [1, 2, 3]);
}

fn token() -> impl Strategy<Value = String> {
    "[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}"
}

/// Names of parameters have no case; they are written in lower case.
fn params() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = token().prop_map(|name| name.to_ascii_lowercase());
    proptest::collection::vec((name, token()), 1..4)
}

fn scope() -> impl Strategy<Value = Scope> {
    let list = || proptest::collection::vec("[A-Za-z0-9.-]{1,9}", 1..3);
    let slices = (list(), list(), proptest::option::of(0u8..=100));
    let slices = slices.prop_map(|(slices, dnns, relative_capacity)| SliceScope {
        slices,
        dnns,
        relative_capacity,
    });
    let slices = proptest::option::of(slices).boxed();
    prop_oneof![
        (token(), slices.clone()).prop_map(|(id, s)| Scope::NfInstance(id, s)),
        (token(), slices.clone()).prop_map(|(id, s)| Scope::NfSet(id, s)),
        (token(), proptest::option::of(token()), slices.clone())
            .prop_map(|(id, instance, s)| Scope::ServiceInstance(id, instance, s)),
        (token(), slices).prop_map(|(id, s)| Scope::ServiceSet(id, s)),
        (token(), proptest::option::of(token())).prop_map(|(id, s)| Scope::ConsumerInstance(id, s)),
        (token(), proptest::option::of(token())).prop_map(|(id, s)| Scope::ConsumerServiceInstance(id, s)),
        token().prop_map(Scope::ConsumerServiceSet),
        proptest::collection::vec("http://[a-z]{1,9}/[a-z]{0,4}", 1..3).prop_map(Scope::CallbackUris),
        token().prop_map(Scope::Scp),
        token().prop_map(Scope::Sepp),
    ]
}

fn moment() -> impl Strategy<Value = OffsetDateTime> {
    (0i64..4_000_000_000).prop_map(|s| OffsetDateTime::from_unix_timestamp(s).unwrap())
}

proptest! {
    #[test]
    fn printed_and_read_again(
        priority in 0u8..=31, millis in 0u32..=99_999, hops in 0u8..=99,
        pairs in params(), list in proptest::collection::vec(params(), 1..3), id in token(), other in proptest::option::of(token()),
    ) {
        same(&MessagePriority::new(priority).unwrap());
        same(&MaxRspTime(millis));
        same(&MaxForwardHops(hops));
        same(&RequestInfo(pairs.clone()));
        same(&ResponseInfo(pairs.clone()));
        same(&NfPeerInfo(pairs));
        same(&SelectionInfo(list));
        same(&ProducerId { nf_instance: id.clone(), service_instance: other.clone(), nf_set: other.clone(), service_set: None });
        same(&TargetNfId { nf_instance: id, service_instance: other });
    }

    #[test]
    fn bindings_printed_and_read_again(
        level in prop_oneof![Just(BindingLevel::NfInstance), Just(BindingLevel::NfSet), Just(BindingLevel::ServiceInstance), Just(BindingLevel::ServiceSet)],
        pairs in params(), quoted in "[A-Za-z0-9 :,;+]{0,20}",
    ) {
        let mut binding = RoutingBinding::new(level);
        for (name, value) in &pairs {
            binding = binding.with(name, value);
        }
        same(&binding);
        binding.params.push(BindingParam { name: "recoverytime".into(), value: quoted, quoted: true });
        same(&Binding(vec![binding.clone(), binding]));
    }

    #[test]
    fn loads_printed_and_read_again(at in moment(), percent in 0u8..=100, seconds in 0u64..100_000, scope in scope()) {
        let oci = OciElement { timestamp: at, validity: Duration::from_secs(seconds), reduction: percent, scope: scope.clone() };
        same(&Oci(vec![oci.clone(), oci]));
        same(&Lci(vec![LciElement { timestamp: at, load: percent, scope }]));
        same(&SenderTimestamp(at));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}", value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = (MessagePriority::parse(&text), MaxRspTime::parse(&text), MaxForwardHops::parse(&text));
        let _ = (SenderTimestamp::parse(&text), OriginatingNetworkId::parse(&text), AccessScope::parse(&text));
        let _ = (ClientCredentials::parse(&text), TargetApiRoot::parse(&text), ProducerId::parse(&text));
        let _ = (TargetNfId::parse(&text), Callback::parse(&text), RoutingBinding::parse(&text), Binding::parse(&text));
        let _ = (Lci::parse(&text), Oci::parse(&text), RequestInfo::parse(&text), ResponseInfo::parse(&text));
        let _ = (NfPeerInfo::parse(&text), SelectionInfo::parse(&text), CorrelationInfo::parse(&text));
        let _ = ConsumerInfo::parse(&text);
        if let Ok(value) = Value::new(&value) {
            let mut headers = Fields::new();
            headers.append(names::TARGET_API_ROOT, value);
            headers.append(names::TARGET_API_ROOT, value);
            let _ = TargetApiRoot::of(&headers);
        }
    }
}

/// Literals of ABNF have no case (RFC 5234 §2.3): each header reads the same in capitals.
#[test]
fn names_and_literals_have_no_case() {
    fn same<H: SbiHeader + PartialEq + Debug>(usual: &str, other: &str) {
        assert_eq!(H::parse(usual).unwrap(), H::parse(other).unwrap(), "{other}");
    }
    same::<MaxForwardHops>("5; nodetype=scp", "5; NODETYPE=SCP");
    same::<RoutingBinding>(
        "bl=nf-instance; nfinst=a; nr=http://x/",
        "BL=NF-INSTANCE;NFINST=a; NR=http://x/",
    );
    same::<Binding>(
        "bl=nfservice-set; nfserviceset=s",
        "Bl=NfService-Set; NfServiceSet=s",
    );
    let date = "\"Tue, 04 Feb 2020 08:49:37 GMT\"";
    same::<Oci>(
        &format!(
            "Timestamp: {date}; Period-of-Validity: 20s; Overload-Reduction-Metric: 100%; NF-Instance: a; S-NSSAI: 1; DNN: b"
        ),
        &format!(
            "timestamp: {date}; period-of-validity: 20S; overload-reduction-metric: 100%; nf-instance: a; s-nssai: 1; dnn: b"
        ),
    );
    for scope in [
        "NF-Set: a",
        "NF-Service-Instance: a; NF-Inst: b",
        "NF-Service-Set: a",
        "NFC-Instance: a; Service-Name: b",
        "NFC-Set: a",
        "NFC-Service-Instance: a",
        "NFC-Service-Set: a",
        "SCP-FQDN: a",
        "SEPP-FQDN: a",
        "Callback-Uri: \"a\" & \"b\"",
        "NF-Instance: a; S-NSSAI: 1; DNN: b; Relative-Capacity: 5%",
    ] {
        let usual = format!("Timestamp: {date}; Load-Metric: 7%; {scope}");
        let other = format!(
            "TIMESTAMP: {date}; LOAD-METRIC: 7%; {}",
            scope.to_ascii_lowercase()
        );
        same::<Lci>(&usual, &other);
    }
    same::<RequestInfo>("retrans=true", "RETRANS=true");
    same::<ResponseInfo>("request-retransmitted=true", "Request-Retransmitted=true");
    same::<NfPeerInfo>("srcinst=a; dstinst=b", "SrcInst=a; DSTINST=b");
    same::<SelectionInfo>("reselection=false", "Reselection=false");
    same::<CorrelationInfo>("imsi-1; msisdn-2", "IMSI-1; Msisdn-2");
    same::<ConsumerInfo>(
        "service=a; apiversion=(1); supportedfeatures=0",
        "SERVICE=a; ApiVersion=(1); SupportedFeatures=0",
    );
    same::<ProducerId>(
        "nfinst=a; nfset=b; nfservinst=c; nfserviceset=d",
        "NFINST=a; NFSET=b; NFSERVINST=c; NFServiceSet=d",
    );
    same::<TargetNfId>("nfinst=a; nfservinst=c", "NfInst=a; NfServInst=c");
    same::<Callback>("Nx; apiversion=1", "Nx; ApiVersion=1");
    same::<OriginatingNetworkId>("123-45; src: SCP-abcd", "123-45; SRC: SCP-abcd");
    same::<NrfUri>(
        "nnrf-disc: \"http://a\"; oauth2-requested-services: nnrf-disc",
        "NNRF-DISC: \"http://a\"; OAuth2-Requested-Services: NNRF-Disc",
    );
}
