//! Functions of JavaScript's library. Those of texts and lists have no result for arguments that `prelude.js` refuses.

use std::rc::Rc;

use super::value::Js;
use crate::value::Text;

/// A function that is called by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    Min,
    Max,
    Floor,
    Ceil,
    Round,
    Trunc,
    Abs,
    Number,
    String,
    Boolean,
    IsFinite,
    IsInteger,
    IsNaN,
    IsArray,
}

/// Their names; all but the first two take one argument.
pub(super) const BUILTINS: &[(&str, Builtin)] = &[
    ("Math.min", Builtin::Min),
    ("Math.max", Builtin::Max),
    ("Math.floor", Builtin::Floor),
    ("Math.ceil", Builtin::Ceil),
    ("Math.round", Builtin::Round),
    ("Math.trunc", Builtin::Trunc),
    ("Math.abs", Builtin::Abs),
    ("Number", Builtin::Number),
    ("String", Builtin::String),
    ("Boolean", Builtin::Boolean),
    ("Number.isFinite", Builtin::IsFinite),
    ("Number.isInteger", Builtin::IsInteger),
    ("Number.isNaN", Builtin::IsNaN),
    ("Array.isArray", Builtin::IsArray),
];

/// A function that is called as a member of a text or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Includes,
    IndexOf,
    StartsWith,
    EndsWith,
    Slice,
    Substring,
    Split,
    Join,
    LowerCase,
    UpperCase,
    Trim,
}

/// Their names, and the fewest and most arguments that are known.
pub(super) const METHODS: &[(&str, Method, usize, usize)] = &[
    ("includes", Method::Includes, 1, 1),
    ("indexOf", Method::IndexOf, 1, 1),
    ("startsWith", Method::StartsWith, 1, 1),
    ("endsWith", Method::EndsWith, 1, 1),
    ("slice", Method::Slice, 0, 2),
    ("substring", Method::Substring, 0, 2),
    ("split", Method::Split, 1, 1),
    ("join", Method::Join, 1, 1),
    ("toLowerCase", Method::LowerCase, 0, 0),
    ("toUpperCase", Method::UpperCase, 0, 0),
    ("trim", Method::Trim, 0, 0),
];

impl Builtin {
    pub(super) fn takes(self, arguments: usize) -> bool {
        arguments == 1 || matches!(self, Self::Min | Self::Max)
    }

    pub(super) fn call<'a>(self, arguments: &[Js<'a>]) -> Option<Js<'a>> {
        if matches!(self, Self::Min | Self::Max) {
            return self.extreme(arguments).map(Js::Number);
        }
        let [value] = arguments else { return None };
        let number = match value {
            Js::Number(number) => Some(*number),
            _ => None,
        };
        Some(match self {
            Self::String => Js::Text(value.to_text()?),
            Self::Boolean => Js::Bool(value.is_truthy()),
            Self::IsFinite => Js::Bool(number.is_some_and(f64::is_finite)),
            Self::IsInteger => {
                Js::Bool(number.is_some_and(|number| number.is_finite() && number.fract() == 0.0))
            }
            Self::IsNaN => Js::Bool(number.is_some_and(f64::is_nan)),
            Self::IsArray => Js::Bool(value.length().is_some()),
            _ => {
                let number = value.to_number()?;
                Js::Number(match self {
                    Self::Floor => number.floor(),
                    Self::Ceil => number.ceil(),
                    Self::Trunc => number.trunc(),
                    Self::Abs => number.abs(),
                    Self::Round => round(number),
                    _ => number,
                })
            }
        })
    }

    /// The least or greatest; `-0` is less than `0`, and one that is not a number makes the result none.
    fn extreme(self, arguments: &[Js<'_>]) -> Option<f64> {
        let least = self == Self::Min;
        let mut best = if least { f64::INFINITY } else { f64::NEG_INFINITY };
        for argument in arguments {
            let number = argument.to_number()?;
            let before = (number, number.is_sign_positive()) < (best, best.is_sign_positive());
            let better = if least {
                before
            } else {
                (number, number.is_sign_positive()) > (best, best.is_sign_positive())
            };
            if number.is_nan() || (better && !best.is_nan()) {
                best = number;
            }
        }
        Some(best)
    }
}

