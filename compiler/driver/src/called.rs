//! How tensor code was called in a run: how often, with which sizes, how long each took, and what of that was making it.
//! `tessera advise` asks for it; otherwise nothing is noted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_base::Span;
use tessera_ir::graph::Graph;
use tessera_runtime::profile;
use tessera_runtime::tensor::Tensor;

/// Calls that are served by the same kernels: their arguments have the same sizes.
#[derive(Clone, Debug)]
pub struct Sized {
    pub graph: Rc<Graph>,
    pub calls: u64,
    /// Of all these calls, without making.
    pub time: Duration,
    /// Tracing, optimising and compiling.
    pub making: Duration,
    /// What of that made kernels which the next run finds in the cache.
    pub compiling: Duration,
    /// By input of the graph: it is the same in all these calls.
    pub same: Vec<bool>,
    last: Vec<Option<u64>>,
}

/// Calls of one region: tensor code between statements of host code.
#[derive(Clone, Debug)]
pub struct Called {
    pub name: String,
    /// The function, or the statements.
    pub span: Span,
    /// It lies on a mesh, and its kernels run on other threads.
    pub on_mesh: bool,
    /// By sizes, in the order in which they were met.
    pub sized: Vec<Sized>,
    /// Of all calls, kernels alone.
    pub kernels: Duration,
    /// Where it was called from, and how often.
    pub sites: BTreeMap<Span, u64>,
}

impl Called {
    pub fn calls(&self) -> u64 {
        self.sized.iter().map(|s| s.calls).sum()
    }

    /// Without making.
    pub fn time(&self) -> Duration {
        self.sized.iter().map(|s| s.time).sum()
    }

    pub fn making(&self) -> Duration {
        self.sized.iter().map(|s| s.making).sum()
    }

    /// Where most of its calls come from.
    pub fn site(&self) -> Option<Span> {
        self.sites
            .iter()
            .filter(|(s, _)| !s.is_none())
            .max_by_key(|(s, n)| (**n, std::cmp::Reverse(**s)))
            .map(|(s, _)| *s)
    }
}

#[derive(Default)]
struct Calls {
    by_region: BTreeMap<u32, Called>,
    /// What noting took.
    noting: Duration,
}

thread_local! {
    static CALLS: RefCell<Option<Calls>> = const { RefCell::new(None) };
    /// What making took in the current call, and what of that made kernels.
    static MAKING: Cell<(Duration, Duration)> = const { Cell::new((Duration::ZERO, Duration::ZERO)) };
}

/// From here on calls are noted.
pub fn start() {
    CALLS.replace(Some(Calls::default()));
}

/// Notes nothing more, and gives what was noted, by region, and what noting took.
pub fn end() -> (Vec<Called>, Duration) {
    let Calls { by_region, noting } = CALLS.take().unwrap_or_default();
    (by_region.into_values().collect(), noting)
}

/// Something was made for the current call, and within that kernels which were not in the cache.
pub fn made(time: Duration, kernels: Duration) {
    let (making, compiling) = MAKING.get();
    MAKING.set((making + time, compiling + kernels.min(time)));
}

/// A call that goes on.
pub struct Begun {
    arguments: Vec<u64>,
    at: Instant,
    kernels: Duration,
}

/// Begins a call, where calls are noted. The arguments are asked for only then.
pub fn begin(arguments: impl FnOnce() -> Vec<u64>) -> Option<Begun> {
    if CALLS.with_borrow(Option::is_none) {
        return None;
    }
    let start = Instant::now();
    let arguments = arguments();
    MAKING.set(Default::default());
    CALLS.with_borrow_mut(|calls| calls.iter_mut().for_each(|c| c.noting += start.elapsed()));
    Some(Begun { arguments, at: Instant::now(), kernels: profile::in_steps() })
}

/// What a region is.
pub struct Region<'a> {
    pub number: u32,
    pub name: &'a str,
    pub span: Span,
    pub site: Span,
    pub graph: &'a Rc<Graph>,
    pub on_mesh: bool,
}

/// Ends a call. `inputs` says which argument each input of the graph is, where it is one.
pub fn end_of(begun: Begun, region: &Region, inputs: impl Iterator<Item = Option<usize>>) {
    let whole = begun.at.elapsed();
    let start = Instant::now();
    let (making, compiling) = MAKING.take();
    let kernels = profile::in_steps().saturating_sub(begun.kernels);
    CALLS.with_borrow_mut(|calls| {
        let Some(calls) = calls else { return };
        let new = || Called {
            name: region.name.to_owned(),
            span: region.span,
            on_mesh: region.on_mesh,
            sized: vec![],
            kernels: Duration::ZERO,
            sites: BTreeMap::new(),
        };
        let called = calls.by_region.entry(region.number).or_insert_with(new);
        called.kernels += kernels;
        *called.sites.entry(region.site).or_default() += 1;
        let sized = called.of_sizes(region.graph);
        sized.calls += 1;
        sized.time += whole.saturating_sub(making);
        sized.making += making;
        sized.compiling += compiling;
        let values: Vec<Option<u64>> = inputs.map(|i| begun.arguments.get(i?).copied()).collect();
        match sized.calls {
            1 => sized.same = values.iter().map(Option::is_some).collect(),
            _ => sized.same.iter_mut().zip(sized.last.iter().zip(&values)).for_each(|(s, (a, b))| *s &= a == b),
        }
        sized.last = values;
        calls.noting += start.elapsed();
    });
}

impl Called {
    fn of_sizes(&mut self, graph: &Rc<Graph>) -> &mut Sized {
        let at = self.sized.iter().rposition(|s| Rc::ptr_eq(&s.graph, graph)).unwrap_or_else(|| {
            let none = Duration::ZERO;
            let graph = graph.clone();
            let (same, last) = (vec![], vec![]);
            self.sized.push(Sized { graph, calls: 0, time: none, making: none, compiling: none, same, last });
            self.sized.len() - 1
        });
        &mut self.sized[at]
    }
}

/// A number for a tensor, of all its bytes; of one that has none here, where it is.
pub fn fingerprint(t: &Tensor) -> u64 {
    match t.host() {
        Ok(bytes) if t.parts.is_none() => {
            let hash = blake3::hash(bytes);
            hash.as_bytes().iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b))
        }
        _ => Arc::as_ptr(&t.storage) as usize as u64,
    }
}
