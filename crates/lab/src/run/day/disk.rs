//! A disk of its own for a store, so small that it can be filled.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::ending::{Ends, starting};
use crate::run::rig::RigError;

/// Room for the store of a run, and for what it keeps for deletions.
const SIZE: &str = "size=160m";
/// What a disk is filled with at a time.
const PIECE: usize = 1 << 16;

/// A mounted file system; gone when this is dropped.
pub(super) struct Disk {
    at: PathBuf,
    ends: Option<Ends>,
}

impl Disk {
    /// `None` where this process may not mount.
    pub(super) fn mount(at: &Path) -> Result<Option<Self>, RigError> {
        std::fs::create_dir_all(at).map_err(RigError::io(format!("making {}", at.display())))?;
        let starting = starting();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(at);
        if !command
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
        {
            return Ok(None);
        }
        let mounted = at.to_owned();
        let ends = starting.ends_by(move || unmount(&mounted));
        Ok(Some(Self {
            at: at.to_owned(),
            ends: Some(ends),
        }))
    }

    /// Where a store has its directory.
    pub(super) fn store(&self) -> PathBuf {
        self.at.join("store")
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }

    /// Writes until there is no room.
    pub(super) fn fill(&self) -> Result<(), RigError> {
        let io = || RigError::io("filling the disk");
        let mut file = File::create(self.filler()).map_err(io())?;
        let mut piece = vec![0; PIECE];
        // The last octets as well, by smaller and smaller pieces.
        while !piece.is_empty() {
            match file.write_all(&piece) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    piece.truncate(piece.len() / 2);
                }
                Err(error) => return Err(io()(error)),
            }
        }
        Ok(())
    }

    /// Makes room again.
    pub(super) fn empty(&self) -> Result<(), RigError> {
        std::fs::remove_file(self.filler()).map_err(RigError::io("making room on the disk"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.ends = None;
        unmount(&self.at);
    }
}

fn unmount(at: &Path) {
    let _ = Command::new("umount")
        .arg("--lazy")
        .arg(at)
        .stderr(Stdio::null())
        .status();
}
