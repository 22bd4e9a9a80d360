//! Texts: those that the client has open, and those on disk, each read again only when the file has changed.

use crate::files::Disk;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tessera_ide::library;
use tessera_resolve::source::{Loaded, Loader, Refused};

/// A text that the client has open, by the path under which the database knows it.
#[derive(Clone, Debug)]
pub struct Open {
    pub uri: lsp_types::Uri,
    pub text: Arc<str>,
    pub version: i32,
}

/// When a file was written, and how long it is.
type Stamp = (Option<SystemTime>, u64);

#[derive(Default)]
pub struct Documents {
    pub open: BTreeMap<String, Open>,
    /// Files that were read, by path.
    read: RefCell<BTreeMap<PathBuf, (Stamp, Option<Loaded>)>>,
    /// Models that were translated, by program and path.
    models: RefCell<BTreeMap<(String, String), (Stamp, Result<Loaded, Refused>)>>,
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    meta.is_file().then(|| (meta.modified().ok(), meta.len()))
}

impl Documents {
    /// The text of a path: what the client has open, else what is on disk.
    pub fn text(&self, path: &Path) -> Option<Loaded> {
        let name = path.to_string_lossy();
        if let Some(open) = self.open.get(&*name) {
            return Some(Loaded { path: (*name).into(), text: open.text.clone() });
        }
        let now = stamp(path)?;
        if let Some((then, loaded)) = self.read.borrow().get(path)
            && *then == now
        {
            return loaded.clone();
        }
        let loaded = crate::files::read_source(path).ok();
        self.read.borrow_mut().insert(path.to_owned(), (now, loaded.clone()));
        loaded
    }
}

impl Loader for Documents {
    fn sibling(&self, importer: &str, module: &str) -> Option<Loaded> {
        let mut path: PathBuf = Path::new(importer).parent().unwrap_or(Path::new("")).to_owned();
        path.extend(module.split('.'));
        path.set_extension("tsr");
        self.text(&path)
    }

    fn std(&self, module: &str) -> Option<Loaded> {
        let (_, path, text) = library::FILES.iter().find(|(name, ..)| *name == module)?;
        Some(Loaded { path: (*path).into(), text: (*text).into() })
    }

    fn model(&self, program: &str, path: &str) -> Result<Loaded, Refused> {
        let file = crate::files::model_path(program, path)?;
        let Some(now) = stamp(Path::new(&file)) else { return Disk.model(program, path) };
        let key = (program.to_owned(), path.to_owned());
        if let Some((then, made)) = self.models.borrow().get(&key)
            && *then == now
        {
            return made.clone();
        }
        let made = Disk.model(program, path);
        self.models.borrow_mut().insert(key, (now, made.clone()));
        made
    }
}
