//! What `signalbox up` says when all is there.

use std::fmt::Write as _;

use crate::run::Running;
use crate::secure;

/// The table of addresses, and what to try.
pub(crate) fn page(running: &Running, traffic: bool) -> String {
    let mut page = String::from("\nSignalbox is up. Ctrl-C ends it.\n\n");
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "  {:<10}{:<11}{:<34}admin",
        "function", "interface", "address"
    );
    for function in &running.functions {
        let mut admin = format!("http://{}", function.admin.address());
        for (interface, address) in &function.mounted.interfaces {
            let name = if admin.is_empty() { "" } else { function.name };
            let _ = writeln!(page, "  {name:<10}{interface:<11}{address:<34}{admin}");
            admin.clear();
        }
    }
    match &running.secure {
        Some(secure) => page.push_str(&secure::page(secure, running)),
        None => page.push_str("\nTry:\n"),
    }
    for function in &running.functions {
        // Secure, the interfaces do not speak in the clear.
        let hints = function.mounted.hints.iter();
        for hint in hints.filter(|hint| running.secure.is_none() || hint.starts_with("signalbox ")) {
            let _ = writeln!(page, "  {hint}");
        }
        let _ = writeln!(page, "  curl http://{}/metrics", function.admin.address());
    }
    if traffic {
        page.push_str("\nSimulated network functions register, send heart-beats and look for one another.\n");
    }
    page.push('\n');
    page
}
