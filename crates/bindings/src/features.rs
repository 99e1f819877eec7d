//! Features of Nbsf_Management (TS 29.521 §5.8) and their negotiation (TS 29.500 §6.6.2).

use model::SupportedFeatures;
use serde_json::Value;

use super::Document;

/// Several IPv6 prefixes or MAC addresses of one session.
pub const MULTI_UE_ADDR: usize = 1;
/// Bindings can be changed by PATCH.
pub const BINDING_UPDATE: usize = 2;
/// The BSF reports a PCF that serves the same SUPI, DNN and slice already.
pub const SAME_PCF: usize = 3;
/// 307 and 308 with the redirection of TS 29.500.
const ES3XX: usize = 4;
/// As [`SAME_PCF`], with any combination of SUPI, DNN and slice.
pub const EXTENDED_SAME_PCF: usize = 5;

/// The features of this BSF.
#[must_use]
pub fn own() -> SupportedFeatures {
    SupportedFeatures::of(&[MULTI_UE_ADDR, BINDING_UPDATE, SAME_PCF, ES3XX, EXTENDED_SAME_PCF])
}

/// Replaces `suppFeat` by what both sides support. Nothing, when the consumer did not say.
pub fn negotiate(document: &mut Document) -> Option<SupportedFeatures> {
    let given = document.text_of("suppFeat")?;
    // The shape of the document has been checked; a mask that cannot be read has no features.
    let common = own().common(&SupportedFeatures::parse(given).unwrap_or_default());
    let text = common.to_string();
    if given != text {
        document.change(|members| {
            members.insert("suppFeat".to_owned(), Value::String(text));
        });
    }
    Some(common)
}
