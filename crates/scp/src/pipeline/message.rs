//! Data between the steps: an admitted request, its caller, a target, and the forwarded request.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use http::{HeaderValue, Method};
use routing::network::{Applicant, ServiceRef};
use routing::path::{path_of, service_in, without_cache_key};
use routing::target::Has;
use sbi::client::Origin;
use sbi::headers::{MaxForwardHops, ProducerId, SbiHeader, TargetApiRoot, discovery, names};
use sbi::name::{PATH, VIA};
use sbi::oauth::AssertionClaims;
use sbi::tls::instance_of;
use sbi::{Body, Fields, Outbound, Peer as Connection, Request, RequestHead, Response};

use super::deadline::Deadline;
use super::facts;
use crate::events::ServiceMetrics;
use crate::protection::{Consumer, Hop, Peer, Way};
use crate::refusal::Refused;
use crate::security::Asked;

/// The result of a step.
pub(super) type Step<T> = Result<T, Box<Refused>>;

/// Path and query of a request without the prefix of an API root, and where their parts lie: found once for all steps.
/// Shared, so that steps can read it while the request is changed.
#[derive(Clone)]
pub(super) struct Address {
    target: Rc<str>,
    /// Where the path ends.
    path_end: usize,
    /// Where the API name lies.
    service: Range<usize>,
    /// As the consumer wrote it, where that differs.
    written: Option<Rc<str>>,
}

impl Address {
    pub(super) fn of(target: &str) -> Self {
        let path = path_of(target);
        Self {
            target: target.into(),
            path_end: path.len(),
            service: service_in(path),
            written: None,
        }
    }

    /// As the consumer wrote it: a proxy does not change path and query (RFC 9110 §7.7).
    pub(super) fn written(self, target: Option<Rc<str>>) -> Self {
        Self {
            written: target,
            ..self
        }
    }

    /// Path and query.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The path.
    pub(super) fn path(&self) -> &str {
        self.target.get(..self.path_end).unwrap_or_default()
    }

    /// The API name.
    pub(super) fn service(&self) -> &str {
        self.target.get(self.service.clone()).unwrap_or_default()
    }
}

/// A request whose path is in its normal form.
pub(super) struct Arrived {
    pub(super) request: Request,
    pub(super) address: Address,
    /// The headers that the request has.
    pub(super) has: Has,
    pub(super) metrics: Rc<ServiceMetrics>,
    /// Whether any segment of its path, or of the prefix it names, may be the API name.
    pub(super) unsure: bool,
}

/// An admitted request with the results of admission. What arrived stays where it is: hundreds of bytes, which each move
/// would copy.
pub(super) struct Admitted<'a> {
    pub(super) arrived: &'a mut Arrived,
    pub(super) caller: Caller,
    pub(super) priority: u8,
}

/// The sender of a request.
pub(super) struct Caller {
    pub(super) consumer: Rc<Consumer>,
    /// Hash of its certificate name or address.
    pub(super) source: u64,
    /// The claims of its assertion, where assertions are checked.
    pub(super) claims: Option<Rc<AssertionClaims>>,
    /// The other end of its connection.
    pub(super) connection: Rc<Connection>,
    /// Number of the stream of its request.
    pub(super) stream: u32,
    /// Properties of the request that access rules test.
    pub(super) asked: Asked,
    /// Properties that `allowed…` of profiles tests, parsed at first use.
    pub(super) applicant: OnceCell<Box<Applicant>>,
}

impl Caller {
    /// Its NF type, as `User-Agent` names it.
    pub(super) fn nf_type(&self) -> Option<&str> {
        self.consumer.nf_type.as_deref()
    }

    /// Properties that `allowed…` of profiles tests; `headers` are those of its request.
    pub(super) fn applicant(&self, headers: &Fields) -> &Applicant {
        self.applicant
            .get_or_init(|| crate::security::applicant(self.nf_type(), self.instance(), headers).into())
    }

    /// The NF instance id that its assertion or its certificate proves.
    pub(super) fn proved(&self) -> Option<&str> {
        let tls = self.connection.tls.as_ref();
        self.asserted()
            .or_else(|| tls?.names.iter().find_map(|name| instance_of(name)))
    }

