//! A condition on a profile, made of a query parameter.

use model::NfProfile;
use model::shape::rules;
use sbi_proto::query::json_text;

use super::fault::ParamFault;
use super::view::View;

/// Whether a profile fits a parameter. Parameters are parsed once into closures, which also serve as the
/// atoms of `complex-query`.
pub struct Test {
    predicate: Box<dyn Fn(&View<'_>) -> bool>,
    parameter: Box<str>,
}

impl Test {
    /// A test made of a predicate.
    pub(crate) fn new(predicate: impl Fn(&View<'_>) -> bool + 'static) -> Self {
        Self {
            predicate: Box::new(predicate),
            parameter: Box::default(),
        }
    }

    /// The test as that of a parameter.
    #[must_use]
    pub fn of_parameter(self, name: &str) -> Self {
        Self {
            parameter: name.into(),
            ..self
        }
    }

    /// The parameter, or the parameters, that it stands for.
    #[must_use]
    pub fn parameter(&self) -> &str {
        &self.parameter
    }

    /// Whether the profile fits, by itself: the tests of a query are judged together ([`crate::Query::matches`]).
    #[must_use]
    pub fn holds(&self, profile: &NfProfile) -> bool {
        View::any(profile, |view| self.fits(view))
    }

    /// Whether the profile fits with these entries of its lists.
    pub(crate) fn fits(&self, view: &View<'_>) -> bool {
        (self.predicate)(view)
    }

    /// The opposite test.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::new(move |view| !self.fits(view))
    }
}

impl std::fmt::Debug for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Test")
    }
}

/// The value of one parameter, with its name for faults.
#[derive(Clone, Copy, Debug)]
pub struct Param<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value, percent-decoded.
    pub value: &'a str,
}

impl<'a> Param<'a> {
    /// A fault that says what was expected.
    pub fn fault(&self, expected: impl Into<String>) -> ParamFault {
        ParamFault::new(self.name, expected)
    }

    /// The value as text of at least one character.
    pub fn text(&self) -> Result<String, ParamFault> {
        if self.value.is_empty() {
            Err(self.fault("expected a value"))
        } else {
            Ok(self.value.to_owned())
        }
    }

    /// A name of a host. It need not be fully qualified: profiles may have such names as well (`nrf.tolerance.hostNames`).
    pub fn host(&self) -> Result<String, ParamFault> {
        rules::with_host_names(true, || rules::fqdn(self.value)).map_err(|expected| self.fault(expected))?;
        self.text()
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool, ParamFault> {
        match self.value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.fault("expected `true` or `false`")),
        }
    }

    /// A number.
    pub fn number<T: std::str::FromStr>(&self, expected: &str) -> Result<T, ParamFault> {
        self.value.parse().map_err(|_| self.fault(expected))
    }

    /// A JSON value of a type.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, ParamFault> {
        serde_json::from_str(&json_text(self.value))
            .map_err(|error| self.fault(format!("expected JSON: {error}")))
    }

    /// A JSON list with at least one item.
    pub fn json_list<T: serde::de::DeserializeOwned>(&self) -> Result<Vec<T>, ParamFault> {
        let list: Vec<T> = self.json()?;
        if list.is_empty() {
            Err(self.fault("expected at least one item"))
        } else {
            Ok(list)
        }
    }

    /// Items separated by commas, at least one (OpenAPI style `form`, not exploded). A JSON list is taken as
    /// well: some consumers send one.
    pub fn list(&self) -> Result<Vec<String>, ParamFault> {
        if self.value.starts_with('[') {
            return self.json_list();
        }
        let items: Vec<String> = self
            .value
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect();
        if items.is_empty() {
            Err(self.fault("expected at least one item"))
        } else {
            Ok(items)
        }
    }

    /// A value that a parser of the model reads.
    pub fn parsed<T, E: std::fmt::Display>(
        &self,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, ParamFault> {
        parse(self.value).map_err(|expected| self.fault(expected.to_string()))
    }
}
