//! Compression of large values: the same bytes in every engine.
//!
//! A value is stored as it is, unless it is compressed or would be mistaken for compressed; then it begins with
//! a mark. JSON never begins with a zero byte, so readable values stay readable in a SQL database.

const MARK: u8 = 0x00;
const LZ4: u8 = 0xc4;
const PLAIN: u8 = 0xc5;

/// `value` as it is stored; compressed when it is longer than `above` and that saves space.
pub(crate) fn pack(value: Vec<u8>, above: Option<usize>) -> Vec<u8> {
    if above.is_some_and(|above| value.len() > above) {
        let packed = lz4_flex::compress_prepend_size(&value);
        if packed.len() + 2 < value.len() {
            return marked(LZ4, &packed);
        }
    }
    if value.first() == Some(&MARK) {
        marked(PLAIN, &value)
    } else {
        value
    }
}

/// The value that was packed, at most `limit` bytes of it.
pub(crate) fn unpack(stored: Vec<u8>, limit: usize) -> Result<Vec<u8>, String> {
    match stored.as_slice() {
        [MARK, PLAIN, rest @ ..] => Ok(rest.to_vec()),
        [MARK, LZ4, rest @ ..] => {
            let (size, _) = lz4_flex::block::uncompressed_size(rest).map_err(|error| error.to_string())?;
            if size > limit {
                return Err(format!(
                    "claims {size} bytes after decompression, the limit is {limit}"
                ));
            }
            lz4_flex::decompress_size_prepended(rest).map_err(|error| error.to_string())
        }
        [MARK, ..] => Err("begins with an unknown mark of compression".to_owned()),
        _ => Ok(stored),
    }
}

fn marked(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.extend_from_slice(&[MARK, kind]);
    out.extend_from_slice(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for value in [
            vec![],
            vec![0],
            b"\x00\xc4lies".to_vec(),
            vec![7; 5_000],
            (0..=255).collect(),
        ] {
            for above in [None, Some(16)] {
                assert_eq!(unpack(pack(value.clone(), above), 1 << 20).unwrap(), value);
            }
        }
        assert!(pack(vec![7; 5_000], Some(16)).len() < 100);
    }

    #[test]
    fn a_lie_about_the_size_is_refused() {
        let mut packed = pack(vec![7; 5_000], Some(16));
        packed[2..6].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(unpack(packed, 1 << 20).unwrap_err().contains("limit"));
    }
}
