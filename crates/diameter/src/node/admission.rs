//! Admission of a CER: the peer that sent it, whether it may connect, and the worker that owns it.

use std::net::IpAddr;
use std::rc::Rc;

use diameter_proto::known::disconnect_cause;
use diameter_proto::peer::{self, Capabilities, Input, PeerSettings, Side};
use diameter_proto::{Fault, MessageMut, ResultCode, known};

use ipnet::IpNet;

use super::application::{Application, NodeEvent};
use super::{Node, Verdict};
use crate::config::{DynamicPeers, Security};
use crate::connection::{Connection, Ending};
use crate::peer::PeerId;

/// The owner of a peer.
enum Admission {
    /// This worker, in this slot; a dynamic peer counts under this rule.
    Here(usize, Option<Rule>),
    /// On this worker.
    Elsewhere(usize),
}

/// A rule that admits a peer.
struct Rule {
    /// Its position.
    index: usize,
    /// The number of peers that it admits.
    max: usize,
    /// The settings of such a peer.
    settings: PeerSettings,
}

impl<A: Application> Node<A> {
    pub(super) fn received_cer(&self, from: &Rc<Connection<A::State>>, cer: MessageMut) -> Verdict {
        let offers_tls = self.offers_tls(from);
        let admitted = self.check_cer(from, &cer, offers_tls).and_then(|remote| {
            let key = self.admit(from, &remote)?;
            Ok((key, remote))
        });
        match admitted {
            Ok((Admission::Here(key, rule), remote)) => {
                let same_address = self.is_at(key, from);
                let local = from.local().ip();
                self.with_slot(key, |slot| slot.machine.offer_tls(Side::Responder, offers_tls));
                let input = Input::ConnectedBy {
                    cer: cer.view(),
                    remote,
                    local,
                    same_address,
                };
                self.drive(key, input, Some(from));
                // A connected peer may have been refused a second connection, under another rule.
                if let Some(rule) = rule
                    && from.binding.get().is_some()
                {
                    self.count_under(key, rule);
                }
                Verdict::Handled
            }
            Ok((Admission::Elsewhere(worker), _)) => Verdict::Elsewhere(worker, cer),
            Err(fault) => {
                self.app().event(
                    self,
                    NodeEvent::Refused {
                        remote: from.remote(),
                        host: cer.get(known::ORIGIN_HOST).ok().flatten().unwrap_or_default(),
                        fault: &fault,
                    },
                );
                let local = self.local().offering_tls(offers_tls);
                let answer = peer::capabilities_answer(&local, &cer, Some(from.local().ip()), Err(&fault));
                from.enqueue_base(answer);
                from.end(Ending::AfterFlush);
                Verdict::Handled
            }
        }
    }

    /// The capabilities of a CER that is right as far as it is judged without regard to the peer.
    fn check_cer(
        &self,
        from: &Connection<A::State>,
        cer: &MessageMut,
        offers_tls: bool,
    ) -> Result<Capabilities, Fault> {
        peer::check_cer(cer, !self.is_tls(from), offers_tls)?;
        let remote = Capabilities::read(cer)?;
        if offers_tls && !remote.inband_tls {
            // A client that leaves Inband-Security-Id out would otherwise talk in the clear where TLS is wanted.
            let reason = "the connection must be secured by TLS: Inband-Security-Id 1 in the CER";
            return Err(Fault::new(ResultCode::NO_COMMON_SECURITY, reason));
        }
        if let Err(fault) = peer::check_host_address(cer) {
            if self.0.strict {
                return Err(fault);
            }
            let (host, what) = (&*remote.origin.host, "Host-IP-Address");
            self.app().event(self, NodeEvent::Tolerated { host, what });
        }
        Ok(remote)
    }

    /// Whether TLS follows the capabilities exchange on this connection.
    pub(super) fn offers_tls(&self, connection: &Connection<A::State>) -> bool {
        !self.is_tls(connection) && matches!(self.security(connection), Security::Inband(_))
    }

    fn is_at(&self, key: usize, from: &Connection<A::State>) -> bool {
        let open = self.0.peers.borrow().slots[key].open;
        open.and_then(|id| self.connection(id))
            .is_some_and(|open| open.remote().ip() == from.remote().ip())
    }

    /// Identifies the peer, decides whether it may connect, and finds the worker that owns it.
    fn admit(&self, from: &Rc<Connection<A::State>>, remote: &Capabilities) -> Result<Admission, Fault> {
        let host = &remote.origin.host;
        let known = Self::by_host(&self.0.peers.borrow().by_host, host);
        if known.is_none()
            && let Some((directory, worker)) = &self.0.directory
        {
            let preferred = self.app().place(self, host).unwrap_or(*worker);
            let home = directory.claim_for(host, *worker, preferred);
            if home != *worker {
                return Ok(Admission::Elsewhere(home));
            }
        }
        let outcome = self.admit_here(from, remote, known);
        if known.is_none() && outcome.is_err() {
            self.release(host);
        }
        outcome.map(|(key, rule)| Admission::Here(key, rule))
    }

