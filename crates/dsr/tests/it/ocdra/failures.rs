//! OCSs that are unreachable, lost, silent, busy, or not the one that was asked: never two for one request, unless the first is
//! known not to have got it or the session may fail over.

use diameter::proto::known::command;
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use dsr::config::Peer;
use dsr_ocdra::Event;

use super::support::{
    CTF, EVENT, IMSI, OCSS, TERMINATION, UPDATE, World, again, agent, answer, ccr, initial, is_again, later,
};
use crate::pdra::support::subscriber;
use crate::support::{config, lost, one_list, read, run, until};

const SUPPORTED: Option<i32> = Some(1);
const NOT_SUPPORTED: Option<i32> = Some(0);

impl World {
    /// Lets the connection of an OCS end.
    async fn lose(&mut self, at: usize) {
        lost(&self.dsr, &mut self.ocss[at], OCSS[at]).await;
    }

    /// Lets the connection of an OCS come back.
    async fn restore(&mut self, at: usize) {
        self.ocss[at] = self.servers[at].relay(&self.dsr).await;
    }

    /// A request of the client that an OCS gets and does not answer, because it is lost.
    async fn is_lost_with(&mut self, request: &MessageMut) -> usize {
        let (at, _) = self.reaches(request).await;
        self.lose(at).await;
        at
    }

    /// Sends a request of the client, which this OCS gets and answers with success: it, as the OCS got it.
    async fn is_served_by(&mut self, at: usize, request: &MessageMut) -> MessageMut {
        self.ctf.send(request.as_bytes()).await;
        self.takes_over(at, None).await
    }

    /// The request that an OCS gets next, which it answers with success.
    async fn takes_over(&mut self, at: usize, failover: Option<i32>) -> MessageMut {
        let arrived = self.ocss[at].expect(command::CREDIT_CONTROL).await;
        self.answers(at, &arrived, ResultCode::SUCCESS, failover).await;
        arrived
    }
}

#[test]
fn one_that_is_unreachable_is_passed_over() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let at = world.served(&initial("ctf;1;1", IMSI)).await;
        world.lose(at).await;
        let left = 1 - at;
        let arrived = world.is_served_by(left, &initial("ctf;1;2", IMSI)).await;
        assert!(!is_again(&arrived));
        let rule = &world.session("ctf;1;2").unwrap()["rule"];
        assert_eq!(rule, "chosen after another OCS failed");
        assert_eq!(world.count(Event::Again), 1);
        // Without any OCS a session does not begin, and its Session-Id is free.
        world.lose(left).await;
        world
            .is_refused(&initial("ctf;1;3", IMSI), ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(world.entries("beginning"), 0);
        world.restore(left).await;
        world.is_served_by(left, &initial("ctf;1;3", IMSI)).await;
    });
}

#[test]
fn a_request_that_begins_a_session_and_may_have_been_got_stays_with_its_ocs() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let request = initial("ctf;1;1", IMSI);
        let at = world.is_lost_with(&request).await;
        world
            .ctf
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(world.count(Event::Doubtful), 1);
        // The client tries again: not at the other OCS, as long as the first may have it.
        world
            .is_refused(&again(request), ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert!(world.session("ctf;1;1").is_none());
        // Another session of the subscriber goes to the other OCS meanwhile.
        world.is_served_by(1 - at, &initial("ctf;1;2", IMSI)).await;
        world.restore(at).await;
        let (same, arrived) = world.reaches(&again(initial("ctf;1;1", IMSI))).await;
        assert_eq!((same, is_again(&arrived)), (at, true));
        world.answers(same, &arrived, ResultCode::SUCCESS, None).await;
        assert_eq!(world.session("ctf;1;1").unwrap()["ocs"], OCSS[at]);
        until(|| world.entries("beginning") == 0).await;
    });
}

