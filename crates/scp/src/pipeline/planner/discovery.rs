//! Producers that a discovery finds: delegated ones, those at a root without a known profile, and NRFs themselves.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use routing::network::{Notification, ServiceRef};
use routing::target::{self, Delegated, Has};
use sbi::Fields;
use sbi::client::Origin;
use sbi::headers::{RoutingBinding, TargetApiRoot};
use sbi::problem::{Cause, Problem};

use super::{Plan, Planner, STEP, of_version};
use crate::discovery::{DiscoveryQuery, Found};
use crate::peers::Behalf;
use crate::pipeline::deadline::Deadline;
use crate::pipeline::message::{Caller, Outgoing, Target};
use crate::pipeline::recorder::Recorder;
use crate::pipeline::targets::Candidates;

impl Planner {
    /// The target at a root that no learned profile has, if an NRF lets the consumer discover a producer there: NRFs do
    /// not notify an SCP of profiles whose `allowedNfTypes` lack it.
    pub(super) async fn unlearned(
        &self,
        root: TargetApiRoot,
        service: &str,
        caller: &Caller,
        (headers, deadline): (&Fields, &Deadline),
    ) -> Option<Rc<Target>> {
        let (consumer, target_type) = (caller.nf_type()?, target::nf_type_of_service(service)?);
        let query = DiscoveryQuery::new([
            ("target-nf-type", &*target_type),
            ("requester-nf-type", consumer),
            ("service-names", service),
        ]);
        let (network, began) = (self.view.network(), Instant::now());
        let behalf = Behalf::of(headers, deadline.left(began));
        let found = match self.searcher.recall(&query, &network, began) {
            Some(found) => found,
            None => self.searcher.search(&query, &network, &behalf).await.ok()?,
        };
        // A cached answer says nothing of producers that are known by now, or have left since.
        let holds = |one: &ServiceRef, asked: Instant| {
            let id = &one.producer.id;
            let left = network.left_at(id).is_some_and(|left| left >= asked);
            asked >= began || (network.producer(id).is_none() && !left)
        };
        let at = |found: &Found| {
            let mut candidates = found.candidates.iter();
            candidates
                .find(|one| one.listens_at(&root.origin) && holds(one, found.asked))
                .cloned()
        };
        let mut here = at(&found);
        // Unknown roots do not make more queries than queries without a result do.
        let again = self.live.config.discovery.empty_validity.duration();
        if here.is_none() && began.saturating_duration_since(found.asked) >= again {
            here = at(&*self.searcher.renew(&query, None, &behalf).await?);
        }
        let here = here?;
        Some(Rc::new(self.targets.at(root, Some(here), false)))
    }

    /// The delegated discovery of a request.
    pub(super) fn query(
        &self,
        caller: &Caller,
        headers: &Fields,
        has: Has,
    ) -> Result<Option<Rc<Delegated>>, Problem> {
        match has.has(Has::DISCOVERY) {
            true => self
                .queries
                .of(headers, has, caller.nf_type())
                .map_err(target::unreadable),
            false => Ok(None),
        }
    }

    /// Finds candidates by the discovery parameters of a request whose named producer has failed
    /// (TS 29.500 §6.10.5.1).
    pub(in crate::pipeline) async fn rediscover(
        &self,
        caller: &Caller,
        outgoing: &Outgoing,
        time: Duration,
    ) -> Option<Rc<Vec<ServiceRef>>> {
        let wanted = self.query(caller, &outgoing.headers, outgoing.has).ok()??;
        let (query, network) = (&wanted.query, self.view.network());
        let behalf = Behalf::of(&outgoing.headers, Some(time));
        let found = match self.searcher.recall(query, &network, Instant::now()) {
            Some(found) => Ok(found),
            None => self.searcher.search(query, &network, &behalf).await,
        };
        let service = outgoing.address.service();
        let mut candidates = self.candidates(&found.ok()?, service);
        if let Some(since) = candidates.outdated
            && let Some(renewed) = self.searcher.renew(query, Some(since), &behalf).await
        {
            candidates = self.candidates(&renewed, service);
        }
        Some(of_version(
            candidates.services,
            target::version_of(outgoing.address.path()),
        ))
    }

    /// The candidates that a new answer to a recalled discovery names: those of the cached one were of no use.
    pub(in crate::pipeline) async fn renewed(
        &self,
        recalled: &Delegated,
        outgoing: &Outgoing,
        time: Duration,
    ) -> Option<Rc<Vec<ServiceRef>>> {
        let behalf = Behalf::of(&outgoing.headers, Some(time));
        let found = self.searcher.renew(&recalled.query, None, &behalf).await?;
        let candidates = self.candidates(&found, outgoing.address.service());
        Some(of_version(
            candidates.services,
            target::version_of(outgoing.address.path()),
        ))
    }

    /// The candidates of an answer for a service.
    fn candidates(&self, found: &Arc<Found>, service: &str) -> Candidates {
        let once = self.live.config.discovery.enforce_req_specific_svc_discovery;
        self.targets.candidates(found, service, once)
    }

