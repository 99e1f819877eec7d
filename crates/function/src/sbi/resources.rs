//! The resources of a function as one table: path, scope, and for each method its operation and its handler.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use ::sbi::problem::{Cause, Problem};
use ::sbi::{Request, Response, Value, path};
use http::Method;

use super::routed::Routed;

/// Path parameters of a template, at most.
const PARAMETERS: usize = 3;

/// Characters of a path that a refusal repeats, at most.
const SHOWN: usize = 128;

/// The name of the operation of requests that no row stands for.
const OTHER: &str = "other";

/// A resource of a function: a row of its table.
pub struct Resource<W: Routed> {
    path: &'static str,
    scope: Option<&'static str>,
    operations: Vec<Operation<W>>,
}

/// What one method does with a resource.
struct Operation<W: Routed> {
    method: Method,
    name: &'static str,
    class: W::Class,
    handler: Handler<W>,
}

type Handler<W> = fn(Call<W>) -> Answering<W>;

/// A request at its handler.
pub struct Call<W: Routed> {
    /// The worker.
    pub worker: Rc<W>,
    /// The request.
    pub request: Request,
    /// The parameters of the path in their order, empty where the template has fewer.
    pub parameters: [String; PARAMETERS],
    /// What the worker has made of the sender.
    pub sender: W::Sender,
}

/// What a handler makes of a request.
type Outcome<W> = Result<Response, <W as Routed>::Fault>;

/// What a handler returns: an answer, or the work towards one.
pub enum Answering<W: Routed> {
    /// The answer.
    Now(Outcome<W>),
    /// The work.
    Later(Pin<Box<dyn Future<Output = Outcome<W>>>>),
}

/// The answer of a handler that has nothing to wait for.
pub fn now<W: Routed>(outcome: Result<Response, W::Fault>) -> Answering<W> {
    Answering::Now(outcome)
}

/// The work of a handler, with memory of its own: otherwise each request has room for the largest of all handlers.
pub fn later<W: Routed>(work: impl Future<Output = Result<Response, W::Fault>> + 'static) -> Answering<W> {
    let work = Box::write(Box::new_uninit(), work);
    Answering::Later(Box::into_pin(work))
}

impl<W: Routed> Resource<W> {
    /// A resource at a path such as `/nnrf-nfm/v1/subscriptions/{subscriptionID}`, whose sender needs a token with this scope.
    #[must_use]
    pub fn new(path: &'static str, scope: Option<&'static str>) -> Self {
        let operations = Vec::new();
        Self {
            path,
            scope,
            operations,
        }
    }

    /// The resource with another method: the name of the operation in metrics and traces, what admission knows of it, and who
    /// answers.
    #[must_use]
    pub fn on(
        mut self,
        method: Method,
        name: &'static str,
        class: W::Class,
        handler: fn(Call<W>) -> Answering<W>,
    ) -> Self {
        self.operations.push(Operation {
            method,
            name,
            class,
            handler,
        });
        self
    }
}

/// The table of a worker, prepared for requests.
pub(super) struct Table<W: Routed> {
    rows: Vec<Row<W>>,
    /// Names of operations; the last one stands for all other requests.
    names: Vec<&'static str>,
}

struct Row<W: Routed> {
    /// What stands between the parameters of the path.
    literals: Vec<&'static str>,
    /// The first two segments of the path.
    api: Api,
    resource: Resource<W>,
    /// The position of each operation's name.
    names: Vec<usize>,
}

type Api = (Option<&'static str>, Option<&'static str>);

/// Where a request goes.
pub(super) struct Route {
    /// The row and the position of the method in it.
    found: Option<(usize, Option<usize>)>,
    /// The position of the operation's name.
    pub(super) operation: usize,
    parameters: [String; PARAMETERS],
}

impl<W: Routed> Table<W> {
    pub(super) fn new(resources: Vec<Resource<W>>) -> Self {
        let mut names: Vec<&'static str> = Vec::new();
        for operation in resources.iter().flat_map(|resource| &resource.operations) {
            if operation.name != OTHER && !names.contains(&operation.name) {
                names.push(operation.name);
            }
        }
        names.push(OTHER);
        let row = |resource: Resource<W>| Row {
            literals: literals(resource.path),
            api: api_of(resource.path),
            names: resource
                .operations
                .iter()
                .map(|operation| position(&names, operation.name))
                .collect(),
            resource,
        };
        let rows = resources.into_iter().map(row).collect();
        Self { rows, names }
    }

