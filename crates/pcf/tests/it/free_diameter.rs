//! freeDiameter as PCEF and as AF: what its own dictionary makes of our answers and requests, and whether tshark decodes
//! all of it.

use diameter::proto::known::application;
use diameter::proto::{Dictionary, text};
use pcf::config::{Sd, Tdf};
use testpeer::freediameter::{Console, Setup};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::diameter::{AAR, CCR_I, CCR_T, STR};
use crate::support::{Pcf, local, start};
use crate::wiretap::Wiretap;

const HOST: &str = "pcf.example";

/// A freeDiameter that is connected to the PCF through a wiretap; none where it is not installed.
async fn console(identity: &str, tap: &Wiretap, applications: &[u32]) -> Option<Console> {
    let setup = Setup {
        identity,
        realm: "example",
        port: 0,
        peers: &[(HOST, tap.address)],
    };
    Console::start(setup, applications).await
}

/// Sends a request of this text over a session.
fn send(console: &mut Console, application: u32, session: &str, request: &str) {
    let (head, body) = request.split_once('\n').unwrap();
    let text = format!(
        "{head} app={application} flags=RP {{\nSession-Id = \"{session}\"\nAuth-Application-Id = {application}\n\
         Destination-Realm = \"example\"\n{body}\n}}"
    );
    console.send(&text::parse(&text, Dictionary::standard()).unwrap());
}

/// Checks that a message has these lines, and AVPs that freeDiameter knows alone.
fn has(message: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            message.lines().any(|one| one.trim() == *line),
            "no {line} in\n{message}"
        );
    }
    assert!(
        !message.contains('?'),
        "an AVP that freeDiameter does not know:\n{message}"
    );
}

fn pcf() -> Pcf {
    start(|config| {
        config.diameter.host = HOST.to_owned();
        config.diameter.realm = "example".to_owned();
    })
}

