//! A set of two NRFs on one database that grows with another set of one NRF (the guide's multiset topology).

use http::StatusCode;
use nrf::config::GrowthSet;
use nrf::{Config, Running};
use serde_json::json;
use settings::Period;

use super::{Member, events, eventually, member_config, member_here, path_of, sink, turn, udm};
use crate::databases::Servers;
use crate::support::{Nrf, id, local, start};

fn grows(config: &mut Config, name: &str, nrfs: Vec<String>) {
    config.growth.interval = Period::from_millis(20);
    config.growth.sets = vec![GrowthSet {
        name: name.to_owned(),
        nrfs,
    }];
}

async fn finds(member: &Member, expected: &[String], condition: &str) {
    eventually(condition, async || {
        let mut found = member.found().await;
        found.sort();
        found == expected
    })
    .await;
}

#[test]
fn a_set_of_two_nrfs_grows_with_another_set() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let ports = [(); 2].map(|()| free_ports::address().unwrap());
    local(async {
        // The other set follows whichever member answers.
        let roots = ports.map(|address| format!("http://{address}")).to_vec();
        let mut east = start(|config| grows(config, "west", roots));
        let root = east.origin.to_string();
        let members: Vec<Running> = (1..=2)
            .map(|number: u32| {
                let mut config = member_config(&servers, directory.path(), &[1], number);
                config.listen = ports[number as usize - 1].into();
                grows(&mut config, "east", vec![root.clone()]);
                nrf::start(config).unwrap()
            })
            .collect();
        let [a, b] = [0, 1].map(|index: usize| member_here(&members[index]));
        let (sink, uri) = sink();
        a.subscribe(&uri).await;
        // What each set has is found in the other, at every member.
        assert_eq!(a.put(&udm(1)).await, StatusCode::CREATED);
        east.put(&udm(2)).await;
        let both = [id(1), id(2)];
        finds(&a, &both, "A knows what the other set has").await;
        finds(&b, &both, "B knows what the other set has").await;
        finds(&of_east(&east), &both, "the other set knows what A has").await;
        // Nothing comes back as a registration: each set changes what it has itself.
        let change = || json!([{"op": "add", "path": "/priority", "value": 3}]);
        assert_eq!(b.patch(&id(2), change()).await, StatusCode::NOT_FOUND);
        assert_eq!(b.patch(&id(1), change()).await, StatusCode::OK);
        let far = of_east(&east);
        eventually("the other set has the change of B", async || {
            far.get(&id(1)).await.json["priority"] == 3
        })
        .await;
        // A subscriber of the set is notified of the other set's instance, once.
        eventually("the subscriber hears of the other set's", async || {
            events(&sink).iter().any(|(_, instance)| *instance == id(2))
        })
        .await;
        let registered = events(&sink);
        let registered = registered
            .iter()
            .filter(|(event, instance)| event == "NF_REGISTERED" && *instance == id(2));
        assert_eq!(registered.count(), 1, "{:?}", events(&sink));

        // One member ends: the other set goes on with the one that is left, and the other way round.
        let mut members = members.into_iter();
        members.next().unwrap().stop().unwrap();
        assert_eq!(b.put(&udm(3)).await, StatusCode::CREATED);
        east.put(&udm(4)).await;
        let all = [1, 2, 3, 4].map(id);
        finds(&b, &all, "the member that is left knows all").await;
        finds(&far, &all, "the other set knows all").await;
        assert_eq!(b.delete(&path_of(&id(3))).await, StatusCode::NO_CONTENT);
        finds(
            &far,
            &[1, 2, 4].map(id),
            "the other set drops what is deregistered",
        )
        .await;
        members.next().unwrap().stop().unwrap();
        east.stop();
    });
}

fn of_east(east: &Nrf) -> Member {
    super::member(&east.origin)
}
