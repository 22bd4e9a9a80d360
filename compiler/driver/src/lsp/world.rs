//! What the server knows: the database, the texts, what was found wrong, and how positions are counted.

use super::documents::{Documents, Open};
use super::known::{Key, Known};
use crate::program::Setup;
use lsp_types::{Location, Position, Range, Uri};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_base::{Diagnostic, FileId, Span};
use tessera_ide::analysis::{Analysis, Place};
use tessera_ide::complete::Completion;
use tessera_ide::library;
use tessera_ide::lines::{self, Lines, Units};
use tessera_infer::Checked;
use tessera_infer::db::{Database, Db, Target};
use tessera_ir::graph::Policy;
use tessera_resolve::source::SourceMap;
use tessera_runtime::io::replace::{Durability, replace};

/// What checking a program has given.
pub struct Found {
    pub diagnostics: Vec<Diagnostic>,
    pub sources: SourceMap,
    pub kept: Vec<(Span, Arc<str>)>,
}

impl Found {
    pub fn of(checked: Checked) -> Found {
        Found { diagnostics: checked.diagnostics, sources: checked.sources, kept: checked.kept }
    }
}

pub struct World {
    pub db: Database,
    pub documents: Documents,
    pub units: Units,
    /// Folders that the client works in.
    pub folders: Vec<PathBuf>,
    /// Of the programs of open files.
    pub found: BTreeMap<FileId, Arc<Found>>,
    /// A text was given to the database: whoever was reading it has stopped.
    pub touched: bool,
    /// What was offered last, of which file.
    pub offered: (FileId, Vec<Completion>),
    /// The colours of open files that the client has, with the name of that answer.
    pub colored: BTreeMap<FileId, (String, Vec<u32>)>,
    /// Counts the changes of texts.
    pub state: u64,
    /// What becomes of functions, and of which ones somebody wants to know it.
    pub known: BTreeMap<Key, Known>,
    pub wanted: VecDeque<Key>,
    /// Where the texts of the standard library lie, for the client to open.
    pub library: PathBuf,
}

/// Files of the folders that are looked at beside the open ones.
const FILES_MAX: usize = 5_000;

impl World {
    pub fn new(setup: &Setup, units: Units, folders: Vec<PathBuf>) -> World {
        let policy = Policy::parse(&setup.global.policy).unwrap_or_default();
        World {
            db: Database::with(setup.limits(), policy, setup.global.mesh.clone()),
            documents: Documents::default(),
            units,
            folders,
            found: BTreeMap::new(),
            touched: false,
            offered: (FileId(0), vec![]),
            colored: BTreeMap::new(),
            state: 0,
            known: BTreeMap::new(),
            wanted: VecDeque::new(),
            library: crate::cache::DiskCache::default_dir()
                .unwrap_or_else(std::env::temp_dir)
                .join(format!("std-{}", env!("CARGO_PKG_VERSION"))),
        }
    }

    /// The path under which the database knows a document.
    pub fn path(&self, uri: &Uri) -> String {
        let Ok(path) = uri.to_file_path() else { return uri.to_string() };
        match path.strip_prefix(&self.library).ok().and_then(|rest| rest.to_str()) {
            Some(rest) if library::FILES.iter().any(|(_, name, _)| *name == format!("std/{rest}")) => {
                format!("std/{rest}")
            }
            _ => path.to_string_lossy().into_owned(),
        }
    }

    /// The address of a file for the client. A text of the standard library is written where the client can read it.
    pub fn uri(&self, path: &str) -> Option<Uri> {
        if let Some(open) = self.documents.open.get(path) {
            return Some(open.uri.clone());
        }
        if let Some((_, name, text)) = library::FILES.iter().find(|(_, name, _)| *name == path) {
            let file = self.library.join(name.strip_prefix("std/")?);
            if std::fs::read(&file).ok().as_deref() != Some(text.as_bytes()) {
                write(&file, text).ok()?;
            }
            return Uri::from_file_path(file).ok();
        }
        // What stands for a model has no file of its own.
        if path.ends_with(".onnx") {
            return None;
        }
        Uri::from_file_path(path).ok().or_else(|| Uri::parse(path).ok())
    }

