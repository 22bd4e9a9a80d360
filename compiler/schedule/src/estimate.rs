//! What a schedule costs on a machine, before anything is measured: the sum of what computing, moving and starting take, as far
//! as the directives decide it. It ranks schedules of one kernel; its numbers are no times that anyone is told.

use crate::choose::{access_cost, dot, parallel_axes, work};
use tessera_ir::index::Var;
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueId, ValueOp};

/// Nanoseconds of a launch, of waking other threads, of a grid point.
const LAUNCH_NS: f64 = 1_000.0;
const WAKE_NS: f64 = 4_000.0;
const POINT_NS: f64 = 60.0;
/// How much faster than memory the last cache is.
const CACHED: f64 = 3.0;
/// Multiply-adds under way at once: two a cycle, each of which takes four.
const UNDER_WAY: f64 = 8.0;
/// What rows that share the sets of a cache cost, and columns that are read where they lie.
const SETS: f64 = 1.25;
const IN_PLACE: f64 = 1.15;
/// Nanoseconds to copy an element into a panel, on one thread.
const PACK_NS: f64 = 0.3;

/// What a machine does in a second with all threads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// Operations on f32.
    pub flops: f64,
    /// Bytes to and from memory.
    pub bytes: f64,
    pub threads: usize,
}

impl Rates {
    /// Of a machine that nobody measured.
    pub fn usual(threads: usize) -> Rates {
        let cores = threads.max(1) as f64;
        Rates { flops: 1e11 * cores, bytes: (2e10 * cores).min(6e10), threads: threads.max(1) }
    }
}

/// One kernel on one machine.
pub struct Model<'s> {
    s: &'s Schedule,
    machine: &'s Machine,
    rates: Rates,
    /// Bytes of all that is read and written, once.
    read: f64,
    written: f64,
    form: Form<'s>,
}

enum Form<'s> {
    Product(Product<'s>),
    Loops { axes: Vec<Var>, ns: f64, reduced: bool, bytes: f64 },
}

/// What does not change from schedule to schedule of a product.
struct Product<'s> {
    s: &'s Schedule,
    dot: ValueId,
    depth_axis: Var,
    depth: f64,
    batch: f64,
    bytes: f64,
    /// Left and right, with the axes of rows and columns.
    sides: [(ValueId, Option<Var>); 2],
}

/// What the directives of a product say.
#[derive(Default)]
struct Settings {
    rows: f64,
    vectors: f64,
    lanes: f64,
    tiles: Vec<(Var, u64)>,
    block: Option<u64>,
    pack: [bool; 2],
    swap: bool,
    unit: bool,
    grain: f64,
}

