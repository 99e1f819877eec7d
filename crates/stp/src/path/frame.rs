//! MSUs in messages of M2PA, whose sequence numbers the link sets when it sends them.

use ss7_proto::Plan;
use ss7_proto::m2pa::{Content, HEADER_LEN, Message};
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::mtp3::{Management, Msu, test_indicator};

use super::{Send, Trace, transfer, unchanged};
use crate::cause::Cause;
use crate::state::State;
use crate::tables::Tables;

/// Appends an MSU with user data that `user_data` appends; returns what that returned.
pub(super) fn write(
    data: &Data<'_>,
    plan: Plan,
    out: &mut Vec<u8>,
    user_data: impl FnOnce(&mut Vec<u8>) -> bool,
) -> bool {
    let start = out.len();
    let content = Content::Acknowledgement;
    Message {
        bsn: 0,
        fsn: 0,
        content,
    }
    .write(out);
    // The priority octet, which is Japan's.
    out.push(0);
    let label = Msu {
        si: data.si,
        ni: data.ni,
        priority: data.mp,
        dpc: data.dpc,
        opc: data.opc,
        sls: data.sls,
        user_data: &[],
    };
    label.write(plan, out);
    let is_written = user_data(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start + 4..start + 8) {
        field.copy_from_slice(&length.to_be_bytes());
    }
    is_written
}

/// An MSU as DATA that came without M3UA; `None` when it ends within its label.
pub(crate) fn read_msu(octets: &[u8], plan: Plan) -> Option<Data<'_>> {
    let msu = Msu::read(octets, plan)?;
    Some(Data {
        network_appearance: None,
        routing_context: None,
        opc: msu.opc,
        dpc: msu.dpc,
        si: msu.si,
        ni: msu.ni,
        mp: msu.priority,
        sls: msu.sls,
        user_data: msu.user_data,
        correlation_id: None,
    })
}

/// A message of this node's own to the node behind a hop.
pub(crate) fn own_frame(
    tables: &Tables,
    hop: usize,
    code: u8,
    si: ServiceIndicator,
    user_data: &[u8],
) -> Option<Vec<u8>> {
    let label = Data {
        network_appearance: None,
        routing_context: None,
        opc: tables.points.own,
        dpc: tables.hops.get(hop)?.adjacent?,
        si,
        ni: tables.points.network_indicator,
        mp: management_priority(tables.points.plan),
        sls: code,
        user_data,
        correlation_id: None,
    };
    let mut out = Vec::new();
    write(&label, tables.points.plan, &mut out, unchanged(user_data));
    Some(out)
}

/// A message of network management that concerns a link code.
pub(crate) fn management_frame(
    tables: &Tables,
    hop: usize,
    code: u8,
    message: Management,
) -> Option<Vec<u8>> {
    let mut user_data = Vec::new();
    message.write(tables.points.plan, code, &mut user_data);
    own_frame(tables, hop, code, ServiceIndicator::SNM, &user_data)
}

/// The priority of messages of management: the highest, where the network has priorities (T1.111.5, annex A).
pub(super) const fn management_priority(plan: Plan) -> u8 {
    match plan {
        Plan::Ansi => 3,
        Plan::Itu | Plan::China | Plan::Japan => 0,
    }
}

/// Whether messages are for the management of MTP3, by their service indicator: what has no place in M3UA.
pub(crate) fn is_management(si: ServiceIndicator, plan: Plan) -> bool {
    matches!(si, ServiceIndicator::SNM | ServiceIndicator::SNT) || si == test_indicator(plan)
}

/// Routes the MSU of a message of M2PA once more.
pub(crate) fn again(state: &State, octets: &[u8]) -> Result<Send, Cause> {
    let msu = octets.get(HEADER_LEN + 1..).unwrap_or_default();
    let data = read_msu(msu, state.tables.points.plan).ok_or(Cause::Encoding)?;
    let user_data = unchanged(data.user_data);
    transfer(state, None, &data, &mut Trace::default(), user_data)
}