    /// The file of a document: read if nobody has asked for it yet.
    pub fn file(&mut self, uri: &Uri) -> Option<FileId> {
        let path = self.path(uri);
        if let Some(id) = self.db.file_at(&path) {
            return Some(id);
        }
        let text = self.documents.text(Path::new(&path))?.text;
        Some(self.load(&path, &text))
    }

    /// Gives a file a text, and loads what it imports.
    pub fn load(&mut self, path: &str, text: &str) -> FileId {
        self.touched = true;
        let id = self.db.file_at(path).unwrap_or_else(|| self.db.add_file(path));
        self.state += u64::from(self.db.source_map().file(id).is_none_or(|f| *f.text != *text));
        self.db.set_text(id, text);
        self.db.load_imports(id, &self.documents);
        id
    }

    /// What the imports of a file lead to.
    pub fn imports_of(&self, path: &str) -> Option<Arc<BTreeMap<Arc<str>, Target>>> {
        let file = self.db.file(self.db.file_at(path)?)?;
        Some(file.imports(&self.db).clone())
    }

    pub fn open(&self, id: FileId) -> Option<&Open> {
        self.documents.open.get(&*self.db.source_map().file(id)?.path)
    }

    pub fn analysis(&self, root: FileId) -> Analysis<'_> {
        Analysis::new(&self.db, root)
    }

    /// The byte of a text at a position of the client.
    pub fn byte(&self, text: &str, at: Position) -> usize {
        Lines::of(text).byte(text, lines::Position { line: at.line, column: at.character }, self.units)
    }

    pub fn bytes(&self, text: &str, range: Range) -> std::ops::Range<usize> {
        let lines = Lines::of(text);
        let byte = |at: Position| lines.byte(text, lines::Position { line: at.line, column: at.character }, self.units);
        let (start, end) = (byte(range.start), byte(range.end));
        start..end.max(start)
    }

    pub fn range(&self, text: &str, range: std::ops::Range<usize>) -> Range {
        Ruler::of(self.units, text).range(range)
    }

    /// Where a place is for the client.
    pub fn location(&self, cx: &Analysis, place: &Place) -> Option<Location> {
        let uri = self.uri(&cx.path(place.file))?;
        Some(Location { uri, range: self.range(&cx.text(place.file), place.range()) })
    }

    /// Every file that a name may be used in: what is open, what that imports, and the files of the client's folders.
    pub fn all_files(&mut self) -> Vec<FileId> {
        let mut paths: Vec<PathBuf> = vec![];
        let mut work = self.folders.clone();
        while let Some(folder) = work.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                let hidden = name.to_string_lossy().starts_with('.') || name == "target" || name == "node_modules";
                match entry.file_type() {
                    Ok(t) if t.is_dir() && !hidden => work.push(path),
                    Ok(t) if t.is_file() && path.extension().is_some_and(|e| e == "tsr") => paths.push(path),
                    _ => {}
                }
            }
            if paths.len() > FILES_MAX {
                break;
            }
        }
        paths.sort();
        for path in paths.into_iter().take(FILES_MAX) {
            if let Some(loaded) = self.documents.text(&path)
                && self.db.file_at(&loaded.path).is_none()
            {
                self.load(&loaded.path, &loaded.text);
            }
        }
        let sources = self.db.source_map();
        let own = sources.files.iter().enumerate().filter(|(_, f)| !f.library);
        own.map(|(i, _)| FileId(i as u32)).collect()
    }
}

/// Writes a text of the library.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    replace(file, Durability::Cached, |e| e, |to| to.write_all(text.as_bytes()))
}

/// Positions of one text.
pub struct Ruler<'t> {
    units: Units,
    text: &'t str,
    lines: Lines,
}

impl<'t> Ruler<'t> {
    pub fn of(units: Units, text: &'t str) -> Ruler<'t> {
        Ruler { units, text, lines: Lines::of(text) }
    }

    pub fn position(&self, byte: usize) -> Position {
        let at = self.lines.position(self.text, byte, self.units);
        Position { line: at.line, character: at.column }
    }

    pub fn range(&self, range: std::ops::Range<usize>) -> Range {
        Range { start: self.position(range.start), end: self.position(range.end) }
    }
}
