//! What is acknowledged survives the router.

use diameter::proto::known::{self, application, command};
use diameter::proto::{CommandFlags, ResultCode};
use dsr_pdra::Event;

use super::support::{IMSI, PCRFS, World, aar, ccr, initial, subscriber};
use crate::support::{config, copy_store, invalid_settings, read, run, until};

#[test]
fn every_binding_that_was_acknowledged_is_there_after_a_kill() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        let mut at = Vec::new();
        {
            let mut world = World::new(&before, "").await;
            for number in 0..50_u8 {
                let imsi = format!("0010100000000{number:02}");
                let request = ccr(&format!("pgw;1;{number}"), 1, |b| {
                    subscriber(b, 1, &imsi);
                    b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, number]);
                });
                at.push(world.session(&request).await);
            }
            // The router runs and has closed nothing.
            copy_store(&before, &after);
        }
        let mut world = World::new(&after, "").await;
        for number in 0..50_u8 {
            let found = aar(&format!("af;1;{number}"), |b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, number]);
            });
            assert_eq!(world.of_af(&found).await, at[usize::from(number)]);
        }
    });
}

#[test]
fn an_end_that_is_owed_to_a_pcrf_outlives_the_router() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        let hidden = |directory: &std::path::Path| {
            let mut config = super::support::agent(directory, &PCRFS, "");
            config.topology_hiding = super::hiding::lengthening(application::GX, PCRFS);
            config
        };
        let at = {
            let mut world = World::of(hidden(&before), &PCRFS).await;
            let (at, asked) = world.reaches(&initial("pgw;1;1", IMSI)).await;
            let answer = super::hiding::too_long(&asked, PCRFS[at]);
            world.pcrfs[at].send(answer.as_bytes()).await;
            world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_COMPLY)
                .await;
            // The PCRF gets its end, and does not answer; the router runs and has closed nothing.
            world.pcrfs[at].expect(command::CREDIT_CONTROL).await;
            copy_store(&before, &after);
            at
        };
        let mut world = World::of(hidden(&after), &PCRFS).await;
        let end = world.pcrfs[at].expect(command::CREDIT_CONTROL).await;
        assert_eq!(end.require(known::SESSION_ID).unwrap(), "pgw;1;1");
        assert_eq!(end.require(known::CC_REQUEST_TYPE).unwrap(), 3);
        // It may have come before (RFC 6733 §5.5.4).
        assert!(end.flags().contains(CommandFlags::RETRANSMITTED));
        world.pcrfs[at].answer(&end, ResultCode::SUCCESS).await;
        until(|| world.count(Event::EndedForClient) == 1).await;
    });
}

#[test]
fn bindings_outlive_a_reload_of_the_application() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        // The PCRF that has the session gets no new subscribers; another setting of the same application.
        let mut config = world.dsr.snapshot().config.as_ref().clone();
        let pdra = config.applications[0].pdra.as_mut().unwrap();
        pdra.pools[0].pcrfs[at].weight = 0;
        world.dsr.reload(&config).unwrap();
        assert_eq!(world.session(&initial("pgw;1;2", IMSI)).await, at);
        for number in 0..10 {
            let imsi = format!("00101000000010{number}");
            let other = world.session(&initial(&format!("pgw;2;{number}"), &imsi)).await;
            assert_eq!(PCRFS[other], PCRFS[1 - at]);
        }
    });
}

#[test]
fn a_router_without_its_store_does_not_start() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "not a directory").unwrap();
        let config = super::support::agent(&file, &PCRFS, "");
        let error = dsr::start(config).err().unwrap().to_string();
        assert!(error.contains("policy"), "{error}");
    });
}

#[test]
fn a_reload_with_another_repository_is_refused_with_the_remedy() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (before, other) = (folder.path().join("before"), folder.path().join("other"));
        let mut world = World::new(&before, "").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        let config = world.dsr.snapshot().config.as_ref().clone();
        let changed = |change: &dyn Fn(&mut dsr_pdra::config::Pdra)| {
            let mut config = config.clone();
            change(config.applications[0].pdra.as_mut().unwrap());
            config
        };
        let refused = [
            changed(&|pdra| pdra.repository.store.embedded.directory.clone_from(&other)),
            changed(&|pdra| pdra.repository.max_sessions = 7),
        ];
        for config in &refused {
            let error = world.dsr.reload(config).unwrap_err().to_string();
            let has = |words: &str| error.contains(words);
            assert!(has("policy") && has("`repository`") && has("restart"), "{error}");
        }
        assert!(!other.exists());
        // The same directory by another name is the same repository, and what else changes is taken.
        let same = changed(&|pdra| {
            pdra.repository.store.embedded.directory = folder.path().join("./before/../before");
            pdra.pools[0].pcrfs[at].weight = 0;
        });
        world.dsr.reload(&same).unwrap();
        assert_eq!(world.session(&initial("pgw;1;2", IMSI)).await, at);
        assert_eq!(world.dsr.pdra_sessions("binding", IMSI).len(), 2);
    });
}

