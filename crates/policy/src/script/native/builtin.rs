//! Functions of JavaScript's library. Those of texts and lists have no result for arguments that `prelude.js` refuses.

use bumpalo::Bump;
use smallvec::SmallVec;

use super::value::Js;

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

    pub(super) fn call<'r, 'a: 'r>(self, arguments: &[Js<'r, 'a>], arena: &'r Bump) -> Option<Js<'r, 'a>> {
        if matches!(self, Self::Min | Self::Max) {
            return self.extreme(arguments).map(Js::number);
        }
        let [value] = arguments else { return None };
        let number = value.as_number();
        Some(match self {
            Self::String => match value.as_str() {
                Some(_) => *value,
                None => Js::text(value.to_text(arena)?, arena),
            },
            Self::Boolean => Js::bool(value.is_truthy()),
            Self::IsFinite => Js::bool(number.is_some_and(f64::is_finite)),
            Self::IsInteger => {
                Js::bool(number.is_some_and(|number| number.is_finite() && number.fract() == 0.0))
            }
            Self::IsNaN => Js::bool(number.is_some_and(f64::is_nan)),
            Self::IsArray => Js::bool(value.length().is_some()),
            _ => {
                let number = value.to_number()?;
                Js::number(match self {
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
    fn extreme(self, arguments: &[Js<'_, '_>]) -> Option<f64> {
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

    /// The result of a call on a text.
    pub(super) fn of_text<'r, 'a: 'r>(
        self,
        whole: &'r str,
        arguments: [Js<'r, 'a>; 2],
        arena: &'r Bump,
    ) -> Option<Js<'r, 'a>> {
        let part = arguments[0].as_str();
        Some(match self {
            Self::Includes => Js::bool(find(whole, part?).is_some()),
            Self::StartsWith => Js::bool(whole.starts_with(part?)),
            Self::EndsWith => Js::bool(whole.ends_with(part?)),
            Self::IndexOf => Js::number(match find(whole, part?) {
                Some(at) => length(&whole[..at]) as f64,
                None => -1.0,
            }),
            Self::Slice | Self::Substring => Js::text(self.cut(whole, arguments)?, arena),
            Self::Split => {
                let separator = part.filter(|part| !part.is_empty())?;
                let parts = whole.split(separator).map(|part| Js::text(part, arena));
                let parts: SmallVec<[Js<'r, 'a>; 8]> = parts.collect();
                Js::List(arena.alloc(&*arena.alloc_slice_copy(&parts)))
            }
            Self::LowerCase | Self::UpperCase => {
                let text = whole.is_ascii().then(|| arena.alloc_str(whole))?;
                match self {
                    Self::LowerCase => text.make_ascii_lowercase(),
                    _ => text.make_ascii_uppercase(),
                }
                Js::text(text, arena)
            }
            Self::Trim => {
                // Other blanks are beyond ASCII.
                whole.is_ascii().then_some(())?;
                let blanks = ['\t', '\n', '\u{b}', '\u{c}', '\r', ' '];
                let end = whole.trim_end_matches(blanks).len();
                let from = whole.len() - whole.trim_start_matches(blanks).len();
                Js::text(whole.get(from.min(end)..end)?, arena)
            }
            Self::Join => return None,
        })
    }

    /// `slice` and `substring`, whose places are units of UTF-16: in ASCII those are bytes.
    fn cut<'r>(self, whole: &'r str, [from, to]: [Js<'_, '_>; 2]) -> Option<&'r str> {
        if !whole.is_ascii() {
            return None;
        }
        let length = whole.len();
        // A place loses its fraction first, so `-0.5` is the beginning.
        let place = |argument: Js<'_, '_>, absent: usize| match argument {
            Js::Undefined => Some(absent),
            Js::Number(number) => Some(match number.get() {
                number if number >= length as f64 => length,
                number if number <= -1.0 && self == Self::Slice => {
                    (length as f64 + number.trunc()).max(0.0) as usize
                }
                // Below zero and not a number are 0.
                number => number as usize,
            }),
            _ => None,
        };
        let (from, to) = (place(from, 0)?, place(to, length)?);
        match self {
            Self::Substring if to < from => whole.get(to..from),
            _ => whole.get(from..to.max(from)),
        }
    }

    /// The result of a call on a list of this length.
    pub(super) fn of_list<'r, 'a: 'r>(
        self,
        list: Js<'r, 'a>,
        length: usize,
        [first, _]: [Js<'r, 'a>; 2],
        arena: &'r Bump,
    ) -> Option<Js<'r, 'a>> {
        let mut items = (0..length).map(|index| list.item(index));
        match self {
            Self::Includes | Self::IndexOf => {
                let wanted = Some(first).filter(|wanted| !wanted.is_object())?;
                let both_nan = |item: Js<'r, 'a>| {
                    let nan = |value: Js<'r, 'a>| value.as_number().is_some_and(f64::is_nan);
                    self == Self::Includes && nan(wanted) && nan(item)
                };
                let found =
                    items.position(|item| strictly_equal(item, wanted) == Some(true) || both_nan(item));
                Some(match self {
                    Self::Includes => Js::bool(found.is_some()),
                    _ => Js::number(found.map_or(-1.0, |index| index as f64)),
                })
            }
            Self::Join => {
                let separator = first.as_str()?;
                let mut text = String::new();
                for (index, item) in items.enumerate() {
                    if index > 0 {
                        text.push_str(separator);
                    }
                    if !item.is_nullish() {
                        text.push_str(item.to_text(arena)?);
                    }
                }
                Some(Js::text(arena.alloc_str(&text), arena))
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

/// `===`; none for two objects, which have no identity here.
pub(super) fn strictly_equal(a: Js<'_, '_>, b: Js<'_, '_>) -> Option<bool> {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        return Some(a == b);
    }
    Some(match (a, b) {
        (Js::Undefined, Js::Undefined)
        | (Js::Null, Js::Null)
        | (Js::False, Js::False)
        | (Js::True, Js::True) => true,
        (Js::Number(a), Js::Number(b)) => a.get() == b.get(),
        _ if a.is_object() && b.is_object() => return None,
        _ => false,
    })
}

/// `==`; none where an object would have to become something else.
pub(super) fn loosely_equal(a: Js<'_, '_>, b: Js<'_, '_>) -> Option<bool> {
    if a.is_nullish() || b.is_nullish() {
        return Some(a.is_nullish() && b.is_nullish());
    }
    if a.is_object() || b.is_object() {
        return None;
    }
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => Some(a == b),
        _ => Some(a.to_number()? == b.to_number()?),
    }
}

/// `<` and its kin compare two texts by units of UTF-16, anything else as numbers.
pub(super) fn order(a: Js<'_, '_>, b: Js<'_, '_>) -> Option<Option<std::cmp::Ordering>> {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        let ascii = a.is_ascii() && b.is_ascii();
        return Some(Some(match ascii {
            true => a.cmp(b),
            false => a.encode_utf16().cmp(b.encode_utf16()),
        }));
    }
    Some(a.to_number()?.partial_cmp(&b.to_number()?))
}

/// `+`
pub(super) fn sum<'r, 'a: 'r>(a: Js<'r, 'a>, b: Js<'r, 'a>, arena: &'r Bump) -> Option<Js<'r, 'a>> {
    if a.is_object() || b.is_object() {
        return None;
    }
    if a.as_str().is_some() || b.as_str().is_some() {
        let (a, b) = (a.to_text(arena)?, b.to_text(arena)?);
        return Some(Js::text(arena.alloc_str(&[a, b].concat()), arena));
    }
    Some(Js::number(a.to_number()? + b.to_number()?))
}
