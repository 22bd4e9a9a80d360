//! How deep and how large a program may be.
//!
//! Whether a program is refused depends on the program alone: on how deep expressions stand inside each other in one body, and
//! on the graph of the instances that calls have to know the results of. Checking itself goes down that graph by recursion, and may have to
//! stop before the graph is known; then it gives everything up as far as the outermost body that it is in, of which it is certain
//! by then that the graph behind its call is too large.

use super::CheckedInst;
use crate::db::{self, Db, InstRef};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};

/// Expressions and statements inside each other, in one body and along a chain of calls whose results are inferred. The stack
/// of the checking thread holds this many.
pub const LEVELS_MAX: u32 = 12_000;
/// Instances of one program, and those behind one call whose result is inferred.
pub const INSTANCES_MAX: usize = 20_000;
/// An instance counts for so many levels at least, and for a multiple of them: an edit inside a body seldom changes that.
const STEP: u32 = 60;
/// Levels that it takes to begin with a body.
const OWN: u32 = 16;

/// E0901 for a call that has too many instances behind it.
pub fn too_many(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::E0901, span, format!("calling {what} leads to too many versions of functions"))
        .note("an unannotated function is checked once for each list of argument types")
        .help("annotate the parameters and the result")
}

/// What checking an instance takes, with what it has to know first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Of its own body.
    levels: u32,
    /// Along the longest chain of instances; `u32::MAX` if one of them calls itself.
    depth: u32,
    /// At least as many instances as there are.
    count: u32,
    /// Behind a call of it there is too much, and its body was not checked to the end.
    over: bool,
}

impl Extent {
    /// Of an instance that is being checked.
    pub const OPEN: Extent = Extent { levels: STEP, depth: u32::MAX, count: u32::MAX, over: false };
}

/// What a body has met so far.
#[derive(Clone, Debug, Default)]
pub struct Met {
    /// Where it is.
    pub level: u32,
    peak: u32,
    depth: u32,
    count: u32,
    over: bool,
    /// The depth and the instances behind callees for which bounds did not do; `None` for those that call the body.
    known: HashMap<InstRef, Option<(u32, usize)>>,
}

impl Met {
    /// One level further down. `false` where there are too many.
    pub fn enter(&mut self) -> bool {
        let base = BASE.get();
        if base > 0 && base + self.level >= LEVELS_MAX {
            give_up();
        }
        let room = self.level < LEVELS_MAX;
        self.level += 1;
        self.peak = self.peak.max(self.level);
        room
    }

    pub fn leave(&mut self) {
        self.level -= 1;
    }

    pub fn extent(&self) -> Extent {
        let levels = (self.peak + OWN).div_ceil(STEP) * STEP;
        let (depth, count) = (self.depth.saturating_add(levels), self.count.saturating_add(1));
        Extent { levels, depth, count, over: self.over }
    }

    /// A callee whose result has to be known, for the first time in this body.
    pub fn first(&mut self, extent: Extent) {
        self.depth = self.depth.max(extent.depth);
        self.count = self.count.saturating_add(extent.count);
    }

    /// Whether there is not too much behind a callee. `None`: it was given up.
    pub fn fits(&mut self, db: &dyn Db, callee: InstRef, extent: Option<Extent>) -> bool {
        let level = self.level;
        let fits = |depth: u32, count: usize| level.saturating_add(depth) <= LEVELS_MAX && count <= INSTANCES_MAX;
        let fine = extent.is_some_and(|e| {
            !e.over
                && (fits(e.depth, e.count as usize) || {
                    let measure = || Graph::behind(db, callee).map(|graph| (graph.depth(), graph.nodes.len()));
                    let known = self.known.entry(callee).or_insert_with(measure);
                    known.is_none_or(|(depth, count)| fits(depth, count))
                })
        });
        self.over |= !fine;
        fine
    }
}

thread_local! {
    // None of these decides a result: see the head of this file.
    /// Levels of the bodies that are being checked.
    static BASE: Cell<u32> = const { Cell::new(0) };
    static BODIES: Cell<u32> = const { Cell::new(0) };
    /// What is behind the outermost call.
    static SEEN: RefCell<HashSet<InstRef>> = RefCell::default();
    /// See [`ahead`].
    static AHEAD: Cell<bool> = const { Cell::new(false) };
    /// The instances whose bodies are being checked.
    static ACTIVE: RefCell<Vec<InstRef>> = RefCell::default();
}

/// While it is there, the body of an instance is being checked.
pub struct Active(());

impl Active {
    pub fn begin(inst: InstRef) -> Active {
        ACTIVE.with_borrow_mut(|active| active.push(inst));
        Active(())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.with_borrow_mut(|active| active.pop());
    }
}

/// What is thrown where checking gives up.
struct TooMuch;

fn give_up() -> ! {
    resume_unwind(Box::new(TooMuch))
}

/// The levels as they were.
struct Left(u32);

impl Drop for Left {
    fn drop(&mut self) {
        BASE.set(self.0);
        BODIES.set(BODIES.get() - 1);
    }
}

