//! The association of a node that speaks IPA: the gateway asks for its name, both acknowledge, then SCCP goes either way.

use ss7_proto::PointCode;
use ss7_proto::ipa::{Control, Frame, length, write_identity};
use ss7_proto::m3ua::Data;

use super::link::Link;

impl Link {
    /// Handles the whole frames among these octets; returns how many octets are left.
    pub(super) fn take_frames(&mut self, octets: &[u8], each: &mut impl FnMut(&Data<'_>)) -> usize {
        let mut rest = octets;
        while let Some((frame, behind)) = length(rest).and_then(|first| rest.split_at_checked(first)) {
            match Frame::read(frame) {
                // Its label is not known.
                Frame::Sccp(message) => each(&Data::sccp(PointCode(0), PointCode(0), 0, message)),
                Frame::Control(control) => self.control(control),
                Frame::Unknown => {}
            }
            rest = behind;
        }
        rest.len()
    }

    fn control(&mut self, control: Control<'_>) {
        match control {
            Control::Get => write_identity(&self.node.name, &mut self.out),
            Control::Ack if !self.is_active() => {
                Control::Ack.write(&mut self.out);
                self.activate();
            }
            Control::Ping => Control::Pong.write(&mut self.out),
            Control::Ack | Control::Pong | Control::Response(_) => {}
        }
        self.is_dirty |= !self.out.is_empty();
    }
}
