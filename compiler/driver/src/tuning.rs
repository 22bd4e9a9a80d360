//! `tessera tune`: a search for every kernel of a program, or whether the records that there are still hold.
//!
//! Kernels are known when the program has run, so it runs up to its end: what it prints is dropped, and the files that it writes
//! last as long as the command.

use crate::backend::tuned::{Status, Tuned, Tuning, told};
use crate::backend::{Backend, energy_of_calls};
use crate::program::{Setup, out, out_json, prepare};
use crate::tune::records::{Record, Sought, named_after};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_ir::hints::{Autotune, Objective};
use tessera_resolve::source::SourceMap;

/// What was asked for.
pub struct Asked {
    pub file: PathBuf,
    pub args: Vec<String>,
    pub search: crate::cli::Search,
}

/// Runs the command; returns the exit code.
pub fn tune(setup: &Setup, asked: &Asked) -> u8 {
    let search = &asked.search;
    let refuse = |d: Diagnostic| {
        setup.show(&[d], &SourceMap::default());
        1
    };
    if search.objective == Objective::Energy
        && let Err(why) = energy_of_calls()
    {
        let text = format!("the energy of a call cannot be measured here: {why}");
        return refuse(Diagnostic::new(Code::E0606, Span::NONE, text));
    }
    let ready = match crate::files::read_source(&asked.file) {
        Ok(loaded) => prepare(setup, &loaded),
        Err(d) => return refuse(d),
    };
    let Some(ready) = ready else { return 1 };
    let cache = search.cache.clone().unwrap_or_else(|| named_after(&asked.file));
    tessera_runtime::io::sandbox::start();
    let sink = Box::new(std::io::sink());
    let mut session = tessera_host::Session::new(sink, false, asked.args.clone(), setup.stack_bytes);
    session.set_dir(&asked.file.parent().unwrap_or(Path::new("")).to_string_lossy());
    crate::interrupt::on_interrupt(session.interrupt_flag());
    let (reports, pool) = (crate::regions::Reports::default(), setup.pool());
    let mut backend = setup.backend(pool.clone());
    let autotune = Autotune { cache: cache.as_str().into(), objective: search.objective, samples: search.samples };
    let frozen = search.check || search.frozen;
    backend.set_tuning(Tuning { others: Some(autotune), search_others: true, frozen });
    if !backend.is_timed() {
        let text = "a search measures kernels of the processor only";
        let help = "leave out `--target` and `--checked`";
        return refuse(Diagnostic::new(Code::E0606, Span::NONE, text).help(help));
    }
    let backend = Rc::new(backend);
    let program = match crate::program::start(setup, &mut session, &ready, backend.clone(), pool, reports.clone()) {
        Ok(program) => program,
        Err(d) => {
            setup.show(&[*d], &ready.sources);
            return 1;
        }
    };
    let stop = session.run(&program);
    let code = crate::program::finish(setup, stop, &ready, &reports);
    let report = Outcomes::of(&backend, &cache, search);
    if search.prune
        && code == 0
        && !report.stale.is_empty()
        && let Err(e) = backend.records().remove(&cache, &report.stale)
    {
        let text = format!("{} cannot be written: {e}", backend.records().path(&cache).display());
        return refuse(Diagnostic::new(Code::E0606, Span::NONE, text));
    }
    let above = |k: &Tuned| matches!(&k.status, Status::Searched(r) if is_above(r));
    if report.kernels.iter().any(above)
        && let Ok(tool) = std::env::current_exe()
    {
        crate::roof::again(&tool, &setup.global);
    }
    match setup.global.json {
        true => out_json(&report.json(asked, &backend, &cache)),
        false => out(&report.text(search, &backend, &cache)),
    }
    let lacking = report.that_are(|s| matches!(s, Status::Missing)) > 0;
    match code {
        0 if search.frozen && lacking => refuse(Diagnostic::new(
            Code::E0606,
            Span::NONE,
            format!("{} kernels have no record", report.that_are(|s| matches!(s, Status::Missing))),
        )),
        0 => u8::from(search.check && (lacking || !report.stale.is_empty())),
        code => code,
    }
}

/// What is to be told.
struct Outcomes {
    kernels: Vec<Tuned>,
    /// Records of this machine that no kernel of the program asks for.
    stale: Vec<Record>,
    /// All records of the file, for what keeps the nearest one from a kernel.
    all: Vec<Record>,
}

impl Outcomes {
    fn of(backend: &Backend, cache: &str, search: &crate::cli::Search) -> Outcomes {
        let kernels = backend.tuned();
        let all = backend.records().all(cache);
        let ours = |r: &&Record| {
            backend.is_here(&r.of)
                && r.of.objective == search.objective.name()
                && !kernels.iter().any(|k| k.sought == r.of)
        };
        let stale = all.iter().filter(ours).cloned().collect();
        Outcomes { kernels, stale, all }
    }

    fn that_are(&self, which: impl Fn(&Status) -> bool) -> usize {
        self.kernels.iter().filter(|k| which(&k.status)).count()
    }

    /// What keeps the record that is most like a kernel from being its own.
    fn nearest(&self, sought: &Sought) -> Option<(&Record, Vec<&'static str>)> {
        let differs = self.all.iter().map(|r| (r, sought.differs(&r.of)));
        differs.filter(|(r, _)| r.of.operator == sought.operator).min_by_key(|(_, d)| d.len())
    }

