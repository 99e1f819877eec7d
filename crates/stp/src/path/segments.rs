//! Segments of messages to users of this node (Q.714 §4.1.1.2.3). Those to other nodes pass one by one: they have one origin and one
//! link selection, and take one route.

use std::time::Instant;

use parking_lot::Mutex;
use ss7_proto::PointCode;
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::sccp::{Message, Reassembled, Reassembly, ReassemblyFault, ReturnCause, Unitdata};

use super::sccp::Relay;
use super::{Decision, Ingress, Trace, Work};
use crate::cause::{Cause, Segmented};
use crate::state::State;

/// Messages of which segments are awaited from an application server or link set: others have their own.
pub(crate) type Segments = Mutex<Reassembly<First>>;

/// The first segment of a message, which returns when the others do not come in time.
#[derive(Debug)]
pub(crate) struct First {
    opc: PointCode,
    dpc: PointCode,
    ni: u8,
    mp: u8,
    sls: u8,
    user_data: Vec<u8>,
}

impl First {
    fn new(data: &Data<'_>) -> Self {
        Self {
            opc: data.opc,
            dpc: data.dpc,
            ni: data.ni,
            mp: data.mp,
            sls: data.sls,
            user_data: data.user_data.to_vec(),
        }
    }

    /// Returns it, if its sender wants it.
    pub(crate) fn give_back(&self, state: &State) -> Decision {
        let data = Data {
            network_appearance: None,
            routing_context: None,
            opc: self.opc,
            dpc: self.dpc,
            si: ServiceIndicator::SCCP,
            ni: self.ni,
            mp: self.mp,
            sls: self.sls,
            user_data: &self.user_data,
            correlation_id: None,
        };
        let ingress = Ingress {
            state,
            hop: None,
            segments: None,
            transactions: None,
        };
        let decision = match Message::parse(&self.user_data) {
            Ok(Message::Unitdata(unitdata)) => {
                let relay = Relay {
                    ingress: &ingress,
                    data: &data,
                    unitdata,
                    as_received: unitdata.called,
                };
                let cause = ReturnCause::ERROR_IN_MESSAGE_TRANSPORT;
                relay.give_back(
                    Cause::Subsystem,
                    cause,
                    &mut Work::default(),
                    &mut Trace::default(),
                )
            }
            _ => Decision::drop(Cause::Subsystem),
        };
        Decision {
            segmented: Some(Segmented::Late),
            ..decision
        }
    }
}

impl Relay<'_> {
    /// A segment of a message to a user of this node: the last one makes the message.
    pub(super) fn segment(&self, ssn: u8, work: &mut Work, trace: &mut Trace) -> Decision {
        let (Some(segments), Some(segmentation)) = (self.ingress.segments, self.unitdata.segmentation())
        else {
            trace.add(|| format!("SCCP: a segment to subsystem {ssn}, which is served with the others"));
            return Decision::default();
        };
        let first = || First::new(self.data);
        let reassembled =
            segments
                .lock()
                .add(self.data.opc, &self.unitdata, segmentation, Instant::now(), first);
        match reassembled {
            Reassembled::Pending => Decision::default(),
            Reassembled::Whole(data) => {
                let whole = Relay {
                    unitdata: Unitdata {
                        data: &data,
                        optional: &[],
                        ..self.unitdata
                    },
                    ingress: self.ingress,
                    data: self.data,
                    as_received: self.as_received,
                };
                Decision {
                    segmented: Some(Segmented::Whole),
                    ..whole.serve(ssn, work, trace)
                }
            }
            Reassembled::Refused(fault) => Decision {
                segmented: Some(match fault {
                    ReassemblyFault::Sequence => Segmented::Sequence,
                    ReassemblyFault::Full => Segmented::Full,
                }),
                ..self.give_back(Cause::Subsystem, fault.cause(), work, trace)
            },
        }
    }
}
