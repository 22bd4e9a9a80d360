//! Schedules that were found by measuring: which kernels are tuned, which record belongs to each, and what was done about it.

use super::laboratory::{Laboratory, energy};
use super::{Backend, Planned, kernel_costs, kernel_name};
use crate::tune::records::{self, Record, Sought, Turn};
use crate::tune::{self, Effort, SMALL_NS};
use std::path::Path;
use std::rc::Rc;
use tessera_abi::plan::Counts;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Group;
use tessera_ir::hints::{Autotune, Objective};
use tessera_ir::schedule::{self, Schedule};
use tessera_schedule::estimate::{Model, Rates};
use tessera_schedule::grid::Grid;

/// Bytes of operands above which a search would take too much memory.
const BYTES_MAX: u64 = 2 << 30;

/// How a whole program is tuned, beside what it says itself.
#[derive(Clone, Debug, Default)]
pub struct Tuning {
    /// Kernels that no decorator speaks of.
    pub others: Option<Autotune>,
    /// These are searched too; otherwise they take the records that there are.
    pub search_others: bool,
    /// Nothing is searched.
    pub frozen: bool,
}

/// What became of a kernel that is tuned.
#[derive(Clone, PartialEq, Debug)]
pub enum Status {
    /// It had a record.
    Found(Record),
    /// It was searched for.
    Searched(Record),
    /// It has no record, and nothing was measured.
    Missing,
    /// It cannot be measured here, and why.
    Left(&'static str),
}

/// A kernel that was asked for, with the file of its record.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuned {
    pub cache: String,
    pub sought: Sought,
    pub status: Status,
}

impl Backend {
    /// How a group is tuned, and whether it is searched for.
    pub(super) fn asked(&self, graph: &Graph, group: &Group) -> Option<(Autotune, bool)> {
        let own = tessera_schedule::hints(graph, group).and_then(|h| h.autotune.clone());
        match own {
            Some(own) => Some((own, true)),
            None => self.tuning.others.clone().map(|others| (others, self.tuning.search_others)),
        }
    }