    /// Its NF instance id: the proved one, else the claimed one.
    pub(super) fn instance(&self) -> Option<&str> {
        self.asserted().or(self.consumer.instance.as_deref())
    }

    /// Whether it has cancelled its request.
    pub(super) fn has_given_up(&self) -> bool {
        self.connection.given_up.has(self.stream)
    }

    fn asserted(&self) -> Option<&str> {
        self.claims.as_ref().map(|claims| claims.sub.as_str())
    }
}

/// A destination of a request.
pub(super) struct Target {
    pub(super) root: TargetApiRoot,
    /// The service instance there, if its profile is known.
    pub(super) service: Option<ServiceRef>,
    pub(super) peer: Rc<Peer>,
    /// Whether the destination is unknown and allowed by the settings.
    pub(super) unknown: bool,
    /// Path and query that requests for it get, where its profile names them: those of a default notification
    /// subscription.
    pub(super) path: Option<Rc<str>>,
    /// Whether it is of another network, so that `hops` are SEPPs.
    pub(super) abroad: bool,
    /// SCPs of its region, when it is reached through them, in order of preference; SEPPs to another network.
    pub(super) hops: Option<Rc<[Hop]>>,
    /// The headers that name it, built when an answer needs them.
    pub(super) named: OnceCell<ProducerHeaders>,
}

/// The headers that name the producer to a consumer that has not (TS 29.500 §6.10.4).
pub(super) struct ProducerHeaders {
    pub(super) root: Option<HeaderValue>,
    pub(super) producer: Option<HeaderValue>,
}

impl Target {
    pub(super) fn headers(&self) -> &ProducerHeaders {
        self.named.get_or_init(|| {
            let id = |service: &ServiceRef| ProducerId {
                nf_instance: service.producer.id.to_string(),
                service_instance: Some(service.service().instance.to_string()),
                nf_set: service.producer.sets.first().map(ToString::to_string),
                service_set: service.service().sets.first().map(ToString::to_string),
            };
            ProducerHeaders {
                root: self.root.to_value(),
                producer: self.service.as_ref().and_then(|service| id(service).to_value()),
            }
        })
    }

    /// The data that protection needs; `hop`: the position of the SCP that gets the request, if there is one before the
    /// target.
    pub(super) fn way<'a>(&'a self, hop: usize, api: &'a str) -> Way<'a> {
        Way {
            peer: &self.peer,
            service: self.service.as_ref(),
            api,
            hops: self.hops.as_deref().map(|hops| (hops, hop)),
        }
    }

    /// The next receiver of a request: the SCP at this position, or the producer without an SCP before it.
    pub(super) fn next_root(&self, hop: usize) -> &TargetApiRoot {
        self.hop(hop).unwrap_or(&self.root)
    }

    /// The SCP at this position of those through which it is reached.
    pub(super) fn hop(&self, position: usize) -> Option<&TargetApiRoot> {
        let hop = self.hops.as_ref()?.get(position)?;
        Some(&hop.root)
    }
}

/// An answer of a producer, unchanged.
pub(super) struct Reply {
    pub(super) response: Response,
    pub(super) target: Rc<Target>,
    /// Whether the consumer has not named this producer itself.
    pub(super) elsewhere: bool,
    /// Whether other producers were tried before.
    pub(super) retried: bool,
}

/// A forwarded request; all attempts share it, except for the target.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) address: Address,
    pub(super) headers: Fields,
    body: Body,
    hops: MaxForwardHops,
    pub(super) deadline: Deadline,
    /// Time spent waiting for NRFs and producers.
    pub(super) waited: Duration,
    /// The token that this SCP has fetched for it, where the consumer is to get it as well.
    pub(super) conveyed: Option<HeaderValue>,
    /// Whether its token is one that this SCP has fetched.
    pub(super) authorized: bool,
    /// Whether any segment of its path, or of the prefix it names, may be the API name.
    pub(super) unsure: bool,
    /// The name of this SCP: `SCP-fqdn`.
    own_name: Rc<str>,
    /// Path and query before a redirection was followed, and whether they were unsure.
    redirected_from: Option<(Address, bool)>,
    /// Headers of the received request: discovery parameters, `3gpp-Sbi-Nrf-Uri` and hops are for another SCP, not for a
    /// producer.
    pub(super) has: Has,
}

