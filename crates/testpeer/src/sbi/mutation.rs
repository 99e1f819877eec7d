//! Requests that chance has damaged.

use fuzz_support::{Random, mutate};
use http::Method;

/// A valid request, of which [`mutations`] damages the body, or the query where there is no body.
#[derive(Clone, Debug)]
pub struct Template<'t> {
    method: Method,
    path: String,
    content_type: &'t str,
    text: String,
}

impl<'t> Template<'t> {
    /// A request with a body.
    #[must_use]
    pub fn body(method: Method, path: &str, content_type: &'t str, body: impl Into<String>) -> Self {
        Self {
            method,
            path: path.to_owned(),
            content_type,
            text: body.into(),
        }
    }

    /// A `GET` with a query.
    #[must_use]
    pub fn query(path: &str, query: impl Into<String>) -> Self {
        Self::body(Method::GET, path, "", query)
    }
}

/// A damaged request.
#[derive(Clone, Debug)]
pub struct Mutated<'t> {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The content type; empty for none.
    pub content_type: &'t str,
    /// The body.
    pub body: Vec<u8>,
}

impl std::fmt::Display for Mutated<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.method, self.path, self.body.escape_ascii())
    }
}

/// This many damaged requests, of each template in turn; the same ones for the same seed.
pub fn mutations<'t>(
    templates: Vec<Template<'t>>,
    rounds: usize,
    seed: u64,
) -> impl Iterator<Item = Mutated<'t>> {
    let mut random = Random::new(seed);
    let seeds: Vec<Vec<u8>> = templates
        .iter()
        .map(|template| template.text.clone().into())
        .collect();
    (0..rounds).map(move |round| {
        let template = &templates[round % templates.len()];
        let mut text = template.text.clone().into_bytes();
        mutate(&mut random, &mut text, &seeds);
        let mut mutated = Mutated {
            method: template.method.clone(),
            path: template.path.clone(),
            content_type: template.content_type,
            body: Vec::new(),
        };
        if template.method == Method::GET {
            mutated.path.push('?');
            mutated
                .path
                .extend(text.into_iter().map(char::from).filter(|c| in_query(*c)));
        } else {
            mutated.body = text;
        }
        mutated
    })
}

/// Whether a client can put this character into the query of a URI.
fn in_query(c: char) -> bool {
    c.is_ascii_graphic() && !"\"<>#\\^`{|}".contains(c)
}
