//! What nodes and ASPs are notified of beside the states of destinations: congestion, users that a node does not have.

use ss7_proto::PointCode;
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::Management;

use super::ssnm::notice;
use super::{Control, Frame};
use crate::path::{Notice, Send, own};
use crate::state::State;

/// The cause of UPU: "unequipped remote user" (Q.704 §15.17.5).
const UNEQUIPPED: u8 = 1;

impl Control {
    /// Notifies each active ASP of an application server.
    pub(crate) fn advise(&self, state: &State, hop: usize, what: Notice) {
        let mut octets = Vec::new();
        notice(state, hop, what, &mut octets);
        let links = state.forward.hops.get(hop).into_iter().flat_map(|hop| &hop.up);
        self.send(links.map(|link| (usize::from(*link), octets.clone())).collect());
    }

    /// Notifies the origin of a message that came by a link set of M2PA.
    pub(crate) fn inform(&self, state: &State, hop: usize, origin: PointCode, what: Notice) {
        let points = &state.tables.points;
        let message = match what {
            Notice::Unreachable(code) => return self.prohibit(state, hop, code),
            Notice::Congested(destination, level) => Management::TransferControlled {
                destination,
                level: if points.has_levels() { level } else { 0 },
            },
            Notice::NoUser(destination, user) => Management::UserPartUnavailable {
                destination,
                user: user.0,
                cause: UNEQUIPPED,
            },
        };
        let mut user_data = Vec::new();
        message.write(points.plan, 0, &mut user_data);
        self.manage(state, own(state, origin, ServiceIndicator::SNM, &user_data));
    }

    /// Sends network management by a link set of M2PA; M3UA carries none.
    pub(super) fn manage(&self, state: &State, send: Option<Send>) {
        let is_set = |send: &Send| {
            let hop = state.tables.hops.get(send.hop);
            hop.is_some_and(|hop| hop.adjacent.is_some())
        };
        if let Some(send) = send.filter(is_set) {
            self.deliver(state, send.hop, &send.target, Frame::data(send.octets, send.sls));
        }
    }
}
