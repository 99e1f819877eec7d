//! One search for all entries, page by page (RFC 2696).

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use ldap3::asn1::StructureTag;
use ldap3::controls::{Control, PagedResults, RawControl};
use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, LdapError, LdapResult, Scope};
use tokio::time::timeout;

use super::Entry;

/// Entries of a page.
const PAGE: i32 = 1_000;
/// Pages without an entry that may follow one another.
const MOST_EMPTY: usize = 100;
/// Time for a connection with its bind, and from one entry to the next.
const PATIENCE: Duration = Duration::from_secs(60);
/// The control (RFC 2696 §2).
const PAGED_RESULTS: &str = "1.2.840.113556.1.4.319";
/// Tag of an entry (RFC 4511 §4.5.2).
const SEARCH_RESULT_ENTRY: u64 = 4;
/// Result codes (RFC 4511 §4.1.9).
const SUCCESS: u32 = 0;
const SIZE_LIMIT_EXCEEDED: u32 = 4;
const REFERRAL: u32 = 10;

/// What is asked for.
pub(super) struct Query<'q> {
    pub(super) url: &'q str,
    /// Name and password; none: anonymous.
    pub(super) bind: Option<(&'q str, &'q str)>,
    pub(super) authorities: Option<&'q Path>,
    pub(super) base: &'q str,
    pub(super) filter: &'q str,
    pub(super) attributes: Vec<String>,
}

impl Query<'_> {
    /// Hands over each entry, with the count of all that the directory estimates; 0: it estimates none.
    ///
    /// # Errors
    /// Those of `each`, and when the directory does not answer with all entries.
    pub(super) fn run(&self, each: impl FnMut(Entry, u64) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let connecting = timeout(PATIENCE, self.connect()).await;
            let ldap = connecting.map_err(|_| anyhow!("no connection within {PATIENCE:?}"))??;
            self.pages(ldap, each).await
        })
    }

    async fn connect(&self) -> anyhow::Result<Ldap> {
        let mut settings = LdapConnSettings::new();
        if let Some(authorities) = self.authorities {
            let files = tls::TlsFiles {
                authorities: Some(authorities.to_owned()),
                ..tls::TlsFiles::default()
            };
            let client = tls::Material::read(&files).and_then(|material| material.client(&[]));
            settings = settings.set_config(client.context("--ldap-authorities")?);
        }
        let (driver, mut ldap) = LdapConnAsync::with_settings(settings, self.url).await?;
        tokio::spawn(driver.drive());
        if let Some((name, password)) = self.bind {
            let bound = ldap.simple_bind(name, password).await?;
            if bound.rc != SUCCESS {
                bail!("bind as {name}: {bound}");
            }
        }
        Ok(ldap)
    }

    async fn pages(
        &self,
        mut ldap: Ldap,
        mut each: impl FnMut(Entry, u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (mut cookie, mut estimate, mut empty) = (Vec::new(), 0, 0);
        loop {
            let page = PagedResults { size: PAGE, cookie };
            ldap.with_controls(vec![RawControl::from(page)]);
            let (count, result) = self.page(&mut ldap, |entry| each(entry, estimate)).await?;
            match result.rc {
                SUCCESS => {}
                SIZE_LIMIT_EXCEEDED => {
                    bail!(
                        "the directory returns no more entries to this name (sizeLimitExceeded); nothing was imported"
                    )
                }
                REFERRAL => bail!("the directory refers to {}; ask that one", result.refs.join(" ")),
                _ => bail!("search below `{}`: {result}", self.base),
            }
            // A directory without the control has sent all.
            let Some(control) = result
                .ctrls
                .iter()
                .find(|Control(_, raw)| raw.ctype == PAGED_RESULTS)
            else {
                return Ok(());
            };
            let parsed = control.1.val.as_deref().and_then(next_page);
            (estimate, cookie) =
                parsed.ok_or_else(|| anyhow!("the directory sent a malformed control of pages"))?;
            if cookie.is_empty() {
                return Ok(());
            }
            empty = if count == 0 { empty + 1 } else { 0 };
            if empty > MOST_EMPTY {
                bail!("the directory sent {empty} pages without an entry");
            }
        }
    }

    /// The entries of one search, and its result.
    async fn page(
        &self,
        ldap: &mut Ldap,
        mut each: impl FnMut(Entry) -> anyhow::Result<()>,
    ) -> anyhow::Result<(usize, LdapResult)> {
        let late = |_| anyhow!("no answer within {PATIENCE:?}");
        let searching = ldap.streaming_search(self.base, Scope::Subtree, self.filter, &self.attributes);
        let searching = timeout(PATIENCE, searching).await.map_err(late)?;
        let mut stream = searching.map_err(|error| match error {
            LdapError::FilterParsing => anyhow!("--filter `{}`: not a filter (RFC 4515)", self.filter),
            error => error.into(),
        })?;
        let mut count = 0;
        while let Some(item) = timeout(PATIENCE, stream.next()).await.map_err(late)?? {
            if item.is_ref() {
                bail!(
                    "the directory refers to others for a part of the entries below `{}`",
                    self.base
                );
            }
            if item.is_intermediate() {
                continue;
            }
            count += 1;
            each(Entry::read(item.0).ok_or_else(|| anyhow!("the directory sent a malformed entry"))?)?;
        }
        Ok((count, stream.finish().await))
    }
}

