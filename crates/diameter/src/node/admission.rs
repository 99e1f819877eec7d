//! Who sent this CER, may they connect, and on which worker do they live?

use std::rc::Rc;

use diameter_proto::peer::{Capabilities, Input, PeerSettings};
use diameter_proto::{CommandFlags, Fault, MessageBuilder, MessageMut, ResultCode};

use super::{Node, Verdict};
use crate::application::{Application, NodeEvent};
use crate::config::Security;
use crate::connection::{Connection, Ending};

/// Where a peer lives.
enum Admission {
    /// Here, in this slot.
    Here(usize),
    /// On this worker.
    Elsewhere(usize),
}

impl<A: Application> Node<A> {
    pub(super) fn received_cer(&self, from: &Rc<Connection<A::State>>, cer: MessageMut) -> Verdict {
        let admitted = Capabilities::read(&cer).and_then(|remote| {
            let key = self.admit(from, &remote)?;
            Ok((key, remote))
        });
        match admitted {
            Ok((Admission::Here(key), remote)) => {
                let same_address = self.is_at(key, from);
                let local = from.local().ip();
                let input = Input::ConnectedBy {
                    cer: cer.view(),
                    remote,
                    local,
                    same_address,
                };
                self.drive(key, input, Some(from));
                Verdict::Handled
            }
            Ok((Admission::Elsewhere(worker), _)) => Verdict::Elsewhere(worker, cer),
            Err(fault) => {
                self.app().event(
                    self,
                    NodeEvent::Refused {
                        remote: from.remote(),
                        fault: &fault,
                    },
                );
                from.enqueue_base(self.refusal(&cer, &fault));
                from.end(Ending::AfterFlush);
                Verdict::Handled
            }
        }
    }

    fn refusal(&self, cer: &MessageMut, fault: &Fault) -> MessageMut {
        let mut answer = MessageBuilder::error_answer(cer, &self.local().origin, fault);
        let flags = if fault.code.is_protocol_error() {
            CommandFlags::ERROR
        } else {
            CommandFlags::default()
        };
        answer.set_flags(flags);
        answer
    }

    fn is_at(&self, key: usize, from: &Connection<A::State>) -> bool {
        let open = self.0.peers.borrow().slots[key].open;
        open.and_then(|id| self.connection(id))
            .is_some_and(|open| open.remote().ip() == from.remote().ip())
    }

    /// Who is this, may they connect, and where do they live?
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
        outcome.map(Admission::Here)
    }

    fn admit_here(
        &self,
        from: &Rc<Connection<A::State>>,
        remote: &Capabilities,
        known: Option<usize>,
    ) -> Result<usize, Fault> {
        let host = &remote.origin.host;
        let tls = self.is_tls(from);
        self.check_certificate(from, host)?;
        if self.0.stopping.get() {
            return Err(Fault::new(ResultCode::TOO_BUSY, "this node is stopping"));
        }
        if let Some(key) = known {
            let peers = self.0.peers.borrow();
            let wants_tls = peers.slots[key]
                .config
                .as_ref()
                .is_some_and(|config| matches!(config.security, Security::Tls(_)));
            if wants_tls && !tls {
                return Err(Fault::new(
                    ResultCode::NO_COMMON_SECURITY,
                    format!("{host} has to come over TLS"),
                ));
            }
            return Ok(key);
        }
        let unknown = || {
            Fault::new(
                ResultCode::UNKNOWN_PEER,
                format!("{host} is not a peer of this node"),
            )
        };
        let address = from.remote().ip();
        let (index, rule) = self
            .0
            .config
            .dynamic
            .iter()
            .enumerate()
            .find(|(_, rule)| rule.admits(&remote.origin.realm, address, tls))
            .ok_or_else(unknown)?;
        let taken = {
            let peers = self.0.peers.borrow();
            peers
                .slots
                .iter()
                .filter(|(_, slot)| slot.config.is_none() && slot.rule == index)
                .count()
        };
        if taken >= rule.max {
            return Err(Fault::new(
                ResultCode::TOO_BUSY,
                format!("{taken} dynamic peers are connected, the most this rule allows"),
            ));
        }
        let settings = PeerSettings {
            host: Some(host.clone()),
            initiate: false,
            ..rule.settings.clone()
        };
        Ok(self.new_slot(host, None, index, settings))
    }

    pub(super) fn release(&self, host: &str) {
        if let Some((directory, worker)) = &self.0.directory {
            directory.release(host, *worker);
        }
    }
}
