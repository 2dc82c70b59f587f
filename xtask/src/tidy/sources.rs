//! The files that people read: sources and documents of the workspace.

use std::path::{Path, PathBuf};

/// A file, with its path from the root of the workspace.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Names of the files that are looked at, by how they end.
const READ: &[&str] = &["rs", "md", "c", "h", "py", "pyi"];

impl Source {
    pub(crate) fn ends_with(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|own| own == extension)
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.ends_with("rs")
    }
}

/// All of them, in the order of their paths. Hidden directories, and those that builds make, are left out.
pub(crate) fn read(root: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_symlink() || name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                if name != "target" && name != "node_modules" && name != "__pycache__" {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|own| READ.iter().any(|read| own == *read)) {
                let text =
                    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
                sources.push(Source { path, text });
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}
