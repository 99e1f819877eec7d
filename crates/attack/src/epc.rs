//! The honest Diameter peers by name, and the request of the MME.

use diameter_proto::known::{self, application, command};
use diameter_proto::{MessageBuilder, MessageMut};

/// The router.
pub const DSR_HOST: &str = "dsr.example";
/// The realm of all honest peers.
pub const REALM: &str = "epc.example";
/// The honest client.
pub const MME: &str = "mme.epc.example";
/// The honest server.
pub const HSS: &str = "hss.epc.example";

/// An Update-Location-Request of `origin` for this subscriber, to the honest HSS.
///
/// # Errors
/// Never with texts of a usual length.
pub fn ulr(origin: &str, user: &str, number: u32) -> anyhow::Result<MessageMut> {
    let mut builder = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
    builder.identifiers(number, number);
    builder
        .put(known::SESSION_ID, &format!("{origin};1;{number}"))
        .put(known::AUTH_SESSION_STATE, 1)
        .put(known::ORIGIN_HOST, origin)
        .put(known::ORIGIN_REALM, REALM)
        .put(known::DESTINATION_REALM, REALM)
        .put(known::DESTINATION_HOST, HSS)
        .put(known::USER_NAME, user)
        .put(known::RAT_TYPE, 1004)
        .put(known::ULR_FLAGS, 34)
        .put(known::VISITED_PLMN_ID, &[0x00, 0xf1, 0x10]);
    Ok(builder.finish()?)
}
