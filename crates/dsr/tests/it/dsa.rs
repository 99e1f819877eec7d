//! The security application at the wire.

use std::path::Path;

use diameter::proto::known::{self, application, command};
use diameter::proto::{MessageBuilder, MessageMut, ResultCode};
use dsr::{Config, Running};
use dsr_dsa::{Dsa, Event};
use telemetry::journal::Kind;
use testpeer::diameter::Peer;

use crate::support::{Waiting, client, config, run, until};

pub(crate) const HOME: &str = "epc.mnc001.mcc262.3gppnetwork.org";
pub(crate) const FRANCE: &str = "epc.mnc010.mcc208.3gppnetwork.org";
pub(crate) const HSS: &str = "hss.epc.mnc001.mcc262.3gppnetwork.org";
pub(crate) const FOREIGN: &str = "ipx.west.example";
/// A command of S6a that is not for interconnection here.
pub(crate) const RESET: u32 = 322;

pub(crate) fn write(directory: &Path, name: &str, text: &str) {
    let part = directory.join("part");
    std::fs::write(&part, text).unwrap();
    std::fs::rename(part, directory.join(format!("{name}.csv"))).unwrap();
}

pub(crate) const HEAD: &str =
    "CounterMeasure_Type,Admin_Status,Operating_Mode,Continue_If_Vulnerable,Result_Code,Error_Message\n";
pub(crate) const ANSWER: &str = "Detection_And_Correction_By_Send_Answer,Yes,5012,not for interconnection";
const DROP: &str = "Detection_And_Correction_By_Drop,Yes,,";
pub(crate) const DETECT: &str = "Detection_Only,Yes,,";

pub(crate) fn tables(measures: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "Foreign_WL_Peers_Cfg_Sets",
            format!("Cfg_Set_Name,Peers\nwest,{FOREIGN}\n"),
        ),
        (
            "Realm_List",
            format!("Network_Type,Realm\nHome_Network,{HOME}\nForeign_Network,{FRANCE}\n"),
        ),
        (
            "MCC_MNC_List",
            "Network_Type,MCC_MNC\nHome_Network,26201\nForeign_Network,20810\n".to_owned(),
        ),
        (
            "AppCmdCst_Config",
            "Application_ID,Command_Codes\n16777251,316;318;321\n".to_owned(),
        ),
        ("Security_Countermeasure_Config", format!("{HEAD}{measures}")),
    ] {
        write(directory.path(), name, &text);
    }
    directory
}

pub(crate) fn guarded(base: Config, directory: &Path) -> Config {
    let yaml = format!(
        "applications: [{{name: guard, dsa: {{tables: {}, learning: 0s}}}}]
routing:
  applicationRouteTables: [{{name: default, rules: [{{action: {{application: guard}}}}]}}]
  peerRouteTables: [{{name: default, rules: [{{action: {{routeList: all}}}}]}}]
  routeLists: [{{name: all, groups: [servers]}}]
  routeGroups: [{{name: servers, peers: [{{host: {HSS}}}]}}]
",
        directory.display()
    );
    crate::support::read(base, &yaml)
}

/// A router between a foreign peer and our HSS.
pub(crate) async fn world(directory: &Path) -> (Running, Config, Peer, Peer) {
    let server = Waiting::new(HSS).await;
    let mut base = config();
    base.peers.push(server.peer());
    let config = guarded(base, directory);
    let dsr = dsr::start(config.clone()).unwrap();
    let hss = server.connected(&dsr).await;
    let foreign = client(&dsr, FOREIGN).await;
    (dsr, config, foreign, hss)
}

pub(crate) fn request(command: u32, host: &str) -> MessageMut {
    let mut builder = MessageBuilder::request(command, application::S6A);
    builder
        .put(known::SESSION_ID, &format!("{host}.{FRANCE};1;2"))
        .put(known::AUTH_SESSION_STATE, 1)
        .put(known::ORIGIN_HOST, &format!("{host}.{FRANCE}"))
        .put(known::ORIGIN_REALM, FRANCE)
        .put(known::DESTINATION_REALM, HOME)
        .put(known::USER_NAME, "262011234567890")
        .put(known::VISITED_PLMN_ID, &[0x02, 0xf8, 0x01]);
    builder.finish().unwrap()
}

