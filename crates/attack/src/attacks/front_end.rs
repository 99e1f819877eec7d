//! Clients of an IP front end.

use std::rc::Rc;
use std::time::Duration;

use diameter_proto::known;

use crate::attack::{Attack, attack};
use crate::attacks::diameter::raw::Raw;
use crate::attacks::diameter::raw::cer;
use crate::field::Field;
use crate::stage::Stage::FrontEnd;

const ALL: &[Attack] = &[
    attack(
        "ipfe.silent-connections",
        "hundreds of connections from one address that send nothing",
        FrontEnd,
        |f| Box::pin(silent(f)),
    ),
    attack(
        "ipfe.dribbled-capabilities",
        "capabilities that arrive byte by byte, from one address",
        FrontEnd,
        |f| Box::pin(dribbled(f)),
    ),
];

pub(super) fn all() -> Vec<Attack> {
    ALL.to_vec()
}

/// The attacker; honest clients are at 127.0.0.1.
const ATTACKER: [u8; 4] = [127, 0, 0, 9];
const PATIENCE: Duration = Duration::from_secs(10);

/// Newcomers from another address than the attacker's are served.
async fn newcomers(field: &Field, what: &str) -> anyhow::Result<()> {
    let all = field.of(26, 12);
    let mut served = 0;
    for number in 0..all {
        let Ok(mut peer) = Raw::connect(field.target, None).await else {
            continue;
        };
        peer.send(&cer(&format!("newcomer{number}.epc.example"), peer.local())?)
            .await;
        let (answers, _) = peer.read_until(1, PATIENCE).await;
        let result = answers
            .first()
            .and_then(|answer| answer.get(known::RESULT_CODE).ok().flatten());
        served += u32::from(result == Some(2001));
    }
    field.check(
        served == all,
        format_args!("{what}: {served} of {all} newcomers are served"),
    );
    Ok(())
}

async fn silent(field: Rc<Field>) -> anyhow::Result<()> {
    let mut held = Vec::new();
    for _ in 0..field.of(400, 205) {
        if let Ok(peer) = Raw::connect(field.target, Some(ATTACKER.into())).await {
            held.push(peer);
        }
    }
    newcomers(&field, "beside silent connections").await?;
    field.note(format_args!("{} silent connections", held.len()));
    Ok(())
}

async fn dribbled(field: Rc<Field>) -> anyhow::Result<()> {
    let mut held = Vec::new();
    for number in 0..50 {
        if let Ok(mut peer) = Raw::connect(field.target, Some(ATTACKER.into())).await {
            let bytes = cer(&format!("slow{number}.epc.example"), peer.local())?;
            peer.send(bytes.get(..1).unwrap_or_default()).await;
            held.push((peer, bytes));
        }
    }
    for at in 1..4 {
        for (peer, bytes) in &mut held {
            peer.send(bytes.get(at..=at).unwrap_or_default()).await;
        }
        newcomers(&field, "beside dribbled capabilities").await?;
    }
    Ok(())
}
