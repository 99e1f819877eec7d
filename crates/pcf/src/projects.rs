//! The policy projects in effect: read and compiled at the start and at each reload.

use std::path::Path;
use std::sync::Arc;

use ::policy::{Limits, Project, ProjectError, Servers, Service};
use settings::Report;

use crate::config::{Config, Policies};

/// A project that the PCF has without settings.
struct BuiltIn {
    name: &'static str,
    text: &'static str,
}

const SM: BuiltIn = BuiltIn {
    name: "the built-in project for sm",
    text: include_str!("../projects/sm/project.yaml"),
};
const AM: BuiltIn = BuiltIn {
    name: "the built-in project for am",
    text: include_str!("../projects/am/project.yaml"),
};
const UE: BuiltIn = BuiltIn {
    name: "the built-in project for ue",
    text: include_str!("../projects/ue/project.yaml"),
};

/// The project of a service, and the one that decides when its evaluation fails.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) project: Arc<Project>,
    /// What it was compiled from.
    pub(crate) files: Files,
    pub(crate) built_in: Arc<Project>,
}

/// Files of a project in the order of their names: path and text.
pub(crate) type Files = Arc<[(String, String)]>;

/// A project as its folder has it now: what a reload would bring.
pub(crate) struct Draft {
    pub(crate) files: Files,
    /// Why a reload would refuse it.
    pub(crate) mistakes: Option<String>,
}

/// The projects of all services.
#[derive(Clone, Debug)]
pub(crate) struct Projects {
    pub(crate) sm: Pair,
    pub(crate) am: Pair,
    pub(crate) ue: Pair,
}

impl Projects {
    /// Reads and compiles what the settings name.
    ///
    /// # Errors
    /// Every mistake of the first project that has some, with file, line and block.
    pub(crate) fn read(config: &Config) -> Result<Self, ProjectMistakes> {
        let (limits, servers) = (&config.policy.limits, config.notifier.accepted());
        let pair = |named: Named<'_>, built_in: &BuiltIn| pair(named, built_in, limits, &servers);
        let [sm, am, ue] = named(&config.policy);
        Ok(Self {
            sm: pair(sm, &SM)?,
            am: pair(am, &AM)?,
            ue: pair(ue, &UE)?,
        })
    }

    /// Whether files have the same content as those of other projects.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.all().into_iter().zip(other.all());
        pairs.into_iter().all(|(own, other)| own.files == other.files)
    }

    /// What the folder of a service's project has now; none: the settings name no folder. It reads files.
    pub(crate) fn draft(config: &Config, service: Service) -> Option<Draft> {
        let (limits, servers) = (&config.policy.limits, config.notifier.accepted());
        let named = named(&config.policy);
        let named = named.into_iter().find(|named| named.service == service)?;
        let draft = match files(named.folder?, limits) {
            Ok(files) => Draft {
                mistakes: compile(&files, &named, limits, &servers)
                    .err()
                    .map(|error| error.to_string()),
                files,
            },
            Err(reason) => Draft {
                files: Arc::default(),
                mistakes: Some(named.wrong(reason).to_string()),
            },
        };
        Some(draft)
    }

    /// Those of a service.
    pub(crate) fn of(&self, service: Service) -> &Pair {
        match service {
            Service::Sm => &self.sm,
            Service::Am => &self.am,
            Service::Ue => &self.ue,
        }
    }

    /// Those of each service.
    pub(crate) fn all(&self) -> [&Pair; 3] {
        [&self.sm, &self.am, &self.ue]
    }
}

/// Compiles the projects that settings name, as a start does: the mistakes of each.
#[must_use]
pub fn check_projects(config: &Config) -> Vec<ProjectMistakes> {
    let servers = config.notifier.accepted();
    let compiled = named(&config.policy).into_iter().filter_map(|named| {
        let limits = &config.policy.limits;
        let compiled = files(named.folder?, limits)
            .map_err(|reason| named.wrong(reason))
            .and_then(|files| compile(&files, &named, limits, &servers));
        compiled.err()
    });
    compiled.collect()
}

/// What is wrong with a policy project that the settings name.
#[derive(Debug)]
pub struct ProjectMistakes {
    setting: &'static str,
    what: Mistakes,
}

#[derive(Debug)]
enum Mistakes {
    /// In its files.
    InFiles(ProjectError),
    /// Of the folder as a whole.
    OfFolder(String),
}