    /// The names of all operations.
    pub(super) fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Where a request goes. Only parameters take memory.
    pub(super) fn route(&self, request: &Request) -> Route {
        let path = path::usual(request.path());
        let other = self.names.len() - 1;
        for (position, row) in self.rows.iter().enumerate() {
            let Some(parameters) = parameters(&row.literals, rooted(&path)) else {
                continue;
            };
            let operations = &row.resource.operations;
            let method = operations.iter().position(|one| one.method == *request.method());
            let name = method.and_then(|method| row.names.get(method).copied());
            return Route {
                found: Some((position, method)),
                operation: name.unwrap_or(other),
                parameters: parameters.map(str::to_owned),
            };
        }
        Route {
            found: None,
            operation: other,
            parameters: Default::default(),
        }
    }

    /// What a worker judges the sender of a request by.
    pub(super) fn access<'r>(&self, request: &Request, route: &'r Route) -> Access<'r, W::Class> {
        let row = route.found.and_then(|(row, _)| self.rows.get(row));
        let operation = self.operation(route);
        let scope = match row {
            Some(row) => row.resource.scope,
            // Who may not use a service does not learn what it consists of either.
            None => self.named_api(request).next().and_then(|row| row.resource.scope),
        };
        Access {
            scope,
            class: operation.map(|operation| operation.class),
            id: &route.parameters[0],
        }
    }

    fn operation(&self, route: &Route) -> Option<&Operation<W>> {
        let (row, method) = route.found?;
        self.rows.get(row)?.resource.operations.get(method?)
    }

    /// The rows of the API that a path names, whatever version it names.
    fn named_api(&self, request: &Request) -> impl Iterator<Item = &Row<W>> {
        let path = path::usual(request.path());
        let name = rooted(&path).split('/').nth(1).unwrap_or_default().to_owned();
        self.rows.iter().filter(move |row| row.api.0 == Some(&*name))
    }

    /// Hands an admitted request to its handler.
    ///
    /// # Errors
    /// The refusal of a request that has none.
    pub(super) fn begin(
        &self,
        worker: &Rc<W>,
        request: Request,
        route: Route,
        sender: W::Sender,
    ) -> Result<Answering<W>, (Problem, Option<String>)> {
        if let Some(operation) = self.operation(&route) {
            return Ok((operation.handler)(Call {
                worker: worker.clone(),
                request,
                parameters: route.parameters,
                sender,
            }));
        }
        Err(match route.found.and_then(|(row, _)| self.rows.get(row)) {
            Some(row) => {
                let allowed = row.resource.operations.iter();
                let allowed: Vec<&str> = allowed.map(|operation| operation.method.as_str()).collect();
                let allowed = allowed.join(", ");
                let detail = format!(
                    "{} is not allowed on this resource, only {allowed}",
                    request.method()
                );
                let problem = Problem::new(Cause::MethodNotAllowed).detail(detail);
                (problem, Some(allowed))
            }
            None => (self.unknown(&request), None),
        })
    }

    /// TS 29.500 table 5.2.7.2-1: `INVALID_API` for an API name or a version that is not served, otherwise
    /// `RESOURCE_URI_STRUCTURE_NOT_FOUND`.
    fn unknown(&self, request: &Request) -> Problem {
        let path = path::usual(request.path());
        let version = rooted(&path).split('/').nth(2);
        let mut served: Vec<&str> = self.named_api(request).filter_map(|row| row.api.1).collect();
        served.dedup();
        let shown = |text: &str| text.chars().take(SHOWN).collect::<String>();
        match version {
            Some(version) if !served.is_empty() && !served.contains(&version) => {
                let (version, served) = (shown(version), served.join(", "));
                Problem::new(Cause::InvalidApi)
                    .detail(format!("version {version} is not served here; {served} is"))
            }
            _ if served.is_empty()
                && let Some(name) = named_api(&path) =>
            {
                unserved(name, W::NF_TYPE)
            }
            _ => Problem::new(Cause::ResourceUriStructureNotFound).detail(format!(
                "{} is not a resource of this {}",
                shown(&path),
                W::NF_TYPE
            )),
        }
    }
}

/// The API that a path names: the first of its segments, where a version follows it (TS 29.501 §4.4.1).
#[must_use]
pub fn named_api(path: &str) -> Option<&str> {
    let mut segments = rooted(path).split('/').skip(1);
    let name = segments.next().filter(|name| !name.is_empty())?;
    let is_version = |segment: &str| {
        segment
            .strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    is_version(segments.next()?).then_some(name)
}

/// The refusal of an API that a function of this type does not serve.
#[must_use]
pub fn unserved(name: &str, nf_type: &str) -> Problem {
    let name: String = name.chars().take(SHOWN).collect();
    Problem::new(Cause::InvalidApi).detail(format!("{name} is not an API of this {nf_type}"))
}

/// What a worker judges a sender by.
#[derive(Clone, Copy, Debug)]
pub struct Access<'r, C> {
    /// The scope of the token that the sender needs; none for a resource that all may use.
    pub scope: Option<&'static str>,
    /// What the table says of the operation; none for one that does not exist.
    pub class: Option<C>,
    /// The first parameter of the path, empty if there is none.
    pub id: &'r str,
}