impl<'s> Model<'s> {
    pub fn of(s: &'s Schedule, machine: &'s Machine, rates: &Rates) -> Model<'s> {
        let moved = |output: bool| -> f64 {
            let all = s.operands.iter().filter(|o| o.output == output);
            all.map(|o| o.elems as f64 * o.dtype.bytes() as f64).sum()
        };
        let form = match s.values.iter().position(|v| matches!(v.op, ValueOp::Dot { .. })) {
            Some(at) => Form::Product(Product::of(s, ValueId(at as u32))),
            None => {
                let axes = parallel_axes(s);
                let outer: f64 = crate::choose::outer(s).iter().map(|a| s.extent(*a) as f64).product();
                let reduced = s.values.iter().any(|v| matches!(v.op, ValueOp::Reduce { .. }));
                let widest = s.values.iter().map(|v| v.dtype.compute().bytes()).max().unwrap_or(4);
                Form::Loops { axes, ns: work(s) * outer, reduced, bytes: widest as f64 }
            }
        };
        Model { s, machine, rates: *rates, read: moved(false), written: moved(true), form }
    }

    /// Nanoseconds of the kernel with these directives.
    pub fn ns(&self, directives: &mut dyn Iterator<Item = &Directive>) -> f64 {
        match &self.form {
            Form::Product(p) => self.product(p, directives),
            Form::Loops { axes, ns, reduced, bytes } => self.loops(axes, *ns, *reduced, *bytes, directives),
        }
    }

    /// Nanoseconds to move bytes, by where they lie.
    fn moving(&self, bytes: f64) -> f64 {
        let all = self.read + self.written;
        let near = if all <= self.machine.l3_bytes as f64 { CACHED } else { 1.0 };
        bytes / (self.rates.bytes * near) * 1e9
    }

    /// The share of points that all threads do at once: how much longer the last ones make it.
    fn waves(&self, points: f64, grain: f64) -> (f64, f64) {
        let threads = (self.rates.threads as f64).min((points / grain.max(1.0)).ceil()).max(1.0);
        (threads, (points / threads).ceil() * threads / points.max(1.0))
    }

    fn product(&self, p: &Product, directives: &mut dyn Iterator<Item = &Directive>) -> f64 {
        let d = Settings::of(directives);
        let [(left, m), (_, n)] = if d.swap { [p.sides[1], p.sides[0]] } else { p.sides };
        let extent = |v: Option<Var>| v.map_or(1.0, |v| p.s.extent(v) as f64);
        let tile = |v: Option<Var>| {
            let size = v.and_then(|v| d.tiles.iter().rev().find(|t| t.0 == v)).map_or(f64::INFINITY, |t| t.1 as f64);
            size.min(extent(v)).max(1.0)
        };
        let (rows, panel) = (d.rows.max(1.0), (d.vectors * d.lanes).max(1.0));
        let (em, en, mc, nc) = (extent(m), extent(n), tile(m), tile(n));
        // Tiles at the edge of a point take as long as whole ones.
        let tiles = |extent: f64, tile: f64, of: f64| {
            (extent / tile).floor() * (tile / of).ceil() + ((extent % tile) / of).ceil()
        };
        let count = p.batch * tiles(em, mc, rows) * tiles(en, nc, panel);
        let (points_m, points_n) = ((em / mc).ceil(), (en / nc).ceil());
        let points = p.batch * points_m * points_n;
        let (threads, waves) = self.waves(points, d.grain);
        let depth = d.block.map_or(p.depth, |b| (b as f64).min(p.depth)).max(1.0);
        // A step: multiply-adds, or loads of the factors, or waiting for the sums.
        let near = depth * panel * p.bytes <= self.machine.l1_bytes as f64 / 2.0;
        let loads = rows + d.vectors * if near { 1.0 } else { 2.0 };
        let busy = if d.unit { rows * d.vectors / 4.0 } else { (rows * d.vectors).max(loads).max(UNDER_WAY) };
        let a_thread = self.rates.flops / self.rates.threads as f64;
        let mut compute = count * p.depth * busy * 2.0 * d.lanes / a_thread * 1e9 / threads;
        if !d.pack[0] && rows > 8.0 && p.lies(left, m).is_some_and(|row| row > 0.0 && row % 4096.0 == 0.0) {
            compute *= SETS;
        }
        if !d.pack[1] && p.depth * en * p.bytes > self.machine.l1_bytes as f64 / 2.0 && em > 2.0 * rows {
            compute *= IN_PLACE;
        }
        let blocks = (p.depth / depth).ceil();
        // A block of rows that the second cache does not hold is read again for each panel of columns.
        let held = mc * depth * p.bytes <= 0.75 * self.machine.l2_bytes as f64;
        let lefts = em * p.depth * p.batch * p.bytes * if held { points_n } else { points_n.max(en / panel) };
        let rights = en * p.depth * p.batch * p.bytes * points_m;
        let sums = em * en * p.batch * p.bytes * (2.0 * blocks - 1.0);
        let memory = self.moving(lefts + rights + sums);
        let packed = [(d.pack[0], em * points_n), (d.pack[1], en)];
        let copies: f64 = packed.iter().filter(|(pack, _)| *pack).map(|(_, n)| n * p.depth * p.batch).sum();
        let launches = 1.0 + f64::from(u8::from(d.pack[1]));
        (compute * waves).max(memory) + copies * PACK_NS / threads + self.starting(points, threads, launches)
    }

    fn starting(&self, points: f64, threads: f64, launches: f64) -> f64 {
        points * POINT_NS / threads + launches * (LAUNCH_NS + if threads > 1.0 { WAKE_NS } else { 0.0 })
    }

    fn loops(
        &self,
        axes: &[Var],
        ns: f64,
        reduced: bool,
        bytes: f64,
        directives: &mut dyn Iterator<Item = &Directive>,
    ) -> f64 {
        let (mut lanes, mut along, mut grain, mut unroll) = (1.0, None, 1.0, 1.0);
        let (mut stream, mut split, mut last) = (false, false, None);
        let mut points = 1.0;
        for d in directives {
            match d {
                Directive::Vectorize { axis, lanes: n } => (along, lanes) = (Some(*axis), f64::from(*n)),
                Directive::Tile { axis, size } if axes.contains(axis) => {
                    points *= self.s.extent(*axis).div_ceil((*size).max(1)) as f64;
                }
                Directive::Order(order) => last = order.last().copied(),
                Directive::Grain(n) => grain = *n as f64,
                Directive::Unroll(n) => unroll = f64::from(*n),
                Directive::Stream => stream = true,
                Directive::SplitReduction => split = true,
                _ => {}
            }
        }
        if split {
            points = points.max(32.0);
        }
        let (threads, waves) = self.waves(points, grain);
        let extent = along.map_or(1.0, |a| self.s.extent(a) as f64).max(1.0);
        let waste = (extent / lanes).ceil() * lanes / extent;
        let held = (lanes * bytes / f64::from(self.machine.vector_bytes)).max(0.25);
        // Short vectors pay for the loop around them, long ones leave the registers.
        let around = 1.0 + 0.4 / (held * unroll);
        let spilled = if held * unroll > 8.0 || reduced && held > 1.0 { 1.3 } else { 1.0 };
        let reach = along.map_or(4.0, |a| access_cost(self.s, a));
        let apart = match last.filter(|l| Some(*l) != along && !reduced) {
            Some(_) => 1.1,
            None => 1.0,
        };
        let compute = ns * waste * around * spilled * reach * apart / threads;
        let large = self.written > self.machine.l3_bytes as f64;
        let again = match (stream, large) {
            (true, true) => 0.0,
            (true, false) => 4.0 * self.written,
            // A line that is written is read first.
            (false, _) => self.written,
        };
        let memory =
            self.moving(self.read + self.written + again) * if threads < self.rates.threads as f64 { 1.5 } else { 1.0 };
        let launches = if split { 2.0 } else { 1.0 };
        (compute * waves).max(memory) + 0.2 * compute.min(memory) + self.starting(points, threads, launches)
    }
}

