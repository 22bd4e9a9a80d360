//! Source files: reading programs, imports beside them, and the standard library that the
//! program carries in itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_ide::library;
use tessera_resolve::source::{FETCHED, Loaded, Loader, PROGRAM_FOLDER, Refused, SourceMap};

use crate::render::{SourceLocation, Sources};

/// Largest source text that is read: offsets inside items are 32 bits.
const SOURCE_BYTES_MAX: u64 = 256 << 20;

/// Reads a program; `-` is standard input. The path is as diagnostics show it.
pub fn read_source(path: &Path) -> Result<Loaded, Diagnostic> {
    let fault =
        |why: String| Diagnostic::new(Code::E0706, Span::NONE, format!("`{}` cannot be read: {why}", path.display()));
    if path == Path::new("-") {
        let text = std::io::read_to_string(std::io::stdin()).map_err(|e| fault(e.to_string()))?;
        return Ok(Loaded { path: "<stdin>.tsr".into(), text: text.into() });
    }
    let meta = std::fs::metadata(path).map_err(|e| missing(path, &e).unwrap_or_else(|| fault(e.to_string())))?;
    if meta.is_dir() {
        return Err(fault("it is a directory".into()));
    }
    if meta.len() > SOURCE_BYTES_MAX {
        return Err(Diagnostic::new(
            Code::E0901,
            Span::NONE,
            format!("`{}` has {} bytes; a program may have {SOURCE_BYTES_MAX}", path.display(), meta.len()),
        ));
    }
    let bytes = std::fs::read(path).map_err(|e| fault(e.to_string()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Loaded { path: path.to_string_lossy().into(), text: text.into() }),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let line = e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            Err(Diagnostic::new(
                Code::E0001,
                Span::NONE,
                format!("`{}` is not UTF-8 text: byte {at} (line {line}) is part of no character", path.display()),
            ))
        }
    }
}

/// A missing file, with the file that was probably meant.
fn missing(path: &Path, e: &std::io::Error) -> Option<Diagnostic> {
    if e.kind() != std::io::ErrorKind::NotFound {
        return None;
    }
    let mut d = Diagnostic::new(Code::E0706, Span::NONE, format!("there is no file `{}`", path.display()));
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .take(10_000)
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|n| n.ends_with(".tsr"));
    names.sort();
    let name = path.file_name()?.to_string_lossy().into_owned();
    if let Some(near) = tessera_base::nearest(&name, names.iter().map(String::as_str)) {
        d = d.help(format!("did you mean `{}`?", path.with_file_name(near).display()));
    }
    Some(d)
}

/// Imports: files beside the importer, and the standard library.
pub struct Disk;

impl Loader for Disk {
    fn sibling(&self, importer: &str, module: &str) -> Option<Loaded> {
        let dir = Path::new(importer).parent().unwrap_or(Path::new(""));
        let mut path: PathBuf = dir.to_owned();
        path.extend(module.split('.'));
        path.set_extension("tsr");
        path.is_file().then(|| read_source(&path).ok()).flatten()
    }

    fn std(&self, module: &str) -> Option<Loaded> {
        let (_, path, text) = library::FILES.iter().find(|(name, ..)| *name == module)?;
        Some(Loaded { path: (*path).into(), text: (*text).into() })
    }

    fn model(&self, program: &str, path: &str) -> Result<Loaded, Refused> {
        let path = model_path(program, path)?;
        let made = tessera_onnx::module(&path);
        let text = made.map_err(|r| Refused { code: r.code, message: r.message, notes: r.notes })?;
        Ok(Loaded { path: path.into(), text: text.into() })
    }
}

/// The path of a model with what `sys.dir` and `fetched` stand for.
pub fn model_path(program: &str, path: &str) -> Result<String, Refused> {
    let folder = Path::new(program).parent().map_or(String::new(), |p| p.to_string_lossy().into_owned());
    let folder = if folder.is_empty() { ".".to_owned() } else { folder };
    let mut out = String::new();
    for (i, part) in path.split(FETCHED).enumerate() {
        if i % 2 == 0 {
            out.push_str(&part.replace(PROGRAM_FOLDER, &folder));
            continue;
        }
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let shared =
            || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")? + "/.cache")).unwrap_or_default() + "/tessera";
        let folder = format!("{}/data/{part}", set("TESSERA_CACHE").unwrap_or_else(shared));
        if !Path::new(&folder).exists() {
            let message = format!("`{part}` is not there yet: `./x fetch {part}` obtains it");
            return Err(Refused { code: Code::E0706, message, notes: vec![format!("it belongs into {folder}")] });
        }
        out.push_str(&folder);
    }
    Ok(out)
}

/// The checker's texts for rendering.
pub struct Texts<'a>(pub &'a SourceMap);

impl Sources for Texts<'_> {
    fn locate(&self, span: Span) -> Option<SourceLocation<'_>> {
        let (file, range) = self.0.locate(span)?;
        let file = self.0.file(file)?;
        Some(SourceLocation { file: &file.path, text: &file.text, start: range.start, end: range.end })
    }
}

/// No texts: for diagnostics without a place.
pub struct NoTexts;

impl Sources for NoTexts {
    fn locate(&self, _: Span) -> Option<SourceLocation<'_>> {
        None
    }
}

/// One text, whose spans all belong to one item at its start.
pub struct OneText {
    pub path: Arc<str>,
    pub text: Arc<str>,
}

impl Sources for OneText {
    fn locate(&self, span: Span) -> Option<SourceLocation<'_>> {
        let (start, end) = (span.start as usize, span.end as usize);
        (!span.is_none()).then(|| SourceLocation { file: &self.path, text: &self.text, start, end })
    }
}