/// To the nearest integer, from the middle upwards.
fn round(number: f64) -> f64 {
    let below = number.floor();
    let rounded = if number - below >= 0.5 { below + 1.0 } else { below };
    match rounded == 0.0 {
        true => rounded.copysign(number),
        false => rounded,
    }
}

impl Method {
    /// Bytes that it makes of a text of this length.
    pub(super) fn room(self, bytes: usize) -> usize {
        match self {
            // In the worst case each byte is a part.
            Self::Split => bytes * 48,
            Self::Slice | Self::Substring | Self::Trim | Self::LowerCase | Self::UpperCase => bytes,
            _ => 0,
        }
    }

    pub(super) fn call<'a>(self, of: &Js<'a>, arguments: &[Js<'a>]) -> Option<Js<'a>> {
        match of {
            Js::Text(text) => self.of_text(text, arguments),
            _ => self.of_list(of, of.length()?, arguments),
        }
    }

    fn of_text<'a>(self, text: &Text<'a>, arguments: &[Js<'a>]) -> Option<Js<'a>> {
        let whole = text.as_str();
        let part = match arguments.first() {
            Some(Js::Text(part)) => Some(part.as_str()),
            _ => None,
        };
        Some(match self {
            Self::Includes => Js::Bool(find(whole, part?).is_some()),
            Self::StartsWith => Js::Bool(whole.starts_with(part?)),
            Self::EndsWith => Js::Bool(whole.ends_with(part?)),
            Self::IndexOf => Js::Number(match find(whole, part?) {
                Some(at) => length(&whole[..at]) as f64,
                None => -1.0,
            }),
            Self::Slice | Self::Substring => self.cut(text, arguments)?,
            Self::Split => {
                let separator = part.filter(|part| !part.is_empty())?;
                let parts = whole.split(separator).map(|part| Js::text(part.to_owned()));
                Js::List(Rc::new(parts.collect()))
            }
            Self::LowerCase => Js::text(whole.is_ascii().then(|| whole.to_ascii_lowercase())?),
            Self::UpperCase => Js::text(whole.is_ascii().then(|| whole.to_ascii_uppercase())?),
            Self::Trim => {
                let trimmed = whole.trim_matches(['\t', '\n', '\u{b}', '\u{c}', '\r', ' ']);
                // Other blanks are beyond ASCII.
                whole.is_ascii().then(|| sliced(text, trimmed))?
            }
            Self::Join => return None,
        })
    }

    /// `slice` and `substring`, whose places are units of UTF-16: in ASCII those are bytes.
    fn cut<'a>(self, text: &Text<'a>, arguments: &[Js<'a>]) -> Option<Js<'a>> {
        let whole = text.as_str();
        if !whole.is_ascii() {
            return None;
        }
        let length = whole.len() as f64;
        let place = |argument: Option<&Js<'a>>, absent: f64| match argument {
            None | Some(Js::Undefined) => Some(absent),
            Some(Js::Number(number)) if number.is_nan() => Some(0.0),
            Some(Js::Number(number)) if *number < 0.0 && self == Self::Slice => {
                Some((length + number.trunc()).max(0.0))
            }
            Some(Js::Number(number)) => Some(number.trunc().clamp(0.0, length)),
            _ => None,
        };
        let from = place(arguments.first(), 0.0)?;
        let to = place(arguments.get(1), length)?;
        let (from, to) = match self {
            Self::Substring if to < from => (to, from),
            _ => (from, to.max(from)),
        };
        whole
            .get(from as usize..to as usize)
            .map(|part| sliced(text, part))
    }

    fn of_list<'a>(self, list: &Js<'a>, length: usize, arguments: &[Js<'a>]) -> Option<Js<'a>> {
        let items = || (0..length).map(|index| list.item(index));
        match self {
            Self::Includes | Self::IndexOf => {
                let wanted = arguments.first().filter(|wanted| !wanted.is_object())?;
                let both_nan = |item: &Js<'a>| {
                    let nan = |value: &Js<'a>| matches!(value, Js::Number(number) if number.is_nan());
                    self == Self::Includes && nan(wanted) && nan(item)
                };
                let found =
                    items().position(|item| strictly_equal(&item, wanted) == Some(true) || both_nan(&item));
                Some(match self {
                    Self::Includes => Js::Bool(found.is_some()),
                    _ => Js::Number(found.map_or(-1.0, |index| index as f64)),
                })
            }
            Self::Join => {
                let Some(Js::Text(separator)) = arguments.first() else {
                    return None;
                };
                let mut text = String::new();
                for (index, item) in items().enumerate() {
                    if index > 0 {
                        text.push_str(separator.as_str());
                    }
                    if !item.is_nullish() {
                        text.push_str(item.to_text()?.as_str());
                    }
                }
                Some(Js::text(text))
            }
            _ => None,
        }
    }
}

/// Where a part begins. Most are one character, for which a search needs no preparation.
fn find(text: &str, part: &str) -> Option<usize> {
    match part.as_bytes() {
        [byte] => text.bytes().position(|found| found == *byte),
        _ => text.find(part),
    }
}

/// Units of UTF-16.
pub(super) fn length(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.encode_utf16().count(),
    }
}

/// A part of a text, which need not be copied where the text is the input's.
fn sliced<'a>(text: &Text<'a>, part: &str) -> Js<'a> {
    let borrowed = match text {
        Text::Ref(whole) => {
            let from = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
            whole.get(from..from.wrapping_add(part.len()))
        }
        Text::Own(_) => None,
    };
    match borrowed {
        Some(part) => Js::Text(Text::Ref(part)),
        None => Js::text(part.to_owned()),
    }
}