    /// The geometric mean of what the start takes over what the best does, of the kernels that have a record.
    fn gain(&self) -> Option<f64> {
        let records: Vec<&Record> = self.kernels.iter().filter_map(|k| record(&k.status)).collect();
        let logs = records.iter().map(|r| (r.start.max(1) as f64 / r.best.max(1) as f64).ln());
        (!records.is_empty()).then(|| (logs.sum::<f64>() / records.len() as f64).exp())
    }

    fn text(&self, search: &crate::cli::Search, backend: &Backend, cache: &str) -> String {
        let mut text = String::new();
        for k in &self.kernels {
            let (name, operands) = (&k.sought.operator, k.sought.operands.join(", "));
            let objective = Objective::named(&k.sought.objective).unwrap_or_default();
            text += &match &k.status {
                Status::Found(r) => format!("found    {name} ({operands}): {}\n", figures(r, objective)),
                Status::Searched(r) if r.best < r.start => {
                    format!("tuned    {name} ({operands}): {}\n", figures(r, objective))
                }
                Status::Searched(r) => format!("stays    {name} ({operands}): {}\n", figures(r, objective)),
                Status::Missing => format!("missing  {name} ({operands})\n"),
                Status::Left(why) => format!("left     {name} ({operands}): {why}\n"),
            };
            if search.explain {
                text += &self.explained(k);
            }
        }
        for r in &self.stale {
            let why = self.outdated(r);
            let what = if search.prune { "removed " } else { "stale   " };
            text += &format!("{what} {} ({}): {why}\n", r.of.operator, r.of.operands.join(", "));
        }
        let of = |which: fn(&Status) -> bool| self.that_are(which);
        let searched = of(|s| matches!(s, Status::Searched(_)));
        text += &format!(
            "{} kernels: {searched} searched, {} found, {} missing, {} left, {} records stale\n",
            self.kernels.len(),
            of(|s| matches!(s, Status::Found(_))),
            of(|s| matches!(s, Status::Missing)),
            of(|s| matches!(s, Status::Left(_))),
            self.stale.len()
        );
        if let Some(gain) = self.gain() {
            text += &format!("geometric mean of the gain {gain:.3}; {}\n", backend.records().path(cache).display());
        }
        text
    }

    /// What `--explain` says of a kernel.
    fn explained(&self, k: &Tuned) -> String {
        if let Some(r) = record(&k.status) {
            return r.directives.iter().map(|d| format!("           {d}\n")).collect();
        }
        match self.nearest(&k.sought) {
            Some((_, differs)) => format!("           the nearest record has another {}\n", differs.join(", another ")),
            None => format!("           there is no record of a `{}`\n", k.sought.operator),
        }
    }

    /// Why a record is of no use to the program.
    fn outdated(&self, r: &Record) -> String {
        let like = self.kernels.iter().map(|k| k.sought.differs(&r.of));
        match like.min_by_key(Vec::len) {
            Some(differs) if differs == ["version of the compiler"] => {
                format!("it is of version {}", r.of.compiler)
            }
            Some(differs) if differs.len() <= 2 => {
                format!("the program's kernel has another {}", differs.join(", another "))
            }
            _ => "the program has no such kernel".into(),
        }
    }

    fn json(&self, asked: &Asked, backend: &Backend, cache: &str) -> Value {
        let kernel = |k: &Tuned| {
            let status = match &k.status {
                Status::Found(_) => "found",
                Status::Searched(_) => "searched",
                Status::Missing => "missing",
                Status::Left(_) => "left",
            };
            let why = match &k.status {
                Status::Left(why) => Some((*why).to_owned()),
                Status::Missing => self.nearest(&k.sought).map(|(_, differs)| differs.join(", ")),
                _ => None,
            };
            let r = record(&k.status);
            json!({
                "operator": k.sought.operator, "operands": k.sought.operands, "objective": k.sought.objective,
                "status": status, "why": why, "start": r.map(|r| r.start), "best": r.map(|r| r.best),
                "samples": r.map(|r| r.samples), "limit": r.map(|r| &r.limit), "roof": r.map(|r| r.roof),
                "directives": r.map(|r| &r.directives),
            })
        };
        let stale = |r: &Record| json!({"operator": r.of.operator, "operands": r.of.operands, "why": self.outdated(r)});
        json!({
            "schema": 1,
            "file": asked.file.display().to_string(),
            "records": backend.records().path(cache).display().to_string(),
            "kernels": self.kernels.iter().map(kernel).collect::<Vec<_>>(),
            "stale": self.stale.iter().map(stale).collect::<Vec<_>>(),
            "gain": self.gain(),
        })
    }
}

fn record(status: &Status) -> Option<&Record> {
    match status {
        Status::Found(r) | Status::Searched(r) => Some(r),
        Status::Missing | Status::Left(_) => None,
    }
}

/// Whether a kernel computes more than was ever measured on this machine: then that was too little.
fn is_above(r: &Record) -> bool {
    r.of.objective == Objective::Latency.name() && r.limit == "compute" && (r.best as f64) < 0.95 * r.roof as f64
}

/// What a record says, for people.
fn figures(r: &Record, objective: Objective) -> String {
    let (best, start) = (told(objective, r.best as f64), told(objective, r.start as f64));
    let share = 100.0 * r.roof as f64 / r.best.max(1) as f64;
    let roof = match objective {
        Objective::Latency if r.roof > 0 && r.limit != "cache" && !is_above(r) => {
            format!(", {share:.0} % of what {} allows", r.limit)
        }
        _ => String::new(),
    };
    match r.best < r.start {
        true => format!("{best} instead of {start}, {} samples{roof}", r.samples),
        false => format!("{best}, {} samples{roof}", r.samples),
    }
}
