//! The policy projects in effect: read and compiled at the start and at each reload.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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
    /// Checksum of the project's files.
    checksum: u64,
    pub(crate) built_in: Arc<Project>,
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
        pairs
            .into_iter()
            .all(|(own, other)| own.checksum == other.checksum)
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
        let folder = named.folder?;
        compile(folder, &named, &config.policy.limits, &servers).err()
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
    let text = [(built_in.name, built_in.text)];
    let text = text.map(|(_, text)| ("project.yaml", text));
    let built_in = Project::compile(&text, &Limits::default())
        .map_err(|error| named.wrong(format!("{}: {error}", built_in.name)))?;
    let built_in = Arc::new(built_in);
    let (project, checksum) = match named.folder {
        None => (built_in.clone(), 0),
        Some(folder) => {
            let (project, checksum) = compile(folder, &named, limits, servers)?;
            (Arc::new(project), checksum)
        }
    };
    Ok(Pair {
        project,
        checksum,
        built_in,
    })
}

/// The project of a folder, with a checksum of its files.
fn compile(
    folder: &Path,
    named: &Named<'_>,
    limits: &Limits,
    servers: &Servers,
) -> Result<(Project, u64), ProjectMistakes> {
    let files = files(folder, limits).map_err(|reason| named.wrong(reason))?;
    let mut checksum = DefaultHasher::new();
    files.hash(&mut checksum);
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
            "{} is a project with `service: {}`; expected `service: {}`",
            folder.display(),
            project.service().name(),
            named.service.name()
        )));
    }
    Ok((project, checksum.finish()))
}

/// The YAML and JSON files of a folder, in the order of their names.
fn files(folder: &Path, limits: &Limits) -> Result<Vec<(String, String)>, String> {
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
    Ok(files)
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
