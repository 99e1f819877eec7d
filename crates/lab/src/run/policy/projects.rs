//! The policy projects of a run: those of `examples/policy`, and for AM and UE policies projects of the same complexity where
//! the examples have none.

use std::path::{Path, PathBuf};

use crate::run::rig::{Place, RigError};
use callmodel::policy::Complexity;

const LOW: &[(&str, &str)] = &[(
    "project.yaml",
    include_str!("../../../../../examples/policy/low/project.yaml"),
)];
/// The example of medium complexity is one for access and mobility.
const MEDIUM_AM: &[(&str, &str)] = &[(
    "project.yaml",
    include_str!("../../../../../examples/policy/medium/project.yaml"),
)];
const HIGH: &[(&str, &str)] = &[
    (
        "project.yaml",
        include_str!("../../../../../examples/policy/high/project.yaml"),
    ),
    (
        "parts.yaml",
        include_str!("../../../../../examples/policy/high/parts.yaml"),
    ),
];
const UE: &[(&str, &str)] = &[("project.yaml", include_str!("ue.yaml"))];
const HIGH_AM: &[(&str, &str)] = &[("project.yaml", include_str!("am-high.yaml"))];
const HIGH_UE: &[(&str, &str)] = &[("project.yaml", include_str!("ue-high.yaml"))];

/// Folders of projects.
pub(in crate::run) struct Folders {
    pub(in crate::run) sm: PathBuf,
    pub(in crate::run) am: PathBuf,
    pub(in crate::run) ue: PathBuf,
}

/// Writes the projects of a run.
pub(in crate::run) fn write(complexity: Complexity, place: &Place) -> Result<Folders, RigError> {
    let folder = place.folder.join("projects");
    let (sm, am, ue) = match complexity {
        Complexity::Low | Complexity::Medium => (LOW, MEDIUM_AM, UE),
        Complexity::High => (HIGH, HIGH_AM, HIGH_UE),
    };
    Ok(Folders {
        sm: project(&folder, "sm", sm)?,
        am: project(&folder, "am", am)?,
        ue: project(&folder, "ue", ue)?,
    })
}

fn project(folder: &Path, service: &str, files: &[(&str, &str)]) -> Result<PathBuf, RigError> {
    let folder = folder.join(service);
    std::fs::create_dir_all(&folder).map_err(RigError::io(format!("making {}", folder.display())))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(RigError::io(format!("writing {}", path.display())))?;
    }
    // The configuration that names it lies elsewhere.
    Ok(std::path::absolute(&folder).unwrap_or(folder))
}
