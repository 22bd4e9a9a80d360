//! Source texts: where imported files come from, and where items lie in them.

use std::ops::Range;
use std::sync::Arc;
pub use tessera_base::FileId;
use tessera_base::{Code, ItemId, Span};

/// The text of a file that an import names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// As diagnostics show it.
    pub path: Arc<str>,
    pub text: Arc<str>,
}

/// Finds imported files. The checker itself reads none.
pub trait Loader {
    /// `import a.b` in the file `importer`: the sibling `a/b.tsr`.
    fn sibling(&self, importer: &str, module: &str) -> Option<Loaded>;

    /// `std.nn`, as `nn`: a file of the standard library.
    fn std(&self, module: &str) -> Option<Loaded>;

    /// `io.read_onnx(path)` in a program whose main file is `program`: the model as a module. The path may
    /// hold [`PROGRAM_FOLDER`] and names between [`FETCHED`].
    fn model(&self, program: &str, path: &str) -> Result<Loaded, Refused>;
}

/// In the path of a model: where `sys.dir` stood, and around the name in `fetched("name")`.
pub const PROGRAM_FOLDER: char = '\u{1}';
pub const FETCHED: char = '\u{2}';

/// Why a model has no module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refused {
    pub code: Code,
    pub message: String,
    pub notes: Vec<String>,
}

/// A loader that finds nothing.
pub struct NoFiles;

impl Loader for NoFiles {
    fn sibling(&self, _: &str, _: &str) -> Option<Loaded> {
        None
    }

    fn std(&self, _: &str) -> Option<Loaded> {
        None
    }

    fn model(&self, _: &str, _: &str) -> Result<Loaded, Refused> {
        Err(Refused { code: Code::E0706, message: "no files can be read here".into(), notes: vec![] })
    }
}

#[derive(Clone, Debug)]
pub struct SourceText {
    pub path: Arc<str>,
    pub text: Arc<str>,
    /// Of the standard library.
    pub library: bool,
}

/// A picture of all texts: turns spans into places.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    pub files: Vec<SourceText>,
    /// The file of each item and the byte at which the item begins.
    pub(crate) items: Vec<(FileId, u32)>,
    /// Files that are shown with another text than was checked.
    shown: Vec<(FileId, Shown)>,
}

/// How the text that is checked stands in the one that is shown: it begins with it, and parts of what
/// follows are taken from it.
#[derive(Clone, Debug, Default)]
struct Shown {
    same: usize,
    parts: Vec<Taken>,
}

/// A part of the checked text that is taken from the shown one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Bytes of the checked text, with what stands around the part there.
    pub whole: Range<usize>,
    /// Where the part begins in the checked text.
    pub start: usize,
    /// Its bytes in the shown text.
    pub from: Range<usize>,
}

impl Shown {
    fn shown_byte(&self, byte: usize) -> Option<usize> {
        if byte <= self.same {
            return Some(byte);
        }
        let part = self.parts.iter().find(|p| p.whole.contains(&byte))?;
        Some((part.from.start + byte.saturating_sub(part.start)).min(part.from.end))
    }
}

impl SourceMap {
    pub fn new(files: Vec<SourceText>, items: Vec<(FileId, u32)>) -> SourceMap {
        SourceMap { files, items, shown: vec![] }
    }

    /// From here on shows another text for the file of a path: the first `same` bytes are those that
    /// were checked, and these parts of the others stand in it elsewhere. The rest has no place.
    pub fn show(&mut self, path: &str, text: Arc<str>, same: usize, parts: Vec<Taken>) {
        if let Some(i) = self.files.iter().position(|f| *f.path == *path) {
            self.files[i].text = text;
            self.shown.push((FileId(i as u32), Shown { same, parts }));
        }
    }

    pub fn file(&self, id: FileId) -> Option<&SourceText> {
        self.files.get(id.0 as usize)
    }

    /// The items of the standard library.
    pub fn library_items(&self) -> std::collections::BTreeSet<ItemId> {
        let library = |file: &FileId| self.file(*file).is_some_and(|f| f.library);
        let items = self.items.iter().enumerate().filter(|(_, (file, _))| library(file));
        items.map(|(i, _)| ItemId(i as u32)).collect()
    }

    /// File and byte range of a span. `None` for spans that belong to no text.
    pub fn locate(&self, span: Span) -> Option<(FileId, Range<usize>)> {
        let (file, start) = *self.items.get(span.item.0 as usize)?;
        let length = self.file(file)?.text.len();
        let (mut from, mut to) = (start as usize + span.start as usize, start as usize + span.end as usize);
        if let Some((_, shown)) = self.shown.iter().find(|(f, _)| *f == file) {
            // The last byte, since a part may end where another begins.
            to = if to > from { shown.shown_byte(to - 1)? + 1 } else { shown.shown_byte(to)? };
            from = shown.shown_byte(from)?;
        }
        Some((file, from.min(length)..to.max(from).min(length)))
    }

    /// Line and column of a span's start, from 1; columns count characters.
    pub fn line_col(&self, span: Span) -> Option<(FileId, usize, usize)> {
        let (file, range) = self.locate(span)?;
        let text = &self.file(file)?.text;
        let mut start = range.start;
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let col = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Some((file, line, col))
    }

    /// The item that holds a byte of a file, and the byte counted from the item's start.
    pub fn item_at(&self, file: FileId, byte: usize) -> Option<(ItemId, u32)> {
        let found = self
            .items
            .iter()
            .enumerate()
            .filter(|(_, (f, start))| *f == file && *start as usize <= byte)
            .max_by_key(|(_, (_, start))| *start)?;
        Some((ItemId(found.0 as u32), byte as u32 - found.1.1))
    }
}
