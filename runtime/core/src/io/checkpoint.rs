//! Checkpoints: what `io.save` writes and `io.load` reads.
//!
//! A checkpoint is a safetensors file with checksums ([`sums`]). Where a run of several processes saves tensors that lie
//! on a mesh, each process writes its blocks into a file of its own ([`part`]) beside it, and the file itself holds the
//! rest and a [`manifest`] of the parts. It takes its place when all parts are on the disk ([`saving`]), so a path leads
//! to a whole checkpoint or to the one before. Whoever reads one, on any mesh and in any number of processes, reads the
//! blocks that its own devices need.

pub mod manifest;
pub mod sums;
pub mod part;
pub mod saving;

use super::safetensors::{self, Content};
use crate::fault::{Fault, shown};
use crate::mesh::{self, Box};
use crate::tensor::{Parts, Tensor};
use crate::world;
use indexmap::IndexMap;
use manifest::{Blocks, Manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use sums::Sums;
use tessera_base::DType;

/// So often a file is read that others replace meanwhile.
const READS_MAX: usize = 20;

/// Whether a file has a text of its own by this name, beside those that are saved.
pub fn is_own_text(name: &str) -> bool {
    [sums::KEY, manifest::KEY].contains(&name)
}

/// A checkpoint that was opened.
pub struct Checkpoint {
    path: PathBuf,
    /// What the file itself holds.
    content: Content,
    sums: Option<Sums>,
    manifest: Manifest,
    /// By number, of those that were needed so far.
    parts: BTreeMap<usize, (Content, Sums)>,
    /// Tensors of the file and blocks of parts that are as their checksums say.
    checked: BTreeSet<(Option<usize>, String)>,
}

impl Checkpoint {
    /// What `take` gives of a file. Where another checkpoint takes its place meanwhile, the parts of the first one go; then
    /// the other one is read.
    ///
    /// # Errors
    /// Those of [`Checkpoint::open`] and of `take`.
    pub fn read<T>(path: &Path, take: impl Fn(Checkpoint) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut file = Checkpoint::open(path)?;
        for _ in 1..READS_MAX {
            let parts = file.manifest.files.clone();
            let taken = take(file);
            if taken.is_ok() {
                return taken;
            }
            file = match Checkpoint::open(path) {
                Ok(other) if other.manifest.files != parts => other,
                _ => return taken,
            };
        }
        take(file)
    }

    /// # Errors
    /// E0706 and E0707: what is no such file, or whose header is damaged.
    fn open(path: &Path) -> Result<Checkpoint, Fault> {
        let mut content = safetensors::read(path)?;
        let damaged = |what: &str| Fault::new(707, format!("`{}` is damaged: {what}", shown(path)));
        let sums = sums::read(&content);
        if content.texts.contains_key(sums::KEY) && !sums.as_ref().is_some_and(|s| sums::texts_fit(s, &content)) {
            return Err(damaged("its header is not as it was written"));
        }
        content.texts.remove(sums::KEY);
        let manifest = match content.texts.remove(manifest::KEY) {
            None => Manifest::default(),
            Some(text) => serde_json::from_str(&text).map_err(|e| damaged(&format!("its list of parts, {e}")))?,
        };
        if let Some((name, _)) = manifest.tensors.iter().find(|(_, t)| t.dtype().is_none()) {
            return Err(damaged(&format!("its list of parts has no element type of `{}`", shown(name))));
        }
        let path = path.to_owned();
        Ok(Checkpoint { path, content, sums, manifest, parts: BTreeMap::new(), checked: BTreeSet::new() })
    }

    /// The texts beside the tensors.
    pub fn texts(&self) -> &BTreeMap<String, String> {
        &self.content.texts
    }

    /// The names of tensors: those of the file, then those in parts.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.content.tensors.keys().chain(self.manifest.tensors.keys())
    }

    /// Element type and shape of a tensor.
    pub fn form(&self, name: &str) -> Option<(DType, &[u64])> {
        match self.content.tensors.get(name) {
            Some(t) => Some((t.dtype, &t.shape)),
            None => {
                let t = self.manifest.tensors.get(name)?;
                Some((t.dtype()?, &t.shape))
            }
        }
    }

    /// A tensor of the file as another one lies: of one in parts what the devices of this process hold.
    ///
    /// # Errors
    /// E0707 where something is missing or not as it was written, E0710.
    pub fn tensor(&mut self, name: &str, like: Option<&Parts>) -> Result<Tensor, Fault> {
        let Some((dtype, shape)) = self.form(name).map(|(dtype, shape)| (dtype, shape.to_vec())) else {
            return Err(self.damaged(name));
        };
        let Some(Parts { layout, .. }) = like else {
            return match self.content.tensors.get(name) {
                Some(t) => {
                    let t = t.clone();
                    self.check(None, name, &t)?;
                    Ok(t)
                }
                None => self.cut(name, dtype, &Box::all(&shape)),
            };
        };
        let devices = layout.mesh.as_ref().map_or(1, |m| m.devices() as usize);
        let mut cuts: Vec<(Box, Tensor)> = vec![];
        let mut parts = vec![];
        for device in world::mine(devices) {
            let held = Box::of(layout, &shape, device);
            let known = cuts.iter().find(|(at, _)| *at == held).map(|c| c.1.clone());
            let cut = match known {
                Some(cut) => cut,
                None => {
                    let cut = self.cut(name, dtype, &held)?;
                    cuts.push((held, cut.clone()));
                    cut
                }
            };
            parts.push(cut);
        }
        Ok(Tensor::in_parts(dtype, shape, Parts { layout: layout.clone(), parts })?)
    }

    /// All tensors on one device, by name.
    pub fn whole(mut self) -> Result<IndexMap<String, Tensor>, Fault> {
        let mut names: Vec<String> = self.names().cloned().collect();
        names.sort();
        names.into_iter().map(|name| self.tensor(&name, None).map(|t| (name, t))).collect()
    }

    /// The elements of a box.
    fn cut(&mut self, name: &str, dtype: DType, wanted: &Box) -> Result<Tensor, Fault> {
        // A box that no file covers must not show what was in memory before.
        let mut out = Tensor::new(dtype, &wanted.size, true)?;
        let to = out.host_mut()?;
        let (mut got, mut covered, path) = (0, vec![], self.path.clone());
        let mut put = |t: &Tensor, lies: &Box| -> Result<(), Fault> {
            if let Some(common) = lies.common(wanted) {
                // Blocks that overlap would leave a hole elsewhere.
                if covered.iter().any(|other: &Box| other.common(&common).is_some()) {
                    return Err(damaged(&path, name));
                }
                let (a, b) = (common.within(lies), common.within(wanted));
                mesh::copy_box(t.host()?, (&t.shape, &a), to, (&wanted.size, &b), dtype.bytes());
                got += common.elems();
                covered.push(common);
            }
            Ok(())
        };
        if let Some(t) = self.content.tensors.get(name).cloned() {
            self.check(None, name, &t)?;
            put(&t, &Box::all(&t.shape))?;
        } else {
            let blocks = self.manifest.tensors.get(name).map_or(vec![], |t: &Blocks| t.blocks.clone());
            for block in blocks {
                let lies = block.place();
                if lies.common(wanted).is_none() {
                    continue;
                }
                let t = self.block(block.file, &block.name(name))?;
                if (t.dtype, &t.shape) != (dtype, &lies.size) {
                    return Err(self.damaged(name));
                }
                put(&t, &lies)?;
            }
        }
        if got == wanted.elems() { Ok(out) } else { Err(self.damaged(name)) }
    }

    /// A block of a file of parts.
    fn block(&mut self, file: usize, name: &str) -> Result<Tensor, Fault> {
        if !self.parts.contains_key(&file) {
            let Some(named) = self.manifest.files.get(file) else { return Err(self.damaged(name)) };
            let content = part::read(&self.path, named)?;
            let sums = sums::read(&content).unwrap_or_default();
            self.parts.insert(file, (content, sums));
        }
        let t = self.parts.get(&file).and_then(|(content, _)| content.tensors.get(name)).cloned();
        let t = t.ok_or_else(|| self.damaged(name))?;
        self.check(Some(file), name, &t)?;
        Ok(t)
    }

    /// Compares a tensor of a file with its checksum, where the file has any.
    fn check(&mut self, file: Option<usize>, name: &str, t: &Tensor) -> Result<(), Fault> {
        let sums = match file {
            None => self.sums.as_ref(),
            Some(file) => self.parts.get(&file).map(|part| &part.1),
        };
        let Some(sums) = sums else { return Ok(()) };
        let key = (file, name.to_owned());
        if self.checked.contains(&key) {
            return Ok(());
        }
        if sums.get(name) != Some(&sums::of_tensor(t)?) {
            let part = file.and_then(|file| self.manifest.files.get(file));
            let path = part.map_or(self.path.clone(), |name| part::folder(&self.path).join(name));
            return Err(damaged(&path, name));
        }
        self.checked.insert(key);
        Ok(())
    }

    fn damaged(&self, name: &str) -> Fault {
        damaged(&self.path, name)
    }
}

fn damaged(path: &Path, name: &str) -> Fault {
    Fault::new(707, format!("`{}` is damaged: `{}` is not as it was written", shown(path), shown(name)))
}
