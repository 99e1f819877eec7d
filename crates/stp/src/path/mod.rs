//! What becomes of one MSU. Nothing is sent here, so that `why` explains with the code that decides.

mod call;
mod equipment;
mod frame;
mod interception;
mod number;
mod query;
mod request;
pub(crate) mod sccp;
mod segments;
mod trace;
mod transactions;

use std::sync::atomic::{AtomicU32, Ordering};

use ss7_proto::m3ua::{Data, ServiceIndicator, TrafficMode};
use ss7_proto::mtp3::Management as NetworkManagement;
use ss7_proto::sccp::Management;
use ss7_proto::{Plan, PointCode};

use crate::cause::{CallOutcome, CallService, Cause, Equipment, NumberOutcome, Segmented, Shared};
use crate::config::Action;
use crate::state::{State, Target};
use crate::tables;

pub(crate) use frame::{again, is_management, management_frame, own_frame, read_msu};
pub(crate) use segments::Segments;
pub(crate) use trace::Trace;
pub(crate) use transactions::Transactions;

/// Octets of user data at most: with its label an MSU has 4,091 octets of signalling information (Q.2210). What M3UA has room for
/// beyond would end the link behind.
const MOST_USER_DATA: usize = 4_087;

/// The next Correlation Id: one that no other MSU to an application server has had lately.
static CORRELATION: AtomicU32 = AtomicU32::new(0);

/// What is to be done with a message.
#[derive(Default)]
pub(crate) struct Decision {
    /// The message, or the one that returns it.
    pub(crate) send: Option<Send>,
    /// Why the message is not delivered.
    pub(crate) cause: Option<Cause>,
    /// What its sender is notified of.
    pub(crate) notice: Option<Notice>,
    /// What network management for nodes behind an application server means for its ASPs.
    pub(crate) advice: Option<(usize, Notice)>,
    /// Congestion on the way to a destination, and its level (TFC for this node).
    pub(crate) controlled: Option<(PointCode, u8)>,
    /// Management of a subsystem, from a node.
    pub(crate) management: Option<(PointCode, Management)>,
    /// The screening lists and the rules that decided.
    pub(crate) rules: tables::Passed,
    /// The set of the translation.
    pub(crate) set: Option<usize>,
    /// What the look-up of a number led to.
    pub(crate) number: Option<NumberOutcome>,
    /// What became of a call.
    pub(crate) call: Option<(CallService, CallOutcome)>,
    /// What is said of an IMEI.
    pub(crate) equipment: Option<Equipment>,
    /// What became of segments.
    pub(crate) segmented: Option<Segmented>,
    /// How its transaction found a node.
    pub(crate) shared: Option<Shared>,
}

/// A frame for a hop.
pub(crate) struct Send {
    pub(crate) hop: usize,
    pub(crate) target: Target,
    pub(crate) octets: Vec<u8>,
    pub(crate) sls: u8,
    pub(crate) dpc: PointCode,
}

/// What the sender of a message is notified of (RFC 4666 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// DUNA.
    Unreachable(PointCode),
    /// DUPU: this node has no such user.
    NoUser(PointCode, ServiceIndicator),
    /// SCON, or TFC to a node, with the congestion level.
    Congested(PointCode, u8),
}

/// What decides needs besides the message.
pub(crate) struct Ingress<'a> {
    pub(crate) state: &'a State,
    /// The hop that the message came from, where it is known.
    pub(crate) hop: Option<usize>,
    /// Segments from there; none where nothing is to change.
    pub(crate) segments: Option<&'a Segments>,
    /// Nodes of transactions; none where nothing is to change.
    pub(crate) transactions: Option<&'a Transactions>,
}

/// Buffers that a worker keeps from message to message.
#[derive(Default)]
pub(crate) struct Work {
    called: Vec<u8>,
    calling: Vec<u8>,
    /// The called party with a routing number before its number.
    ported: Vec<u8>,
}