impl Outgoing {
    /// Takes headers and body of a request, removes the headers that are for this SCP alone and adds those that name it as a
    /// hop (TS 29.500 §6.10.2).
    pub(super) fn new(
        arrived: &mut Arrived,
        hops: MaxForwardHops,
        deadline: Deadline,
        via: &HeaderValue,
        name: &Rc<str>,
    ) -> Self {
        let Arrived {
            request,
            address,
            has,
            unsure,
            ..
        } = arrived;
        let (has, unsure) = (*has, *unsure);
        let method = request.method().clone();
        let mut headers = std::mem::take(&mut request.head.fields);
        if has.has(Has::TARGET_API_ROOT) {
            headers.remove(names::TARGET_API_ROOT);
        }
        headers.append(VIA, via);
        Self {
            method,
            address: address.clone(),
            headers,
            body: std::mem::take(&mut request.body),
            hops,
            deadline,
            waited: Duration::ZERO,
            conveyed: None,
            authorized: false,
            unsure,
            redirected_from: None,
            own_name: name.clone(),
            has,
        }
    }

    /// Uses the path of a redirection until [`Outgoing::restore`].
    pub(super) fn redirect(&mut self, target: &str, unsure: bool) {
        let before = std::mem::replace(&mut self.address, Address::of(target));
        self.redirected_from.get_or_insert((before, self.unsure));
        self.unsure = unsure;
        self.headers.set_printed(PATH, target);
    }

    /// Uses the path of the consumer again: the path of a redirection belongs to one producer.
    pub(super) fn restore(&mut self) {
        if let Some((address, unsure)) = self.redirected_from.take() {
            self.headers.set_printed(PATH, address.target());
            (self.address, self.unsure) = (address, unsure);
        }
    }

    /// Builds the request for a target, through the SCP at position `hop` if there is one before it. `again`: it is a
    /// retransmission. `last`: no further attempt follows, so it takes headers and body without a copy.
    pub(super) fn request(
        &mut self,
        target: &Target,
        hop: usize,
        again: bool,
        last: bool,
    ) -> (Origin, Outbound) {
        let (mut headers, body) = match last {
            true => (std::mem::take(&mut self.headers), std::mem::take(&mut self.body)),
            false => (self.headers.clone(), self.body.clone()),
        };
        self.deadline.pass_on(&mut headers);
        if again {
            facts::say_retransmitted(&mut headers);
        }
        if self.has.has(Has::PEER_INFO) {
            facts::name_peers(&mut headers, &self.own_name, target, hop);
        }
        let root = match target.hop(hop) {
            Some(hop) if !target.abroad => {
                target.root.set_in(&mut headers);
                self.hops.set_in(&mut headers);
                hop
            }
            hop => {
                // A SEPP gets what a producer gets, and where that is (TS 29.500 §6.1.4.3).
                if hop.is_some() {
                    target.root.set_in(&mut headers);
                }
                if self.has.has(Has::MAX_FORWARD_HOPS) {
                    headers.remove(names::MAX_FORWARD_HOPS);
                }
                if self.has.has(Has::DISCOVERY) {
                    discovery::remove(&mut headers);
                }
                // The header is for SCPs, and this is the last one.
                if self.has.has(Has::NRF_URI) {
                    headers.remove(names::NRF_URI);
                }
                hop.unwrap_or(&target.root)
            }
        };
        let kept = match target.hop(hop) {
            None if self.address.path_end < self.address.target.len() => {
                without_cache_key(self.address.target())
            }
            _ => None,
        };
        let written = self.address.written.as_deref();
        let path = kept.as_deref().or(written).unwrap_or(self.address.target());
        if kept.is_some() || written.is_some() || !root.prefix.is_empty() {
            headers.set_printed(PATH, format_args!("{}{path}", root.prefix));
        }
        let request = Outbound {
            head: RequestHead::of_fields(self.method.clone(), headers),
            body,
        };
        (root.origin.clone(), request)
    }
}
