//! Figures by name, of a bench without a reference.

use std::fmt;

use ::report::Check;

/// A name with its unit, and the figure.
pub(super) type Figure = (&'static str, String);

/// A table as Markdown.
pub(super) fn markdown(figures: &[Figure]) -> String {
    let rows = figures.iter();
    let rows = rows.map(|(name, figure)| format!("| {name} | {figure} |\n"));
    format!("| | |\n|---|--:|\n{}", rows.collect::<String>())
}

/// Figures and checks for a terminal.
pub(super) fn show(f: &mut fmt::Formatter<'_>, figures: &[Figure], checks: &[Check]) -> fmt::Result {
    for (name, figure) in figures {
        writeln!(f, "{name:<48}{figure:>14}")?;
    }
    checks.iter().try_for_each(|check| writeln!(f, "{check}"))
}