/// Decides what becomes of a message.
pub(crate) fn decide(ingress: &Ingress<'_>, data: &Data<'_>, work: &mut Work, trace: &mut Trace) -> Decision {
    let tables = &ingress.state.tables;
    trace.add(|| {
        let (opc, dpc) = (tables.show(data.opc), tables.show(data.dpc));
        let (si, ni, sls) = (data.si.0, data.ni, data.sls);
        format!("message: OPC {opc}, DPC {dpc}, service indicator {si}, network indicator {ni}, SLS {sls}")
    });
    let plan = tables.points.plan;
    if !plan.contains(data.opc) || !plan.contains(data.dpc) {
        trace.add(|| format!("a point code exceeds {} bits", plan.bits()));
        return Decision::drop(Cause::PointCode);
    }
    // Both have four and two bits in MTP (Q.704 §14.2); a gateway behind would make others of them.
    if data.si.0 > 0x0f || data.ni > 0x03 {
        trace.add(|| "the service or network indicator exceeds its bits".to_owned());
        return Decision::drop(Cause::PointCode);
    }
    if data.user_data.len() > MOST_USER_DATA {
        trace.add(|| format!("the user data exceed {MOST_USER_DATA} octets"));
        return Decision::drop(Cause::Encoding);
    }
    // What this node has sent came back (Q.704 has no hop counter).
    if tables.points.are(data.opc) {
        trace.add(|| "loop: the origin is a point code of this STP".to_owned());
        return Decision::drop(Cause::Loop);
    }
    // Of a neighbour by M2PA. In M3UA SSNM stands for it, and its service indicators are reserved (RFC 4666 §1.4.2.3, §3.3.1).
    let is_management = is_management(data.si, plan);
    let hop = ingress.hop.and_then(|hop| tables.hops.get(hop));
    if is_management && hop.is_none_or(|hop| hop.adjacent.is_none()) {
        trace.add(|| "network management by M3UA".to_owned());
        return Decision::drop(Cause::UserPart);
    }
    let (action, rules) = screen(ingress, data, trace);
    match action {
        Action::Allow => {}
        Action::Block => {
            return Decision {
                rules,
                ..Decision::drop(Cause::Screened)
            };
        }
        Action::Return => {
            let refused = sccp::return_unparsed(ingress, data, work, trace);
            return Decision { rules, ..refused };
        }
    }
    if tables.translations.keeps_transactions() {
        transactions::learn(ingress, data);
    }
    if !tables.points.are(data.dpc) {
        trace.add(|| "discrimination: the destination is another node".to_owned());
        if is_management && let Some(decision) = advise(ingress, data, trace) {
            return Decision { rules, ..decision };
        }
        let decision = match interception::intercept(ingress, data, trace) {
            Some(decision) => decision,
            None => pass(ingress, data, trace, unchanged(data.user_data)),
        };
        return Decision { rules, ..decision };
    }
    trace.add(|| "discrimination: the destination is this STP".to_owned());
    let decision = match data.si {
        ServiceIndicator::SCCP => sccp::local(ingress, data, work, trace),
        ServiceIndicator::SNM if is_status(data, plan) => {
            trace.add(|| "network management: TFC or UPU for this STP ends here".to_owned());
            Decision {
                controlled: controlled(data, plan),
                ..Decision::default()
            }
        }
        si => {
            trace.add(|| format!("this STP has no user of service indicator {}", si.0));
            Decision {
                notice: (!is_management).then_some(Notice::NoUser(data.dpc, si)),
                ..Decision::drop(Cause::UserPart)
            }
        }
    };
    Decision { rules, ..decision }
}

/// Whether a message informs of a node that messages were sent to: it may come from any node (Q.704 §11.2, §13.7).
fn is_status(data: &Data<'_>, plan: Plan) -> bool {
    let message = NetworkManagement::read(data.user_data, plan);
    matches!(
        message,
        Some(NetworkManagement::TransferControlled { .. } | NetworkManagement::UserPartUnavailable { .. })
    )
}

