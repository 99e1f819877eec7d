//! Message priority, the DRMP AVP (RFC 7944): 0 is the most important, 15 the least.

use crate::avp::AvpWriter;
use crate::known;
use crate::message::Message;

/// The priority of a message that does not say (RFC 7944 §8).
pub const DEFAULT: u8 = 10;
/// How many priorities there are.
pub const COUNT: usize = 16;

/// The priority of a message: its DRMP, or [`DEFAULT`] when it has none or one that cannot be.
#[must_use]
pub fn of<B: AsRef<[u8]>>(message: &Message<B>) -> u8 {
    let drmp = message.get(known::DRMP).ok().flatten();
    drmp.and_then(|value| u8::try_from(value).ok())
        .filter(|value| *value < COUNT as u8)
        .unwrap_or(DEFAULT)
}

/// Appends a DRMP.
pub fn write(out: &mut AvpWriter, priority: u8) {
    out.put(known::DRMP, i32::from(priority.min(COUNT as u8 - 1)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::MessageBuilder;

    #[test]
    fn what_cannot_be_is_the_default() {
        let with = |value: Option<i32>| {
            let mut builder = MessageBuilder::request(272, 4);
            builder.maybe(known::DRMP, value);
            of(&builder.finish().unwrap())
        };
        assert_eq!([with(None), with(Some(0)), with(Some(15))], [DEFAULT, 0, 15]);
        assert_eq!(
            [with(Some(16)), with(Some(-1)), with(Some(i32::MAX))],
            [DEFAULT; 3]
        );
    }
}