    /// How the program is tuned as a whole.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        self.records.keep();
        self.tuning = tuning;
    }

    /// What measures the operations and bytes of a second, where that is needed.
    pub fn set_rates(&mut self, measure: super::MeasuredRates) {
        self.measured_rates = Some(measure);
    }

    /// Takes the records that `tessera tune` left of a program, if it did.
    pub fn follow(&mut self, program: &Path) {
        let cache = records::named_after(program);
        if !self.records.is_there(&cache) {
            return;
        }
        // Records of other machines do not say what is to be small on this one, unless there are no others: that is told.
        let all = self.records.all(&cache);
        let named = |o: &Objective, ours: bool| {
            all.iter().any(|r| r.of.objective == o.name() && (!ours || self.is_here(&r.of)))
        };
        let here = Objective::ALL.into_iter().find(|o| named(o, true));
        let objective = here.or_else(|| Objective::ALL.into_iter().find(|o| named(o, false)));
        let others = objective.map(|objective| Autotune { objective, ..Autotune::kept_as(cache) });
        self.tuning = Tuning { others, ..Tuning::default() };
    }

    /// What is kept of searches.
    pub fn records(&self) -> &records::Records {
        &self.records
    }

    /// Whether every kernel has to be compiled, since all are tuned.
    pub(super) fn measures_all(&self) -> bool {
        self.tuning.others.is_some() && self.tuning.search_others
    }

    /// What became of the kernels that are tuned so far, in the order in which they came.
    pub fn tuned(&self) -> Vec<Tuned> {
        self.tuned.borrow().clone()
    }

    /// What of a record is the same for all kernels: architecture and machine.
    fn here(&self) -> (String, String) {
        let architecture = format!("{} {}", self.target.limits().target, short(&self.target.fingerprint()));
        (architecture, short(&format!("{:?}", self.machine)))
    }

    /// Whether a record is of this machine and number of threads.
    pub fn is_here(&self, of: &Sought) -> bool {
        let (architecture, machine) = self.here();
        (&of.architecture, &of.machine, of.threads) == (&architecture, &machine, self.pool.threads())
    }

    /// Whether kernels are measured here at all; they are on the processor.
    pub fn is_timed(&self) -> bool {
        self.target.is_timed()
    }

    /// Everything that decides which schedule of a kernel is best.
    fn sought(&self, graph: &Graph, group: &Group, s: &Schedule, objective: Objective) -> Sought {
        let (architecture, machine) = self.here();
        Sought {
            operator: kernel_name(graph, group),
            operands: s.operands.iter().map(|o| format!("{} {}", o.elems, o.dtype)).collect(),
            objective: objective.name().into(),
            policy: policy_name(graph, group),
            architecture,
            machine,
            threads: self.pool.threads(),
            compiler: env!("CARGO_PKG_VERSION").into(),
            body: short(&schedule::text::print(s)),
        }
    }

    /// The schedule that an earlier search found, where there is one.
    pub(super) fn recorded(&self, graph: &Graph, group: &Group, s: &Schedule) -> Option<Schedule> {
        let (asked, _) = self.asked(graph, group)?;
        let sought = self.sought(graph, group, s, asked.objective);
        let record = self.records.find(&asked.cache, &sought);
        if record.is_none() {
            self.warn_of_others(&asked.cache, &sought);
        }
        records::with_directives(s, &record?.directives)
    }

    /// Says once that a file has records of other machines alone.
    fn warn_of_others(&self, cache: &str, sought: &Sought) {
        if self.records.is_foreign(cache, sought) {
            let path = self.records.path(cache);
            let text = format!("{} has records of other machines or numbers of threads only", path.display());
            self.records.warn("machine", &text);
        }
    }

    /// Searches a schedule for every kernel that is to be tuned and has no record yet.
    pub(super) fn tune(&self, graph: &Graph, planned: &mut [Planned]) {
        if !self.target.is_timed() {
            return;
        }
        for i in 0..planned.len() {
            let p = &planned[i];
            let Some(start) = &p.start else { continue };
            let Some((asked, search)) = self.asked(graph, &p.group) else { continue };
            let sought = self.sought(graph, &p.group, start, asked.objective);
            let fits = |r: &Record| records::with_directives(start, &r.directives).is_some();
            let status = match self.records.find(&asked.cache, &sought).filter(fits) {
                Some(record) => Status::Found(record),
                None => match self.unmeasured(graph, &p.group, asked.objective) {
                    Some(why) => Status::Left(why),
                    None if self.tuning.frozen || !search => Status::Missing,
                    None => self.searched(graph, p, &asked, &sought),
                },
            };
            if let Status::Searched(record) | Status::Found(record) = &status
                && let Some(best) = records::with_directives(start, &record.directives)
                && let Ok(lowered) = tessera_tile::lower(&best)
            {
                adopt(planned, i, best, Rc::new(lowered));
            }
            let tuned = Tuned { cache: asked.cache.to_string(), sought, status };
            let mut all = self.tuned.borrow_mut();
            if !all.iter().any(|t| (&t.cache, &t.sought) == (&tuned.cache, &tuned.sought)) {
                all.push(tuned);
            }
        }
    }

    /// The record of a kernel that had none, by a search of this process or of another one.
    fn searched(&self, graph: &Graph, p: &Planned, asked: &Autotune, sought: &Sought) -> Status {
        let Some(start) = &p.start else { return Status::Missing };
        let fits = |r: &Record| records::with_directives(start, &r.directives).is_some();
        let lease = match self.records.turn(&asked.cache, sought, &fits, &|| self.pool.is_interrupted()) {
            Turn::Found(record) => return Status::Found(*record),
            Turn::Nobody => return Status::Missing,
            Turn::Ours(lease) => lease,
        };
        let counts = kernel_costs::of(graph, p);
        let rates = self.rates();
        let (limit, roof) = self.roof(&counts, &rates);
        let model = Model::of(start, &self.machine, &rates);
        let mut grid = Grid::around(start, &self.machine, &rates);
        let near = self.records.near(&asked.cache, sought, start);
        let first: Vec<usize> = near.iter().map(|d| grid.nearest(d, &model)).collect();
        let timed = matches!(asked.objective, Objective::Latency | Objective::Throughput);
        let effort = Effort { samples: asked.samples, small: if timed { SMALL_NS } else { 0.0 } };
        let found = Laboratory::new(self, graph, &p.group, asked.objective)
            .and_then(|mut laboratory| tune::search(start, &grid, &first, effort, &mut laboratory));
        let Some(found) = found.filter(|_| !self.pool.is_interrupted()) else {
            return Status::Left("it could not be measured");
        };
        let record = Record {
            of: sought.clone(),
            directives: records::directives(&found.best),
            samples: found.samples,
            start: found.start_cost as u64,
            best: found.best_cost as u64,
            limit: limit.into(),
            // What was measured of the machine may be too little.
            roof: roof.min(found.best_cost) as u64,
        };
        self.records.add(&asked.cache, record.clone());
        drop(lease);
        // Told when it is kept: nobody tells it of this kernel again.
        if self.options.verbose {
            let unit = |cost: f64| told(asked.objective, cost);
            let (best, first) = (unit(found.best_cost), unit(found.start_cost));
            let (points, all) = (grid.len(), grid.all);
            eprintln!(
                "tuned `{}` ({}): {} samples of {points} schedules ({all}), {best} instead of {first}",
                start.name,
                sought.operands.join(", "),
                found.samples
            );
        }
        Status::Searched(record)
    }

    /// Why a kernel is not measured.
    fn unmeasured(&self, graph: &Graph, group: &Group, objective: Objective) -> Option<&'static str> {
        let operands: Vec<NodeId> = group.inputs.iter().chain(&group.roots).copied().collect();
        let total = operands.iter().try_fold(0u64, |n, &o| n.checked_add(graph.ty(o).bytes()?));
        // Each thread has operands of its own.
        let times = if objective == Objective::Throughput { self.pool.threads() as u64 } else { 1 };
        if total.is_none_or(|n| n.saturating_mul(times) > BYTES_MAX) {
            return Some("its operands take too much memory");
        }
        if objective == Objective::Energy
            && let Err(why) = energy::counters()
        {
            self.records.warn("energy", &format!("nothing is tuned by energy: {why}"));
            return Some("this machine does not tell the energy of a call");
        }
        None
    }

    /// What the machine does in a second: measured once.
    fn rates(&self) -> Rates {
        *self.rates.get_or_init(|| {
            let usual = Rates::usual(self.pool.threads());
            let measured = self.measured_rates.as_ref().and_then(|measure| measure());
            measured.map_or(usual, |(flops, bytes)| Rates { flops, bytes, ..usual })
        })
    }

    /// What bounds a kernel, and the nanoseconds that this takes at least. What fits in the caches does not come from memory.
    fn roof(&self, counts: &Counts, rates: &Rates) -> (&'static str, f64) {
        let moved = counts.bytes_read + counts.bytes_written;
        let near = moved <= self.machine.l3_bytes;
        let (compute, memory) = (counts.flops as f64 / rates.flops * 1e9, moved as f64 / rates.bytes * 1e9);
        match compute >= memory {
            true => ("compute", compute),
            false if near => ("cache", compute),
            false => ("memory", memory),
        }
    }
}

fn short(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// Takes a schedule for a group, and for those that share its kernels.
fn adopt(planned: &mut [Planned], at: usize, best: Schedule, lowered: Rc<tessera_tile::Lowered>) {
    let before = planned[at].lowered.take();
    for p in planned.iter_mut() {
        if let (Some(have), Some(before)) = (&p.lowered, &before)
            && Rc::ptr_eq(have, before)
        {
            p.lowered = Some(lowered.clone());
        }
    }
    (planned[at].schedule, planned[at].lowered) = (Some(best), Some(lowered));
}

/// What a schedule costs, for people.
pub fn told(objective: Objective, cost: f64) -> String {
    match objective {
        Objective::Memory => tessera_runtime::fault::human_bytes(cost as u64),
        Objective::Energy => format!("{:.1} µJ", cost / 1e3),
        _ if cost >= 1e7 => format!("{:.1} ms", cost / 1e6),
        _ => format!("{:.1} µs", cost / 1e3),
    }
}

fn policy_name(graph: &Graph, group: &Group) -> String {
    group.roots.first().map_or("", |&r| graph.node(r).policy.name()).into()
}
