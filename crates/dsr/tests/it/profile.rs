//! A profile (`overload.profile`) sizes the buffers of a message processor, where `limits.byProfile` says so.

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
use settings::Period;

use crate::support::{MME, client, config, one_list, run, ulr_with, world};

const HSS: &str = "hss1.example";

/// A request that no overload control discards.
fn important(number: u32) -> MessageMut {
    ulr_with(&number.to_string(), |b| {
        b.put(known::DRMP, 0);
    })
}

#[test]
fn buffers_hold_what_comes_in_at_the_hard_limit_of_the_profile() {
    run(async {
        let mut sized = config();
        sized.limits.by_profile = true;
        sized.overload.profile_mps = 1;
        sized.overload.hard_limit_percent = 200;
        let routing = format!(
            "{}  transaction: {{answer: 30s, lifetime: 40s}}\n",
            one_list(&[HSS])
        );
        let (dsr, _servers, mut peers) = world(sized, [HSS], &routing).await;
        let limits = dsr.snapshot().config.limits.clone();
        let answer = dsr.snapshot().config.routing.transaction.answer.duration();
        // Two messages a second are one request.
        let most = u32::try_from(answer.as_secs()).unwrap();
        assert_eq!(
            (limits.pending, limits.pending_per_peer),
            (most as usize, most as usize)
        );
        assert_eq!(limits.handover, 2);
        let mut mme = client(&dsr, MME).await;
        for number in 0..most {
            mme.send(important(number).as_bytes()).await;
            peers[0].expect(command::UPDATE_LOCATION).await;
        }
        mme.send(important(most).as_bytes()).await;
        let refused = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::TOO_BUSY)
            .await;
        let session = refused.require(known::SESSION_ID).unwrap();
        assert_eq!(
            session,
            format!("{MME};1;{most}"),
            "the last one, the others have room"
        );
    });
}

#[test]
fn a_profile_of_the_guide_sizes_them_when_the_router_starts_alone() {
    run(async {
        let mut sized = config();
        sized.limits.by_profile = true;
        sized.overload.profile = "VM:6K_MPS".to_owned();
        sized.routing.transaction.answer = Period::from_secs(2);
        let (dsr, _servers, _peers) = world(sized.clone(), [HSS], "").await;
        let limits = || dsr.snapshot().config.limits.clone();
        // 250 % of 6,000 messages are 7,500 requests a second.
        assert_eq!((limits().pending, limits().handover), (15_000, 15_000));
        assert_eq!(limits().pending_bytes.bytes(), 15_000 * 2000);
        sized.overload.profile = "12K_MPS".to_owned();
        dsr.reload(&sized).unwrap();
        assert_eq!(dsr.snapshot().config.overload.profile, "12K_MPS");
        assert_eq!(limits().pending, 15_000, "until the next start");
        drop(dsr);

        sized.overload.profile = String::new();
        let mut faults = settings::Faults::default();
        settings::Validate::validate(&sized, &mut faults);
        let faults = format!("{:?}", faults.into_vec());
        assert!(faults.contains("limits.byProfile"), "{faults}");
    });
}
