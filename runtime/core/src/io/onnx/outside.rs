//! Elements that lie in files beside the one of the graph, of which the graph names places.

use super::super::files;
use super::wire::Fields;
use super::{Attribute, Graph, Model, Node, Tensor};
use crate::fault::{Fault, shown};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Files that one graph may name.
const FILES_MAX: usize = 1024;

/// A part of a file beside the graph's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// Relative to the folder of the graph's file.
    pub location: &'a str,
    pub offset: u64,
    /// `None`: up to the end.
    pub length: Option<u64>,
}

impl<'a> Place<'a> {
    /// Takes in an entry, a key and its value.
    pub fn set(&mut self, entry: &'a [u8]) -> Result<(), String> {
        let (mut key, mut value) = ("", "");
        for field in Fields::of(entry) {
            match field? {
                (1, f) => key = f.text()?,
                (2, f) => value = f.text()?,
                _ => {}
            }
        }
        let number = || value.parse().map_err(|_| format!("a tensor has the {key} `{value}` in another file"));
        match key {
            "location" => self.location = value,
            "offset" => self.offset = number()?,
            "length" => self.length = Some(number()?),
            // A checksum is what some files have, too; others are not known.
            _ => {}
        }
        Ok(())
    }
}

/// The files that tensors name, mapped.
pub struct Beside {
    maps: BTreeMap<String, memmap2::Mmap>,
}

/// Maps every file that a graph names, which lies in the folder of `path` or below it.
///
/// # Errors
/// E0706 for what cannot be read, E0707 for a name that leads out of the folder or is none.
pub fn beside(model: &Model, path: &Path) -> Result<Beside, Fault> {
    let mut all = vec![];
    model.all_tensors(&mut all);
    let mut maps = BTreeMap::new();
    for t in all.into_iter().filter(|t| t.outside) {
        let location = t.place.location;
        if maps.contains_key(location) {
            continue;
        }
        let bad = |why: String| {
            let (path, key) = (shown(path), t.shown_key());
            Fault::new(707, format!("`{path}` is not a readable ONNX file: tensor `{key}` {why}"))
        };
        if maps.len() >= FILES_MAX {
            return Err(bad(format!("lies in one more file than {FILES_MAX}")));
        }
        let found = inside(path, location).map_err(bad)?;
        let none = || bad(format!("lies in `{}`, which is empty or no file", shown(&found)));
        if is_stream(&found) {
            return Err(none());
        }
        let (reader, len) = files::open(&found)?;
        if !reader.get_ref().metadata().is_ok_and(|m| m.is_file()) || len == 0 {
            return Err(none());
        }
        // SAFETY: the mapping lives as long as the model that reads it; a file that shrinks meanwhile is the one
        // hazard of every memory mapping.
        let map = unsafe { memmap2::Mmap::map(reader.get_ref()) }.map_err(|e| files::read_fault(&found, &e))?;
        maps.insert(location.to_owned(), map);
    }
    Ok(Beside { maps })
}

/// Whether a path names what is no file on a disk, a pipe say: opening it may wait for ever.
pub fn is_stream(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// The file that a name stands for: below the folder of `path`, also where links lead elsewhere.
fn inside(path: &Path, location: &str) -> Result<PathBuf, String> {
    let name = Path::new(location);
    let plain = stays(name);
    // What separates names elsewhere is part of none here.
    if !plain || location.contains(['\\', '\0', ':']) {
        return Err(format!("lies in `{}`, which is no name of a file beside it", shown(name)));
    }
    let found = path.parent().unwrap_or(Path::new("")).join(name);
    // A file that is not there is told when it is opened.
    let Ok(real) = found.canonicalize() else { return Ok(found) };
    let folder = |p: &Path| match p.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.canonicalize().ok(),
        _ => Path::new(".").canonicalize().ok(),
    };
    // Stores of models have links to files that lie together elsewhere.
    let own = path.canonicalize().ok();
    let folders = [folder(path), own.as_deref().and_then(folder)];
    match folders.iter().flatten().any(|f| real.starts_with(f)) {
        true => Ok(found),
        false => Err(format!("lies in `{}`, a link that leads out of the folder", shown(name))),
    }
}

/// Whether a name is that of something in the folder, on the way there, too.
fn stays(name: &Path) -> bool {
    let down = |depth: usize, part| match part {
        Component::Normal(_) => depth.checked_add(1),
        Component::CurDir => Some(depth),
        Component::ParentDir => depth.checked_sub(1),
        Component::RootDir | Component::Prefix(_) => None,
    };
    name.components().try_fold(0, down).is_some_and(|depth| depth > 0)
}

/// Gives every tensor whose elements lie elsewhere its bytes.
///
/// # Errors
/// A part that its file does not have, lower case, without a full stop.
pub fn attach<'a>(model: &mut Model<'a>, beside: &'a Beside) -> Result<(), String> {
    in_graph(&mut model.graph, beside)?;
    for f in &mut model.functions {
        in_nodes(&mut f.nodes, beside)?;
        f.defaults.iter_mut().try_for_each(|(_, a)| in_attribute(a, beside))?;
    }
    Ok(())
}

fn in_graph<'a>(graph: &mut Graph<'a>, beside: &'a Beside) -> Result<(), String> {
    graph.tensors.iter_mut().try_for_each(|t| in_tensor(t, beside))?;
    in_nodes(&mut graph.nodes, beside)
}

fn in_nodes<'a>(nodes: &mut [Node<'a>], beside: &'a Beside) -> Result<(), String> {
    for node in nodes {
        node.attributes.iter_mut().try_for_each(|(_, a)| in_attribute(a, beside))?;
        if let Some(body) = &mut node.body {
            in_nodes(&mut body.nodes, beside)?;
            body.defaults.iter_mut().try_for_each(|(_, a)| in_attribute(a, beside))?;
        }
    }
    Ok(())
}

fn in_attribute<'a>(attribute: &mut Attribute<'a>, beside: &'a Beside) -> Result<(), String> {
    match attribute {
        Attribute::Tensor(t) => in_tensor(t, beside),
        Attribute::Graph(g) => in_graph(g, beside),
        _ => Ok(()),
    }
}

fn in_tensor<'a>(t: &mut Tensor<'a>, beside: &'a Beside) -> Result<(), String> {
    if !t.outside {
        return Ok(());
    }
    let Some(map) = beside.maps.get(t.place.location) else {
        // A file that was read without those beside it.
        return Ok(());
    };
    let Place { location, offset, length } = t.place;
    let end = length.map_or(Some(map.len() as u64), |n| offset.checked_add(n));
    let part = || map.get(usize::try_from(offset).ok()?..usize::try_from(end?).ok()?);
    let Some(part) = part() else {
        let length = length.map_or("all".into(), |n| n.to_string());
        let (key, len) = (t.shown_key(), map.len());
        return Err(format!(
            "tensor `{key}` has {length} bytes from byte {offset} on in `{}`, which has {len}",
            shown(Path::new(location))
        ));
    };
    t.raw = Some(part);
    t.outside = false;
    // Of elements without a counterpart it is not known how many bytes they have; they are refused where they are used.
    if t.dtype().is_ok() { t.counted(part.len()) } else { Ok(()) }
}