/// `===`; none for two objects, which have no identity here.
pub(super) fn strictly_equal(a: &Js<'_>, b: &Js<'_>) -> Option<bool> {
    Some(match (a, b) {
        (Js::Undefined, Js::Undefined) | (Js::Null, Js::Null) => true,
        (Js::Bool(a), Js::Bool(b)) => a == b,
        (Js::Number(a), Js::Number(b)) => a == b,
        (Js::Text(a), Js::Text(b)) => a.as_str() == b.as_str(),
        _ if a.is_object() && b.is_object() => return None,
        _ => false,
    })
}

/// `==`; none where an object would have to become something else.
pub(super) fn loosely_equal(a: &Js<'_>, b: &Js<'_>) -> Option<bool> {
    if a.is_nullish() || b.is_nullish() {
        return Some(a.is_nullish() && b.is_nullish());
    }
    if a.is_object() || b.is_object() {
        return None;
    }
    match (a, b) {
        (Js::Text(a), Js::Text(b)) => Some(a.as_str() == b.as_str()),
        _ => Some(a.to_number()? == b.to_number()?),
    }
}

/// `<` and its kin compare two texts by units of UTF-16, anything else as numbers.
pub(super) fn order(a: &Js<'_>, b: &Js<'_>) -> Option<Option<std::cmp::Ordering>> {
    if let (Js::Text(a), Js::Text(b)) = (a, b) {
        let (a, b) = (a.as_str(), b.as_str());
        let ascii = a.is_ascii() && b.is_ascii();
        return Some(Some(match ascii {
            true => a.cmp(b),
            false => a.encode_utf16().cmp(b.encode_utf16()),
        }));
    }
    Some(a.to_number()?.partial_cmp(&b.to_number()?))
}

/// `+`
pub(super) fn sum<'a>(a: &Js<'a>, b: &Js<'a>) -> Option<Js<'a>> {
    if let (Js::Number(a), Js::Number(b)) = (a, b) {
        return Some(Js::Number(a + b));
    }
    if a.is_object() || b.is_object() {
        return None;
    }
    if matches!(a, Js::Text(_)) || matches!(b, Js::Text(_)) {
        let (a, b) = (a.to_text()?, b.to_text()?);
        return Some(Js::text([a.as_str(), b.as_str()].concat()));
    }
    Some(Js::Number(a.to_number()? + b.to_number()?))
}
