//! Bindings to a PCRF that does not serve them.

use diameter::proto::known::command;
use diameter::proto::{MessageMut, ResultCode};
use dsr_pdra::Event;

use super::support::{IMSI, World, aar, ccr, initial, subscriber};
use crate::support::{lost, run, until};

const MORE: &str =
    "      rebind: never\n      suspectBindings: {results: [3002, 5012], count: 3, within: 1h}";

fn of_af(number: u8) -> MessageMut {
    aar(&format!("af;1;{number}"), |b| subscriber(b, 1, IMSI))
}

/// The PCRF refuses a request of the AF with this result.
async fn is_refused(world: &mut World, at: usize, request: &MessageMut, result: ResultCode) {
    world.af.send(request.as_bytes()).await;
    let arrived = world.pcrfs[at].expect(request.command()).await;
    world.pcrfs[at].answer(&arrived, result).await;
    world.af.expect_result(request.command(), result).await;
}

#[test]
fn results_of_a_pcrf_that_are_listed_remove_the_binding() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), MORE).await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        let other = world.session(&initial("pgw;2;1", "001010000000002")).await;
        for number in 0..4 {
            is_refused(&mut world, at, &of_af(number), ResultCode::TOO_BUSY).await;
        }
        assert_eq!(world.count(Event::Suspected), 0);
        for number in 0..2 {
            is_refused(&mut world, at, &of_af(number), ResultCode::UNABLE_TO_COMPLY).await;
        }
        // In the session of the gateway.
        let (_, arrived) = world.reaches(&ccr("pgw;1;1", 2, |_| ())).await;
        world.answers(at, &arrived, ResultCode::UNABLE_TO_COMPLY).await;
        until(|| world.count(Event::Unbound) == 1).await;
        world.is_unknown(&of_af(9)).await;
        assert_eq!(world.count(Event::Suspected), 3);
        // Another subscriber keeps its own, and this one chooses again.
        assert_eq!(world.session(&initial("pgw;2;2", "001010000000002")).await, other);
        world.session(&initial("pgw;1;2", IMSI)).await;
        assert_eq!(world.count(Event::Chosen), 3);
    });
}

#[test]
fn a_pcrf_that_stays_unreachable_loses_its_bindings() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), MORE).await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        lost(&world.dsr, &mut world.pcrfs[at], &world.servers[at].host).await;
        for number in 2..5 {
            let further = initial(&format!("pgw;1;{number}"), IMSI);
            world.pgw.send(further.as_bytes()).await;
            world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
                .await;
        }
        until(|| world.count(Event::Unbound) == 1).await;
        world.pgw.send(initial("pgw;1;9", IMSI).as_bytes()).await;
        let arrived = world.pcrfs[1 - at].expect(command::CREDIT_CONTROL).await;
        world.answers(1 - at, &arrived, ResultCode::SUCCESS).await;
    });
}
