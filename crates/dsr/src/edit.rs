//! A message with some AVPs changed. What is not touched is copied as it is, in its order.

use std::borrow::Cow;

use diameter::proto::{Avp, BuildError, Message, MessageBuilder, MessageMut, known};

/// What becomes of an AVP.
#[derive(Debug)]
pub(crate) enum Edit<'a> {
    /// It stays.
    Keep,
    /// It goes.
    Drop,
    /// It gets this data; code, vendor and flags stay.
    Data(Cow<'a, [u8]>),
}

/// The message with its top-level AVPs edited and `append` (encoded AVPs) after them. The message was scanned
/// before; should its frames be wrong all the same, what follows the first wrong one is left out.
///
/// # Errors
/// When it gets longer than a message can be.
pub(crate) fn edit<'e, B: AsRef<[u8]>>(
    message: &Message<B>,
    mut decide: impl FnMut(&Avp<'_>) -> Edit<'e>,
    append: &[u8],
) -> Result<MessageMut, BuildError> {
    let room = message.as_bytes().len() + append.len() + 256;
    let mut builder = MessageBuilder::with_capacity(message.header(), room);
    for avp in message.avps().map_while(Result::ok) {
        match decide(&avp) {
            Edit::Keep => {
                builder.copy(&avp);
            }
            Edit::Drop => {}
            Edit::Data(data) => {
                builder.put_raw(avp.key(), avp.flags, &data);
            }
        }
    }
    builder.append_encoded(append);
    builder.finish()
}

/// The request with another Destination-Realm and Destination-Host; where one is empty, that of the request
/// stays.
///
/// # Errors
/// When it gets longer than a message can be.
pub(crate) fn readdress<B: AsRef<[u8]>>(
    message: &Message<B>,
    realm: &str,
    host: &str,
) -> Result<MessageMut, BuildError> {
    let wanted = [(known::DESTINATION_REALM, realm), (known::DESTINATION_HOST, host)];
    let mut found = [false; 2];
    let mut end = diameter::proto::AvpWriter::with_capacity(0);
    for (index, (tag, _)) in wanted.iter().enumerate() {
        found[index] = matches!(message.avps().find(*tag), Ok(Some(_)));
    }
    for ((tag, value), found) in wanted.iter().zip(found) {
        if !value.is_empty() && !found {
            end.put(*tag, value);
        }
    }
    let decide = |avp: &Avp<'_>| {
        let new = wanted
            .iter()
            .find(|(tag, value)| avp.is(*tag) && !value.is_empty());
        match new {
            Some((_, value)) => Edit::Data(Cow::Borrowed(value.as_bytes())),
            None => Edit::Keep,
        }
    };
    edit(message, decide, end.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_replaced_or_added_and_the_rest_stays() {
        let mut builder = MessageBuilder::request(316, 1);
        builder
            .put(known::SESSION_ID, "s")
            .put(known::DESTINATION_REALM, "a")
            .put(known::USER_NAME, "u");
        let request = builder.finish().unwrap();
        let changed = readdress(&request, "new.realm", "host1").unwrap();
        assert_eq!(changed.require(known::DESTINATION_REALM).unwrap(), "new.realm");
        assert_eq!(changed.require(known::DESTINATION_HOST).unwrap(), "host1");
        assert_eq!(changed.require(known::USER_NAME).unwrap(), "u");
        assert_eq!(changed.avps().count(), 4);
        assert_eq!(changed.as_bytes().len(), changed.header().length as usize);
        let same = readdress(&request, "", "").unwrap();
        assert_eq!(same.as_bytes(), request.as_bytes());
    }
}