#[test]
fn an_application_that_a_reload_renames_keeps_its_repository() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (before, other) = (folder.path().join("before"), folder.path().join("other"));
        let mut world = World::new(&before, "").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        let mut renamed = world.dsr.snapshot().config.as_ref().clone();
        renamed.applications[0].name = "policy2".to_owned();
        let rule = &mut renamed.routing.application_route_tables[0].rules[0];
        rule.action = dsr::config::ApplicationAction::Application("policy2".to_owned());
        let mut moved = renamed.clone();
        let pdra = moved.applications[0].pdra.as_mut().unwrap();
        pdra.repository.store.embedded.directory.clone_from(&other);
        let error = world.dsr.reload(&moved).unwrap_err().to_string();
        assert!(error.contains("policy2") && error.contains("restart"), "{error}");
        assert!(!other.exists());
        world.dsr.reload(&renamed).unwrap();
        assert_eq!(world.session(&initial("pgw;1;2", IMSI)).await, at);
        // A further one, beside it, may have a repository of its own.
        let mut both = renamed.clone();
        both.applications.extend(moved.applications.clone());
        both.applications[1].name = "further".to_owned();
        world.dsr.reload(&both).unwrap();
        assert!(other.exists());
    });
}

#[test]
fn applications_on_one_store_have_the_same_settings_of_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut both = super::support::agent(folder.path(), &PCRFS, "");
        both.applications.push(both.applications[0].clone());
        both.applications[1].name = "other".to_owned();
        let mistakes = |config: &dsr::Config| {
            let mut faults = settings::Faults::default();
            dsr::check_files(config, &mut faults);
            let faults = faults.into_vec().into_iter();
            faults.map(|fault| fault.path).collect::<Vec<String>>()
        };
        assert!(mistakes(&both).is_empty());
        let other = both.applications[1].pdra.as_mut().unwrap();
        other.repository.max_sessions_per_subscriber = 7;
        assert_eq!(mistakes(&both).len(), 1);
        let on_database = |further: &str| {
            let pdra = |name: &str, further: &str| {
                let repository = format!("{{store: {{engine: mariadb}}{further}}}");
                let pools = "[{name: all, pcrfs: [{host: pcrf.example}]}]";
                format!("  - {{name: {name}, pdra: {{repository: {repository}, pools: {pools}}}}}\n")
            };
            let yaml = format!("applications:\n{}{}", pdra("one", ""), pdra("two", further));
            mistakes(&read(config(), &yaml))
        };
        assert!(on_database("").is_empty());
        let paths = on_database(", maxSessions: 7");
        assert_eq!(paths, ["dsr.applications[1].pdra.repository"]);
        // Without a check, the second one does not start.
        let error = dsr::start(both).err().unwrap().to_string();
        assert!(error.contains("other settings"), "{error}");
    });
}

#[test]
fn a_reservation_lasts_longer_than_the_requests_that_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = super::support::agent(folder.path(), &PCRFS, "");
    assert!(invalid_settings(&config).is_empty());
    config.routing.transaction.lifetime = settings::Period::from_secs(60);
    assert_eq!(
        invalid_settings(&config),
        ["applications[0].pdra.repository.reservation"]
    );
}

#[test]
fn records_are_indicators_with_the_numbers_of_the_guide() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        world.session(&initial("pgw;1;1", IMSI)).await;
        world.of_af(&aar("af;1;1", |b| subscriber(b, 1, IMSI))).await;
        let is = |id: u32, least: f64| {
            let rows = world.dsr.indicators();
            rows.iter()
                .any(|row| row.id == id && row.instance == "policy" && row.value > least)
        };
        // SbrPolicySessionRecsAvg, SbrPolicyBindingRecsAvg: averages, which rise with each second.
        until(|| is(11_372, 1.0) && is(11_374, 0.5)).await;
        assert!(!is(11_374, 1.0));
    });
}
