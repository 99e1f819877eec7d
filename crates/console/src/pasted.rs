//! A pasted message: a request of the service-based interface with headers and body, or a Diameter message as hexadecimal digits,
//! as a dump with offsets, or as text.

/// What was pasted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pasted {
    /// A request.
    Request(Request),
    /// A Diameter message: digits, or its text form.
    Diameter(String),
}

/// A request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authority: Option<String>,
    /// Without those of a connection.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Octets of a Diameter header (RFC 6733 §3).
const DIAMETER_HEADER: usize = 20;
/// Headers of one HTTP/1.1 connection or message, which no planner sees (RFC 9110 §7.6.1).
const OF_CONNECTION: [&str; 7] = [
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "keep-alive",
    "upgrade",
    "proxy-connection",
];

impl Pasted {
    /// Reads a message; an error is for the person who pasted it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        const WHAT: &str = "paste a request line with headers (`POST /nudm-sdm/v2/…`), a Diameter message as hexadecimal digits, or its text form (`ULR app=16777251 { … }`)";
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(WHAT.to_owned());
        }
        if let Some(digits) = digits(text) {
            // Version 1, and at least a header.
            return match digits.starts_with("01") && digits.len() >= 2 * DIAMETER_HEADER {
                true => Ok(Self::Diameter(digits)),
                false => Err(
                    "these digits are not a Diameter message: it begins with 01 and has 20 octets or more"
                        .to_owned(),
                ),
            };
        }
        if text.starts_with(['{', '[']) {
            return Err("a body alone has no route; paste the request line above it".to_owned());
        }
        let first = text.lines().next().unwrap_or_default();
        if first.starts_with(':') || is_request_line(first) {
            return request(text).map(Self::Request);
        }
        // `ULR app=… { … }`, or its code in place of the name.
        let word = first.split([' ', '{']).next().unwrap_or_default();
        if text.contains('{')
            && !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            return Ok(Self::Diameter(text.to_owned()));
        }
        Err(WHAT.to_owned())
    }
}

fn is_request_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    !method.is_empty()
        && method.bytes().all(|byte| byte.is_ascii_uppercase())
        && (target.starts_with('/') || target.contains("://"))
}

fn request(text: &str) -> Result<Request, String> {
    let mut request = Request::default();
    let mut lines = text.lines().zip(1..);
    if !text.starts_with(':') {
        let first = lines.next().map(|(line, _)| line).unwrap_or_default();
        let mut words = first.split_whitespace();
        request.method = words.next().unwrap_or_default().to_owned();
        request.set_target(words.next().unwrap_or_default());
    }
    for (line, number) in lines.by_ref() {
        if line.trim().is_empty() {
            break;
        }
        // `:path: /x` begins with the colon of its name.
        let (pseudo, rest) = match line.strip_prefix(':') {
            Some(rest) => (":", rest),
            None => ("", line),
        };
        let Some((name, value)) = rest.split_once(':') else {
            return Err(format!(
                "line {number} is not a header; expected `name: value`, or an empty line before the body"
            ));
        };
        request.add(&format!("{pseudo}{}", name.trim()), value.trim());
    }
    let body: Vec<&str> = lines.map(|(line, _)| line).collect();
    request.body = body.join("\n").trim().to_owned();
    if request.method.is_empty() {
        request.method = "GET".to_owned();
    }
    match request.path.starts_with('/') {
        true => Ok(request),
        false => Err("the request has no path".to_owned()),
    }
}

