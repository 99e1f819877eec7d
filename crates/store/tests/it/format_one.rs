//! Directories as earlier releases wrote them; also for tests of functions.

use std::path::Path;

/// Makes of a directory what an earlier release would have written.
pub(crate) fn make_older(directory: &Path) {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    for file in paths.filter(|path| path.extension().is_some_and(|end| end == "log")) {
        let bytes = std::fs::read(&file).unwrap();
        let mut older = bytes[..16].to_vec();
        older[7] = 1;
        older[12..].fill(0);
        let mut at = 16;
        while at < bytes.len() {
            let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let length = usize::try_from(number(at + 4)).unwrap();
            let mut entry = bytes[at..at + length.next_multiple_of(8)].to_vec();
            at += entry.len();
            // Heads of groups and the end are new, and so is the second flag.
            if entry[8] <= 2 {
                entry[9] &= 1;
                let checksum = crc32fast::hash(&entry[4..length]);
                entry[..4].copy_from_slice(&checksum.to_le_bytes());
                older.extend(entry);
            }
        }
        std::fs::write(&file, older).unwrap();
    }
    std::fs::remove_file(directory.join("store.mark")).unwrap();
    let path = directory.join("store.json");
    let mut catalogue: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    catalogue["format"] = 1.into();
    catalogue.as_object_mut().unwrap().remove("checksum");
    std::fs::write(&path, catalogue.to_string()).unwrap();
}
