//! Checkpoints that are written while the program goes on.
//!
//! A save keeps the tensors that it is given, which costs no copy: a value that others hold is not changed in place. A
//! thread writes them. The program waits for it before its next save, before anything else that has to do with files, and
//! at its end; then a failure is told, at the place of the save. At most one save is on its way.
//!
//! Of several processes each writes its part; at the first step after all are done the first one is told so, and puts the
//! file of the checkpoint in its place.

use super::manifest::{self, Manifest};
use super::{part, sums};
use crate::dry_run;
use crate::fault::Fault;
use crate::io::safetensors::{self, Content};
use crate::io::{files, replace, sandbox};
use crate::pending_save::{self, Commit, Saving};
use crate::tensor::bytes_of;
use crate::world::step::What;
use crate::world::{self, World};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError};

/// Smaller values are written before the program goes on: a thread would not pay.
const BACKGROUND_BYTES_MIN: u64 = 1 << 20;

/// Saves a value's content.
///
/// # Errors
/// Those of a save before it; E0706 where this one is done at once.
pub fn save(path: &Path, content: Content, span: u32) -> Result<(), Fault> {
    pending_save::finish()?;
    if dry_run::is_on() {
        return Ok(());
    }
    let size = |t: &crate::tensor::Tensor| bytes_of(t.dtype, &t.shape).unwrap_or(u64::MAX);
    let bytes = content.tensors.values().map(size).fold(0, u64::saturating_add);
    let parted = content.tensors.values().any(|t| t.parts.is_some());
    if sandbox::is_on() || replace::is_stream(path) {
        return safetensors::write(path, &gathered(content)?);
    }
    let ready = || replace::try_at(path).map_err(|e| files::write_fault(path, &e));
    let saving = match world::world() {
        Some(w) if parted => {
            let ready = if w.rank() == 0 { ready() } else { Ok(()) };
            let ready = ready.and_then(|()| part::prepare(path));
            // The first process has it for all.
            let claim = if w.rank() == 0 { ready.and_then(|()| part::claim(path)) } else { ready.map(|()| None) };
            in_parts(w, path, content, claim, span)?
        }
        Some(w) => {
            // Every process has all of it.
            let name = path.to_string_lossy();
            w.once(&name, ready)?;
            let first = (w.rank() == 0).then_some(content);
            alone(path, first, span)
        }
        None => {
            ready()?;
            alone(path, Some(content), span)
        }
    };
    pending_save::begin(saving);
    if bytes < BACKGROUND_BYTES_MIN { pending_save::finish() } else { Ok(()) }
}

/// The content with all tensors on one device.
fn gathered(mut content: Content) -> Result<Content, Fault> {
    content.tensors.values_mut().try_for_each(|t| t.whole().map(|whole| *t = whole))?;
    Ok(content)
}

/// Writes one file, with all that this process has.
fn alone(path: &Path, content: Option<Content>, span: u32) -> Saving {
    let path = path.to_owned();
    let write = move || match content {
        Some(content) => {
            whole_file(&path, content)?;
            // Parts that another program is writing are no leftovers.
            if part::claim(&path).is_ok() {
                part::clear(&path, &[]);
            }
            Ok(())
        }
        None => Ok(()),
    };
    Saving { span, job: pending_save::start(write), commit: Arc::default() }
}

/// Puts the file of a checkpoint in its place.
fn whole_file(path: &Path, mut content: Content) -> Result<(), Fault> {
    sums::add(&mut content)?;
    safetensors::write_here(path, &content)
}

/// Writes what this process has of a checkpoint of several, and prepares the rest.
fn in_parts(
    w: &'static World,
    path: &Path,
    mut content: Content,
    claim: Result<Option<File>, Fault>,
    span: u32,
) -> Result<Saving, Fault> {
    let parted: Vec<_> = content.tensors.iter().filter(|(_, t)| t.parts.is_some()).collect();
    let manifest = Manifest::share_out(parted.iter().copied(), w.size(), |d, count| w.owner(d, count));
    let text = serde_json::to_string(&manifest).map_err(|e| Fault::new(706, e.to_string()))?;
    let what = world::hash(&[path.to_string_lossy().as_bytes(), text.as_bytes()]);
    let told = w.agree(What::Write, what, claim.is_err(), 0);
    let claim = claim.and_then(|claim| told.map(|_| claim))?;
    let mut mine = Content::default();
    for (name, t) in parted {
        let blocks = manifest.tensors.get(name).map_or(&[][..], |t| &t.blocks);
        for block in blocks.iter().filter(|b| b.file == w.rank()) {
            if let Some(held) = t.block_here(&block.place()) {
                mine.tensors.insert(block.name(name), held);
            }
        }
    }
    content.tensors.retain(|_, t| t.parts.is_none());
    let written: Arc<OnceLock<Vec<u8>>> = Arc::default();
    let commit = Commit::default();
    let job = {
        let (path, written, rank, size) = (path.to_owned(), written.clone(), w.rank(), w.size());
        pending_save::start(move || {
            let hash = part::write(&path, rank, size, mine)?;
            let _ = written.set(hash.into_bytes());
            Ok(())
        })
    };
    let first = (w.rank() == 0).then_some(content);
    let (path, slot) = (path.to_owned(), commit.clone());
    w.when_all(
        written,
        std::boxed::Box::new(move |hashes| {
            if let Some(content) = first {
                let job = pending_save::start(move || {
                    let outcome = together(&path, content, manifest, &hashes);
                    drop(claim);
                    outcome
                });
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
            }
        }),
    );
    Ok(Saving { span, job, commit })
}

/// All parts are on the disk: the file of the checkpoint names them and takes its place, and what it does not name goes.
fn together(path: &Path, mut content: Content, mut manifest: Manifest, hashes: &[Vec<u8>]) -> Result<(), Fault> {
    let name = |(rank, hash): (usize, &Vec<u8>)| part::name(rank, hashes.len(), &String::from_utf8_lossy(hash));
    manifest.files = hashes.iter().enumerate().map(name).collect();
    let text = serde_json::to_string(&manifest).map_err(|e| Fault::new(706, e.to_string()))?;
    content.texts.insert(manifest::KEY.into(), text);
    whole_file(path, content)?;
    part::clear(path, &manifest.files);
    Ok(())
}