/// Checks a callee while a body is at a level. `None` if there is too much behind it, which then is not known any further: the
/// body has to be checked anew whenever anything changes.
pub fn inside<T>(level: u32, callee: InstRef, f: impl FnOnce() -> T) -> Option<T> {
    let (base, outermost) = (BASE.get(), BODIES.get() == 0);
    let count = SEEN.with_borrow_mut(|seen| {
        if outermost {
            seen.clear();
        }
        seen.insert(callee);
        seen.len()
    });
    let levels = base + level + OWN;
    if levels > LEVELS_MAX || count > INSTANCES_MAX {
        if outermost {
            return None;
        }
        give_up();
    }
    let _left = Left(base);
    BASE.set(levels);
    BODIES.set(BODIES.get() + 1);
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(why) if !gave_up(&*why) => resume_unwind(why),
        Err(_) if outermost => None,
        Err(_) => give_up(),
    }
}

/// An instance that a program calls, once all bodies that needed its result are checked. `None` where that was given up, which the caller's body
/// has reported.
pub fn known(db: &dyn Db, inst: InstRef) -> Option<&Arc<CheckedInst>> {
    match catch_unwind(AssertUnwindSafe(|| db::inst(db, inst))) {
        Ok(checked) => Some(checked),
        Err(why) if gave_up(&*why) => None,
        Err(why) => resume_unwind(why),
    }
}

/// Checks an instance before it is asked for, while other threads check others. What another thread gave up is nothing that
/// this one knows of a call: then nothing is kept of the whole, and it is checked again when it is asked for.
pub fn ahead(db: &dyn Db, inst: InstRef) {
    let outer = AHEAD.replace(true);
    let result = catch_unwind(AssertUnwindSafe(|| {
        db::inst(db, inst);
    }));
    AHEAD.set(outer);
    if let Err(why) = result
        && !why.is::<TooMuch>()
        && !why.is::<salsa::Cancelled>()
    {
        resume_unwind(why);
    }
}

/// Whether checking was given up: here, or in this revision before, which the database says of a query that it began then.
fn gave_up(why: &(dyn std::any::Any + Send)) -> bool {
    why.is::<TooMuch>() || !AHEAD.get() && matches!(why.downcast_ref(), Some(salsa::Cancelled::PropagatedPanic))
}

/// The instances behind a call.
#[derive(Default)]
struct Graph {
    numbers: HashMap<InstRef, usize>,
    nodes: Vec<Node>,
}

struct Node {
    levels: u32,
    callees: Vec<usize>,
}

impl Graph {
    /// No more than are too many. `None` in a recursion, where the call from outside tells: one of them is being checked.
    fn behind(db: &dyn Db, root: InstRef) -> Option<Graph> {
        let mut graph = Graph::default();
        let mut work = vec![];
        graph.node(root, &mut work);
        while let Some((number, inst)) = work.pop() {
            if graph.nodes.len() > INSTANCES_MAX {
                break;
            }
            if ACTIVE.with_borrow(|active| active.contains(&inst)) {
                return None;
            }
            let checked = db::inst(db, inst);
            let callees = checked.tables.callees.iter().filter(|c| c.first);
            let callees = callees.map(|c| graph.node(c.inst, &mut work)).collect();
            graph.nodes[number] = Node { levels: checked.size.levels, callees };
        }
        Some(graph)
    }

    fn node(&mut self, inst: InstRef, work: &mut Vec<(usize, InstRef)>) -> usize {
        *self.numbers.entry(inst).or_insert_with(|| {
            self.nodes.push(Node { levels: STEP, callees: vec![] });
            work.push((self.nodes.len() - 1, inst));
            self.nodes.len() - 1
        })
    }

    /// Levels along the longest chain from the root, where instances that call each other stand for all of their levels.
    fn depth(&self) -> u32 {
        let mut search = Search { graph: self, places: vec![None; self.nodes.len()], open: vec![], next: 0 };
        let depth = search.visit(0).1;
        u32::try_from(depth).unwrap_or(u32::MAX)
    }
}

/// Tarjan's search for instances that call each other.
struct Search<'a> {
    graph: &'a Graph,
    /// When a node was met, and the depth behind it once that is known.
    places: Vec<Option<(usize, Option<u64>)>>,
    open: Vec<usize>,
    next: usize,
}

impl Search<'_> {
    /// The earliest open node that is reached, and the depth behind what is closed.
    fn visit(&mut self, node: usize) -> (usize, u64) {
        let own = self.next;
        self.next += 1;
        self.places[node] = Some((own, None));
        self.open.push(node);
        let (mut low, mut below) = (own, 0);
        for &callee in &self.graph.nodes[node].callees {
            match self.places[callee] {
                Some((_, Some(depth))) => below = below.max(depth),
                Some((place, None)) => low = low.min(place),
                None => {
                    let (reached, depth) = self.visit(callee);
                    low = low.min(reached);
                    below = below.max(depth);
                }
            }
        }
        if low < own {
            // What is behind it counts where its circle is closed.
            return (low, below);
        }
        let start = self.open.iter().rposition(|n| *n == node).unwrap_or(0);
        let circle = self.open.split_off(start);
        let depth = below + circle.iter().map(|n| u64::from(self.graph.nodes[*n].levels)).sum::<u64>();
        for member in circle {
            if let Some(place) = &mut self.places[member] {
                place.1 = Some(depth);
            }
        }
        (own, depth)
    }
}