/// The HSS answers the next request as it does for its subscriber.
pub(crate) async fn served(foreign: &mut Peer, hss: &mut Peer, sent: &MessageMut) {
    foreign.send(sent.as_bytes()).await;
    let request = hss.expect(sent.command()).await;
    let mut answer = MessageBuilder::answer(&request);
    answer
        .put(known::SESSION_ID, request.require(known::SESSION_ID).unwrap())
        .put(known::RESULT_CODE, 2001)
        .put(known::AUTH_SESSION_STATE, 1)
        .put(known::ORIGIN_HOST, HSS)
        .put(known::ORIGIN_REALM, HOME);
    hss.send(answer.finish().unwrap().as_bytes()).await;
    foreign.expect_result(sent.command(), ResultCode::SUCCESS).await;
}

#[test]
fn findings_go_on_are_answered_or_dropped_and_are_counted_by_partner_and_measure() {
    run(async {
        let directory = tables(&format!("AppCmdCst,Enable,{ANSWER}\nDrOrMatch,Enable,{DETECT}\n"));
        let (dsr, _, mut foreign, mut hss) = world(directory.path()).await;
        served(&mut foreign, &mut hss, &request(command::UPDATE_LOCATION, "mme1")).await;
        assert_eq!(dsr.count_of::<Dsa>(Event::Found), 0);
        foreign.send(request(RESET, "mme1").as_bytes()).await;
        let answer = foreign.expect(RESET).await;
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 5012);
        assert_eq!(
            answer.require(known::ERROR_MESSAGE).unwrap(),
            "not for interconnection"
        );
        // Detection only: it goes to our HSS.
        let mut same = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
        same.put(known::SESSION_ID, "mme1;1;2")
            .put(known::ORIGIN_HOST, "mme1.example")
            .put(known::ORIGIN_REALM, HOME)
            .put(known::DESTINATION_REALM, HOME);
        served(&mut foreign, &mut hss, &same.finish().unwrap()).await;
        let events = [Event::Screened, Event::Found, Event::Answered, Event::Dropped];
        // Three requests, and the answers to those that went on.
        assert_eq!(events.map(|event| dsr.count_of::<Dsa>(event)), [5, 2, 1, 0]);
        let page = dsr.handle().registry().render();
        for (measure, outcome) in [("AppCmdCst", "answered"), ("DrOrMatch", "detected")] {
            let line = format!(
                "signalbox_dsr_security_findings_total{{application=\"guard\",partner=\"west\",measure=\"{measure}\",outcome=\"{outcome}\"}} 1"
            );
            assert!(page.contains(&line), "{line}: {page}");
        }
    });
}

#[test]
fn why_says_what_a_message_would_meet_and_counts_nothing() {
    run(async {
        let directory = tables(&format!("AppCmdCst,Enable,{ANSWER}\n"));
        let (dsr, _, _foreign, _hss) = world(directory.path()).await;
        let text = format!(
            "ULR app=16777252 flags=RP {{ Session-Id = \"a;1\" Origin-Host = \"mme1.{FRANCE}\" \
             Origin-Realm = \"{FRANCE}\" Destination-Realm = \"{HOME}\" User-Name = \"262011234567890\" }}"
        );
        let why = dsr.why(FOREIGN, &text);
        let found = why["application"]["findings"].to_string();
        assert!(found.contains("screened as from partner west"), "{why}");
        assert!(
            found.contains("AppCmdCst: command 316 of application 16777252"),
            "{why}"
        );
        assert!(
            why["route"]["outcome"].as_str().unwrap().contains("5012"),
            "{why}"
        );
        let why = dsr.why(FOREIGN, &text.replace("16777252", "16777251"));
        assert!(
            why["route"]["outcome"]
                .as_str()
                .unwrap()
                .contains("route list all"),
            "{why}"
        );
        assert_eq!(dsr.count_of::<Dsa>(Event::Screened), 0);
    });
}

