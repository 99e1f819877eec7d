//! Query strings: names and values, percent-decoded.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A query string that is not text once decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("query parameter `{name}`: expected UTF-8 text, percent-encoded")]
pub struct QueryError {
    /// The parameter as it stands in the URI.
    pub name: String,
}

/// Name and value of a parameter.
pub type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The parameters of a query in the order in which they stand.
///
/// `+` is a plus sign: the query of a 3GPP URI is not a form (TS 29.501 §5.3.13).
///
/// # Errors
/// When a name or value is not UTF-8 once decoded.
pub fn pairs(query: Option<&str>) -> Result<Vec<Pair<'_>>, QueryError> {
    let each = query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty());
    each.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text| percent_decode_str(text).decode_utf8();
        match (decode(name), decode(value)) {
            (Ok(name), Ok(value)) => Ok((name, value)),
            _ => Err(QueryError {
                name: name.to_owned(),
            }),
        }
    })
    .collect()
}

/// The JSON text of a parameter: a blank for each `+` between its tokens.
///
/// Many libraries encode a query as a form, where `+` is a blank. Outside of texts and exponents JSON has no plus sign, so there
/// it can mean nothing else.
#[must_use]
pub fn json_text(value: &str) -> Cow<'_, str> {
    if !value.contains('+') {
        return Cow::Borrowed(value);
    }
    let (mut in_text, mut is_escaped, mut before) = (false, false, [' '; 2]);
    let plain = value.chars().map(|letter| {
        let is_quote = letter == '"' && !is_escaped;
        is_escaped = in_text && letter == '\\' && !is_escaped;
        in_text ^= is_quote;
        // The `e` of `true` is not one of a number.
        let is_exponent = matches!(before, ['0'..='9', 'e' | 'E']);
        let is_blank = letter == '+' && !in_text && !is_exponent;
        before = [before[1], letter];
        if is_blank { ' ' } else { letter }
    });
    Cow::Owned(plain.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    #[test]
    fn decoded_in_order() {
        let pairs = pairs(Some("a=1&b=%7B%22c%22%3A2%7D&d&e=x+y&a=2")).unwrap();
        let plain: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(
            plain,
            [
                ("a", "1"),
                ("b", r#"{"c":2}"#),
                ("d", ""),
                ("e", "x+y"),
                ("a", "2")
            ]
        );
        assert_eq!(super::pairs(Some("a=%ff")).unwrap_err().name, "a");
        assert!(super::pairs(None).unwrap().is_empty());
    }

    #[test]
    fn a_plus_sign_between_tokens_is_a_blank() {
        for (given, plain) in [
            (r#"{"sst":+1,+"sd":+"00000a"}"#, r#"{"sst": 1, "sd": "00000a"}"#),
            (r#"["a+b",+"c\"+d"]+"#, r#"["a+b", "c\"+d"] "#),
            (r#"["\\",+1e+5]"#, r#"["\\", 1e+5]"#),
            (
                r#"{"a":+true+,+"b":+[false+,+1.5E+2+]+}"#,
                r#"{"a": true , "b": [false , 1.5E+2 ] }"#,
            ),
            ("{}", "{}"),
        ] {
            assert_eq!(json_text(given), plain);
        }
    }

    proptest! {
        #[test]
        fn encoded_and_read_again(given in proptest::collection::vec(("\\PC{1,9}", "\\PC{0,20}"), 0..6)) {
            let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            let query: Vec<String> = given.iter().map(|(n, v)| format!("{}={}", encode(n), encode(v))).collect();
            let query = query.join("&");
            let read: Vec<(String, String)> =
                pairs(Some(&query)).unwrap().into_iter().map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
            prop_assert_eq!(read, given);
        }

        #[test]
        fn any_query_is_read_or_refused(query in "[ -~]{0,60}") {
            let _ = pairs(Some(&query));
        }
    }
}
