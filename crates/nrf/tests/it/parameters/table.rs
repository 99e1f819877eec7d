//! A row a parameter: what fits, what does not, what is wrong; and what a bare profile says.

use serde_json::{Value, json};

use super::{ask, merge};
use crate::support::{id, profile};

/// A parameter, the members of a profile, a value that fits it, one that does not, and one that is wrong.
struct Row {
    name: &'static str,
    members: Value,
    fits: String,
    not: String,
    wrong: &'static str,
}

fn row(name: &'static str, members: Value, fits: impl Says, not: impl Says, wrong: &'static str) -> Row {
    Row {
        name,
        members,
        fits: fits.says(),
        not: not.says(),
        wrong,
    }
}

/// A parameter's value: text as it is, JSON as text.
trait Says {
    fn says(self) -> String;
}
impl Says for &str {
    fn says(self) -> String {
        self.to_owned()
    }
}
impl Says for String {
    fn says(self) -> String {
        self
    }
}
impl Says for Value {
    fn says(self) -> String {
        self.to_string()
    }
}

/// No value of this parameter is wrong: any text is one.
const ANY: &str = "\u{0}";

#[rustfmt::skip]
fn table() -> Vec<Row> {
    let plmn = json!({"mcc": "001", "mnc": "01"});
    let plmn2 = json!({"mcc": "001", "mnc": "02"});
    let snpn = json!({"mcc": "001", "mnc": "01", "nid": "0000000000a"});
    let snpn2 = json!({"mcc": "001", "mnc": "01", "nid": "0000000000b"});
    let tai = json!({"plmnId": plmn, "tac": "000001"});
    let tai2 = json!({"plmnId": plmn, "tac": "0000ff"});
    let guami = json!({"plmnId": plmn, "amfId": "cafe00"});
    let guami2 = json!({"plmnId": plmn, "amfId": "cafe01"});
    let amf = |more: Value| { let mut amf = json!({"amfSetId": "3f8", "amfRegionId": "ca", "guamiList": [guami]}); merge(&mut amf, more); json!({"amfInfo": amf}) };
    let slice = |dnns: &str, dnn: Value| json!({"sNssai": {"sst": 1, "sd": "0000aa"}, dnns: [dnn]});
    let smf = |more: Value| { let mut smf = json!({"sNssaiSmfInfoList": [slice("dnnSmfInfoList", json!({"dnn": "internet", "dnaiList": ["edge1"]}))]}); merge(&mut smf, more); json!({"smfInfo": smf}) };
    let upf = |more: Value| { let mut upf = json!({"sNssaiUpfInfoList": [slice("dnnUpfInfoList", json!({"dnn": "internet", "ipv4IndexList": [7], "ipv6IndexList": ["north"]}))]}); merge(&mut upf, more); json!({"upfInfo": upf}) };
    let udm = |more: Value| json!({"udmInfo": more});
    let udr = |more: Value| json!({"udrInfo": more});
    let pcf = |more: Value| json!({"pcfInfo": more});
    let bsf = |more: Value| json!({"bsfInfo": more});
    let hss = |more: Value| json!({"hssInfoList": {"a": more}});
    let nwdaf = |more: Value| json!({"nwdafInfo": more});
    let nef = |more: Value| json!({"nefInfo": more});
    let lmf = |more: Value| json!({"lmfInfo": more});
    let scp = |more: Value| json!({"scpInfo": more});
    let service = |more: Value| { let mut service = profile(&id(1), "UDM", "svc", &json!({}))["nfServices"][0].clone(); merge(&mut service, more); json!({"nfServices": [service]}) };
    let end_point = json!({"ipv4EndpointAddresses": ["10.1.1.1"]});
    let end_point2 = json!({"ipv4EndpointAddresses": ["10.1.1.2"]});
    let tmgi = |service: &str| json!([{"tmgi": {"mbsServiceId": service, "plmnId": plmn}}]);
    vec![
        row("target-nf-type", json!({}), "UDM", "", ANY),
        row("requester-nf-type", json!({"allowedNfTypes": ["AMF"]}), "AMF", "SMF", ANY),
        row("preferred-collocated-nf-types", json!({}), "UPF", "", ""),
        row("requester-nf-instance-id", json!({}), id(9), "", "x"),
        row("service-names", json!({}), "other,svc", "other", ""),
        row("requester-nf-instance-fqdn", json!({"allowedNfDomains": ["[.]example[.]org$"]}), "a.example.org", "a.example.com", ""),
        row("target-plmn-list", json!({"plmnList": [plmn]}), json!([plmn2, plmn]), json!([plmn2]), "[]"),
        row("requester-plmn-list", json!({"allowedPlmns": [plmn]}), json!([plmn]), json!([plmn2]), "[{}]"),
        row("target-nf-instance-id", json!({}), id(1), id(2), "1"),
        row("target-nf-fqdn", json!({"fqdn": "udm.example.org"}), "UDM.example.org", "udm2.example.org", ""),
        row("hnrf-uri", json!({}), "http://nrf.example.org", "", "nowhere"),
        row("snssais", json!({"sNssais": [{"sst": 1, "sd": "0000aa"}]}), json!([{"sst": 2}, {"sst": 1, "sd": "0000AA"}]), json!([{"sst": 1}]), "{}"),
        row("requester-snssais", json!({"allowedNssais": [{"sst": 1}]}), json!([{"sst": 1}]), json!([{"sst": 2}]), "[{}]"),
        row("plmn-specific-snssai-list", json!({"perPlmnSnssaiList": [{"plmnId": plmn, "sNssaiList": [{"sst": 1}]}]}), json!([{"plmnId": plmn, "sNssaiList": [{"sst": 1}]}]), json!([{"plmnId": plmn, "sNssaiList": [{"sst": 2}]}]), "[1]"),
        row("requester-plmn-specific-snssai-list", json!({"allowedNssais": [{"sst": 1}]}), json!([{"plmnId": plmn, "sNssaiList": [{"sst": 1}]}]), json!([{"plmnId": plmn, "sNssaiList": [{"sst": 2}]}]), "x"),
        row("dnn", smf(json!({})), "Internet.mnc001.mcc001.gprs", "ims", ""),
        row("dnn", bsf(json!({"dnnList": ["ims"]})), "ims", "internet", ""),
        row("dnn", pcf(json!({"dnnList": ["ims"]})), "ims", "internet", ""),
        row("ipv4-index", upf(json!({})), "7", "8", ""),
        row("ipv6-index", upf(json!({})), json!("north"), json!("south"), ""),
        row("nsi-list", json!({"nsiList": ["n1"]}), "n2,n1", "n2", ""),
        row("smf-serving-area", upf(json!({"smfServingArea": ["north"]})), "north", "south", ""),
        row("mbsmf-serving-area", json!({"mbUpfInfoList": {"a": {"sNssaiMbUpfInfoList": [slice("dnnUpfInfoList", json!({"dnn": "x"}))], "mbSmfServingArea": ["north"]}}}), "north", "south", ""),
        row("tai", amf(json!({"taiRangeList": [{"plmnId": plmn, "tacRangeList": [{"start": "000000", "end": "00000f"}]}]})), tai.clone(), tai2.clone(), "{}"),
        row("tai", smf(json!({"taiList": [tai]})), tai.clone(), tai2.clone(), "7"),
        row("amf-region-id", amf(json!({})), "CA", "cb", "xyz"),
        row("amf-set-id", amf(json!({})), "3F8", "3f9", "400"),
        row("guami", amf(json!({})), guami.clone(), guami2, "{}"),
        row("supi", udm(json!({"supiRanges": [{"start": "001010000000000", "end": "001010000000099"}]})), "imsi-001010000000042", "imsi-001010000000100", ANY),
        row("supi", udm(json!({"supiRanges": [{"pattern": "^nai-.*@a$"}]})), "nai-x@a", "nai-x@b", ANY),
        row("gpsi", udm(json!({"gpsiRanges": [{"start": "4670", "end": "4679"}]})), "msisdn-4671", "msisdn-4681", ANY),
        row("ue-ipv4-address", bsf(json!({"ipv4AddressRanges": [{"start": "10.0.0.0", "end": "10.0.0.9"}]})), "10.0.0.7", "10.0.0.10", "10.0.0"),
        row("ip-domain", bsf(json!({"ipDomainList": ["d1"]})), "d1", "d2", ""),
        row("ue-ipv6-prefix", bsf(json!({"ipv6PrefixRanges": [{"start": "2001:db8::/48", "end": "2001:db8:f::/48"}]})), "2001:db8:1::/64", "2001:db8:10::/64", "2001:db8::"),
        row("pgw-ind", smf(json!({"pgwFqdn": "pgw.example.org"})), "true", "false", "yes"),
        row("preferred-pgw-ind", smf(json!({"pgwFqdn": "pgw.example.org"})), "true", "", "1"),
        row("pgw", smf(json!({"pgwFqdnList": ["pgw.example.org"]})), "PGW.example.org", "pgw2.example.org", ""),
        row("pgw-ip", smf(json!({"pgwIpAddrList": [{"ipv4Addr": "10.0.0.1"}]})), json!({"ipv4Addr": "10.0.0.1"}), json!({"ipv4Addr": "10.0.0.2"}), "10.0.0.1"),
        row("external-group-identity", udm(json!({"externalGroupIdentifiersRanges": [{"pattern": "^extgroupid-a"}]})), "extgroupid-abc@x.org", "extgroupid-b@x.org", "extgroupid-abc"),
        row("internal-group-identity", udm(json!({"internalGroupIdentifiersRanges": [{"pattern": "^A1"}]})), "A1B2C3D4-240-01-AB12", "B1B2C3D4-240-01-AB12", "A1B2C3D4-240-01-AB1"),
        row("pfd-data", nef(json!({"pfdData": {"appIds": ["app1"]}})), json!({"appIds": ["app1"]}), json!({"appIds": ["app2"]}), "[{}"),
        row("data-set", udr(json!({"supportedDataSets": ["A_PFD"]})), "A_PFD", "APPLICATION", ""),
        row("data-set", udr(json!({"supportedDataSets": ["APPLICATION"]})), "A_PFD", "P_UE", ""),
        row("data-set", udr(json!({"supportedDataSets": ["POLICY"]})), "POLICY", "SUBSCRIPTION", ""),
        row("routing-indicator", udm(json!({"routingIndicators": ["0001"]})), "0001", "1", "12345"),
        row("routing-indicator", udm(json!({"suciInfos": [{"routingInds": ["77"]}]})), "77", "78", "x"),
        row("group-id-list", udm(json!({"groupId": "g1"})), "g2,g1", "g2", ""),
        row("group-id-list", json!({}), "", "g1", ""),
        row("dnai-list", smf(json!({})), "edge2,edge1", "edge2", ""),
        row("pdu-session-types", upf(json!({"pduSessionTypes": ["IPV4", "IPV6"]})), "IPV6,IPV4", "IPV4,ETHERNET", ""),
        row("event-id-list", nwdaf(json!({"eventIds": ["NF_LOAD", "UE_MOBILITY"]})), "UE_MOBILITY,NF_LOAD", "NF_LOAD,OTHER", ""),
        row("nwdaf-event-list", nwdaf(json!({"nwdafEvents": ["NF_LOAD"]})), "NF_LOAD", "NF_LOAD,OTHER", ""),
        row("upf-iwk-eps-ind", upf(json!({"iwkEpsInd": true})), "true", "false", "TRUE"),
        row("chf-supported-plmn", json!({"chfInfo": {"plmnRangeList": [{"start": "00101", "end": "00101"}]}}), plmn.clone(), plmn2.clone(), "{}"),
        row("preferred-locality", json!({"locality": "east"}), "east", "", ""),
        row("access-type", smf(json!({"accessType": ["3GPP_ACCESS"]})), "3GPP_ACCESS", "NON_3GPP_ACCESS", "WIFI"),
        row("limit", json!({}), "1", "", "0"),
        row("max-payload-size", json!({}), "1", "", "2001"),
        row("max-payload-size-ext", json!({}), "2001", "0", "x"),
        row("complex-query", udm(json!({"groupId": "g1"})),
            json!({"cnfUnits": [{"cnfUnit": [{"attr": "group-id-list", "value": ["g1"]}, {"attr": "dnn", "value": "x"}]}, {"cnfUnit": [{"attr": "service-names", "value": ["no"], "negative": true}]}]}),
            json!({"dnfUnits": [{"dnfUnit": [{"attr": "group-id-list", "value": ["g1"]}, {"attr": "service-names", "value": ["no"]}]}]}), "{}"),
        row("atsss-capability", upf(json!({"atsssCapability": {"mptcp": true}})), json!({"mptcp": true}), json!({"atsssLL": true}), "true"),
        row("upf-ue-ip-addr-ind", upf(json!({"ueIpAddrInd": true})), "true", "false", ""),
        row("client-type", lmf(json!({"servingClientTypes": ["EMERGENCY_SERVICES"]})), json!("EMERGENCY_SERVICES"), "VALUE_ADDED_SERVICES", ""),
        row("lmf-id", lmf(json!({"lmfId": "l1"})), json!("l1"), json!("l2"), ""),
        row("an-node-type", lmf(json!({"servingAnNodeTypes": ["GNB"]})), json!("GNB"), json!("NG_ENB"), ""),
        row("rat-type", lmf(json!({"servingRatTypes": ["NR"]})), json!("NR"), json!("EUTRA"), ""),
        row("preferred-tai", smf(json!({"taiList": [tai]})), tai.clone(), "", "{}"),
        row("preferred-nf-instances", json!({}), id(1), "", "1,2"),
        row("target-snpn", json!({"snpnList": [snpn]}), snpn.clone(), snpn2.clone(), "[]"),
        row("requester-snpn-list", json!({"allowedSnpns": [snpn]}), json!([snpn]), json!([snpn2]), "[]"),
        row("af-ee-data", nef(json!({"afEeData": {"afEvents": ["SVC_EXPERIENCE"]}})), json!({"afEvents": ["SVC_EXPERIENCE"]}), json!({"afEvents": ["UE_MOBILITY"]}), "x"),
        row("w-agf-info", upf(json!({"wAgfInfo": end_point})), end_point.clone(), end_point2.clone(), "x"),
        row("tngf-info", upf(json!({"tngfInfo": end_point})), end_point.clone(), end_point2.clone(), "x"),
        row("twif-info", upf(json!({"twifInfo": end_point})), end_point, end_point2, "x"),
        row("target-nf-set-id", json!({"nfSetIdList": ["set1.udmset.5gc.mnc001.mcc001"]}), "set1.udmset.5gc.mnc001.mcc001", "set2.udmset.5gc.mnc001.mcc001", ""),
        row("target-nf-service-set-id", service(json!({"nfServiceSetIdList": ["ss1"]})), "ss1", "ss2", ""),
        row("nef-id", nef(json!({"nefId": "n1"})), "n1", "n2", ""),
        row("notification-type", json!({"defaultNotificationSubscriptions": [{"notificationType": "N1_MESSAGES", "callbackUri": "http://a/b", "n1MessageClass": "5GMM"}]}), "N1_MESSAGES", "N2_INFORMATION", ""),
        row("n1-msg-class", service(json!({"defaultNotificationSubscriptions": [{"notificationType": "N1_MESSAGES", "callbackUri": "http://a/b", "n1MessageClass": "5GMM"}]})), "5GMM", "LPP", ""),
        row("n2-info-class", json!({"defaultNotificationSubscriptions": [{"notificationType": "N2_INFORMATION", "callbackUri": "http://a/b", "n2InformationClass": "SM"}]}), "SM", "NRPPa", ""),
        row("serving-scope", json!({"servingScope": ["north"]}), "south,north", "south", ""),
        row("imsi", hss(json!({"imsiRanges": [{"start": "00101000", "end": "00101099"}]})), "00101050", "00101100", "x"),
        row("ims-private-identity", hss(json!({"imsPrivateIdentityRanges": [{"pattern": "@a$"}]})), "x@a", "x@b", ""),
        row("ims-public-identity", hss(json!({"imsPublicIdentityRanges": [{"pattern": "^sip:.*@a$"}]})), "sip:x@a", "sip:x@b", ""),
        row("msisdn", hss(json!({"msisdnRanges": [{"start": "46700", "end": "46799"}]})), "46710", "46810", ""),
        row("preferred-api-versions", json!({}), json!({"svc": ">=1.0.0"}), "", "[]"),
        row("v2x-support-ind", pcf(json!({"v2xSupportInd": true})), "true", "false", ""),
        row("redundant-gtpu", upf(json!({"redundantGtpu": true})), "true", "false", ""),
        row("redundant-transport", upf(json!({"sNssaiUpfInfoList": [{"sNssai": {"sst": 1}, "redundantTransport": true, "dnnUpfInfoList": [{"dnn": "x"}]}]})), "true", "", "x"),
        row("redundant-transport", upf(json!({})), "false", "true", "x"),
        row("ipups", upf(json!({"ipups": true})), "true", "false", ""),
        row("scp-domain-list", json!({"scpDomains": ["d1", "d2"]}), "d2,d1", "d1,d3", ""),
        row("scp-domain-list", scp(json!({"scpDomainInfoList": {"d1": {}}})), "d1", "d2", ""),
        row("address-domain", scp(json!({"addressDomains": ["^.*[.]example[.]org$"]})), "a.example.org", "a.example.com", ""),
        row("ipv4-addr", scp(json!({"ipv4Addresses": ["10.0.0.1"]})), "10.0.0.1", "10.0.0.2", "x"),
        row("ipv6-prefix", scp(json!({"ipv6Prefixes": ["2001:db8::/32"]})), "2001:db8:1::/64", "2001:db9::/64", "x"),
        row("served-nf-set-id", scp(json!({"servedNfSetIdList": ["s1"]})), "s1", "s2", ""),
        row("remote-plmn-id", scp(json!({"remotePlmnList": [plmn]})), plmn.clone(), plmn2.clone(), "x"),
        row("remote-plmn-id", json!({"seppInfo": {"remotePlmnList": [plmn]}}), plmn.clone(), plmn2, "x"),
        row("remote-plmn-id", json!({"seppInfo": {}}), json!({"mcc": "001", "mnc": "09"}), "", "x"),
        row("remote-snpn-id", json!({"seppInfo": {"remoteSnpnList": [snpn]}}), snpn, snpn2, "x"),
        row("data-forwarding", upf(json!({"dataForwarding": true})), "true", "false", ""),
        row("preferred-full-plmn", json!({}), "true", "", "x"),
        row("requester-features", json!({}), "3F", "", "G"),
        row("supported-features", service(json!({"supportedFeatures": "5"})), "", "", "G"),
        row("required-features", service(json!({"supportedFeatures": "5"})), "", "", "G"),
        row("realm-id", json!({"udsfInfo": {"storageIdRanges": {"r1": [{"pattern": "^a"}]}}}), "r1", "r2", ""),
        row("storage-id", json!({"udsfInfo": {"storageIdRanges": {"r1": [{"pattern": "^a"}]}}}), "abc", "bcd", ""),
        row("vsmf-support-ind", smf(json!({"vsmfSupportInd": true})), "true", "false", ""),
        row("ismf-support-ind", smf(json!({"ismfSupportInd": true})), "true", "false", ""),
        row("nrf-disc-uri", json!({}), "http://nrf.example.org", "", ANY),
        row("preferred-vendor-specific-features", json!({}), json!({"svc": {"123": [{"featureName": "a", "featureVersion": "1"}]}}), "", "[]"),
        row("preferred-vendor-specific-nf-features", json!({}), json!({"123": [{"featureName": "a", "featureVersion": "1"}]}), "", "[]"),
        row("required-pfcp-features", upf(json!({"supportedPfcpFeatures": "8105"})), "8101", "8102", "*"),
        row("home-pub-key-id", udm(json!({"suciInfos": [{"hNwPubKeyIds": [7]}]})), "7", "8", "x"),
        row("prose-support-ind", pcf(json!({"proseSupportInd": true})), "true", "false", ""),
        row("analytics-aggregation-ind", nwdaf(json!({"nwdafCapability": {"analyticsAggregation": true}})), "true", "false", ""),
        row("serving-nf-set-id", nwdaf(json!({"servingNfSetIdList": ["s1"]})), "s1", "s2", ""),
        row("serving-nf-type", json!({"dccfInfo": {"servingNfTypeList": ["AMF"]}}), "AMF", "SMF", ""),
        row("ml-analytics-info-list", nwdaf(json!({"mlAnalyticsList": [{"mlAnalyticsIds": ["NF_LOAD"]}]})), json!([{"mlAnalyticsIds": ["NF_LOAD"]}]), json!([{"mlAnalyticsIds": ["OTHER"]}]), "[]"),
        row("analytics-metadata-prov-ind", nwdaf(json!({"nwdafCapability": {"analyticsMetadataProvisioning": true}})), "true", "false", ""),
        row("nsacf-capability", json!({"nsacfInfoList": {"a": {"nsacfCapability": {"supportUeSAC": true}}}}), json!({"supportUeSAC": true}), json!({"supportPduSAC": true}), "x"),
        row("mbs-session-id-list", json!({"mbSmfInfoList": {"a": {"tmgiRangeList": {"b": {"mbsServiceIdStart": "000000", "mbsServiceIdEnd": "0000ff", "plmnId": {"mcc": "001", "mnc": "01"}}}}}}), tmgi("00007f"), tmgi("000100"), "[]"),
        row("area-session-id", json!({"mbSmfInfoList": {"a": {"mbsSessionList": {"b": {"mbsSessionId": {"tmgi": {"mbsServiceId": "000001", "plmnId": {"mcc": "001", "mnc": "01"}}}, "mbsAreaSessions": {"5": {}}}}}}}), "5", "6", "70000"),
        row("gmlc-number", json!({"gmlcInfo": {"gmlcNumbers": ["46701"]}}), "46701", "46702", "1"),
        row("upf-n6-ip", json!({"easdfInfoList": {"a": {"upfN6IpAddressList": [{"ipv4Addr": "10.0.0.1"}]}}}), json!({"ipv4Addr": "10.0.0.1"}), json!({"ipv4Addr": "10.0.0.2"}), "x"),
        row("tai-list", smf(json!({"taiList": [tai]})), json!([tai2, tai]), json!([tai2]), "[]"),
        row("preferences-precedence", json!({}), "preferred-tai,preferred-locality", "", "preferred-tai"),
        row("support-onboarding-capability", amf(json!({"amfOnboardingCapability": true})), "true", "", "x"),
        row("support-onboarding-capability", amf(json!({})), "false", "true", "x"),
        row("uas-nf-functionality-ind", nef(json!({"uasNfFunctionalityInd": true})), "true", "false", ""),
        row("v2x-capability", pcf(json!({"v2xCapability": {"lteV2x": true}})), json!({"lteV2x": true}), json!({"nrV2x": true}), "x"),
        row("prose-capability", pcf(json!({"proseCapability": {"proseDirectDiscovey": true}})), json!({"proseDirectDiscovey": true}), json!({"proseL2RemoteUe": true}), "x"),
        row("shared-data-id", udr(json!({"sharedDataIdRanges": [{"pattern": "^00101-"}]})), "00101-x", "00102-x", "101-x"),
        row("target-hni", json!({"hniList": ["a.example.org"]}), "A.example.org", "b.example.org", ""),
        row("target-nw-resolution", json!({}), "true", "", "x"),
        row("exclude-nfinst-list", json!({}), id(2), id(1), "x"),
        row("exclude-nfservinst-list", json!({}), json!([{"serviceInstanceId": "s2", "nfInstanceId": id(1)}]), json!([{"serviceInstanceId": "s1", "nfInstanceId": id(1)}]), "[{}]"),
        row("exclude-nfserviceset-list", service(json!({"nfServiceSetIdList": ["ss1"]})), "ss2", "ss1", ""),
        row("exclude-nfset-list", json!({"nfSetIdList": ["s1"]}), "s2", "s1", ""),
        row("preferred-analytics-delays", json!({}), json!({"NF_LOAD": 5}), "", "[]"),
        row("high-latency-com", amf(json!({"highLatencyCom": true})), "true", "", "false"),
        row("high-latency-com", amf(json!({})), "", "true", "false"),
        row("nsac-sai", json!({"nsacfInfoList": {"a": {"nsacfCapability": {}, "nsacSaiList": ["a1"]}}}), "a1", "a2", ""),
    ]
}