#[test]
fn one_that_never_answers_keeps_what_it_may_have_got() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), "", "");
        config.routing.transaction.answer = settings::Period::from_millis(300);
        let mut world = World::of(config).await;
        for request in [
            initial("ctf;1;1", IMSI),
            ccr("ctf;1;2", EVENT, 0, |b| subscriber(b, 1, IMSI)),
        ] {
            let (at, silent) = world.reaches(&request).await;
            world
                .ctf
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
                .await;
            // Its answer comes after all, and changes nothing.
            let late = answer(&silent, OCSS[at], ResultCode::SUCCESS, None);
            world.ocss[at].send(late.as_bytes()).await;
        }
        assert_eq!(world.count(Event::Doubtful), 2);
        assert_eq!(world.count(Event::Again), 0);
        assert!(world.session("ctf;1;1").is_none());
    });
}

#[test]
fn a_session_that_supports_failover_moves_with_the_t_flag() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let at = world.served_with(&initial("ctf;1;1", IMSI), SUPPORTED).await;
        let left = 1 - at;
        assert_eq!(
            world.is_lost_with(&later("ctf;1;1", UPDATE, 1, OCSS[at])).await,
            at
        );
        let arrived = world.takes_over(left, None).await;
        assert!(is_again(&arrived));
        assert_eq!(world.session("ctf;1;1").unwrap()["ocs"], OCSS[left]);
        assert_eq!(world.count(Event::Moved), 1);
        // It stays there when the first one is back, whatever the client names.
        world.restore(at).await;
        let (same, arrived) = world.reaches(&later("ctf;1;1", UPDATE, 2, OCSS[at])).await;
        assert_eq!((same, is_again(&arrived)), (left, false));
        world.answers(same, &arrived, ResultCode::SUCCESS, None).await;
        // An OCS that is unreachable has not got it: no T flag.
        world.lose(left).await;
        let end = later("ctf;1;1", TERMINATION, 3, OCSS[left]);
        assert!(!is_again(&world.is_served_by(at, &end).await));
        world.ends("ctf;1;1").await;
    });
}

#[test]
fn a_session_without_failover_stays_at_its_ocs() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        // One that takes its permission back with a later answer.
        let at = world.served_with(&initial("ctf;1;1", IMSI), SUPPORTED).await;
        let update = later("ctf;1;1", UPDATE, 1, OCSS[at]);
        assert_eq!(world.served_with(&update, NOT_SUPPORTED).await, at);
        assert_eq!(world.session("ctf;1;1").unwrap()["failover"], false);
        let refused = ResultCode::UNABLE_TO_DELIVER;
        world.is_lost_with(&later("ctf;1;1", UPDATE, 2, OCSS[at])).await;
        world.ctf.expect_result(command::CREDIT_CONTROL, refused).await;
        for kind in [UPDATE, TERMINATION] {
            let request = again(later("ctf;1;1", kind, 2, OCSS[1 - at]));
            world.is_refused(&request, refused).await;
        }
        assert!(world.count(Event::Unreachable) >= 2);
        // Neither may one that begins it again.
        world.is_refused(&again(initial("ctf;1;1", IMSI)), refused).await;
        world.restore(at).await;
        let end = again(later("ctf;1;1", TERMINATION, 2, OCSS[1 - at]));
        assert_eq!(world.served(&end).await, at);
        world.ends("ctf;1;1").await;
    });
}

#[test]
fn a_pool_that_shares_its_sessions_takes_over_everything() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::of(agent(folder.path(), ", shared: true", "")).await;
        let at = world.is_lost_with(&initial("ctf;1;1", IMSI)).await;
        let left = 1 - at;
        assert!(is_again(&world.takes_over(left, NOT_SUPPORTED).await));
        assert_eq!(world.session("ctf;1;1").unwrap()["ocs"], OCSS[left]);
        world.restore(at).await;
        world.is_lost_with(&later("ctf;1;1", UPDATE, 1, OCSS[left])).await;
        assert!(is_again(&world.takes_over(at, None).await));
        assert_eq!(world.session("ctf;1;1").unwrap()["ocs"], OCSS[at]);
    });
}

