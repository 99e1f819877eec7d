//! What operators see: why a request goes where it goes, the session on its page, messages in a trace.

use diameter::proto::known::command;
use diameter::proto::{Dictionary, MessageMut, ResultCode, text};
use dsr_ocdra::Event;
use testpeer::tshark::{COMPLAINTS, tshark};

use super::support::{
    CTF, EVENT, IMSI, OCSS, TERMINATION, UPDATE, World, agent, answer, ccr, initial, later, report,
};
use crate::support::{config, read, run};

#[test]
fn why_says_which_ocs_and_changes_nothing() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let why = |world: &World, request: &MessageMut| {
            let text = text::print(request, Dictionary::standard()).to_string();
            world.dsr.why(CTF, &text).to_string()
        };
        let first = initial("ctf;1;1", IMSI);
        let shown = why(&world, &first);
        assert!(
            shown.contains("begins a session") && shown.contains("of pool all"),
            "{shown}"
        );
        let expected = OCSS.into_iter().position(|host| shown.contains(host)).unwrap();
        assert_eq!((world.count(Event::Chosen), world.entries("beginning")), (0, 0));
        assert_eq!(world.served(&first).await, expected);
        let host = OCSS[expected];
        let at_ocs = format!("its session is at {host}: chosen by weight");
        for request in [first, later("ctf;1;1", UPDATE, 1, OCSS[1 - expected])] {
            let shown = why(&world, &request);
            assert!(shown.contains(&at_ocs), "{shown}");
        }
        for (request, words) in [
            (
                report(0, command::RE_AUTH, "ctf;1;1", CTF),
                "its session is that of the client",
            ),
            (later("ctf;9;9", UPDATE, 1, host), "its session is not known"),
            (ccr("ctf;9;9", EVENT, 0, |_| ()), "a one-time event"),
            (ccr("ctf;9;9", 7, 0, |_| ()), "is refused"),
        ] {
            let shown = why(&world, &request);
            assert!(shown.contains(words), "{shown}");
        }
        assert_eq!(world.count(Event::UnknownSession), 0);
    });
}

#[test]
fn tshark_reads_every_message_of_a_session_that_moves() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (store, traces) = (folder.path().join("store"), folder.path().join("traces"));
        std::fs::create_dir(&traces).unwrap();
        let point = "{name: charging, when: {commands: [272, 258]}, messages: 100}";
        let settings = format!("trace: {{directory: {}, points: [{point}]}}\n", traces.display());
        let mut config_of_all = agent(&store, ", shared: true", "");
        config_of_all.trace = read(config(), &settings).trace;
        let mut world = World::of(config_of_all).await;
        let at = world.served_with(&initial("ctf;1;1", IMSI), Some(1)).await;
        world
            .reports(at, command::RE_AUTH, "ctf;1;1", CTF, ResultCode::SUCCESS)
            .await;
        let (_, arrived) = world.reaches(&later("ctf;1;1", UPDATE, 1, CTF)).await;
        let busy = answer(&arrived, OCSS[at], ResultCode::TOO_BUSY, None);
        world.ocss[at].send(busy.as_bytes()).await;
        let arrived = world.ocss[1 - at].expect(command::CREDIT_CONTROL).await;
        world.answers(1 - at, &arrived, ResultCode::SUCCESS, None).await;
        world
            .is_refused(
                &ccr("ctf;9;9", TERMINATION, 1, |_| ()),
                ResultCode::UNKNOWN_SESSION_ID,
            )
            .await;
        world.dsr.stop().unwrap();
        let file = traces.join("charging.pcapng");
        let Some(all) = tshark(&["-Y", "diameter"], &file) else {
            return;
        };
        assert!(all.lines().count() >= 12, "{all}");
        let complaints = tshark(&["-Y", COMPLAINTS], &file).unwrap();
        assert_eq!(complaints, "");
    });
}
