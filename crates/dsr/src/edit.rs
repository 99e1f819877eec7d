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
    decide: impl FnMut(&Avp<'_>) -> Edit<'e>,
    append: &[u8],
) -> Result<MessageMut, BuildError> {
    let mut builder = edited(message, append.len(), decide);
    builder.append_encoded(append);
    builder.finish()
}

/// The edited AVPs, with room for this number of bytes after them. AVPs that stay beside one another are copied at once.
fn edited<'e, B: AsRef<[u8]>>(
    message: &Message<B>,
    room: usize,
    mut decide: impl FnMut(&Avp<'_>) -> Edit<'e>,
) -> MessageBuilder {
    let room = message.as_bytes().len() + room + 256;
    let mut builder = MessageBuilder::with_capacity(message.header(), room);
    let mut avps = message.avps();
    // Begins with what stays and is not copied yet.
    let mut rest = avps.remaining();
    loop {
        let here = avps.remaining();
        let stays = |rest: &'_ [u8]| rest.len() - here.len();
        let Some(Ok(avp)) = avps.next() else {
            builder.append_encoded(rest.get(..stays(rest)).unwrap_or_default());
            return builder;
        };
        let edit = decide(&avp);
        if matches!(edit, Edit::Keep) {
            continue;
        }
        builder.append_encoded(rest.get(..stays(rest)).unwrap_or_default());
        if let Edit::Data(data) = edit {
            builder.put_raw(avp.key(), avp.flags, &data);
        }
        rest = avps.remaining();
    }
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
    let mut is_absent = wanted.map(|(_, value)| !value.is_empty());
    let decide = |avp: &Avp<'_>| {
        let mut wanted = wanted.iter().zip(&mut is_absent);
        match wanted.find(|((tag, value), _)| avp.is(*tag) && !value.is_empty()) {
            Some(((_, value), is_absent)) => {
                *is_absent = false;
                match avp.data == value.as_bytes() {
                    true => Edit::Keep,
                    false => Edit::Data(Cow::Borrowed(value.as_bytes())),
                }
            }
            None => Edit::Keep,
        }
    };
    let mut builder = edited(message, realm.len() + host.len(), decide);
    for ((tag, value), is_absent) in wanted.into_iter().zip(is_absent) {
        if is_absent {
            builder.put(tag, value);
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use diameter::proto::{AvpFlags, AvpKey, AvpWriter};

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
        let same = readdress(&changed, "new.realm", "host1").unwrap();
        assert_eq!(same.as_bytes(), changed.as_bytes());
    }

    #[test]
    fn what_stays_is_copied_as_it_is_up_to_what_cannot_be_read() {
        let mut builder = MessageBuilder::request(316, 1);
        for number in 0..6_u32 {
            builder.put_raw(
                AvpKey::ietf(70_000 + number),
                AvpFlags(0),
                &vec![7; number as usize],
            );
        }
        let whole = builder.finish().unwrap();
        let edits = |message: &MessageMut, end: &[u8]| {
            let decide = |avp: &Avp<'_>| match avp.code {
                70_000 | 70_003 => Edit::Drop,
                70_004 => Edit::Data(Cow::Borrowed(b"new")),
                _ => Edit::Keep,
            };
            let edited = edit(message, decide, end).unwrap();
            let avps = edited
                .avps()
                .map(|avp| avp.map(|avp| (avp.code, avp.data.to_vec())));
            avps.collect::<Result<Vec<_>, _>>().unwrap()
        };
        let expected = [
            (70_001, vec![7]),
            (70_002, vec![7, 7]),
            (70_004, b"new".to_vec()),
            (70_005, vec![7; 5]),
        ];
        assert_eq!(edits(&whole, &[]), expected);
        // The fifth AVP claims more than is there.
        let mut broken = whole;
        assert!(broken.overwrite(20 + 8 + 12 + 12 + 12 + 5, &[0xff]));
        let mut end = AvpWriter::with_capacity(16);
        end.put_raw(AvpKey::ietf(70_009), AvpFlags(0), b"");
        assert_eq!(
            edits(&broken, end.as_bytes()),
            [(70_001, vec![7]), (70_002, vec![7, 7]), (70_009, Vec::new())]
        );
    }
}