impl<'s> Product<'s> {
    fn of(s: &'s Schedule, dot: ValueId) -> Product<'s> {
        let (m, n) = s.sides(dot);
        let (a, b, k) = match s.value(dot).op {
            ValueOp::Dot { a, b, axis, .. } => (a, b, axis),
            _ => (dot, dot, Var(u32::MAX)),
        };
        let rest = parallel_axes(s).into_iter().filter(|v| Some(*v) != m && Some(*v) != n);
        Product {
            s,
            dot,
            depth_axis: k,
            depth: s.extent(k) as f64,
            batch: rest.map(|v| s.extent(v) as f64).product(),
            bytes: f64::from(dot::accumulator_bytes(s, dot)),
            sides: [(a, m), (b, n)],
        }
    }

    /// The bytes between neighbouring rows of an operand that is read as it lies; `None` of another one.
    fn lies(&self, v: ValueId, along: Option<Var>) -> Option<f64> {
        let at = dot::plain(self.s, v).filter(|_| self.s.value(v).dtype == self.s.value(self.dot).dtype)?;
        at.stride(self.depth_axis)?;
        along.and_then(|a| at.stride(a)).map(|n| n.unsigned_abs() as f64 * self.bytes)
    }
}

impl Settings {
    fn of(directives: &mut dyn Iterator<Item = &Directive>) -> Settings {
        let mut out = Settings { rows: 8.0, vectors: 2.0, lanes: 16.0, grain: 1.0, ..Settings::default() };
        for d in directives {
            match d {
                Directive::Registers { rows, vectors } => {
                    (out.rows, out.vectors) = (f64::from(*rows), f64::from(*vectors))
                }
                Directive::Vectorize { lanes, .. } => out.lanes = f64::from(*lanes),
                Directive::Tile { axis, size } => out.tiles.push((*axis, *size)),
                Directive::Block { size, .. } => out.block = Some(*size),
                Directive::Pack { operand } => out.pack[(*operand as usize).min(1)] = true,
                Directive::Swap => out.swap = true,
                Directive::MatrixUnit => out.unit = true,
                Directive::Grain(n) => out.grain = *n as f64,
                _ => {}
            }
        }
        out
    }
}
