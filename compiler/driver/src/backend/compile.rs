//! Kernels to code of the target: those that the process has, those on disk, and the rest compiled, many
//! at once on the threads of the program. What comes out, messages included, does not depend on which
//! thread was done first.

use super::{Backend, BackendError};
use crate::cache::{DiskCache, Found};
use crate::target::Target;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tessera_abi::plan::Kernel;
use tessera_base::Code;
use tessera_ir::tile;
use tessera_llvm::LlvmError;
use tessera_runtime::profile::stage;

/// A kernel that the process does not have yet.
struct Job<'a> {
    kernel: &'a tile::Kernel,
    key: &'a str,
    /// Of its text: how long compiling takes, roughly.
    length: usize,
}

/// What became of it.
struct Made {
    kernel: Result<Kernel, BackendError>,
    /// How long compiling took; `None` for a kernel of the disk.
    took: Option<Duration>,
    warnings: Vec<String>,
}

impl Backend {
    /// The machine code of kernels, in their order; equal ones are made once.
    ///
    /// Errors: one, whatever the number of kernels that have one; [`BackendError::Interrupted`] where the
    /// program is asked to end meanwhile.
    pub(super) fn machine_code(&self, wanted: &[&tile::Kernel]) -> Result<Vec<Kernel>, BackendError> {
        // Equal groups of a graph share their kernels, so that few need a look at their content.
        let mut number: BTreeMap<*const tile::Kernel, usize> = BTreeMap::new();
        let mut distinct: Vec<&tile::Kernel> = vec![];
        for &k in wanted {
            number.entry(k).or_insert_with(|| {
                distinct.push(k);
                distinct.len() - 1
            });
        }
        let fingerprint = self.fingerprint.as_str();
        let keys: Vec<(String, usize)> = self.pool.map(distinct.len(), &|i| {
            let text = format!("{fingerprint}\n{:?}", distinct[i]);
            (blake3::hash(text.as_bytes()).to_hex().to_string(), text.len())
        });
        let mut jobs: Vec<Job> = {
            let (ready, mut seen) = (self.kernels.borrow(), BTreeSet::new());
            let all = distinct.iter().zip(&keys).map(|(&kernel, (key, length))| Job { kernel, key, length: *length });
            all.filter(|job| !ready.contains_key(job.key) && seen.insert(job.key)).collect()
        };
        // The longest first, so that no thread is left with one at the end.
        jobs.sort_by_key(|job| Reverse(job.length));
        self.make(&jobs)?;
        let ready = self.kernels.borrow();
        let code = |k: &&tile::Kernel| {
            let key = number.get(&std::ptr::from_ref(*k)).and_then(|&i| keys.get(i));
            let found = key.and_then(|(key, _)| ready.get(key)).cloned();
            found.ok_or_else(|| BackendError::Internal(format!("`{}` was not compiled", k.name)))
        };
        wanted.iter().map(code).collect()
    }

    /// Makes the kernels and keeps them.
    fn make(&self, jobs: &[Job]) -> Result<(), BackendError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let _compiling = stage("compiling and loading kernels");
        let (target, cache, pool) = (&*self.target, &self.cache, &*self.pool);
        let all = pool.map(jobs.len(), &|i| match pool.is_interrupted() {
            true => Made { kernel: Err(BackendError::Interrupted), took: None, warnings: vec![] },
            false => made(target, cache, &jobs[i]),
        });
        let (mut compiled, mut found, time) = self.compiled.get();
        let mut failed = None;
        for (job, made) in jobs.iter().zip(all) {
            for warning in made.warnings.iter().filter(|_| !self.options.quiet) {
                eprintln!("warning[W0601]: {warning}");
            }
            match (made.kernel, made.took) {
                (Err(e), _) => failed = failed.or(Some(e)),
                (Ok(kernel), took) => {
                    *(if took.is_some() { &mut compiled } else { &mut found }) += 1;
                    if let Some(took) = took.filter(|_| self.options.verbose) {
                        eprintln!("compiled `{}` in {:.1} ms", job.kernel.name, took.as_secs_f64() * 1e3);
                    }
                    self.kernels.borrow_mut().insert(job.key.to_owned(), kernel);
                }
            }
        }
        self.compiled.set((compiled, found, time + start.elapsed()));
        failed.map_or(Ok(()), Err)
    }
}

/// The kernel from the disk, or compiled and put there.
fn made(target: &dyn Target, cache: &DiskCache, job: &Job) -> Made {
    let mut warnings = vec![];
    let name = &job.kernel.name;
    let again = |what: &str| format!("a cached kernel is built again: {what}");
    match cache.get(job.key) {
        Found::Hit(bytes) => match target.load(&bytes, name) {
            Ok(kernel) => return Made { kernel: Ok(kernel), took: None, warnings },
            Err(e) => warnings.push(again(&e.message)),
        },
        Found::Corrupt(path) => warnings.push(again(&format!("{} is damaged", path.display()))),
        Found::Miss => {}
    }
    let start = Instant::now();
    let compiled = target.compile(job.kernel).and_then(|bytes| {
        let kernel = target.load(&bytes, name)?;
        Ok((bytes, kernel))
    });
    let took = Some(start.elapsed());
    match compiled {
        Ok((bytes, kernel)) => {
            warnings.extend(cache.put(job.key, &bytes).map(|why| format!("compiled kernels cannot be kept: {why}")));
            Made { kernel: Ok(kernel), took, warnings }
        }
        Err(e) => Made { kernel: Err(e.into()), took, warnings },
    }
}

impl From<LlvmError> for BackendError {
    fn from(e: LlvmError) -> BackendError {
        match e.code {
            Code::E0601 => BackendError::Unavailable(e.message),
            _ => BackendError::Internal(e.message),
        }
    }
}
