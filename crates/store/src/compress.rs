//! Compression of large values: the same bytes in every engine.
//!
//! A value is stored as it is, unless it is compressed or would be mistaken for compressed; then it begins with
//! a mark. JSON never begins with a zero byte, so readable values stay readable in a SQL database.

use std::sync::Arc;

const MARK: u8 = 0x00;
const LZ4: u8 = 0xc4;
const PLAIN: u8 = 0xc5;
/// LZ4 with a dictionary, whose number follows (u32, little endian).
const LZ4_WITH: u8 = 0xc6;

/// `value` as it is stored; compressed when it is longer than `above` and that saves space, with a dictionary if there
/// is one.
pub(crate) fn pack(value: Vec<u8>, above: Option<usize>, dictionary: Option<(u32, &[u8])>) -> Vec<u8> {
    if above.is_some_and(|above| value.len() > above) {
        if let Some((id, dictionary)) = dictionary {
            let packed = lz4_flex::block::compress_prepend_size_with_dict(&value, dictionary);
            if packed.len() + 6 < value.len() {
                return marked(LZ4_WITH, &[&id.to_le_bytes()[..], &packed[..]].concat());
            }
        }
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

/// The dictionary that a stored value needs.
#[cfg(test)]
fn needed(stored: &[u8]) -> Option<u32> {
    let rest = stored.strip_prefix(&[MARK, LZ4_WITH])?;
    rest.first_chunk::<4>().map(|id| u32::from_le_bytes(*id))
}

/// The value that was packed, at most `limit` bytes of it.
pub(crate) fn unpack(
    stored: Vec<u8>,
    limit: usize,
    dictionary: impl FnOnce(u32) -> Option<Arc<[u8]>>,
) -> Result<Vec<u8>, String> {
    match stored.as_slice() {
        [MARK, PLAIN, rest @ ..] => Ok(rest.to_vec()),
        [MARK, LZ4, rest @ ..] => {
            check_size(rest, limit)?;
            lz4_flex::decompress_size_prepended(rest).map_err(|error| error.to_string())
        }
        [MARK, LZ4_WITH, rest @ ..] => {
            let (id, rest) = rest.split_first_chunk::<4>().ok_or("names no dictionary")?;
            let id = u32::from_le_bytes(*id);
            check_size(rest, limit)?;
            let dictionary = dictionary(id).ok_or_else(|| format!("dictionary {id} is missing"))?;
            lz4_flex::block::decompress_size_prepended_with_dict(rest, &dictionary)
                .map_err(|error| error.to_string())
        }
        [MARK, ..] => Err("begins with an unknown mark of compression".to_owned()),
        _ => Ok(stored),
    }
}

fn check_size(packed: &[u8], limit: usize) -> Result<(), String> {
    let (size, _) = lz4_flex::block::uncompressed_size(packed).map_err(|error| error.to_string())?;
    match size > limit {
        true => Err(format!(
            "claims {size} bytes after decompression, the limit is {limit}"
        )),
        false => Ok(()),
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
                let none = |_| None;
                assert_eq!(
                    unpack(pack(value.clone(), above, None), 1 << 20, none).unwrap(),
                    value
                );
                let words: Arc<[u8]> = vec![7; 300].into();
                let packed = pack(value.clone(), above, Some((9, &words)));
                assert_eq!(needed(&packed).is_some(), above.is_some() && value.len() > 1_000);
                let given = |id| (id == 9).then(|| words.clone());
                assert_eq!(unpack(packed.clone(), 1 << 20, given).unwrap(), value);
                if needed(&packed).is_some() {
                    assert!(
                        unpack(packed, 1 << 20, none)
                            .unwrap_err()
                            .contains("dictionary 9")
                    );
                }
            }
        }
        assert!(pack(vec![7; 5_000], Some(16), None).len() < 100);
    }

    #[test]
    fn a_lie_about_the_size_is_refused() {
        let mut packed = pack(vec![7; 5_000], Some(16), None);
        packed[2..6].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(unpack(packed, 1 << 20, |_| None).unwrap_err().contains("limit"));
    }
}
