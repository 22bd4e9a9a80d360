//! The schedules that a search chooses from: a grid over the decisions of a schedule, ranked by the cost model.
//!
//! Each decision ([`Knob`]) has its choices, those of the given schedule first. A point of the grid takes one choice of each. What
//! is certain to be refused (register tiles that no processor has room for, vectors that are too long) is no choice; what only
//! the lowering can tell is refused when the point is looked at.

use crate::estimate::{Model, Rates};
use tessera_ir::index::Var;
use tessera_ir::schedule::{Class, Directive, Machine, Schedule, ValueOp};
use tessera_ops::prim::fold::block;

/// Points that are ranked, at most: of the decisions that matter least fewer choices are taken beyond it.
const POINTS_MAX: u64 = 1 << 17;
/// Points that are kept: those that the model ranks first.
const KEPT: usize = 1 << 14;
/// What the model adds for a choice that is not that of the start, so that of equal points the nearest one is first.
const UNLIKE: f64 = 0.004;

/// Where a choice lies among those of its decision: two choices are as unlike as these are apart.
pub type Place = [f64; 2];

struct Choice {
    directives: Vec<Directive>,
    place: Place,
}

/// One decision.
struct Knob {
    choices: Vec<Choice>,
}

/// A grid with its points in the order of their ranks; the first is the schedule itself.
pub struct Grid {
    knobs: Vec<Knob>,
    points: Vec<(Box<[u8]>, f64)>,
    /// Points of the whole grid.
    pub all: u64,
}

impl Grid {
    /// The grid around a schedule, ranked for a machine.
    pub fn around(s: &Schedule, machine: &Machine, rates: &Rates) -> Grid {
        let mut knobs = if s.values.iter().any(|v| matches!(v.op, ValueOp::Dot { .. })) {
            product(s, machine)
        } else {
            loops(s, machine)
        };
        knobs.retain(|k| k.choices.len() > 1 || !k.choices[0].directives.is_empty());
        shorten(&mut knobs);
        let all = knobs.iter().map(|k| k.choices.len() as u64).product();
        let mut grid = Grid { knobs, points: vec![], all };
        grid.rank(&Model::of(s, machine, rates));
        grid
    }

    fn rank(&mut self, model: &Model) {
        let mut point = vec![0u8; self.knobs.len()];
        let mut points: Vec<(Box<[u8]>, f64)> = vec![];
        loop {
            let unlike = point.iter().filter(|c| **c != 0).count() as f64;
            let ns = model.ns(&mut self.chosen(&point)) * (1.0 + UNLIKE * unlike);
            points.push((point.clone().into(), ns));
            let next = (0..point.len()).rev().find(|&k| usize::from(point[k]) + 1 < self.knobs[k].choices.len());
            let Some(at) = next else { break };
            point[at] += 1;
            point[at + 1..].fill(0);
        }
        // The schedule itself is first whatever the model says of it; equal ones stay in the order of the grid.
        points[1..].sort_by(|a, b| a.1.total_cmp(&b.1));
        points.truncate(KEPT);
        self.points = points;
    }

    fn chosen<'g>(&'g self, point: &'g [u8]) -> impl Iterator<Item = &'g Directive> {
        self.knobs.iter().zip(point).flat_map(|(k, &c)| &k.choices[usize::from(c)].directives)
    }

    /// How many points there are to choose from.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is nothing but the schedule itself.
    pub fn is_empty(&self) -> bool {
        self.points.len() <= 1
    }

    /// The directives of a point.
    pub fn directives(&self, point: usize) -> Vec<Directive> {
        self.chosen(&self.points[point].0).cloned().collect()
    }

    /// What the model expects of a point, in nanoseconds.
    pub fn ns(&self, point: usize) -> f64 {
        self.points[point].1
    }

    /// Where a point lies: points are as unlike as these are apart.
    pub fn place(&self, point: usize) -> Vec<f64> {
        let at = self.points[point].0.iter().zip(&self.knobs);
        at.flat_map(|(&c, k)| k.choices[usize::from(c)].place).collect()
    }

    /// The point whose choices are nearest to directives of another schedule of the same form, which is kept from here on.
    pub fn nearest(&mut self, wanted: &[Directive], model: &Model) -> usize {
        let near = |k: &Knob| -> u8 {
            let slot = k.choices.iter().flat_map(|c| &c.directives).map(slot).next();
            let there = wanted.iter().find(|d| Some(self::slot(d)) == slot);
            let apart = |c: &Choice| match (there, c.directives.first()) {
                (None, None) => 0.0,
                (Some(a), Some(b)) if a == b => -1.0,
                (Some(a), Some(_)) => apart(&place(a), &c.place),
                _ => f64::INFINITY,
            };
            let best = (0..k.choices.len()).min_by(|a, b| apart(&k.choices[*a]).total_cmp(&apart(&k.choices[*b])));
            best.unwrap_or(0) as u8
        };
        let point: Box<[u8]> = self.knobs.iter().map(near).collect();
        if let Some(at) = self.points.iter().position(|p| p.0 == point) {
            return at;
        }
        let ns = model.ns(&mut self.chosen(&point));
        self.points.push((point, ns));
        self.points.len() - 1
    }
}

