//! Messages of MMEs (TS 29.128 §5, §6).

use diameter_proto::known::{self, application, command};
use diameter_proto::{AvpWriter, MessageBuilder, Origin};
use loadgen::diameter::Introduction;

use callmodel::scef::imsi;
pub use simulators::network::REALM;

/// Host of the SCEF.
pub const SCEF: &str = "scef.epc.mnc001.mcc001.3gppnetwork.org";
/// NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE: i32 = 1;
/// EPS bearer identity of each connection.
const BEARER: u8 = 5;
/// Connection-Action (TS 29.128 §6.4.22).
const ESTABLISH: u32 = 0;
const UPDATE: u32 = 2;
/// UE-Reachable-Indicator of CMR-Flags (TS 29.128 §6.4.25).
const REACHABLE: u32 = 1;
/// PLMN 001-01 (TS 29.272 §7.3.9).
const PLMN: [u8; 3] = [0x00, 0xf1, 0x10];

/// An MME.
#[must_use]
pub fn mme(number: u32) -> Introduction {
    Introduction::new(format!("mme{number:03}.{REALM}"), REALM, application::T6A)
}

/// A request of an MME; `number` makes its Session-Id one of a kind.
fn request(
    own: &Origin,
    code: u32,
    number: u32,
    device: Option<u32>,
    fill: impl FnOnce(&mut AvpWriter),
) -> MessageBuilder {
    let mut request = MessageBuilder::request(code, application::T6A);
    request.put(known::SESSION_ID, &format!("{};{code};{number}", own.host));
    if let Some(device) = device {
        request
            .group(known::USER_IDENTIFIER, |user| {
                user.put(known::USER_NAME, &imsi(device));
            })
            .put(known::BEARER_IDENTIFIER, &[BEARER]);
    }
    request
        .put(known::AUTH_SESSION_STATE, NO_STATE)
        .put(known::ORIGIN_HOST, &own.host)
        .put(known::ORIGIN_REALM, &own.realm)
        .put(known::DESTINATION_HOST, SCEF)
        .put(known::DESTINATION_REALM, REALM);
    fill(&mut request);
    request
}

/// CMR that establishes the connection of a device.
#[must_use]
pub fn establish(own: &Origin, device: u32) -> MessageBuilder {
    request(own, command::CONNECTION_MANAGEMENT, device, Some(device), |out| {
        out.put(known::CONNECTION_ACTION, ESTABLISH);
    })
}

/// CMR that says that a device is reachable.
#[must_use]
pub fn reachable(own: &Origin, number: u32, device: u32) -> MessageBuilder {
    request(own, command::CONNECTION_MANAGEMENT, number, Some(device), |out| {
        out.put(known::CMR_FLAGS, REACHABLE)
            .put(known::CONNECTION_ACTION, UPDATE);
    })
}

/// ODR with data of a device.
#[must_use]
pub fn uplink(own: &Origin, number: u32, device: u32, data: &[u8]) -> MessageBuilder {
    request(own, command::MO_DATA, number, Some(device), |out| {
        out.put(known::NON_IP_DATA, data);
    })
}

/// RIR with a location whose cell is the number of the report.
#[must_use]
pub fn report(own: &Origin, number: u32, reference: u32) -> MessageBuilder {
    let [a, b, c, d] = (number & 0x0fff_ffff).to_be_bytes();
    let [p, q, r] = PLMN;
    request(own, command::REPORTING_INFORMATION, number, None, |out| {
        out.group(known::MONITORING_EVENT_REPORT, |report| {
            report
                .put(known::SCEF_REFERENCE_ID, reference)
                .put(known::SCEF_ID, SCEF);
            report.group(known::EPS_LOCATION_INFORMATION, |eps| {
                eps.group(known::MME_LOCATION_INFORMATION, |mme| {
                    mme.put(known::E_UTRAN_CELL_GLOBAL_IDENTITY, &[p, q, r, a, b, c, d]);
                });
            });
        });
    })
}

/// The number of the report with this cell (`001-01-` and eight hexadecimal digits).
pub(super) fn number_of_cell(cell: &str) -> Option<u32> {
    u32::from_str_radix(cell.rsplit('-').next()?, 16).ok()
}
