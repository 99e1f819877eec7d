//! Names of subscribers: private and public identities, NAIs, External Identifiers. Two that are equal by their standards have
//! one form: lower case, a SIP URI without port, password, parameters and headers (TS 23.003 §13.4), a decorated NAI as
//! the subscriber has it at home.

use std::borrow::Cow;

use numbers::MOST_NAME_BYTES;

use crate::config::Entity;

/// A URI of a public identity.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Uri<'t> {
    /// The user without password and parameters, empty where there is none.
    Sip {
        scheme: &'static str,
        user: &'t str,
        host: &'t str,
    },
    /// The number without visual separators (RFC 3966 §3) and parameters.
    Tel(Cow<'t, str>),
}

/// The parts of a `sip:`, `sips:` or `tel:` URI; none: the text is another.
pub(super) fn uri(text: &str) -> Option<Uri<'_>> {
    let (scheme, rest) = text.split_once(':')?;
    let known = ["sip", "sips", "tel"];
    let scheme = known
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(scheme))?;
    if scheme == "tel" {
        let number = rest.split(';').next().unwrap_or_default();
        let is_separator = |c: char| matches!(c, '-' | '.' | '(' | ')');
        return Some(Uri::Tel(match number.contains(is_separator) {
            true => number.replace(is_separator, "").into(),
            false => number.into(),
        }));
    }
    let (user, rest) = rest.split_once('@').unwrap_or(("", rest));
    let user = user.split([':', ';']).next().unwrap_or_default();
    let host = rest.split([';', '?']).next().unwrap_or_default();
    let host = match host.find(']') {
        // The colons of an IPv6 address stand in brackets.
        Some(end) if host.starts_with('[') => host.get(..=end).unwrap_or(host),
        _ => host.split(':').next().unwrap_or(host),
    };
    (!host.contains('@')).then_some(Uri::Sip { scheme, user, host })
}

/// The mobile country code of a realm `….mncNNN.mccNNN.3gppnetwork.org` (TS 23.003 §13.2, §19.2), or one of the public
/// network below `pub.3gppnetwork.org`; none: the realm is another.
pub(super) fn mcc_of_realm(realm: &str) -> Option<String> {
    let realm = realm.to_ascii_lowercase();
    let network = realm.strip_suffix(".3gppnetwork.org")?;
    let network = network.strip_suffix(".pub").unwrap_or(network);
    let mut labels = network.rsplit('.');
    let mut code = |start: &str| {
        let code = labels.next().and_then(|label| label.strip_prefix(start))?;
        let is_code = (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then(|| code.to_owned())
    };
    let mcc = code("mcc")?;
    code("mnc")?;
    Some(mcc)
}

/// A part of a SIP URI without the escapes that mean the same as the character itself: those of all but the reserved ones
/// (RFC 3261 §19.1.4), brackets, and what is not to be seen.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..2)
            .filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (byte, part.get(2..)) {
            (Some(byte), Some(rest)) if byte.is_ascii_graphic() && !b";/?:@&=+$,%[]".contains(&byte) => {
                plain.push(char::from(byte));
                plain.push_str(rest);
            }
            (Some(_), Some(_)) => {
                plain.push('%');
                plain.push_str(part);
            }
            // Not an escape: the text is compared as it is.
            _ => return text.into(),
        }
    }
    plain.into()
}

/// The form in which a name of an entity is compared; none: it is not one.
pub(super) fn canonical(entity: Entity, text: &str) -> Option<Box<str>> {
    if !text.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
        return None;
    }
    let name = match entity {
        Entity::Impu => match uri(text)? {
            Uri::Tel(number) if !number.is_empty() => format!("tel:{number}"),
            Uri::Sip {
                scheme,
                user: "",
                host,
            } if !host.is_empty() => format!("{scheme}:{}", unescaped(host)),
            Uri::Sip { scheme, user, host } if !host.is_empty() => {
                format!("{scheme}:{}@{}", unescaped(user), unescaped(host))
            }
            _ => return None,
        },
        Entity::Nai => {
            // The user may be left out (RFC 7542 §2.4), the realm may not: without one nothing leads home.
            let (user, realm) = text.split_once('@')?;
            let (home, user) = match user.rsplit_once('!') {
                // Of several realms the last is that of the subscriber.
                Some((realms, user)) => (realms.rsplit('!').next()?, user),
                None => (realm, user),
            };
            if home.is_empty() || realm.contains('@') {
                return None;
            }
            format!("{user}@{home}")
        }
        _ => {
            let (user, realm) = text.split_once('@')?;
            if user.is_empty() || realm.is_empty() || realm.contains('@') {
                return None;
            }
            text.to_owned()
        }
    };
    let name = name.to_ascii_lowercase();
    (name.len() <= MOST_NAME_BYTES).then(|| name.into_boxed_str())
}

/// The entry that stands for every name of the realm.
pub(crate) fn wildcard(entity: Entity, name: &str) -> Option<String> {
    let (user, realm) = name.split_once('@')?;
    Some(match user.split_once(':') {
        Some((scheme, _)) if entity == Entity::Impu => format!("{scheme}:*@{realm}"),
        _ => format!("*@{realm}"),
    })
}

/// The name that an operator writes.
pub(super) fn parse(entity: Entity, text: &str) -> Result<Box<str>, String> {
    let expected = match entity {
        Entity::Impu => "sip:user@realm, sip:*@realm or tel:+491511234",
        _ => "user@realm, or *@realm for all of a realm",
    };
    let shown = || {
        text.chars()
            .take(40)
            .flat_map(char::escape_debug)
            .collect::<String>()
    };
    if text.contains(',') {
        return Err(format!("`{}` has a comma; expected {expected}", shown()));
    }
    // Other patterns would be names that no subscriber has. A star of a name is written `%2A`.
    let before = text
        .split_once("*@")
        .map(|(before, realm)| (before, realm.contains('*')));
    let is_realm = match before {
        Some((scheme, false)) if entity == Entity::Impu => scheme.ends_with(':'),
        Some((user, false)) => user.is_empty(),
        _ => false,
    };
    if text.contains('*') && !is_realm {
        return Err(format!(
            "`{}` is a pattern of no supported form: a star stands for each user of a realm; expected {expected}",
            shown()
        ));
    }
    if text.len() > MOST_NAME_BYTES {
        return Err(format!(
            "the name has {} bytes; expected 1 to {MOST_NAME_BYTES}",
            text.len()
        ));
    }
    canonical(entity, text).ok_or_else(|| {
        format!(
            "`{}` is not an {} as subscribers are listed; expected {expected}",
            shown(),
            entity.as_str()
        )
    })
}