/// The square of how far two places are apart.
fn apart(a: &Place, b: &Place) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
}

/// Which decision a directive belongs to.
fn slot(d: &Directive) -> (u8, u32) {
    match d {
        Directive::Order(_) => (0, 0),
        Directive::Tile { axis, .. } => (1, axis.0),
        Directive::Vectorize { .. } => (2, 0),
        Directive::Registers { .. } => (3, 0),
        Directive::Steps { .. } => (4, 0),
        Directive::Block { .. } => (5, 0),
        Directive::Pack { operand } => (6, *operand),
        Directive::SplitReduction => (7, 0),
        Directive::Prefetch => (8, 0),
        Directive::MatrixUnit => (9, 0),
        Directive::Warps { .. } => (10, 0),
        Directive::Stages(_) => (11, 0),
        Directive::Stream => (12, 0),
        Directive::Overlap => (13, 0),
        Directive::Swap => (14, 0),
        Directive::Windows => (15, 0),
        Directive::Grain(_) => (16, 0),
        Directive::Unroll(_) => (17, 0),
    }
}

/// Where a directive lies among those of its decision: sizes by their logarithm, what is there or not by one.
fn place(d: &Directive) -> Place {
    let log = |n: u64| (n.max(1) as f64).log2();
    match d {
        Directive::Tile { size, .. } | Directive::Block { size, .. } => [0.7 * log(*size), 0.0],
        Directive::Vectorize { axis, lanes } => [log(u64::from(*lanes)), 2.0 * f64::from(axis.0)],
        Directive::Registers { rows, vectors } => [log(u64::from(*rows)), 1.5 * log(u64::from(*vectors))],
        Directive::Warps { rows, cols } => [log(u64::from(*rows)), log(u64::from(*cols))],
        Directive::Steps { unroll, distance } => [0.5 * log(u64::from(*unroll)), 0.3 * log(u64::from(*distance) + 8)],
        Directive::Stages(n) => [f64::from(*n), 0.0],
        Directive::Grain(n) => [0.25 * log(*n), 0.0],
        Directive::Unroll(n) => [0.5 * log(u64::from(*n)), 0.0],
        _ => [1.0, 0.0],
    }
}

/// A decision with these choices; choices that come again are left out.
fn knob(choices: impl IntoIterator<Item = Vec<Directive>>) -> Knob {
    let mut out: Vec<Choice> = vec![];
    for directives in choices {
        if out.iter().any(|c| c.directives == directives) {
            continue;
        }
        let place = match directives.first() {
            // Orders have no distances: each is as far from the others as it stands in the list.
            Some(Directive::Order(_)) => [out.len() as f64, 0.0],
            Some(d) => place(d),
            None => [0.0, 0.0],
        };
        out.push(Choice { directives, place });
    }
    Knob { choices: out }
}

/// A decision of one directive: as it is, and the others.
fn instead(d: &Directive, others: impl IntoIterator<Item = Directive>) -> Knob {
    knob(std::iter::once(vec![d.clone()]).chain(others.into_iter().map(|d| vec![d])))
}

/// Whether a directive is there or not: as the schedule has it first.
fn toggle(s: &Schedule, d: Directive) -> Knob {
    let (with, without) = (vec![d.clone()], vec![]);
    if s.directives.contains(&d) { knob([with, without]) } else { knob([without, with]) }
}

/// A size with its halves and doubles, up to the extent.
fn sizes(size: u64, extent: u64) -> Vec<u64> {
    let extent = extent.max(1);
    [size, size / 2, size.saturating_mul(2), size / 4, size.saturating_mul(4)]
        .into_iter()
        .map(|n| n.clamp(1, extent))
        .collect()
}

fn tile(s: &Schedule, axis: Var, size: u64) -> Knob {
    instead(
        &Directive::Tile { axis, size },
        sizes(size, s.extent(axis)).into_iter().map(|size| Directive::Tile { axis, size }),
    )
}

fn grain(points: u64) -> Knob {
    let others = [points / 4, points.saturating_mul(4)].into_iter().filter(|n| *n > 0).map(Directive::Grain);
    instead(&Directive::Grain(points), others)
}

