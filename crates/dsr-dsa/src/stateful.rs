//! The measures that compare a message with what is known of its subscriber, or with what its peer has sent before.

use std::time::{Duration, Instant};

use diameter_proto::known::{application, command};

use crate::facts::{Facts, s6a};
use crate::measure::Measure;
use crate::network::Network;
use crate::record::{Node, Record};
use crate::stateless::{Scene, Verdict};
use crate::states::States;
use crate::tables::{Direction, Distances};

/// CC-Request-Type INITIAL_REQUEST (RFC 8506 §8.3).
const INITIAL_REQUEST: [u8; 4] = [0, 0, 0, 1];

/// The bounds of what is known of subscribers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) learning: Duration,
    pub(crate) lifetime: Duration,
    pub(crate) max_subscribers: usize,
    pub(crate) max_speed: u32,
}

/// What a message is compared with.
pub(crate) struct Memory<'m> {
    pub(crate) states: &'m States,
    pub(crate) bounds: Bounds,
    pub(crate) now: Instant,
}

impl Memory<'_> {
    pub(crate) fn seconds(&self) -> u32 {
        self.states.seconds(self.now)
    }

    /// Whether measures still learn who is where.
    pub(crate) fn is_learning(&self) -> bool {
        let since = self.seconds().saturating_sub(self.states.began());
        u64::from(since) < self.bounds.learning.as_secs()
    }

    pub(crate) fn record(&self, facts: &Facts<'_>) -> Option<Record> {
        self.states
            .get(facts.imsi.as_ref()?, self.seconds(), self.bounds.lifetime)
    }

    /// Whether it says something that a subscriber is not known.
    fn knows_all(&self) -> bool {
        !self.is_learning() && !self.states.was_full(self.seconds(), self.bounds.lifetime)
    }

    /// What a measure finds.
    pub(crate) fn judge(&self, measure: Measure, scene: &Scene<'_>, peer: &str) -> Verdict {
        let facts = scene.facts;
        if measure == Measure::MsgRateMon {
            return self.rate(scene, peer);
        }
        // A reset names parts of IMSIs, or none (TS 29.272 §7.2.15).
        if measure == Measure::SrcHostValHss
            && scene.direction == Direction::Ingress
            && facts.is_s6a(s6a::RSR)
        {
            return self.any_hss(facts);
        }
        let is_one_of = |commands: &[u32]| commands.iter().any(|command| facts.is_s6a(*command));
        let reads = scene.direction == Direction::Ingress
            && match measure {
                Measure::TimeDistChk => is_one_of(&[s6a::ULR, s6a::AIR]),
                Measure::PreLocChk => is_one_of(&[s6a::PUR, s6a::NOR]),
                Measure::SrcHostValHss => is_one_of(&[s6a::IDR, s6a::DSR, s6a::CLR]),
                Measure::SrcHostValMme => is_one_of(&[s6a::ULR, s6a::PUR]),
                Measure::SesIntValChk => is_initial(facts)?,
                _ => false,
            };
        if !reads {
            return Ok(());
        }
        // Of two subscribers one may be ours.
        let Some(imsi) = facts.subscriber()? else {
            return Ok(());
        };
        if measure == Measure::SrcHostValHss {
            return self.same_hss(facts);
        }
        if !scene.tables.subscribers.is_own(&imsi) {
            return Ok(());
        }
        match measure {
            Measure::TimeDistChk => self.distance(scene),
            Measure::SrcHostValMme if is_one_of(&[s6a::ULR]) => self.authenticated(facts),
            Measure::PreLocChk | Measure::SrcHostValMme => self.same_mme(facts),
            _ => self.registered(facts),
        }
    }

    fn rate(&self, scene: &Scene<'_>, peer: &str) -> Verdict {
        let Facts {
            application, command, ..
        } = *scene.facts;
        let Some(rate) = scene.tables.commands.rate(application, command, peer) else {
            return Ok(());
        };
        if self
            .states
            .is_within(peer, (application, command), self.seconds(), rate)
        {
            return Ok(());
        }
        Err(format!("more than {rate} messages of command {command} in a second").into())
    }

    fn distance(&self, scene: &Scene<'_>) -> Verdict {
        let visited = scene.facts.visited.get("Visited-PLMN-Id")?;
        let (Some(visited), Some(record)) = (visited.and_then(Network::of_visited), self.record(scene.facts))
        else {
            return Ok(());
        };
        let Some(before) = record.visited() else {
            return Ok(());
        };
        let minutes = scene
            .tables
            .distances
            .minutes(before.country, visited.country, self.bounds.max_speed);
        let elapsed = self.seconds().saturating_sub(record.seconds()) / 60;
        match minutes {
            Some(minutes) if elapsed < minutes => {
                let place = |network: Network| {
                    let country = crate::world::country_of(network.country);
                    country.map_or_else(|| network.to_string(), |country| country.name.to_owned())
                };
                let (from, to) = (place(before), place(visited));
                Err(format!("from {from} to {to} within {elapsed} minutes; it takes {minutes}").into())
            }
            _ => Ok(()),
        }
    }

    fn same_mme(&self, facts: &Facts<'_>) -> Verdict {
        let host = facts.origin_host.get("Origin-Host")?.unwrap_or_default();
        let name = self.states.name(host);
        let was_here = || {
            let imsi = facts.imsi.as_ref();
            imsi.is_some_and(|imsi| self.states.was_at(imsi, self.seconds(), name))
        };
        match self.record(facts) {
            Some(record) if record.is_at(name) => Ok(()),
            _ if was_here() => Ok(()),
            Some(record) if record.is_registered() => {
                Err("Origin-Host is not where the subscriber is registered".into())
            }
            _ => self.unknown("the subscriber is registered nowhere"),
        }
    }

    fn same_hss(&self, facts: &Facts<'_>) -> Verdict {
        let host = facts.origin_host.get("Origin-Host")?.unwrap_or_default();
        match self.record(facts) {
            Some(record) if record.is(Node::Hss, self.states.name(host)) => Ok(()),
            Some(record) if record.has(Node::Hss) => {
                Err("Origin-Host is not the HSS that registered the subscriber".into())
            }
            _ => self.unknown("no HSS has registered the subscriber"),
        }
    }

    fn any_hss(&self, facts: &Facts<'_>) -> Verdict {
        let host = facts.origin_host.get("Origin-Host")?.unwrap_or_default();
        if self.states.is_server(self.states.name(host)) {
            return Ok(());
        }
        self.unknown("Origin-Host has registered no subscriber")
    }

    fn authenticated(&self, facts: &Facts<'_>) -> Verdict {
        let visited = facts.visited.get("Visited-PLMN-Id")?;
        let visited = visited.and_then(Network::of_visited);
        let was_here = || {
            let both = facts.imsi.as_ref().zip(visited);
            both.is_some_and(|(imsi, network)| self.states.was_authenticated(imsi, self.seconds(), network))
        };
        let record = self.record(facts);
        // One that another network has refused stays where it is registered, which need not authenticate it again (TS 23.401
        // §5.3.2.1): steering of roaming.
        let is_registered_here = || {
            let here = record
                .filter(Record::is_registered)
                .and_then(|record| record.visited());
            here.is_some() && here == visited
        };
        match record.and_then(|record| record.authenticated()) {
            Some(network) if Some(network) == visited => Ok(()),
            _ if is_registered_here() || was_here() => Ok(()),
            Some(network) => Err(format!("the subscriber was authenticated in {network}").into()),
            None => self.unknown("the subscriber was not authenticated"),
        }
    }

    fn registered(&self, facts: &Facts<'_>) -> Verdict {
        match self.record(facts) {
            Some(record) if record.is_registered() => Ok(()),
            _ => self.unknown("the subscriber has a session and is registered nowhere"),
        }
    }

    fn unknown(&self, finding: &'static str) -> Verdict {
        if self.knows_all() {
            return Err(finding.into());
        }
        Ok(())
    }

    /// A country without a place (a ship, an aeroplane) says nothing of where the subscriber is; it is known where it was, and
    /// when, for as long as no other journey needs.
    fn keeps_place(&self, record: &Record) -> bool {
        let elapsed = self.seconds().saturating_sub(record.seconds());
        record.visited().is_some() && u64::from(elapsed) * 2 < self.bounds.lifetime.as_secs()
    }

    /// Learns from a request and its answer; returns whether there was room.
    pub(crate) fn learn(&self, request: &Facts<'_>, answer: &Facts<'_>, distances: &Distances) -> bool {
        let is_success = answer
            .result_code()
            .is_some_and(|code| (2000..3000).contains(&code));
        let (Some(imsi), true) = (&request.imsi, is_success) else {
            return true;
        };
        // What contradicts itself may have been read otherwise by who answered.
        if request.contradicts() || answer.contradicts() {
            return true;
        }
        if !teaches(request.application) {
            return true;
        }
        let bounds = (self.bounds.max_subscribers, self.bounds.lifetime);
        let origin = self.states.name(request.origin_host.shown().unwrap_or_default());
        let visited = request.visited.shown().and_then(Network::of_visited);
        let before = self.record(request);
        let is_nowhere = !visited.is_some_and(|network| distances.has_place(network.country));
        let keeps_place = is_nowhere && before.is_some_and(|record| self.keeps_place(&record));
        match request.command {
            s6a::ULR => {
                let hss = self.states.name(answer.origin_host.shown().unwrap_or_default());
                self.states.add_server(hss);
                let node = request.registers_at();
                let register = |record: &mut Record| {
                    record.set(node, origin);
                    record.set(Node::Hss, hss);
                };
                if keeps_place {
                    self.states.amend(imsi, self.seconds(), register);
                    return true;
                }
                self.states.change(imsi, self.seconds(), bounds, |record| {
                    register(record);
                    record.set_visited(visited);
                })
            }
            s6a::AIR => {
                let learn = |record: &mut Record| record.set_authenticated(visited);
                match before.map(|record| record.visited()) {
                    // Its place and time are still those of its last registration.
                    Some(place) if place != visited && (keeps_place || !is_nowhere) => {
                        self.states.amend(imsi, self.seconds(), learn);
                        true
                    }
                    // It is where it has registered: one that stays for long is known for as long.
                    _ => self.states.change(imsi, self.seconds(), bounds, |record| {
                        learn(record);
                        if is_nowhere {
                            record.set_visited(None);
                        }
                    }),
                }
            }
            // Its place stays known: the next one must be within reach.
            s6a::PUR => {
                self.states
                    .amend(imsi, self.seconds(), |record| record.leaves(origin));
                true
            }
            s6a::CLR => {
                // An HSS cancels the old place of a subscriber that has registered at a new one.
                let at = self
                    .states
                    .name(request.destination_host.shown().unwrap_or_default());
                self.states.cancel(imsi, self.seconds(), at);
                true
            }
            _ => true,
        }
    }
}

/// Whether messages of an application say where subscribers are.
pub(crate) const fn teaches(id: u32) -> bool {
    id == application::S6A
}

fn is_initial(facts: &Facts<'_>) -> Result<bool, String> {
    if facts.application != application::GX || facts.command != command::CREDIT_CONTROL {
        return Ok(false);
    }
    let kind = facts.request_type.get("CC-Request-Type")?;
    Ok(kind == Some(&INITIAL_REQUEST[..]))
}