#[test]
fn each_fits_does_not_fit_or_is_wrong() {
    for Row {
        name,
        members,
        fits,
        not,
        wrong,
    } in table()
    {
        let one = profile(&id(1), "UDM", "svc", &members);
        for (value, expected) in [(fits, 1), (not, 0)] {
            if value.is_empty() {
                continue;
            }
            let (answer, _) = ask(std::slice::from_ref(&one), &[(name, &value)])
                .unwrap_or_else(|fault| panic!("{name}={value}: {fault} is at fault"));
            assert_eq!(answer.profiles, expected, "{name}={value} ? {members}");
        }
        if wrong != ANY {
            let fault = ask(std::slice::from_ref(&one), &[(name, wrong)]).err();
            assert_eq!(fault.as_deref(), Some(name), "{name}={wrong} is wrong");
        }
    }
}

/// Values of another type, or outside of the pattern of the OpenAPI file.
#[test]
fn what_cannot_be_a_value_is_refused() {
    let bare = profile(&id(1), "UDM", "svc", &json!({}));
    let refused = |name: &str, value: &str| {
        let fault = ask(std::slice::from_ref(&bare), &[(name, value)]).err();
        assert_eq!(fault.as_deref(), Some(name), "{name}={value}");
    };
    let hosts = [
        "target-nf-fqdn",
        "target-hni",
        "pgw",
        "address-domain",
        "requester-nf-instance-fqdn",
    ];
    for name in hosts {
        for value in [
            "!!",
            "-a.example.org",
            "a b.example.org",
            "é.example.org",
            "10.0.0.1",
            "a..org",
        ] {
            refused(name, value);
        }
        // A profile may have such a name at the operator's wish.
        ask(std::slice::from_ref(&bare), &[(name, "core1")]).unwrap();
    }
    for name in ["client-type", "an-node-type", "rat-type"] {
        for value in ["5", "{}", "null", "[\"NR\"]", "{", "\"NR", "\"\""] {
            refused(name, value);
        }
        ask(std::slice::from_ref(&bare), &[(name, "E_UTRAN")]).unwrap();
    }
    for value in ["{}", "null", "[\"l1\"]", "{"] {
        refused("lmf-id", value);
    }
    for name in ["ipv4-index", "ipv6-index"] {
        for value in ["{}", "null", "true", "1.5", "[7]", "{"] {
            refused(name, value);
        }
    }
    for value in ["{}", "{\"afEvents\":[]}", "{\"appIds\":[\"a\"]}"] {
        refused("af-ee-data", value);
    }
}