/// Checks that tshark decodes all that was captured, with these numbers of messages by application and command.
fn judge(tap: &Wiretap, expected: &[(u32, u32, usize)]) {
    tap.flush();
    let fields = [
        "-Y",
        "diameter.applicationId != 0",
        "-T",
        "fields",
        "-e",
        "diameter.applicationId",
        "-e",
        "diameter.cmd.code",
    ];
    let Some(all) = tshark(&fields, &tap.file) else {
        return;
    };
    for (application, command, number) in expected {
        let line = format!("{application}\t{command}");
        let found = all.lines().filter(|one| *one == line).count();
        assert_eq!(found, *number, "messages {line} of\n{all}");
    }
    let total: usize = expected.iter().map(|(_, _, number)| number).sum();
    assert_eq!(all.lines().count(), total, "{all}");
    let complaints = tshark(&["-Y", COMPLAINTS, "-V"], &tap.file).unwrap();
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn free_diameter_as_pcef_and_af_makes_a_voice_call() {
    local(async {
        let pcf = pcf();
        let folder = tempfile::tempdir().unwrap();
        let tap = Wiretap::start(pcf.running().diameter_addresses()[0], folder.path()).await;
        let Some(mut pgw) = console("pgw.example", &tap, &[application::GX]).await else {
            return;
        };
        let mut cscf = console("cscf.example", &tap, &[application::RX]).await.unwrap();
        let gx = |console: &mut Console, text: &str| send(console, application::GX, "pgw;1;1", text);
        let rx = |console: &mut Console, session: &str, text: &str| {
            // The AA command of freeDiameter is that of RFC 7155.
            let text = text.replacen("AAR\n", "AAR\nAuth-Request-Type = AUTHORIZE_ONLY\n", 1);
            send(console, application::RX, session, &text);
        };

        gx(&mut pgw, CCR_I);
        let begun = pgw.expect("Credit-Control-Answer", 1).await;
        has(
            &begun,
            &[
                "Result-Code = 2001",
                "CC-Request-Type = 1",
                "Bearer-Control-Mode = 2",
                "Feature-List = 11",
                "APN-Aggregate-Max-Bitrate-DL = 100000000",
                "Default-EPS-Bearer-QoS = {",
                "QoS-Class-Identifier = 5",
            ],
        );

        rx(&mut cscf, "cscf;1;1", AAR);
        let authorized = cscf.expect("AA-Answer", 1).await;
        has(
            &authorized,
            &["Result-Code = 2001", "IP-CAN-Type = 5", "RAT-Type = 1004"],
        );
        let install = pgw.expect("Re-Auth-Request", 1).await;
        has(
            &install,
            &[
                "Destination-Host = \"pgw.example\"",
                "Charging-Rule-Definition = {",
                "QoS-Class-Identifier = 1",
                "Guaranteed-Bitrate-UL = 64000",
                "Flow-Description = \"permit out 17 from 192.0.2.99 40000 to 10.0.0.1 50000\"",
                "Charging-Correlation-Indicator = 0",
            ],
        );
        let name = "Charging-Rule-Name = ";
        let names: Vec<&str> = install.lines().filter(|line| line.contains(name)).collect();
        assert_eq!(names.len(), 2, "{install}");

        let report = format!(
            "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = CHARGING_CORRELATION_EXCHANGE\n\
             Access-Network-Charging-Identifier-Gx = {{ Access-Network-Charging-Identifier-Value = 0x00000011 {} }}",
            names[0].trim()
        );
        gx(&mut pgw, &report);
        has(
            &pgw.expect("Credit-Control-Answer", 2).await,
            &["Result-Code = 2001"],
        );
        let notified = cscf.expect("Re-Auth-Request", 1).await;
        has(
            &notified,
            &[
                "Specific-Action = 1",
                "Access-Network-Charging-Identifier-Value = 0x00000011",
            ],
        );

        rx(&mut cscf, "cscf;1;1", STR);
        has(
            &cscf.expect("Session-Termination-Answer", 1).await,
            &["Result-Code = 2001"],
        );
        let remove = pgw.expect("Re-Auth-Request", 2).await;
        has(
            &remove,
            &["Charging-Rule-Remove = {", names[0].trim(), names[1].trim()],
        );

        // A second call is lost with the session.
        rx(&mut cscf, "cscf;1;2", AAR);
        pgw.expect("Re-Auth-Request", 3).await;
        gx(&mut pgw, CCR_T);
        has(
            &pgw.expect("Credit-Control-Answer", 3).await,
            &["Result-Code = 2001", "CC-Request-Type = 3"],
        );
        let aborted = cscf.expect("Abort-Session-Request", 1).await;
        has(&aborted, &["Session-Id = \"cscf;1;2\"", "Abort-Cause = 0"]);
        rx(&mut cscf, "cscf;1;2", STR);
        cscf.expect("Session-Termination-Answer", 2).await;

        let count = |event| pcf.running().count(event);
        testpeer::until("all requests are answered", async || {
            count(pcf::Event::DiameterAnswered) == 5
        })
        .await;
        assert_eq!(
            (
                count(pcf::Event::GxDeleted),
                count(pcf::Event::DiameterUnanswered)
            ),
            (1, 0)
        );
        judge(
            &tap,
            &[
                (application::GX, 272, 6),
                (application::GX, 258, 6),
                (application::RX, 265, 4),
                (application::RX, 258, 2),
                (application::RX, 274, 2),
                (application::RX, 275, 4),
            ],
        );
    });
}

#[test]
fn free_diameter_as_pcef_gets_thresholds_applications_and_refusals() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let project = "name: test\nservice: sm\nblocks:\n  - pccRule: {pccRuleId: netvideo, appId: netvideo, precedence: 100, refQosData: [slow], \
                       refTcData: [portal]}\n  - qosData: {qosId: slow, 5qi: 9, maxbrUl: 5 Mbps, maxbrDl: 6 Mbps}\n  \
                       - trafficControlData: {tcId: portal, flowStatus: ENABLED, redirectInfo: {redirectEnabled: true, \
                       redirectAddressType: URL, redirectServerAddress: 'http://portal.example/'}}\n  \
                       - triggers: [APP_STA, APP_STO]\n";
        std::fs::write(folder.path().join("project.yaml"), project).unwrap();
        let pcf = start(|config| {
            config.diameter.host = HOST.to_owned();
            config.diameter.realm = "example".to_owned();
            config.policy.sm = Some(folder.path().to_owned());
            config.usage.portion = settings::ByteSize(4_000);
            let limit = serde_json::json!({"totalVolume": "10000", "reset": "monthly"});
            let limit = serde_json::from_value(limit).unwrap();
            config.usage.limits.insert("month".to_owned(), limit);
        });
        let tap = Wiretap::start(pcf.running().diameter_addresses()[0], folder.path()).await;
        let applications = [application::GX, application::RX];
        let Some(mut pgw) = console("pgw.example", &tap, &applications).await else {
            return;
        };
        // 5140: a CCR-I without a subscriber. freeDiameter discards a CCA without a Result-Code (RFC 4006); tshark has it.
        let anonymous: Vec<&str> = CCR_I
            .lines()
            .filter(|line| !line.starts_with("Subscription-Id"))
            .collect();
        send(&mut pgw, application::GX, "pgw;1;0", &anonymous.join("\n"));
        send(&mut pgw, application::GX, "pgw;1;0", CCR_T);
        let refused = pgw.expect("Credit-Control-Answer", 1).await;
        has(
            &refused,
            &[
                "Result-Code = 5002",
                "CC-Request-Type = 3",
                "CC-Request-Number = 9",
            ],
        );

        send(&mut pgw, application::GX, "pgw;1;1", CCR_I);
        let begun = pgw.expect("Credit-Control-Answer", 2).await;
        has(
            &begun,
            &[
                "TDF-Application-Identifier = \"netvideo\"",
                "Max-Requested-Bandwidth-UL = 5000000",
                "Redirect-Server-Address = \"http://portal.example/\"",
                "Event-Trigger = 39",
                "Event-Trigger = 33",
                "Monitoring-Key = \"month\"",
                "CC-Total-Octets = 4000",
                "Usage-Monitoring-Level = 1",
            ],
        );
        let report = "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = APPLICATION_START\n\
                      Event-Trigger = USAGE_REPORT\n\
                      Application-Detection-Information = { TDF-Application-Identifier = \"netvideo\" \
                      TDF-Application-Instance-Identifier = 0x0101 \
                      Flow-Information = { Flow-Description = \"permit out 6 from 192.0.2.7 443 to 10.0.0.1 40000\" \
                      Flow-Direction = DOWNLINK } }\n\
                      Usage-Monitoring-Information = { Monitoring-Key = \"month\" \
                      Used-Service-Unit = { CC-Total-Octets = 3000 } Usage-Monitoring-Level = PCC_RULE_LEVEL }";
        send(&mut pgw, application::GX, "pgw;1;1", report);
        has(
            &pgw.expect("Credit-Control-Answer", 3).await,
            &["Result-Code = 2001", "CC-Total-Octets = 4000"],
        );
        send(&mut pgw, application::GX, "pgw;1;1", CCR_T);
        pgw.expect("Credit-Control-Answer", 4).await;
        judge(&tap, &[(application::GX, 272, 10)]);
    });
}