#[test]
fn tables_change_beside_the_traffic_and_subscribers_stay_known() {
    run(async {
        let directory = tables(&format!("PreLocChk,Enable,{DROP}\n"));
        let (dsr, config, mut foreign, mut hss) = world(directory.path()).await;
        served(&mut foreign, &mut hss, &request(command::UPDATE_LOCATION, "mme1")).await;
        // A table with a mistake changes nothing, and is named.
        write(
            directory.path(),
            "AppCmdCst_Config",
            "Application_ID,Command_Codes\nx,1\n",
        );
        let error = dsr.reload(&config).unwrap_err().to_string();
        assert!(
            error.contains("AppCmdCst_Config.csv:2: `x` is not an Application_ID"),
            "{error}"
        );
        let mut faults = settings::Faults::default();
        dsr::check_files(&config, &mut faults);
        let faults = faults.into_vec();
        assert_eq!(faults.len(), 1, "{faults:?}");
        write(
            directory.path(),
            "AppCmdCst_Config",
            "Application_ID,Command_Codes\n16777251,316;321;323\n",
        );
        write(
            directory.path(),
            "Security_Countermeasure_Config",
            &format!("{HEAD}PreLocChk,Enable,{ANSWER}\n"),
        );
        dsr.reload(&config).unwrap();
        let other = request(command::PURGE_UE, "mme2");
        let mut code = 0;
        // A worker takes the new tables in a turn of its own; until then a purge is dropped.
        while code != 5012 {
            foreign.send(other.as_bytes()).await;
            let dropped = dsr.count_of::<Dsa>(Event::Dropped);
            until(|| {
                dsr.count_of::<Dsa>(Event::Answered) > 0 || dsr.count_of::<Dsa>(Event::Dropped) > dropped
            })
            .await;
            if dsr.count_of::<Dsa>(Event::Answered) > 0 {
                code = foreign
                    .expect(command::PURGE_UE)
                    .await
                    .require(known::RESULT_CODE)
                    .unwrap();
            }
        }
        // The MME where the subscriber registered before the reload is known.
        served(&mut foreign, &mut hss, &request(command::PURGE_UE, "mme1")).await;
        let known = dsr.look_up("imsi:262011234567890");
        assert_eq!(
            (&known[0]["known"], &known[0]["registered"]),
            (&true.into(), &false.into())
        );
        let rows = dsr.applications();
        assert!(
            rows.iter()
                .any(|row| row.table == "subscribers" && row.entries == 1)
        );
    });
}

/// A file that goes away must not switch the measures off in silence.
#[test]
fn tables_that_cannot_be_used_raise_an_alarm_and_those_before_stay() {
    run(async {
        let directory = tables(&format!("AppCmdCst,Enable,{ANSWER}\n"));
        let (dsr, _, mut foreign, _hss) = world(directory.path()).await;
        let handle = dsr.handle();
        let alarm = || {
            let active = handle.alarms().active();
            active.into_iter().find(|alarm| alarm.number == 10525)
        };
        std::fs::remove_file(directory.path().join("Security_Countermeasure_Config.csv")).unwrap();
        until(|| alarm().is_some()).await;
        let detail = alarm().unwrap().detail;
        assert!(detail.contains("no measure is on"), "{detail}");
        let entry = handle.alarms().journal().last_of(Kind::ReloadRefused).unwrap();
        assert_eq!(entry.about, "files of applications");
        foreign.send(request(RESET, "mme1").as_bytes()).await;
        let answer = foreign.expect(RESET).await;
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 5012);
        let measures = format!("{HEAD}PreLocChk,Enable,{ANSWER}\n");
        write(directory.path(), "Security_Countermeasure_Config", &measures);
        until(|| alarm().is_none()).await;
        assert!(handle.alarms().journal().last_of(Kind::ReloadApplied).is_some());
    });
}
