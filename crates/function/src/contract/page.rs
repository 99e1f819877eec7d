//! A page of a function's admin endpoint, and how the command line shows it.

/// A page of a function's own.
#[derive(Debug)]
pub struct Page {
    /// Name of the subcommand.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Path at the admin endpoint; `{}` stands for the argument, if there is one.
    pub path: &'static str,
    /// Name of the argument.
    pub argument: Option<&'static str>,
    /// Title and JSON pointer of the columns in which a list is shown; without columns it is shown as JSON.
    pub columns: &'static [(&'static str, &'static str)],
}