#[test]
fn free_diameter_as_tdf_gets_adc_rules_and_reports_an_application() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("project.yaml"), crate::sd::PROJECT).unwrap();
        let pcf = start(|config| {
            config.diameter.host = HOST.to_owned();
            config.diameter.realm = "example".to_owned();
            config.policy.sm = Some(folder.path().to_owned());
            config.sd = Sd {
                enabled: true,
                tdf: Some(Tdf {
                    host: "tdf.example".to_owned(),
                    realm: String::new(),
                }),
                ..Sd::default()
            };
        });
        let tap = Wiretap::start(pcf.running().diameter_addresses()[0], folder.path()).await;
        let Some(mut tdf) = console("tdf.example", &tap, &[application::SD]).await else {
            return;
        };
        let mut pgw = console("pgw.example", &tap, &[application::GX]).await.unwrap();
        // The TDF is connected when it is answered.
        let probe = "CCR\nCC-Request-Type = TERMINATION_REQUEST\nCC-Request-Number = 1";
        send(&mut tdf, application::SD, "tdf;1;1", probe);
        has(
            &tdf.expect("Credit-Control-Answer", 1).await,
            &["Result-Code = 5002"],
        );

        send(&mut pgw, application::GX, "pgw;1;1", CCR_I);
        pgw.expect("Credit-Control-Answer", 1).await;
        let opened = tdf.expect("TDF-Session-Request", 1).await;
        has(
            &opened,
            &[
                "ADC-Rule-Install = {",
                "ADC-Rule-Definition = {",
                "ADC-Rule-Name = \"video\"",
                "TDF-Application-Identifier = \"video\"",
                "ADC-Rule-Name = \"predefined\"",
                "Event-Trigger = 39",
            ],
        );
        let session = opened
            .lines()
            .find_map(|line| line.trim().strip_prefix("Session-Id = \""));
        let session = session.unwrap().trim_end_matches('"').to_owned();
        let report = "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 0\nEvent-Trigger = APPLICATION_START\n\
                      Application-Detection-Information = { TDF-Application-Identifier = \"video\" }";
        send(&mut tdf, application::SD, &session, report);
        has(
            &tdf.expect("Credit-Control-Answer", 2).await,
            &["Result-Code = 2001", "ADC-Rule-Name = \"games\""],
        );
        has(
            &pgw.expect("Re-Auth-Request", 1).await,
            &["APN-Aggregate-Max-Bitrate-UL = 1000000"],
        );
        send(&mut pgw, application::GX, "pgw;1;1", CCR_T);
        pgw.expect("Credit-Control-Answer", 2).await;
        has(
            &tdf.expect("Re-Auth-Request", 1).await,
            &["Session-Release-Cause = 0"],
        );
        send(&mut tdf, application::SD, &session, probe);
        has(
            &tdf.expect("Credit-Control-Answer", 3).await,
            &["Result-Code = 2001", "CC-Request-Type = 3"],
        );
        testpeer::until("all requests are answered", async || {
            pcf.running().count(pcf::Event::DiameterAnswered) == 3
        })
        .await;
        judge(
            &tap,
            &[
                (application::GX, 272, 4),
                (application::GX, 258, 2),
                (application::SD, 8_388_637, 2),
                (application::SD, 272, 6),
                (application::SD, 258, 2),
            ],
        );
    });
}