impl ProjectMistakes {
    /// The setting that names the project, within the section of the PCF.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// A report for each file at fault; none where the folder as a whole is.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        match &self.what {
            Mistakes::InFiles(error) => error.reports(),
            Mistakes::OfFolder(_) => &[],
        }
    }
}

impl std::fmt::Display for ProjectMistakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.what {
            Mistakes::InFiles(error) => write!(f, "{}: {error}", self.setting),
            Mistakes::OfFolder(reason) => write!(f, "{}: {reason}", self.setting),
        }
    }
}

/// A service and the folder of its project.
struct Named<'s> {
    setting: &'static str,
    service: Service,
    folder: Option<&'s Path>,
}

impl Named<'_> {
    fn wrong(&self, reason: String) -> ProjectMistakes {
        ProjectMistakes {
            setting: self.setting,
            what: Mistakes::OfFolder(reason),
        }
    }
}

fn named(settings: &Policies) -> [Named<'_>; 3] {
    [
        ("policy.sm", Service::Sm, &settings.sm),
        ("policy.am", Service::Am, &settings.am),
        ("policy.ue", Service::Ue, &settings.ue),
    ]
    .map(|(setting, service, folder)| Named {
        setting,
        service,
        folder: folder.as_deref(),
    })
}

fn pair(
    named: Named<'_>,
    built_in: &BuiltIn,
    limits: &Limits,
    servers: &Servers,
) -> Result<Pair, ProjectMistakes> {
    // What an operator limits holds for the operator's projects.
    let text = [("project.yaml", built_in.text)];
    let project = Project::compile(&text, &Limits::default())
        .map_err(|error| named.wrong(format!("{}: {error}", built_in.name)))?;
    let project = Arc::new(project);
    let Some(folder) = named.folder else {
        return Ok(Pair {
            project: project.clone(),
            files: Arc::new([(built_in.name.to_owned(), built_in.text.to_owned())]),
            built_in: project,
        });
    };
    let files = files(folder, limits).map_err(|reason| named.wrong(reason))?;
    Ok(Pair {
        project: Arc::new(compile(&files, &named, limits, servers)?),
        files,
        built_in: project,
    })
}

/// The project of these files.
fn compile(
    files: &[(String, String)],
    named: &Named<'_>,
    limits: &Limits,
    servers: &Servers,
) -> Result<Project, ProjectMistakes> {
    let texts: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let project = Project::compile_for(&texts, limits, servers).map_err(|error| ProjectMistakes {
        setting: named.setting,
        what: Mistakes::InFiles(error),
    })?;
    if project.service() != named.service {
        return Err(named.wrong(format!(
            "the project has `service: {}`; expected `service: {}`",
            project.service().name(),
            named.service.name()
        )));
    }
    Ok(project)
}

/// The YAML and JSON files of a folder, in the order of their names.
fn files(folder: &Path, limits: &Limits) -> Result<Files, String> {
    let unreadable = |path: &Path, error: std::io::Error| {
        let path = path.display();
        format!("{path}: {error}; expected a folder with YAML or JSON files")
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        let known = path
            .extension()
            .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
        if known && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut left = limits.project_bytes as u64;
    let mut files = Vec::new();
    for path in paths {
        let bytes = std::fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            let (folder, most) = (folder.display(), limits.project_bytes);
            format!("{folder}: its files have more than {most} bytes together (policy.limits.projectBytes)")
        })?;
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        files.push((path.display().to_string(), text));
    }
    Ok(files.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_with_setting_file_and_block() {
        let folder = tempfile::tempdir().unwrap();
        let read = || {
            let mut config = Config::default();
            config.policy.sm = Some(folder.path().to_owned());
            let read = Projects::read(&config).map(drop);
            read.map_err(|mistakes| mistakes.to_string())
        };
        assert!(read().unwrap_err().starts_with("policy.sm: "));
        let write = |text: &str| std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        write("name: x\nservice: am\nblocks: [amPolicy: {rfsp: 7}]\n");
        assert!(read().unwrap_err().contains("service: am"));
        write(
            "name: x\nservice: sm\nblocks:\n  - block: wrong\n    sessionRule: {sessRuleId: 7, nonsense: 1}\n",
        );
        let wrong = read().unwrap_err();
        assert!(
            wrong.contains("project.yaml:5") && wrong.contains("blocks[0]"),
            "{wrong}"
        );
        write("name: x\nservice: sm\nblocks:\n  - sessionRule: {sessRuleId: a}\n");
        assert_eq!(read(), Ok(()));
        assert!(Projects::read(&Config::default()).is_ok());
    }
}