impl Request {
    /// Takes path and authority of a target: a path, or a URI.
    fn set_target(&mut self, target: &str) {
        let Some((_, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) else {
            self.path = target.to_owned();
            return;
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        self.authority = Some(authority.to_owned());
        self.path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
    }

    fn add(&mut self, name: &str, value: &str) {
        match name.to_ascii_lowercase().as_str() {
            ":method" => self.method = value.to_owned(),
            ":path" => self.path = value.to_owned(),
            ":authority" | "host" => self.authority = Some(value.to_owned()),
            name if name.starts_with(':') || OF_CONNECTION.contains(&name) => {}
            _ => self.headers.push((name.to_owned(), value.to_owned())),
        }
    }
}

/// The hexadecimal digits of a text that is nothing else: in a row, in octets, or as a dump whose lines begin with an offset and may
/// end with the characters.
fn digits(text: &str) -> Option<String> {
    let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let plain: String = text.split([' ', '\t', '\r', '\n', ':']).collect();
    let plain = plain.strip_prefix("0x").unwrap_or(&plain);
    let first = text.split_whitespace().next().unwrap_or_default();
    // An octet has two digits; a first word of four to eight that is a multiple of ten in hexadecimal is an offset.
    let offset = first.trim_end_matches(':');
    let is_dump = (4..=8).contains(&offset.len()) && offset.bytes().all(|byte| byte == b'0');
    if !is_dump {
        return (is_digits(plain) && plain.len().is_multiple_of(2)).then(|| plain.to_ascii_lowercase());
    }
    let mut all = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let offset = words.next()?.trim_end_matches(':');
        if !is_digits(offset) || usize::from_str_radix(offset, 16).ok()? * 2 != all.len() {
            return None;
        }
        // At most 16 octets, in words of one or two of them; then the characters.
        let mut octets = 0;
        for word in words {
            let length = word.len() / 2;
            if octets + length > 16 || !is_digits(word) || !matches!(word.len(), 2 | 4) {
                break;
            }
            octets += length;
            all.push_str(word);
        }
    }
    Some(all.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(text: &str) -> Request {
        match Pasted::read(text) {
            Ok(Pasted::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_read_as_people_copy_them() {
        let one = request(
            "POST http://scp.example:8020/nudm-sdm/v2/x HTTP/1.1\r\nContent-Length: 3\r\nUser-Agent: AMF-1\r\n\r\n{\r\n}",
        );
        assert_eq!(
            (one.method.as_str(), one.path.as_str()),
            ("POST", "/nudm-sdm/v2/x")
        );
        assert_eq!(one.authority.as_deref(), Some("scp.example:8020"));
        assert_eq!(one.headers, [("User-Agent".to_owned(), "AMF-1".to_owned())]);
        assert_eq!(one.body, "{\n}");
        // As a followed message is shown, and as tshark prints HTTP/2.
        let two = request(
            ":method: PUT\n:path: /nbsf-management/v1/pcfBindings\n:scheme: http\n:authority: a:1\n3gpp-sbi-x: a:b: c",
        );
        assert_eq!(
            (two.method.as_str(), two.authority.as_deref()),
            ("PUT", Some("a:1"))
        );
        assert_eq!(two.headers, [("3gpp-sbi-x".to_owned(), "a:b: c".to_owned())]);
        assert_eq!(request("GET /x?u=http://y").path, "/x?u=http://y");
        assert_eq!(request("GET http://a?x=1").path, "/?x=1");
    }

    #[test]
    fn diameter_is_read_as_digits_dump_or_text() {
        let message = "0100001480000118000000000000000100000002";
        let spaced: Vec<String> = message
            .as_bytes()
            .chunks(2)
            .map(|pair| String::from_utf8_lossy(pair).into_owned())
            .collect();
        let dump = format!(
            "0000  {}  ..........\n0010  {}  ....",
            spaced[..16].join(" "),
            spaced[16..].join(" ")
        );
        let words = "0x0000:  0100 0014 8000 0118 0000 0000 0000 0001\n";
        for text in [
            message.to_owned(),
            spaced.join(" "),
            spaced.join(":"),
            format!("0x{message}"),
            message.to_uppercase(),
            dump,
        ] {
            assert_eq!(
                Pasted::read(&text),
                Ok(Pasted::Diameter(message.to_owned())),
                "{text}"
            );
        }
        assert!(Pasted::read(words).is_err(), "less than a header");
        let text = "ULR app=16777251 { Destination-Realm = \"x\" }";
        assert_eq!(Pasted::read(text), Ok(Pasted::Diameter(text.to_owned())));
    }

    #[test]
    fn what_is_neither_is_refused_with_what_would_be_right() {
        for (text, words) in [
            ("", "paste a request line"),
            ("hello", "paste a request line"),
            ("{\"a\": 1}", "a body alone has no route"),
            ("GET /x\nno header", "line 2 is not a header"),
            (":method: GET\n\n", "no path"),
            ("0200001480000118000000000000000100000002", "begins with 01"),
            ("0100", "20 octets"),
        ] {
            let refused = Pasted::read(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[\\PC\\n\\r:{]{0,200}") {
            let _ = Pasted::read(&text);
        }

        #[test]
        fn no_dump_is_a_panic(text in "0000[ 0-9a-f:\\n]{0,200}") {
            let _ = Pasted::read(&text);
        }
    }
}