/// Register tiles that fit the registers of the machine.
fn registers(rows: u32, vectors: u32, machine: &Machine, unit: bool) -> Knob {
    let half = [(rows / 2, vectors), (rows, vectors / 2), (rows * 2, vectors), (rows, vectors * 2)];
    let usual = [(14, 2), (9, 3), (6, 4), (28, 1), (8, 3), (12, 2), (4, 4), (2, 8)];
    let fits = |(r, v): &(u32, u32)| match unit {
        true => *r <= 32 && *v <= 2,
        false => r * v + v < machine.vector_registers && *r <= 28,
    };
    let all = usual.into_iter().filter(|_| machine.class == Class::Cpu && !unit).chain(half);
    let all = all.filter(|(r, v)| *r > 0 && *v > 0).filter(fits);
    instead(&Directive::Registers { rows, vectors }, all.map(|(rows, vectors)| Directive::Registers { rows, vectors }))
}

/// Blocks of the steps of a product: whole leaves.
fn blocks(s: &Schedule, axis: Var, now: Option<u64>) -> Knob {
    let dot = s.values.iter().find_map(|v| match v.op {
        ValueOp::Dot { axis: k, order, leaf, .. } if k == axis => Some((order, leaf)),
        _ => None,
    });
    let extent = s.extent(axis);
    let whole = |size: u64| match dot {
        Some((order, leaf)) => block(size, extent, leaf, order.unit().max(16)),
        None => size,
    };
    let wanted = now.map_or_else(|| vec![256, 512, 1024], |now| sizes(now, extent));
    let as_it_is: Vec<Directive> = now.map(|size| Directive::Block { axis, size }).into_iter().collect();
    let same = |size: u64| now.is_some_and(|now| whole(now) == size) || size >= extent;
    let others = wanted.into_iter().map(whole).filter(|size| !same(*size));
    let others = others.map(|size| vec![Directive::Block { axis, size }]);
    let none = now.map(|_| vec![]);
    knob(std::iter::once(as_it_is).chain(others).chain(none))
}

fn product(s: &Schedule, machine: &Machine) -> Vec<Knob> {
    let unit = s.directives.contains(&Directive::MatrixUnit);
    let windows = s.directives.contains(&Directive::Windows);
    let mut out = vec![];
    for d in &s.directives {
        out.push(match d {
            Directive::Registers { rows, vectors } => registers(*rows, *vectors, machine, unit),
            Directive::Tile { axis, size } => tile(s, *axis, *size),
            Directive::Steps { unroll, distance } => {
                let unrolls = [2, 4, 8].map(|unroll| Directive::Steps { unroll, distance: *distance });
                let distances = [0, 16, 64].map(|distance| Directive::Steps { unroll: *unroll, distance });
                instead(d, unrolls.into_iter().chain(distances))
            }
            Directive::Block { axis, size } => blocks(s, *axis, Some(*size)),
            Directive::Grain(n) => grain(*n),
            Directive::Stages(n) => {
                instead(d, [n - 1, n + 1].into_iter().filter(|n| (2..=8).contains(n)).map(Directive::Stages))
            }
            Directive::Warps { rows, cols } => {
                let others = [(rows / 2, *cols), (*rows, cols / 2), (rows * 2, *cols), (*rows, cols * 2)];
                let fits = |(r, c): &(u32, u32)| (1..=8).contains(&(r * c));
                instead(d, others.into_iter().filter(fits).map(|(rows, cols)| Directive::Warps { rows, cols }))
            }
            Directive::Pack { .. } | Directive::Prefetch | Directive::Swap => continue,
            d => knob([vec![d.clone()]]),
        });
    }
    let packs = [0, 1].map(|operand| Directive::Pack { operand });
    match machine.class {
        Class::Cpu => {
            let depth =
                s.values.iter().find_map(|v| if let ValueOp::Dot { axis, .. } = v.op { Some(axis) } else { None });
            let blocked = s.directives.iter().any(|d| matches!(d, Directive::Block { .. }));
            out.extend(depth.filter(|_| !blocked && !windows).map(|axis| blocks(s, axis, None)));
            out.extend(packs.map(|d| toggle(s, d)));
            // Windows are read by the side that they are on.
            out.push(if windows { knob([vec![Directive::Swap]]) } else { toggle(s, Directive::Swap) });
            out.push(toggle(s, Directive::Prefetch));
        }
        Class::Gpu => {
            let rest =
                packs.into_iter().chain([Directive::Prefetch, Directive::Swap]).filter(|d| s.directives.contains(d));
            out.extend(rest.map(|d| knob([vec![d]])));
        }
    }
    out
}