#[test]
fn what_is_not_delivered_or_refused_as_too_busy_goes_elsewhere_without_the_t_flag() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        for (number, result) in [ResultCode::TOO_BUSY, ResultCode::UNABLE_TO_DELIVER]
            .into_iter()
            .enumerate()
        {
            let id = format!("ctf;1;{number}");
            let (at, arrived) = world.reaches(&initial(&id, IMSI)).await;
            let refusal = answer(&arrived, OCSS[at], result, None);
            world.ocss[at].send(refusal.as_bytes()).await;
            let left = 1 - at;
            let arrived = world.takes_over(left, SUPPORTED).await;
            assert!(!arrived.flags().contains(CommandFlags::RETRANSMITTED));
            // In the session: it may move.
            let (same, arrived) = world.reaches(&later(&id, UPDATE, 1, CTF)).await;
            assert_eq!(same, left);
            let refusal = answer(&arrived, OCSS[left], result, None);
            world.ocss[left].send(refusal.as_bytes()).await;
            assert!(!is_again(&world.takes_over(at, NOT_SUPPORTED).await));
            // And not any more.
            let (same, arrived) = world.reaches(&later(&id, UPDATE, 2, CTF)).await;
            assert_eq!(same, at);
            world.answers(at, &arrived, result, None).await;
            assert_eq!(world.session(&id).unwrap()["ocs"], OCSS[at]);
        }
    });
}

#[test]
fn an_answer_of_another_host_leads_to_an_ocs_of_a_pool_alone() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        for host in [OCSS[0], OCSS[1], "stranger.example"] {
            let id = format!("{host};1");
            let (at, arrived) = world.reaches(&initial(&id, IMSI)).await;
            let by = answer(&arrived, host, ResultCode::SUCCESS, None);
            world.ocss[at].send(by.as_bytes()).await;
            world
                .ctf
                .expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
                .await;
            let expected = OCSS.iter().position(|known| *known == host).unwrap_or(at);
            assert_eq!(world.session(&id).unwrap()["ocs"], OCSS[expected]);
            // In the session too: who answers has it.
            let (same, arrived) = world.reaches(&later(&id, UPDATE, 1, CTF)).await;
            assert_eq!(same, expected);
            let by = answer(&arrived, OCSS[1 - same], ResultCode::SUCCESS, None);
            world.ocss[same].send(by.as_bytes()).await;
            world
                .ctf
                .expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
                .await;
            assert_eq!(world.session(&id).unwrap()["ocs"], OCSS[1 - same]);
        }
        assert_eq!(world.count(Event::AnsweredElsewhere), 5);
    });
}

#[test]
fn a_request_that_was_lost_and_finds_no_room_then_may_have_been_got() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut base = config();
        base.limits.pending_per_peer = 1;
        base.peers = OCSS
            .map(|host| Peer {
                host: host.to_owned(),
                ..Peer::default()
            })
            .to_vec();
        let [one, other] = OCSS;
        let yaml = format!(
            "applications:
  - name: charging
    ocdra:
      repository: {{store: {{embedded: {{directory: {}, durability: os}}}}}}
      pools: [{{name: all, servers: [{{host: far1.example}}, {{host: far2.example}}]}}]
routing:
  applicationRouteTables: [{{name: default, rules: [{{action: {{application: charging}}}}]}}]
{}",
            folder.path().display(),
            one_list(&[one, other])
        );
        let mut config = read(base, &yaml);
        config.peers.clear();
        // Two relays, each with room for one request: the first one gets this, and the second another.
        let mut world = World::of(config).await;
        for (at, id) in ["ctf;1;1", "ctf;1;2"].into_iter().enumerate() {
            let (reached, _) = world.reaches(&initial(id, IMSI)).await;
            assert_eq!(reached, at);
        }
        world.lose(0).await;
        world
            .ctf
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!((world.count(Event::Doubtful), world.count(Event::Again)), (1, 0));
    });
}
