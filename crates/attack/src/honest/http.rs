//! Over HTTP/2.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sbi::client::Origin;
use tokio::task::JoinSet;

use super::{Fared, Plan};
use crate::answer::{client_over, send};

pub(super) async fn ask(plan: Plan, origin: Origin, newcomers: bool, stop: Arc<AtomicBool>) -> Fared {
    let Plan::Http {
        ask,
        expect,
        tick,
        tls,
    } = plan
    else {
        return Fared::default();
    };
    let fared = Rc::new(RefCell::new(Fared::default()));
    let one = client_over("UDM-honest", tls.clone());
    let ask = Rc::new(ask);
    let mut open = JoinSet::new();
    while !stop.load(Ordering::Relaxed) {
        let client = match newcomers {
            true => client_over("UDM-honest", tls.clone()),
            false => one.clone(),
        };
        let (fared, ask, origin) = (fared.clone(), ask.clone(), origin.clone());
        open.spawn_local(async move {
            let begun = Instant::now();
            let got = send(&client, &origin, &ask).await;
            match expect(&got) {
                true => fared.borrow_mut().answer(begun.elapsed()),
                false => fared.borrow_mut().error(got.text()),
            }
        });
        while open.try_join_next().is_some() {}
        tokio::time::sleep(tick).await;
    }
    while open.join_next().await.is_some() {}
    fared.take()
}
