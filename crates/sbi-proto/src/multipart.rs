//! Bodies with binary parts: `multipart/related` (RFC 2387, RFC 2046 §5.1, TS 29.500 §5.2.2.2).

use std::fmt;

/// Parts of a body at most.
const MOST_PARTS: usize = 8;
/// Header fields of a part, in bytes, at most.
const MOST_HEADER_BYTES: usize = 1_024;
/// Longest boundary (RFC 2046 §5.1.1).
const LONGEST_BOUNDARY: usize = 70;

/// A part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'b> {
    /// Its media type, with parameters as they are.
    pub content_type: &'b str,
    /// Its `Content-Id`, without angle brackets.
    pub id: Option<&'b str>,
    /// Its contents.
    pub body: &'b [u8],
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The media type is another one, or has no valid boundary.
    Type,
    /// A part does not begin or end as RFC 2046 says.
    Delimiter,
    /// The header of a part is malformed or too long.
    Header,
    /// More parts than a body may have.
    Parts,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Type => "the content type is not multipart/related with a boundary of 1 to 70 characters",
            Self::Delimiter => "a part has no delimiter at its begin or end",
            Self::Header => "a part has a malformed header, or one of more than 1,024 bytes",
            Self::Parts => "there are more than 8 parts",
        })
    }
}

impl std::error::Error for Malformed {}

/// The media type and the bytes of a body with these parts. The first one is the root.
#[must_use]
pub fn write(parts: &[Part<'_>]) -> (String, Vec<u8>) {
    let boundary = boundary(parts);
    let root = parts.first().map_or("application/json", |part| part.content_type);
    let content_type = format!("multipart/related; boundary=\"{boundary}\"; type=\"{root}\"");
    let size: usize = parts.iter().map(|part| part.body.len() + 160).sum();
    let mut body = Vec::with_capacity(size + LONGEST_BOUNDARY);
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\nContent-Type: {}\r\n", part.content_type).as_bytes());
        if let Some(id) = part.id {
            body.extend_from_slice(format!("Content-Id: {id}\r\n").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(part.body);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (content_type, body)
}

/// A boundary that no part contains.
fn boundary(parts: &[Part<'_>]) -> String {
    let mut number = 0_u64;
    loop {
        let boundary = format!("part-{number:08x}");
        let occurs = |part: &Part<'_>| find(part.body, boundary.as_bytes()).is_some();
        if !parts.iter().any(occurs) {
            return boundary;
        }
        number += 1;
    }
}

/// The parts of a body of this media type.
///
/// # Errors
/// When the body is malformed or exceeds a bound.
pub fn read<'b>(content_type: &str, body: &'b [u8]) -> Result<Vec<Part<'b>>, Malformed> {
    let boundary = boundary_of(content_type).ok_or(Malformed::Type)?;
    let delimiter = format!("--{boundary}");
    let delimiter = delimiter.as_bytes();
    // What comes before the first delimiter means nothing.
    let first = match body.starts_with(delimiter) {
        true => 0,
        false => find_line(body, delimiter).ok_or(Malformed::Delimiter)? + 2,
    };
    let mut rest = body.get(first + delimiter.len()..).unwrap_or_default();
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        if parts.len() == MOST_PARTS {
            return Err(Malformed::Parts);
        }
        rest = after_line(rest).ok_or(Malformed::Delimiter)?;
        // An empty header is an empty line alone; the delimiter may follow the header's empty line at once.
        let (header, contents) = match rest.strip_prefix(b"\r\n") {
            Some(contents) => (&rest[..0], contents),
            None => {
                let end = find(&rest[..rest.len().min(MOST_HEADER_BYTES)], b"\r\n\r\n");
                let end = end.ok_or(Malformed::Header)?;
                (&rest[..end], &rest[end + 4..])
            }
        };
        let (end, next) = match contents.strip_prefix(delimiter) {
            Some(next) => (0, next),
            None => {
                let end = find_line(contents, delimiter).ok_or(Malformed::Delimiter)?;
                (end, &contents[end + 2 + delimiter.len()..])
            }
        };
        parts.push(part(header, &contents[..end])?);
        rest = next;
    }
    Ok(parts)
}

fn part<'b>(header: &'b [u8], body: &'b [u8]) -> Result<Part<'b>, Malformed> {
    let header = std::str::from_utf8(header).map_err(|_| Malformed::Header)?;
    let mut part = Part {
        content_type: "text/plain",
        id: None,
        body,
    };
    for line in header.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Malformed::Header)?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-type") {
            part.content_type = value;
        } else if name.eq_ignore_ascii_case("content-id") {
            let bare = value.strip_prefix('<').and_then(|value| value.strip_suffix('>'));
            part.id = Some(bare.unwrap_or(value));
        }
    }
    Ok(part)
}

