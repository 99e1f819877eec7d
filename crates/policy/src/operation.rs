//! Operations of expressions: names, numbers of arguments, what they do.

/// An operation on values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    All,
    Any,
    Not,
    Exists,
    If,
    First,
    In,
    Contains,
    StartsWith,
    EndsWith,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Min,
    Max,
    Round,
    Number,
    Text,
    Concat,
    Lower,
    Upper,
    Slice,
    Split,
    Join,
    Length,
    Bps,
    BitRate,
    TimeAfter,
    Keys,
    Values,
    Merge,
    Pick,
    Omit,
    Pointer,
    Put,
    Append,
    Parse,
    Stringify,
}

/// An operation as projects write it.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) operation: Operation,
    /// Numbers of arguments, fewest and most.
    pub(crate) arguments: (usize, usize),
    pub(crate) usage: &'static str,
}

const MANY: usize = 256;

const fn named(
    name: &'static str,
    operation: Operation,
    fewest: usize,
    most: usize,
    usage: &'static str,
) -> Named {
    Named {
        name,
        operation,
        arguments: (fewest, most),
        usage,
    }
}

/// All operations that take values alone. `docs/policy.md` describes them; a test compares the names.
pub(crate) static OPERATIONS: &[Named] = &[
    named("$eq", Operation::Eq, 2, 2, "{$eq: [a, b]}"),
    named("$ne", Operation::Ne, 2, 2, "{$ne: [a, b]}"),
    named("$lt", Operation::Lt, 2, 2, "{$lt: [a, b]}"),
    named("$le", Operation::Le, 2, 2, "{$le: [a, b]}"),
    named("$gt", Operation::Gt, 2, 2, "{$gt: [a, b]}"),
    named("$ge", Operation::Ge, 2, 2, "{$ge: [a, b]}"),
    named("$all", Operation::All, 1, MANY, "{$all: [condition, …]}"),
    named("$any", Operation::Any, 1, MANY, "{$any: [condition, …]}"),
    named("$not", Operation::Not, 1, 1, "{$not: condition}"),
    named("$exists", Operation::Exists, 1, 1, "{$exists: value}"),
    named("$if", Operation::If, 3, 3, "{$if: [condition, a, b]}"),
    named("$first", Operation::First, 1, MANY, "{$first: [value, …]}"),
    named("$in", Operation::In, 2, 2, "{$in: [value, list]}"),
    named(
        "$contains",
        Operation::Contains,
        2,
        2,
        "{$contains: [text or list, part]}",
    ),
    named(
        "$startsWith",
        Operation::StartsWith,
        2,
        2,
        "{$startsWith: [text, prefix]}",
    ),
    named(
        "$endsWith",
        Operation::EndsWith,
        2,
        2,
        "{$endsWith: [text, suffix]}",
    ),
    named("$add", Operation::Add, 1, MANY, "{$add: [number, …]}"),
    named("$sub", Operation::Sub, 2, 2, "{$sub: [a, b]}"),
    named("$mul", Operation::Mul, 1, MANY, "{$mul: [number, …]}"),
    named("$div", Operation::Div, 2, 2, "{$div: [a, b]}"),
    named("$mod", Operation::Mod, 2, 2, "{$mod: [a, b]}"),
    named("$min", Operation::Min, 1, MANY, "{$min: [number, …]}"),
    named("$max", Operation::Max, 1, MANY, "{$max: [number, …]}"),
    named("$round", Operation::Round, 1, 1, "{$round: number}"),
    named("$number", Operation::Number, 1, 1, "{$number: text}"),
    named("$text", Operation::Text, 1, 1, "{$text: value}"),
    named("$concat", Operation::Concat, 1, MANY, "{$concat: [value, …]}"),
    named("$lower", Operation::Lower, 1, 1, "{$lower: text}"),
    named("$upper", Operation::Upper, 1, 1, "{$upper: text}"),
    named(
        "$slice",
        Operation::Slice,
        2,
        3,
        "{$slice: [text or list, from, to]}",
    ),
    named("$split", Operation::Split, 2, 2, "{$split: [text, separator]}"),
    named("$join", Operation::Join, 2, 2, "{$join: [list, separator]}"),
    named(
        "$length",
        Operation::Length,
        1,
        1,
        "{$length: text, list or object}",
    ),
    named("$bps", Operation::Bps, 1, 1, "{$bps: bit rate}"),
    named(
        "$bitRate",
        Operation::BitRate,
        1,
        1,
        "{$bitRate: bits per second}",
    ),
    named("$timeAfter", Operation::TimeAfter, 1, 1, "{$timeAfter: seconds}"),
    named("$keys", Operation::Keys, 1, 1, "{$keys: object}"),
    named("$values", Operation::Values, 1, 1, "{$values: object}"),
    named(
        "$merge",
        Operation::Merge,
        2,
        MANY,
        "{$merge: [object, patch, …]}",
    ),
    named("$pick", Operation::Pick, 2, 2, "{$pick: [object, [name, …]]}"),
    named("$omit", Operation::Omit, 2, 2, "{$omit: [object, [name, …]]}"),
    named(
        "$pointer",
        Operation::Pointer,
        2,
        2,
        "{$pointer: [value, /json/pointer]}",
    ),
    named(
        "$put",
        Operation::Put,
        3,
        3,
        "{$put: [value, /json/pointer, new value]}",
    ),
    named(
        "$append",
        Operation::Append,
        2,
        MANY,
        "{$append: [list, item, …]}",
    ),
    named("$parse", Operation::Parse, 1, 1, "{$parse: JSON as text}"),
    named("$stringify", Operation::Stringify, 1, 1, "{$stringify: value}"),
];

/// Operations that name something of the project, or a form of their own.
pub(crate) static FORMS: &[(&str, &str)] = &[
    ("$matches", "{$matches: [value, pattern]}"),
    ("$capture", "{$capture: [value, pattern, group]}"),
    ("$wildcard", "{$wildcard: [value, \"inter*\"]}"),
    (
        "$time",
        "{$time: {from: \"22:00\", to: \"06:00\", days: [sat, sun]}}",
    ),
    ("$script", "{$script: name, with: {parameter: value}}"),
    ("$literal", "{$literal: value}"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_describes_each_operation_and_limit() {
        let page = include_str!("../../../docs/policy.md");
        let operations = OPERATIONS.iter().map(|named| named.name);
        for name in operations.chain(FORMS.iter().map(|(name, _)| *name)) {
            assert!(
                page.contains(&format!("`{name}")) || page.contains(&format!("`{{{name}")),
                "{name}"
            );
        }
        let limits = serde_json::to_value(crate::Limits::default()).unwrap();
        for (name, default) in limits.as_object().unwrap() {
            assert!(
                page.contains(&format!("| `{name}` | {default} |")),
                "{name} {default}"
            );
        }
    }
}