/// The destination and level of TFC.
fn controlled(data: &Data<'_>, plan: Plan) -> Option<(PointCode, u8)> {
    match NetworkManagement::read(data.user_data, plan)? {
        NetworkManagement::TransferControlled { destination, level } => Some((destination, level)),
        _ => None,
    }
}

/// Network management for a node behind an application server: SSNM stands for it (RFC 4666 §1.4.2.3, §4.5.1). `None` when the
/// next node is one of MTP.
fn advise(ingress: &Ingress<'_>, data: &Data<'_>, trace: &mut Trace) -> Option<Decision> {
    let tables = &ingress.state.tables;
    let destination = tables.routes.find(data.dpc)?;
    let hop = ingress.state.choose(destination, data.sls, ingress.hop)?;
    if tables.hops.get(hop)?.adjacent.is_some() {
        return None;
    }
    let notice = match NetworkManagement::read(data.user_data, tables.points.plan) {
        Some(NetworkManagement::TransferControlled { destination, level }) => {
            Notice::Congested(destination, level)
        }
        Some(NetworkManagement::UserPartUnavailable {
            destination, user, ..
        }) => Notice::NoUser(destination, ServiceIndicator(user)),
        _ => {
            trace.add(|| "network management: nothing that ASPs are notified of".to_owned());
            return Some(Decision::drop(Cause::UserPart));
        }
    };
    trace.add(|| {
        format!(
            "network management: ASPs of `{}` are notified",
            tables.hops.get(hop).map_or("", |hop| &hop.name)
        )
    });
    Some(Decision {
        advice: Some((hop, notice)),
        ..Decision::default()
    })
}