/// A header `Allow` for a refused method.
pub(super) fn allowing(mut response: Response, allowed: Option<String>) -> Response {
    if let Some(value) = allowed
        .as_deref()
        .and_then(|allowed| Value::new(allowed.as_bytes()).ok())
    {
        response.headers_mut().set(::sbi::name::ALLOW, value);
    }
    response
}

fn position(names: &[&str], name: &str) -> usize {
    names
        .iter()
        .position(|known| *known == name)
        .unwrap_or(names.len() - 1)
}

/// A path with one slash at its beginning.
fn rooted(path: &str) -> &str {
    let more = path
        .bytes()
        .take_while(|byte| *byte == b'/')
        .count()
        .saturating_sub(1);
    path.get(more..).unwrap_or_default()
}

fn literals(template: &'static str) -> Vec<&'static str> {
    let literals: Vec<&str> = template
        .split('{')
        .enumerate()
        .map(|(number, part)| match number {
            0 => part,
            _ => part.split_once('}').map_or("", |(_, rest)| rest),
        })
        .collect();
    assert!(
        literals.len() <= PARAMETERS + 1,
        "{template} has too many parameters"
    );
    literals
}

fn api_of(template: &'static str) -> Api {
    let mut segments = template.split('/').skip(1);
    let name = segments.next();
    let is_version = |segment: &&str| {
        let number = segment.strip_prefix('v').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    (name, segments.next().filter(is_version))
}

/// The parameters of a path that is of a template; a parameter is a whole segment and not empty.
fn parameters<'p>(literals: &[&str], path: &'p str) -> Option<[&'p str; PARAMETERS]> {
    let mut found = [""; PARAMETERS];
    let (first, further) = literals.split_first()?;
    let mut rest = path.strip_prefix(first)?;
    for (literal, parameter) in further.iter().zip(&mut found) {
        let end = rest.find('/').unwrap_or(rest.len());
        let (value, after) = rest.split_at(end);
        if value.is_empty() {
            return None;
        }
        *parameter = value;
        rest = after.strip_prefix(literal)?;
    }
    rest.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_takes_whole_segments() {
        let of = |template, path| parameters(&literals(template), rooted(path));
        for (template, path, expected) in [
            ("/a/v1/b", "/a/v1/b", Some(["", "", ""])),
            ("/a/v1/b", "//a/v1/b", Some(["", "", ""])),
            ("/a/v1/b", "/a/v1/b/", None),
            ("/a/v1/b", "/a/v1/bc", None),
            ("/a/v1/b", "a/v1/b", None),
            ("/a/v1/b/{id}", "/a/v1/b/7", Some(["7", "", ""])),
            ("/a/v1/b/{id}", "/a/v1/b/", None),
            ("/a/v1/b/{id}", "/a/v1/b/7/8", None),
            ("/a/v1/b/{id}/c", "/a/v1/b/7/c", Some(["7", "", ""])),
            ("/a/v1/b/{id}/c", "/a/v1/b/7/cd", None),
            ("/a/v1/b/{id}/c/{n}", "/a/v1/b/7/c/8", Some(["7", "8", ""])),
            ("/a/v1/b/{id}/c/{n}", "/a/v1/b/7/c", None),
            ("/a", "", None),
        ] {
            assert_eq!(of(template, path), expected, "{template} {path}");
        }
    }

    #[test]
    fn an_api_is_a_name_before_a_version() {
        for (path, name) in [
            ("/nfoo-bar/v1/things", Some("nfoo-bar")),
            ("//nfoo-bar/v1", Some("nfoo-bar")),
            ("/nfoo-bar/v1.0.0/things", Some("nfoo-bar")),
            ("/nfoo-bar/things", None),
            ("/nfoo-bar/version", None),
            ("/nfoo-bar", None),
            ("/v1/things", None),
            ("//", None),
            ("", None),
        ] {
            assert_eq!(named_api(path), name, "{path}");
        }
    }

    #[test]
    fn a_version_is_a_number() {
        assert_eq!(
            api_of("/nnrf-nfm/v1/subscriptions"),
            (Some("nnrf-nfm"), Some("v1"))
        );
        assert_eq!(api_of("/oauth2/token"), (Some("oauth2"), None));
        assert_eq!(api_of("/x/very/deep"), (Some("x"), None));
        assert_eq!(api_of("/bootstrapping"), (Some("bootstrapping"), None));
    }
}
