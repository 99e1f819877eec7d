//! Identifiers of rules that an AF session caused.

/// The identifier of a rule, as text `af-<session>-<component>-<flow>`.
///
/// It depends on the session and the numbers of the AF alone: an update of a component modifies its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleId<'a> {
    /// The AF session.
    pub session: &'a str,
    /// `medCompN`, Media-Component-Number.
    pub component: u32,
    /// `fNum`, Flow-Number; 0 for a component without flows.
    pub flow: u32,
}

impl<'a> RuleId<'a> {
    /// Reads an identifier; rules of another origin are `None`.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (rest, flow) = text.strip_prefix("af-")?.rsplit_once('-')?;
        let (session, component) = rest.rsplit_once('-')?;
        Some(Self {
            session,
            component: number(component)?,
            flow: number(flow)?,
        })
    }
}

/// Only the spelling that `Display` gives.
fn number(text: &str) -> Option<u32> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| canonical && digits)
}

impl std::fmt::Display for RuleId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "af-{}-{}-{}", self.session, self.component, self.flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_read_as_they_are_written() {
        let id = RuleId {
            session: "5b-7",
            component: 1,
            flow: 12,
        };
        assert_eq!(id.to_string(), "af-5b-7-1-12");
        assert_eq!(RuleId::parse("af-5b-7-1-12"), Some(id));
        for other in ["default", "af-1", "af-x-1-b", "af-x-1-01", "af-x-+1-2", "af-x--2"] {
            assert_eq!(RuleId::parse(other), None, "{other}");
        }
    }
}