/// The boundary of a media type, if it is `multipart/related`.
fn boundary_of(content_type: &str) -> Option<&str> {
    let mut members = content_type.split(';').map(str::trim);
    if !members.next()?.eq_ignore_ascii_case("multipart/related") {
        return None;
    }
    let boundary = members.find_map(|member| {
        let (name, value) = member.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim())
    })?;
    let bare = boundary
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    let boundary = bare.unwrap_or(boundary);
    (1..=LONGEST_BOUNDARY)
        .contains(&boundary.len())
        .then_some(boundary)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Where the CRLF before a line is that begins with these bytes.
fn find_line(bytes: &[u8], begin: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + find(bytes.get(from..)?, b"\r\n")?;
        if bytes[at + 2..].starts_with(begin) {
            return Some(at);
        }
        from = at + 2;
    }
}

/// What follows the rest of a delimiter's line, which has blanks alone.
fn after_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = find(bytes, b"\r\n")?;
    let blank = bytes[..end].iter().all(|byte| matches!(byte, b' ' | b'\t'));
    blank.then(|| &bytes[end + 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: Part<'_> = Part {
        content_type: "application/json",
        id: None,
        body: b"{\"a\":1}",
    };

    fn binary(body: &[u8]) -> Part<'_> {
        Part {
            content_type: "application/vnd.3gpp.5gnas",
            id: Some("n1"),
            body,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for body in [
            &b""[..],
            b"\r\n",
            b"--part-00000000--\r\n",
            &[0, 255, 13, 10, 45, 45],
        ] {
            let parts = [JSON, binary(body)];
            let (content_type, bytes) = write(&parts);
            assert_eq!(read(&content_type, &bytes).unwrap(), parts, "{content_type}");
        }
    }

    #[test]
    fn a_body_as_other_senders_write_it() {
        let body = b"preamble\r\n--x y  \r\ncontent-type: application/json\r\n\r\n{}\r\n--x y\r\n\
            Content-ID: <n1>\r\nX: 1\r\nContent-Type:application/vnd.3gpp.5gnas\r\n\r\n\x80\x02\r\n--x y--epilogue";
        let parts = read(
            "Multipart/Related; type=\"application/json\"; Boundary=\"x y\"",
            body,
        )
        .unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(
            (parts[0].content_type, parts[0].body),
            ("application/json", &b"{}"[..])
        );
        assert_eq!(parts[1], binary(&[0x80, 2]));
    }

    #[test]
    fn malformed_bodies_are_refused_and_none_panics() {
        let (content_type, bytes) = write(&[JSON, binary(&[0x80, 2])]);
        for wrong in [
            "application/json",
            "multipart/related",
            "multipart/related; boundary=\"\"",
        ] {
            assert_eq!(read(wrong, &bytes), Err(Malformed::Type), "{wrong}");
        }
        for end in 0..bytes.len() - 4 {
            assert!(read(&content_type, &bytes[..end]).is_err(), "cut at {end}");
        }
        for place in 0..bytes.len() {
            for byte in [0, b'\r', b'\n', b'-', 255] {
                let mut changed = bytes.clone();
                changed[place] = byte;
                let _ = read(&content_type, &changed);
            }
        }
        let many = [JSON; MOST_PARTS + 1];
        let (content_type, bytes) = write(&many);
        assert_eq!(read(&content_type, &bytes), Err(Malformed::Parts));
        let long = format!("--b\r\nx: {}\r\n\r\n\r\n--b--", "y".repeat(MOST_HEADER_BYTES));
        let refused = read("multipart/related; boundary=b", long.as_bytes());
        assert_eq!(refused, Err(Malformed::Header));
    }
}
