//! The policy projects of a PCF as they are in effect, beside what their folders have, and what they decide for a subscriber.

use function::pages::segment;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::configuration::page;
use crate::following::Asked;
use crate::observation::cut;

/// Blocks of an evaluation that are shown.
const MOST_BLOCKS: usize = 2_000;
/// Characters of a reason.
const WHY: usize = 300;

/// What was asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Form {
    /// The PCF, by its name on the page.
    function: String,
    /// `sm`, `am` or `ue`; empty: the list alone.
    service: String,
    /// SUPI, GPSI or address of a UE whose associations are evaluated.
    pub(crate) subscriber: String,
}

/// The projects of a PCF, and the files of one.
pub(crate) async fn shown(form: &Form, functions: &[Asked]) -> Result<Value, String> {
    let projects = read(form, functions, "/pcf/projects").await?;
    let project = match form.service.is_empty() {
        true => Value::Null,
        false => {
            let path = format!("/pcf/projects/{}", segment(&form.service));
            read(form, functions, &path).await?
        }
    };
    Ok(json!({ "version": 1, "function": form.function, "projects": projects, "project": project }))
}

/// The blocks of the project in effect for each association of a subscriber, with what they have read and decided.
pub(crate) async fn explained(form: &Form, functions: &[Asked]) -> Result<Value, String> {
    let path = format!("/pcf/explain/{}", segment(&form.subscriber));
    let Value::Array(mut lines) = read(form, functions, &path).await? else {
        return Err(format!("{}: expected a list of blocks", form.function));
    };
    let more = lines.len().saturating_sub(MOST_BLOCKS);
    lines.truncate(MOST_BLOCKS);
    Ok(json!({ "version": 1, "function": form.function, "blocks": lines, "more": more }))
}

async fn read(form: &Form, functions: &[Asked], path: &str) -> Result<Value, String> {
    let name = &form.function;
    let page = page(name, functions, Method::GET, path).await?;
    if page.status != 200 {
        let why = String::from_utf8_lossy(&page.body);
        return Err(format!(
            "{name} answered {}: {}",
            page.status,
            cut(why.trim(), WHY)
        ));
    }
    serde_json::from_slice(&page.body).map_err(|error| format!("{name}: {error}"))
}