    fn admit_here(
        &self,
        from: &Rc<Connection<A::State>>,
        remote: &Capabilities,
        known: Option<usize>,
    ) -> Result<(usize, Option<Rule>), Fault> {
        let host = &remote.origin.host;
        let tls = self.is_tls(from);
        self.check_certificate(from, host)?;
        if self.0.stopping.get() {
            return Err(Fault::new(ResultCode::TOO_BUSY, "this node is stopping"));
        }
        if let Some(key) = known {
            let peers = self.0.peers.borrow();
            if let Some(config) = peers.slots[key].lasting() {
                let secured =
                    tls || (matches!(config.security, Security::Inband(_)) && self.offers_tls(from));
                if !matches!(config.security, Security::None) && !secured {
                    return Err(Fault::new(
                        ResultCode::NO_COMMON_SECURITY,
                        format!("{host} must connect over TLS"),
                    ));
                }
                // A certificate that contains the name is stronger evidence than an address.
                let address = from.remote().ip();
                if !config.may_come_from(address) && !self.is_proven(from) {
                    let reason = format!("{host} may not connect from {address}");
                    return Err(Fault::new(ResultCode::UNKNOWN_PEER, reason));
                }
                return Ok((key, None));
            }
        }
        // A peer that is being disconnected is judged as an unknown one: its rule, or its entry, may have been removed.
        let rule = self.rule_for(host, &remote.origin.realm, from.remote().ip(), tls);
        let rule = rule.ok_or_else(|| {
            Fault::new(
                ResultCode::UNKNOWN_PEER,
                format!("{host} is not a peer of this node"),
            )
        })?;
        let taken = {
            let peers = self.0.peers.borrow();
            let others = peers.slots.iter().filter(|(key, _)| Some(*key) != known);
            others.filter(|(_, slot)| slot.rule == Some(rule.index)).count()
        };
        let held = known.and_then(|key| self.0.peers.borrow().slots[key].rule);
        if taken >= rule.max && held != Some(rule.index) {
            return Err(Fault::new(
                ResultCode::TOO_BUSY,
                format!("{taken} dynamic peers are connected, the most this rule allows"),
            ));
        }
        let key = match known {
            Some(key) => {
                self.with_slot(key, |slot| slot.config = None);
                key
            }
            None => self.new_slot(host, None, rule.settings.clone()),
        };
        Ok((key, Some(rule)))
    }

    /// The first rule that admits a peer with these properties.
    fn rule_for(&self, host: &str, realm: &str, address: IpAddr, tls: bool) -> Option<Rule> {
        let rules = self.0.dynamic.borrow();
        let (index, rule) = rules
            .iter()
            .enumerate()
            .find(|(_, rule)| rule.admits(realm, address, tls))?;
        Some(Rule {
            index,
            max: rule.max,
            settings: PeerSettings {
                host: Some(host.to_owned()),
                initiate: false,
                ..rule.settings.clone()
            },
        })
    }

    /// Changes the networks from which a configured peer may connect, for connections from now on.
    pub fn set_networks(&self, id: PeerId, networks: Vec<IpNet>) {
        self.with_slot(id.slot as usize, |slot| {
            if slot.id == id
                && let Some(config) = &mut slot.config
            {
                Rc::make_mut(config).networks = networks;
            }
        });
    }

    fn count_under(&self, key: usize, rule: Rule) {
        self.with_slot(key, |slot| {
            slot.rule = Some(rule.index);
            slot.machine.configure(rule.settings);
        });
    }

    /// Changes the rules for dynamic peers. Connected peers are judged by the new rules: an admitted peer keeps its
    /// connection and counts under the rule that fits now, even if that rule exceeds its `max` then; any other gets a
    /// DPR.
    pub fn set_dynamic(&self, rules: Vec<DynamicPeers>) {
        *self.0.dynamic.borrow_mut() = rules;
        self.refresh();
        let strangers: Vec<usize> = {
            let peers = self.0.peers.borrow();
            let strangers = peers.slots.iter().filter(|(_, slot)| slot.config.is_none());
            strangers.map(|(key, _)| key).collect()
        };
        for key in strangers {
            if let Some(rule) = self.judge_again(key) {
                self.count_under(key, rule);
                continue;
            }
            self.with_slot(key, |slot| slot.rule = None);
            // RFC 6733 §5.4.3: after REBOOTING the peer would reconnect, after BUSY once it has waited, both in vain.
            // This cause means that no messages are expected, so the peer does not reconnect (§5.4).
            let cause = disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU;
            self.drive(key, Input::Stop(cause), None);
        }
    }

    /// The rule that fits a connected peer now.
    fn judge_again(&self, key: usize) -> Option<Rule> {
        let (remote, id) = self.with_slot(key, |slot| {
            Some((slot.machine.remote()?.clone(), slot.responder?))
        })??;
        let connection = self.connection(id)?;
        let origin = &remote.origin;
        let address = connection.remote().ip();
        self.rule_for(&origin.host, &origin.realm, address, self.is_tls(&connection))
    }

    pub(super) fn release(&self, host: &str) {
        if let Some((directory, worker)) = &self.0.directory {
            directory.release(host, *worker);
        }
    }
}
