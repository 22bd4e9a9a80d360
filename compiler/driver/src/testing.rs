//! `tessera test`: runs `test_*` functions, the `>>>` examples of docstrings, and those of Markdown.

pub mod collect;
mod drawn;
mod cases;
mod markdown;
mod text;
mod run;
mod document;
mod stops;
mod report;
mod work;
mod runner;

pub use runner::{Advice, Outcome, Runner, advice};

use crate::program::{Setup, out};
use crate::target::Choice;
use report::Report;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stops::Stops;
use tessera_resolve::source::SourceMap;
use tessera_runtime::world::launch;
use work::{Event, Work};

/// What the command line asks for.
pub struct Asked<'a> {
    pub paths: &'a [PathBuf],
    /// Only cases whose name contains this.
    pub only: Option<&'a str>,
    /// Files at once.
    pub jobs: Option<usize>,
    /// Where results go as JUnit XML.
    pub junit: Option<&'a Path>,
}

/// Runs the command; returns the exit code.
pub fn test(setup: &Setup, asked: &Asked) -> u8 {
    let start = Instant::now();
    let mut report = Report::new(setup.global.json);
    let mut files = vec![];
    for found in collect::collect(asked.paths) {
        match found {
            Ok(file) => files.push(file),
            Err(d) => {
                report.unreadable(d.message.clone());
                setup.show(&[d], &SourceMap::default());
            }
        }
    }
    let stops = Stops::watch();
    let work = Work {
        global: &setup.global,
        style: setup.style,
        stack_bytes: setup.stack_bytes,
        files: &files,
        only: asked.only,
        jobs: jobs(setup, asked, files.len()),
        stops: &stops,
    };
    let names = work::in_order(&work, |event| match event {
        Event::Said(text) => eprint!("{text}"),
        Event::Done(done) => report.case(done),
    });
    if let (Some(only), true) = (asked.only, report.is_empty() && !stops.stopped()) {
        let near = tessera_base::nearest(only, names.iter().map(String::as_str));
        let hint = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
        eprintln!("error[E0602]: there is no test whose name contains `{only}`{hint}");
        return 2;
    }
    if !setup.global.json {
        out(&report.summary(start.elapsed()));
    }
    let mut failed = report.failed();
    if let Some(path) = asked.junit
        && let Err(fault) = report.junit(path, start.elapsed())
    {
        setup.show(&[crate::program::told(fault)], &SourceMap::default());
        failed = true;
    }
    if stops.stopped() {
        crate::interrupt::tell();
        return crate::interrupt::INTERRUPTED;
    }
    u8::from(failed)
}

/// How many files are tested at once. A device and a bound of memory belong to one program at a time.
fn jobs(setup: &Setup, asked: &Asked, files: usize) -> usize {
    let shared = setup.global.target != Choice::Cpu || setup.global.memory.is_some();
    let wanted = if shared { 1 } else { asked.jobs.unwrap_or_else(launch::cores) };
    wanted.clamp(1, files.max(1))
}