/// Appends user data as they are.
fn unchanged(user_data: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> bool {
    move |out| {
        out.extend_from_slice(user_data);
        true
    }
}

/// Sends a message on to another node; `user_data` appends what follows the label, unless it returns `false`.
fn pass(
    ingress: &Ingress<'_>,
    data: &Data<'_>,
    trace: &mut Trace,
    user_data: impl FnOnce(&mut Vec<u8>) -> bool,
) -> Decision {
    match transfer(ingress.state, ingress.hop, data, trace, user_data) {
        Ok(send) => Decision {
            send: Some(send),
            ..Decision::default()
        },
        // Who serves the destination, or leads to it, needs no notice of its own state.
        Err(cause) => Decision {
            notice: match ingress.hop {
                Some(hop) if ingress.state.is_behind(hop, data.dpc) => None,
                _ => Some(Notice::Unreachable(data.dpc)),
            },
            ..Decision::drop(cause)
        },
    }
}

impl Decision {
    fn drop(cause: Cause) -> Self {
        Self {
            cause: Some(cause),
            ..Self::default()
        }
    }
}

/// A message of this node's own.
pub(crate) fn own(state: &State, to: PointCode, si: ServiceIndicator, user_data: &[u8]) -> Option<Send> {
    let priority = if si == ServiceIndicator::SNM {
        frame::management_priority(state.tables.points.plan)
    } else {
        0
    };
    own_with_priority(state, to, si, priority, user_data)
}

/// As [`own`], with a message priority.
pub(crate) fn own_with_priority(
    state: &State,
    to: PointCode,
    si: ServiceIndicator,
    mp: u8,
    user_data: &[u8],
) -> Option<Send> {
    let label = Data {
        network_appearance: None,
        routing_context: None,
        opc: state.tables.points.own,
        dpc: to,
        si,
        ni: state.tables.points.network_indicator,
        mp,
        sls: 0,
        user_data,
        correlation_id: None,
    };
    let user_data = unchanged(user_data);
    transfer(state, None, &label, &mut Trace::default(), user_data).ok()
}

/// Screens a message.
pub(crate) fn screen(ingress: &Ingress<'_>, data: &Data<'_>, trace: &mut Trace) -> (Action, tables::Passed) {
    let tables = &ingress.state.tables;
    let admitted = (Action::Allow, tables::Passed::new());
    let Some(hop) = ingress.hop.and_then(|hop| tables.hops.get(hop)) else {
        return admitted;
    };
    let Some(list) = hop.screen else {
        trace.add(|| format!("screening: `{}` has no list", hop.name));
        return admitted;
    };
    let message = tables::Message {
        data,
        format: tables.format(),
        plan: tables.points.plan,
    };
    let verdict = tables::Screen::judge(&tables.screens, list, &message);
    for (list, at) in &verdict.rules {
        trace.add(|| {
            let screen = tables.screens.get(*list);
            let rule = screen
                .and_then(|screen| screen.rules().nth(*at))
                .unwrap_or_default();
            let list = screen.map_or("", |screen| screen.name.as_str());
            format!("screening: rule `{rule}` of `{list}` fits")
        });
    }
    trace.add(|| format!("screening: the rule says {:?}", verdict.action));
    (verdict.action, verdict.rules)
}

/// Routes a message by its destination (Q.704 §2.3.2); `user_data` appends what follows the label.
fn transfer(
    state: &State,
    from: Option<usize>,
    data: &Data<'_>,
    trace: &mut Trace,
    user_data: impl FnOnce(&mut Vec<u8>) -> bool,
) -> Result<Send, Cause> {
    let tables = &state.tables;
    let Some(at) = tables.routes.find(data.dpc) else {
        trace.add(|| format!("route: none for {}", tables.show(data.dpc)));
        return Err(Cause::NoRoute);
    };
    let Some(hop) = state.choose(at, data.sls, from) else {
        let available = state
            .forward
            .destinations
            .get(at)
            .is_some_and(|hops| !hops.is_empty());
        if available {
            trace.add(|| "route: leads back to the link set that the message came from".to_owned());
            return Err(Cause::Loop);
        }
        trace.add(|| {
            let code = tables.show(data.dpc);
            format!("route: {code} is unreachable, no hop of its routes is active")
        });
        return Err(Cause::Unreachable);
    };
    let shared = state.forward.destinations.get(at).map_or(1, |hops| hops.len());
    let target = if state.is_held(at, data.sls) {
        Some(Target::Held)
    } else {
        state.target(hop, data.sls, shared)
    };
    let (Some(target), Some(to)) = (target, tables.hops.get(hop)) else {
        return Err(Cause::Unreachable);
    };
    trace.add(|| {
        let cluster = tables
            .routes
            .destinations
            .get(at)
            .map(|one| one.cluster.show(tables.points.plan));
        let link = shown(tables, &target);
        format!(
            "route: destination {} by `{}`, {link}",
            cluster.unwrap_or_default(),
            to.name
        )
    });
    let mut octets = Vec::with_capacity(data.user_data.len() + 96);
    // What is held is routed once more, in this form.
    let is_written = if to.adjacent.is_some() || target == Target::Held {
        frame::write(data, tables.points.plan, &mut octets, user_data)
    } else {
        let label = Data {
            network_appearance: tables.network_appearance,
            routing_context: to.context,
            // ASPs of a broadcast application server find the same MSU by it; the first one to a new ASP needs it (RFC 4666
            // §4.3.4.3).
            correlation_id: (to.mode == TrafficMode::Broadcast)
                .then(|| CORRELATION.fetch_add(1, Ordering::Relaxed)),
            ..*data
        };
        label.write_with(&mut octets, user_data)
    };
    if !is_written {
        return Err(Cause::Encoding);
    }
    Ok(Send {
        hop,
        target,
        octets,
        sls: data.sls,
        dpc: data.dpc,
    })
}

fn shown(tables: &tables::Tables, target: &Target) -> String {
    let name = |link: u16| {
        tables
            .links
            .get(usize::from(link))
            .map_or("", |link| link.name.as_str())
    };
    match target {
        Target::Link(link) => format!("link `{}`", name(*link)),
        Target::Each(links) => format!("each of {} links", links.len()),
        Target::Pending => "queued until a link is available".to_owned(),
        Target::Held => "held while its traffic moves to another link set".to_owned(),
    }
}