fn loops(s: &Schedule, machine: &Machine) -> Vec<Knob> {
    let parallel: Vec<Var> = crate::choose::parallel_axes(s);
    let mut out = vec![];
    for d in &s.directives {
        out.push(match d {
            Directive::Vectorize { axis, lanes } => {
                let longer = [lanes * 2, lanes / 2, lanes * 4]
                    .into_iter()
                    .filter(|n| (2..=machine.lanes_max.max(64)).contains(n));
                let longer = longer.map(|lanes| Directive::Vectorize { axis: *axis, lanes });
                let across = parallel.iter().filter(|a| *a != axis);
                let across = across.map(|&axis| Directive::Vectorize { axis, lanes: *lanes });
                instead(d, longer.chain(across))
            }
            Directive::Tile { axis, size } => tile(s, *axis, *size),
            Directive::Order(axes) => {
                let swapped = (1..axes.len()).rev().map(|i| {
                    let mut axes = axes.clone();
                    axes.swap(i - 1, i);
                    Directive::Order(axes)
                });
                instead(d, swapped)
            }
            Directive::Grain(n) => grain(*n),
            Directive::Stream | Directive::Prefetch | Directive::SplitReduction | Directive::Overlap => continue,
            Directive::Unroll(n) => {
                let others = [2, 4, 8].into_iter().map(|n| vec![Directive::Unroll(n)]);
                knob(std::iter::once(vec![Directive::Unroll(*n)]).chain(others).chain([vec![]]))
            }
            d => knob([vec![d.clone()]]),
        });
    }
    // An axis without a tile lies inside each point; the grid may divide it too.
    let tiled = |v: &Var| s.directives.iter().any(|d| matches!(d, Directive::Tile { axis, .. } if axis == v));
    for &axis in parallel.iter().filter(|v| !tiled(v)) {
        let parts = [8, 32].map(|n| vec![Directive::Tile { axis, size: s.extent(axis).div_ceil(n) }]);
        out.push(knob(std::iter::once(vec![]).chain(parts)));
    }
    if !s.directives.iter().any(|d| matches!(d, Directive::Unroll(_))) {
        out.push(knob([vec![], vec![Directive::Unroll(2)], vec![Directive::Unroll(4)]]));
    }
    out.extend([Directive::Stream, Directive::Prefetch].map(|d| toggle(s, d)));
    if s.values.iter().any(|v| matches!(v.op, ValueOp::Reduce { .. })) {
        out.extend([Directive::SplitReduction, Directive::Overlap].map(|d| toggle(s, d)));
    }
    out
}

/// Takes the last choices of the decisions with the most of them until the grid is small enough.
fn shorten(knobs: &mut [Knob]) {
    let all = |knobs: &[Knob]| knobs.iter().fold(1u64, |n, k| n.saturating_mul(k.choices.len() as u64));
    while all(knobs) > POINTS_MAX {
        let most = knobs.iter_mut().max_by_key(|k| k.choices.len()).expect("a grid that is too large has decisions");
        most.choices.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_ir::schedule;

    fn start() -> Result<Schedule, String> {
        let text = r#"
"tessera.schedule.kernel"() {name="k", scalars=[]} ({
  %in0 = "tessera.schedule.operand"() {elems=100000, output=false} : f32
  %out0 = "tessera.schedule.operand"() {elems=100000, output=true} : f32
  %i0 = "tessera.schedule.axis"() {extent=100000, reduced=false}
  %0 = "tessera.schedule.load"(%in0) {at="i0"} : f32
  "tessera.schedule.store"(%out0, %0) {at="i0"}
}, {
  "tessera.schedule.vectorize"() {axis="i0", lanes=16}
  "tessera.schedule.tile"() {axis="i0", size=1024}
})"#;
        schedule::text::parse(text).map_err(|e| e.message)
    }

    #[test]
    fn the_schedule_is_first_and_every_point_is_legal() -> Result<(), String> {
        let start = start()?;
        let machine = crate::reference();
        let grid = Grid::around(&start, &machine, &Rates::usual(2));
        assert_eq!(grid.directives(0), start.directives);
        assert!(grid.len() as u64 == grid.all && grid.len() > 100, "{}", grid.len());
        for point in 0..grid.len() {
            let s = Schedule { directives: grid.directives(point), ..start.clone() };
            schedule::verify::verify(&s)?;
            assert!(grid.ns(point).is_finite());
        }
        assert!((2..grid.len()).all(|p| grid.ns(p - 1) <= grid.ns(p)));
        Ok(())
    }

    #[test]
    fn the_nearest_point_to_a_schedule_of_another_size() -> Result<(), String> {
        let start = start()?;
        let (machine, rates) = (crate::reference(), Rates::usual(2));
        let mut grid = Grid::around(&start, &machine, &rates);
        let wanted = [Directive::Vectorize { axis: Var(0), lanes: 64 }, Directive::Tile { axis: Var(0), size: 5000 }];
        let at = grid.nearest(&wanted, &Model::of(&start, &machine, &rates));
        let found = grid.directives(at);
        assert!(found.contains(&Directive::Vectorize { axis: Var(0), lanes: 64 }), "{found:?}");
        assert!(found.contains(&Directive::Tile { axis: Var(0), size: 4096 }), "{found:?}");
        Ok(())
    }
}