impl Entry {
    /// Reads a `SearchResultEntry` (RFC 4511 §4.5.2).
    fn read(entry: StructureTag) -> Option<Self> {
        let mut parts = entry
            .match_id(SEARCH_RESULT_ENTRY)?
            .expect_constructed()?
            .into_iter();
        let name = String::from_utf8(parts.next()?.expect_primitive()?).ok()?;
        let attribute = |attribute: StructureTag| {
            let mut parts = attribute.expect_constructed()?.into_iter();
            let name = String::from_utf8(parts.next()?.expect_primitive()?).ok()?;
            let values = parts.next()?.expect_constructed()?.into_iter();
            let values: Option<Vec<Vec<u8>>> = values.map(StructureTag::expect_primitive).collect();
            Some((name, values?))
        };
        let attributes = parts.next()?.expect_constructed()?.into_iter();
        Some(Self {
            name,
            attributes: attributes.map(attribute).collect::<Option<_>>()?,
        })
    }
}

/// The estimate of all entries, and the cookie of the next page: `SEQUENCE { INTEGER, OCTET STRING }` (RFC 2696 §2). The
/// library's own reader panics where it is something else.
fn next_page(value: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (content, _) = element(value, 0x30)?;
    let (size, rest) = element(content, 0x02)?;
    let (cookie, _) = element(rest, 0x04)?;
    let is_count = size.len() <= 5 && size.first().is_none_or(|first| *first < 0x80);
    let estimate = size.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Some((if is_count { estimate } else { 0 }, cookie.to_vec()))
}

/// The content of an element with this tag, and what is behind it (X.690 §8.1).
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short @ ..=0x7f => (short, rest),
        long @ 0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(long - 0x80)?;
            (
                length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
                rest,
            )
        }
        _ => return None,
    };
    (*found == tag).then_some(rest.split_at_checked(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_of_pages_has_estimate_and_cookie() {
        assert_eq!(
            next_page(b"\x30\x08\x02\x02\x04\xd2\x04\x02ab"),
            Some((1_234, b"ab".to_vec()))
        );
        assert_eq!(
            next_page(b"\x30\x81\x05\x02\x01\x00\x04\x00"),
            Some((0, Vec::new()))
        );
        // What the library writes is read.
        let page = PagedResults {
            size: 70_000,
            cookie: vec![7; 300],
        };
        assert_eq!(
            next_page(&RawControl::from(page).val.unwrap()),
            Some((70_000, vec![7; 300]))
        );
        let whole = b"\x30\x08\x02\x02\x04\xd2\x04\x02ab";
        for cut in 0..whole.len() {
            assert_eq!(next_page(&whole[..cut]), None, "{cut}");
        }
        for wrong in [
            &b"\x30\x80\x02\x01\x00\x04\x00"[..],
            b"\x31\x05\x02\x01\x00\x04\x00",
            b"\x30\x03\x02\x05\x00",
        ] {
            assert_eq!(next_page(wrong), None);
        }
    }
}