/// Libraries that encode a query as a form send `+` for the blanks of JSON.
#[test]
fn a_plus_sign_between_tokens_of_json_is_a_blank() {
    let members = json!({"sNssais": [{"sst": 1, "sd": "0000aa"}], "nfSetIdList": ["a+b"]});
    let known = profile(&id(1), "UDM", "svc", &members);
    let slices = "[{\"sst\":+1,+\"sd\":+\"0000AA\"}]";
    let query = "{\"cnfUnits\":+[{\"cnfUnit\":+[{\"attr\":+\"target-nf-set-id\",+\"value\":+\"a+b\"}]}]}";
    for (name, value) in [("snssais", slices), ("complex-query", query)] {
        let (answer, _) = ask(std::slice::from_ref(&known), &[(name, value)]).unwrap();
        assert_eq!(answer.profiles, 1, "{name}={value}");
    }
}

/// A profile that says nothing of what is asked restricts nothing, unless the question is about just that.
#[test]
fn a_bare_profile_fits_what_it_does_not_restrict() {
    const ABOUT_JUST_THAT: &[&str] = &[
        "target-nf-fqdn",
        "target-snpn",
        "target-hni",
        "target-nf-set-id",
        "target-nf-service-set-id",
        "guami",
        "amf-region-id",
        "amf-set-id",
        "pgw",
        "pgw-ip",
        "pgw-ind",
        "group-id-list",
        "lmf-id",
        "nef-id",
        "gmlc-number",
        "scp-domain-list",
        "notification-type",
        "n1-msg-class",
        "n2-info-class",
        "atsss-capability",
        "w-agf-info",
        "tngf-info",
        "twif-info",
        "upf-iwk-eps-ind",
        "upf-ue-ip-addr-ind",
        "redundant-gtpu",
        "ipups",
        "data-forwarding",
        "remote-plmn-id",
        "remote-snpn-id",
        "required-pfcp-features",
        "prose-support-ind",
        "v2x-support-ind",
        "v2x-capability",
        "prose-capability",
        "analytics-aggregation-ind",
        "analytics-metadata-prov-ind",
        "ml-analytics-info-list",
        "nsacf-capability",
        "mbs-session-id-list",
        "area-session-id",
        "uas-nf-functionality-ind",
        "support-onboarding-capability",
        "high-latency-com",
    ];
    let bare = profile(&id(1), "UDM", "svc", &json!({}));
    for Row { name, fits, .. } in table() {
        if fits.is_empty() || fits == "false" {
            continue;
        }
        let (answer, _) = ask(std::slice::from_ref(&bare), &[(name, &fits)]).unwrap();
        let expected = usize::from(!ABOUT_JUST_THAT.contains(&name));
        assert_eq!(answer.profiles, expected, "{name}={fits}");
    }
}

#[test]
fn no_parameter_of_the_standard_is_missing() {
    let Some(files) = testpeer::openapi::OpenApi::find(env!("CARGO_MANIFEST_DIR")) else {
        return;
    };
    let text = std::fs::read_to_string(files.folder().join("TS29510_Nnrf_NFDiscovery.yaml")).unwrap();
    let search = text.split("  /searches/{searchId}:").next().unwrap();
    let lines: Vec<&str> = search.lines().collect();
    let names = lines
        .windows(2)
        .filter(|two| two[1].trim() == "in: query")
        .map(|two| two[0].trim().trim_start_matches("- name: ").to_owned());
    let known: Vec<&str> = table().into_iter().map(|row| row.name).collect();
    let missing: Vec<String> = names.filter(|name| !known.contains(&&**name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}
