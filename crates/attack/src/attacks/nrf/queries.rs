//! Discoveries: wrong ones, and more different ones than a cache holds.

use std::rc::Rc;
use std::time::Duration;

use testpeer::http2::{Peer, flood, frame};

use crate::answer::Ask;
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;

pub(super) const ALL: &[Attack] = &[
    attack("nrf.bad-queries", "invalid queries", Nrf, |f| Box::pin(bad(f))),
    attack(
        "nrf.distinct-queries",
        "60,000 queries, each of its own",
        Nrf,
        |f| Box::pin(distinct(f)),
    )
    .with_bars(Bars {
        cpu_s: 30.0,
        ..Bars::DEFAULT
    }),
];

const DISC: &str = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF";

async fn bad(field: Rc<Field>) -> anyhow::Result<()> {
    for query in [
        "/nnrf-disc/v1/nf-instances".to_owned(),
        "/nnrf-disc/v1/nf-instances?target-nf-type=UDM".to_owned(),
        format!("{DISC}&limit=-1"),
        format!("{DISC}&limit=x"),
        format!("{DISC}&target-plmn-list=x"),
        format!("{DISC}&target-plmn-list=%5B%7B%22mcc%22%3A%221%22%7D%5D"),
        format!("{DISC}&target-plmn-list={}", "%5B".repeat(5_000)),
        format!("{DISC}&snssais=%7B%7D"),
        format!("{DISC}&snssais=%5B%7B%22sst%22%3A256%7D%5D"),
        format!("{DISC}&tai=%5B%5D"),
        format!("{DISC}&guami=1"),
        format!("{DISC}&complex-query=%7B"),
        format!("{DISC}&target-nf-instance-id=x"),
        format!("{DISC}&ue-ipv4-address=999.1.1.1"),
        format!("{DISC}&max-payload-size=99999999999999999999"),
        format!("{DISC}&supi=%ff%fe"),
    ] {
        let shown: String = query.chars().skip(28).take(80).collect();
        for _ in 0..field.of(50, 1) {
            let got = field.ask(&Ask::get(&*query)).await;
            field.check(
                (400..500).contains(&got.status),
                format_args!("{shown}: answered {}", got.text()),
            );
        }
    }
    // What users of others were killed by: answered, whatever it says.
    for query in [
        format!("{DISC}&%=%"),
        format!("{DISC}&hnrf-uri=x"),
        format!("{DISC}&hnrf-uri=http://"),
        format!("{DISC}&service-names={}", "a,".repeat(10_000)),
        format!("{DISC}&{}", "x=y&".repeat(10_000)),
    ] {
        let got = field.ask(&Ask::get(query)).await;
        field.check(
            got.status != 0 && got.status != 500,
            format_args!("a bad query: {}", got.text()),
        );
    }
    Ok(())
}

async fn distinct(field: Rc<Field>) -> anyhow::Result<()> {
    let (mut asked, count) = (0u32, field.of(60_000u32, 4_000));
    while asked < count {
        let mut peer = Peer::client(field.target).await?;
        peer.send(&frame::window(0, 1 << 30)).await?;
        let buffer = flood::each_stream(1, 500, |stream| {
            frame::get(stream, &format!("{DISC}&supi=imsi-{:015}", asked + stream / 2))
        });
        let mut left = 500;
        peer.send(&buffer).await?;
        while left > 0 {
            match tokio::time::timeout(Duration::from_secs(10), peer.next()).await {
                Ok(Ok(Some(found))) if found.kind == frame::kind::HEADERS => left -= 1,
                Ok(Ok(Some(_))) => {}
                _ => break,
            }
        }
        field.check(left == 0, format_args!("{left} of 500 queries were not answered"));
        asked += 500;
    }
    Ok(())
}