    /// Plans a request for a service of NRFs: the targets are the NRFs of the set for the network of the discovery.
    pub(super) fn ask_for_nrfs(
        &self,
        plan: &mut Plan,
        query: Option<&DiscoveryQuery>,
        notes: &impl Recorder,
    ) {
        plan.discovered = true;
        plan.complete = true;
        let roots = self.searcher.nrfs_for(query);
        let target = |root| Rc::new(self.targets.at(root, None, false));
        plan.further = roots.into_iter().map(target).collect();
        notes.note(STEP, || {
            format!(
                "The request is for an NRF; the settings name {}.",
                plan.further.len()
            )
        });
    }

    /// Completes a plan by a delegated discovery (Model D).
    pub(super) async fn discover(
        &self,
        plan: &mut Plan,
        wanted: &Rc<Delegated>,
        binding: Option<&RoutingBinding>,
        service: &str,
        (headers, deadline): (&Fields, &Deadline),
        notes: &impl Recorder,
    ) -> Result<(), Problem> {
        plan.discovered = true;
        plan.complete = true;
        let network = self.view.network();
        // A binding to known producers needs no NRF.
        if let Some(binding) = binding
            && !target::bound(binding, service, plan.callback, &network).is_empty()
        {
            return Ok(());
        }
        let bound = binding.map(|binding| {
            let query = &wanted.query;
            let set = binding.nf_set().map(|set| ("target-nf-set-id", set));
            let instance = || binding.nf_instance().map(|id| ("target-nf-instance-id", id));
            match set.or_else(instance) {
                Some((name, value)) => Rc::new(Delegated::new(query.with(name, Some(value)))),
                None => wanted.clone(),
            }
        });
        let Delegated {
            query, preference, ..
        } = &**bound.as_ref().unwrap_or(wanted);
        plan.preference = preference.clone();
        let began = Instant::now();
        let behalf = || Behalf::of(headers, deadline.left(began));
        let mut found = match self.searcher.recall(query, &network, began) {
            Some(found) => found,
            None => {
                let found = self.searcher.search(query, &network, &behalf()).await;
                let after = Instant::now();
                plan.waited = after.saturating_duration_since(began);
                found.map_err(|failure| match deadline.is_over(after) {
                    true => Problem::new(Cause::TimedOutRequest).detail("the NRF did not answer in time"),
                    false => failure.problem(),
                })?
            }
        };
        let of_service = match plan.callback {
            true => "",
            false => service,
        };
        let mut found_now = self.candidates(&found, of_service);
        // An answer that holds no longer counts as none (its producers have left, changed, or are suspended).
        if let Some(since) = found_now.outdated
            && found.asked < began
            && let Some(renewed) = Box::pin(self.searcher.renew(query, Some(since), &behalf())).await
        {
            found_now = self.candidates(&renewed, of_service);
            found = renewed;
            plan.waited = began.elapsed();
        }
        if found.asked < began {
            plan.recalled = Some(bound.as_ref().unwrap_or(wanted).clone());
        }
        let Candidates {
            services: found_now, ..
        } = found_now;
        let kind = match plan.callback {
            true => query.get("notification-type"),
            false => None,
        };
        if let Some(kind) = kind {
            plan.further = self.notified(&found_now, &kind, query);
            notes.note(STEP, || {
                format!(
                    "{} functions have a default subscription to notifications of {kind}.",
                    plan.further.len()
                )
            });
            return Ok(());
        }
        plan.others = of_version(found_now, plan.version);
        notes.note(STEP, || {
            format!(
                "The discovery ({}) found {} service instances, {} of them of {service} now.",
                self.live.config.discovery.order.describe(),
                found.candidates.len(),
                plan.others.len()
            )
        });
        Ok(())
    }

    /// Targets of the default subscriptions to notifications of this kind of the discovered functions, the nearest first
    /// (TS 29.500 §6.10.3.3).
    fn notified(&self, found: &[ServiceRef], kind: &str, query: &DiscoveryQuery) -> Rc<[Rc<Target>]> {
        let (n1, n2) = (query.get("n1-msg-class"), query.get("n2-info-class"));
        let fits = |one: &&Notification| {
            let is = |own: &Option<Arc<str>>, wanted: &Option<Cow<'_, str>>| {
                wanted.is_none() || own.is_none() || own.as_deref() == wanted.as_deref()
            };
            *one.kind == *kind && is(&one.n1_message_class, &n1) && is(&one.n2_information_class, &n2)
        };
        let mut places: Vec<(u8, u8, u64, Rc<Target>)> = Vec::new();
        for one in found {
            let Some(notification) = one.producer.notifications.iter().find(fits) else {
                continue;
            };
            let Some(target) = self.at_uri(&notification.uri) else {
                continue;
            };
            let distance = self.live.distances.of(one.producer.locality.as_deref());
            places.push((one.preference(), distance, rand::random(), Rc::new(target)));
        }
        places.sort_by_key(|(preference, distance, drawn, _)| (*preference, *distance, *drawn));
        places.into_iter().map(|(.., target)| target).collect()
    }

    /// The target at a URI that a profile names.
    fn at_uri(&self, uri: &str) -> Option<Target> {
        let uri: http::Uri = uri.parse().ok()?;
        let root = TargetApiRoot {
            origin: Origin::of_uri(&uri).ok()?,
            prefix: String::new(),
        };
        let path = uri.path_and_query()?.as_str();
        let path = target::normal(path).ok()?.unwrap_or_else(|| path.to_owned());
        let mut target = self.targets.at(root, None, false);
        target.path = Some(path.into());
        Some(target)
    }
}
