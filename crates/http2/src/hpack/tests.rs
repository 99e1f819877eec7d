//! The examples of RFC 7541 (appendix C), peers, hostile blocks.

mod hostile;
mod peers;
mod vectors;

use crate::fields::{Fields, Name, Value};
use crate::hpack::{Decoder, Encoder, HpackError, Limits, Malformed, Outcome};

/// Limits that no block of these tests exceeds.
const WIDE: Limits = Limits {
    list: 1 << 20,
    fields: 10_000,
};

fn fields(list: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in list {
        fields.append(Name::from(*name), Value::new(value.as_bytes()).unwrap());
    }
    fields
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<(Fields, Outcome), HpackError> {
    let mut fields = Fields::new();
    let outcome = decoder.decode(block, WIDE, &mut fields)?;
    Ok((fields, outcome))
}
