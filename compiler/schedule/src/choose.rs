//! Directives by a cost model: vector axis, loop order, grid, streaming.
//!
//! Costs are rough nanoseconds on a current core. They depend on sizes and on the machine, and
//! never change a result.

mod register_tile;
mod conv_rows;
pub mod dot;
mod group_dot;
mod cumulate;
mod transform;
mod atoms;
mod attention;
mod conv_windows;
pub mod weighed;

use tessera_base::DType;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::attention::Attention;
use tessera_ir::schedule::{Class, Directive, Machine, Schedule, Value, ValueId, ValueOp};
use tessera_ops::prim::LANES;

/// Elements from which a reduction that has no rows to share out is divided itself, which takes a second kernel.
const SPLIT_MIN: u64 = 1 << 14;
/// Nanoseconds that one grid point should take: far above a wake-up, far below a time slice.
const POINT_NS: f64 = 15_000.0;
/// Nanoseconds of work below which no second thread is woken.
const WAKE_NS: f64 = 10_000.0;
/// Columns that a reduction across them handles together: a page of f32.
const BLOCK: u64 = 1024;
/// The same where the grid needs more points than the rows allow.
const BLOCK_MIN: u64 = 256;
/// Rows of a grid point that are written while the next one is reduced.
const ROWS: u64 = 16;
/// What a random word costs, in plain operations.
const RANDOM_COST: f64 = 20.0;
/// Random words that are made together: four of each of the blocks that fill a vector.
const RANDOM_WORDS: u32 = 32;
/// Lanes of an elementwise kernel of a GPU: four elements to each thread of a warp, so that as many loads are under way.
const WIDE: u32 = 128;
/// Turns of a reduction of a GPU that are written in a row.
const UNROLL: u32 = 4;
/// With fewer points than these a GPU is not busy: long reductions are split, from so many steps on.
const POINTS_MIN: f64 = 2048.0;
const GPU_SPLIT_MIN: u64 = 1 << 11;
/// Grid points of a GPU at most.
const POINTS_MAX: f64 = 1e9;
/// Grid points at most.
const GRID_MAX: f64 = 4096.0;

pub fn directives(s: &mut Schedule, machine: &Machine) {
    s.directives = match s.values.iter().position(|v| matches!(v.op, ValueOp::Dot { .. })) {
        _ if s.stores_nothing() => vec![],
        Some(_) if Attention::is(s) => attention::directives(s, machine),
        Some(at) => {
            let dot = ValueId(at as u32);
            conv_windows::directives(s, dot, machine).unwrap_or_else(|| {
                conv_rows::join(s, dot, dot::lanes(s, dot, machine) as u64);
                dot::directives(s, dot, machine)
            })
        }
        None => match s.values.iter().find_map(|v| cumulate::axis(&v.op)) {
            Some(axis) => cumulate::directives(s, axis, machine),
            None => transform::directives(s, machine).unwrap_or_else(|| loops(s, machine)),
        },
    };
}

/// Parallel axes with more than one position, by falling stride of the first store.
pub fn parallel_axes(s: &Schedule) -> Vec<Var> {
    let mut axes: Vec<Var> =
        (0..s.axes.len() as u32).map(Var).filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) != 1).collect();
    // Where data says where they lead, they lead far.
    let ordered = s.ordered();
    let stride = |v: &Var| match s.stores.first() {
        _ if ordered.contains(v) => i64::MAX,
        st => st.and_then(|st| st.at.stride(*v)).unwrap_or(0),
    };
    axes.sort_by_key(|v| std::cmp::Reverse(stride(v)));
    axes
}

/// The axis of the first reduction and the parallel axes it depends on.
fn reduction(s: &Schedule) -> Option<(Var, Vec<Var>)> {
    let at = s.values.iter().position(|v| reduced(&v.op).is_some())?;
    reduced(&s.values[at].op).map(|axis| (axis, s.domains().swap_remove(at)))
}

/// The axis that a reduction makes vanish.
fn reduced(op: &ValueOp) -> Option<Var> {
    match op {
        ValueOp::Reduce { axis, .. } | ValueOp::ArgReduce { axis, .. } => Some(*axis),
        _ => None,
    }
}

fn loops(s: &Schedule, machine: &Machine) -> Vec<Directive> {
    let axes = parallel_axes(s);
    let reduction = reduction(s);
    let mut out = vec![];
    let (vector, lanes) = match vector_axes(s, &axes, &reduction).first().map(|(axis, _)| *axis) {
        Some(axis) if s.axes[axis.0 as usize].reduced => (Some(axis), LANES as u32),
        Some(axis) => {
            (Some(axis), if reduction.is_some() { register_lanes(s, machine) } else { lanes(s, axis, machine) })
        }
        None => (None, 1),
    };
    if let Some(axis) = vector {
        out.push(Directive::Vectorize { axis, lanes });
    }
    // Rows of the grid: what no reduction reads back over.
    let outer: Vec<Var> = match &reduction {
        Some((_, domain)) => axes.iter().copied().filter(|a| domain.contains(a)).collect(),
        None => axes.clone(),
    };
    let mut order: Vec<Var> = outer.iter().copied().filter(|a| Some(*a) != vector).collect();
    let gpu = machine.class == Class::Gpu;
    let across = vector.filter(|v| outer.contains(v) && reduction.is_none()).and_then(|v| transposed(s, v, &order));
    if let Some(v) = vector.filter(|v| outer.contains(v)) {
        order.push(v);
    }
    let straight = across.is_none() && reduction.is_none();
    let lanes = match vector {
        Some(axis) if gpu && straight && s.extent(axis) >= u64::from(WIDE) => {
            out = vec![Directive::Vectorize { axis, lanes: WIDE }];
            WIDE
        }
        _ => lanes,
    };
    if let Some(u) = across {
        // Lines of the strided operand are used up by neighbouring positions of `u`.
        order.retain(|a| *a != u);
        order.push(u);
    }
    let total_ns = points(s, &outer) * work(s);
    let extents = |axes: &[Var]| axes.iter().map(|a| s.extent(*a) as f64).product::<f64>();
    // Columns of a point: on a GPU its neighbours read the rest of a line.
    let mut block = if gpu { u64::from(lanes) } else { BLOCK_MIN };
    if let Some((r, _)) = &reduction {
        let split_min = if gpu { GPU_SPLIT_MIN } else { SPLIT_MIN };
        let columns = if gpu { f64::from(lanes) } else { BLOCK as f64 };
        let wide = if vector.is_some_and(|v| outer.contains(&v)) { columns } else { 1.0 };
        let few = extents(&outer) / wide < if gpu { POINTS_MIN } else { 8.0 };
        if few && axes.len() == outer.len() && !s.walks(*r) && s.extent(*r) >= split_min && reductions(s) == 1 {
            out.push(Directive::SplitReduction);
            block = if gpu { block } else { BLOCK };
        }
    }
    let written: u64 = s
        .stores
        .iter()
        .map(|st| s.operands[st.operand as usize].elems * s.operands[st.operand as usize].dtype.bytes() as u64)
        .sum();
    let rows = reduction.as_ref().is_some_and(|(r, _)| vector == Some(*r) && s.walks(*r));
    let read: u64 = s.operands.iter().filter(|o| !o.output).map(|o| o.elems * o.dtype.bytes() as u64).sum();
    let whole = s.stores.iter().all(|st| st.by.is_empty());
    let stream = whole && written > machine.l3_bytes && (rows || axes.len() == 1 && reduction.is_none());
    // Each group of threads takes one row, or one vector, at a time.
    let each = if vector.is_some_and(|v| outer.contains(&v)) { f64::from(lanes) } else { 1.0 };
    let mut wanted = match gpu {
        true => (extents(&outer) / each).clamp(1.0, POINTS_MAX),
        false => (total_ns / POINT_NS).clamp(1.0, GRID_MAX),
    };
    let ordered = s.ordered();
    for &axis in order.iter().filter(|a| !ordered.contains(a)) {
        let extent = s.extent(axis);
        if wanted < 1.5 || extent == 0 {
            break;
        }
        let lanes = if Some(axis) == vector { lanes as u64 } else { 1 };
        let size = (extent as f64 / wanted).ceil().max(1.0) as u64;
        let columns = Some(axis) == vector && reduction.is_some();
        let size = if columns { size.max(block) } else { size }.next_multiple_of(lanes);
        let size = if rows && stream && lanes == 1 { even_rows(extent, size) } else { size };
        out.push(Directive::Tile { axis, size });
        wanted /= extent.div_ceil(size) as f64;
    }
    out.push(Directive::Order(order));
    let along = reduction.as_ref().map_or(vector.is_some(), |(r, _)| vector == Some(*r));
    if gpu {
        // Many loads under way at once, where nothing is stored between them.
        out.extend(reduction.is_some().then_some(Directive::Unroll(UNROLL)));
        out.push(Directive::Grain(1));
        return out;
    }
    if along && read > machine.l2_bytes {
        out.push(Directive::Prefetch);
    }
    if stream {
        out.push(Directive::Stream);
    }
    if rows && stream && reductions(s) > 1 && overlaps(s, machine) {
        out.push(Directive::Overlap);
    }
    let grid: f64 = out
        .iter()
        .map(|d| if let Directive::Tile { axis, size } = d { s.extent(*axis).div_ceil(*size) as f64 } else { 1.0 })
        .product();
    out.push(Directive::Grain((WAKE_NS * grid / total_ns.max(1.0)).ceil().clamp(1.0, 1e9) as u64));
    out
}

/// Rows of a grid point that leave no rest, where there are that many: the first row and the last
/// are not worked on together with others.
fn even_rows(extent: u64, size: u64) -> u64 {
    let least = if extent / ROWS >= 64 { size.max(ROWS) } else { size };
    (least..=2 * least).find(|n| extent.is_multiple_of(*n)).unwrap_or(size)
}

/// Whether the reductions of neighbouring rows should go together. The rows are then read again
/// later: from the nearest cache if they fit there, else from the next, which arithmetic hides.
fn overlaps(s: &Schedule, machine: &Machine) -> bool {
    const DEAR: u32 = 8;
    let Some((r, _)) = reduction(s) else { return false };
    let domains = s.domains();
    let along = |i: &usize| domains[*i].contains(&r);
    let read = |i: usize| match &s.values[i].op {
        ValueOp::Load { .. } => s.values[i].dtype.bytes() as u64,
        _ => 0,
    };
    let dear = |i: usize| matches!(&s.values[i].op, ValueOp::Map { op, .. } if op.def().cost >= DEAR);
    let row: u64 = (0..s.values.len()).filter(along).map(read).sum::<u64>() * s.extent(r);
    row * (reductions(s) as u64 + 2) <= machine.l1_bytes || (0..s.values.len()).filter(along).any(dear)
}

fn reductions(s: &Schedule) -> usize {
    s.values.iter().filter(|v| reduced(&v.op).is_some()).count()
}

fn points(s: &Schedule, outer: &[Var]) -> f64 {
    outer.iter().map(|a| s.extent(*a) as f64).product()
}

/// The axes of the grid and its loops: what no reduction reads back over.
pub fn outer(s: &Schedule) -> Vec<Var> {
    reduction(s).map_or_else(|| parallel_axes(s), |(_, d)| d)
}

/// What the accesses of a kernel cost on average if `axis` runs along the lanes; 1 where all are neighbours.
pub fn access_cost(s: &Schedule, axis: Var) -> f64 {
    let loads = s.values.iter().filter_map(|v| match &v.op {
        ValueOp::Load { at, .. } => Some(load_cost(lane_stride(s, at, axis))),
        _ => None,
    });
    let reduced = s.axes.get(axis.0 as usize).is_some_and(|a| a.reduced);
    let stores = s.stores.iter().filter(|_| !reduced).map(|st| stride_cost(s.store_stride(st, axis)));
    let all: Vec<f64> = loads.chain(stores).map(|cost| cost.max(1.0)).collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

/// Nanoseconds per position of the outer axes.
pub fn work(s: &Schedule) -> f64 {
    let domains = s.domains();
    let outer = outer(s);
    let inner =
        |i: usize| -> f64 { domains[i].iter().filter(|a| !outer.contains(a)).map(|a| s.extent(*a) as f64).product() };
    let mut ns = 0.0;
    for (i, v) in s.values.iter().enumerate() {
        let cost = match &v.op {
            ValueOp::Load { .. } => 1.0 + v.dtype.bytes() as f64 / 4.0,
            ValueOp::Gather { .. } => 4.0 + v.dtype.bytes() as f64 / 4.0,
            ValueOp::Map { op, .. } => op.def().cost as f64,
            ValueOp::Cast(_) | ValueOp::RoundTf32(_) | ValueOp::Within(_) | ValueOp::Index(_) => 1.0,
            ValueOp::Random { .. } => RANDOM_COST,
            ValueOp::Reduce { arg, .. } => inner(arg.0 as usize) * if s.compensated { 6.0 } else { 1.0 },
            ValueOp::ArgReduce { arg, .. } => inner(arg.0 as usize) * 4.0,
            ValueOp::Cumulate { .. } => 8.0,
            _ => 0.0,
        };
        ns += 0.04 * cost * if reduced(&v.op).is_some() { 1.0 } else { inner(i) };
    }
    let written: f64 = s.stores.iter().map(|st| inner(st.value.0 as usize)).sum();
    (ns + 0.1 * written).max(0.02)
}

/// Lanes of an elementwise kernel: a register of the narrowest compute type in use, at least 16
/// so that wider types keep two or more registers busy.
fn lanes(s: &Schedule, axis: Var, machine: &Machine) -> u32 {
    let widest =
        s.values.iter().map(|v| if v.dtype == DType::Bool { 1 } else { v.dtype.compute().bytes() }).max().unwrap_or(4);
    let lanes = (machine.vector_bytes / widest as u32).clamp(16, machine.lanes_max);
    let random = s.values.iter().any(|v| matches!(v.op, ValueOp::Random { .. }));
    if random && s.extent(axis) >= u64::from(RANDOM_WORDS) { lanes.max(RANDOM_WORDS) } else { lanes }
}

/// Lanes of a kernel that keeps 16 chains per lane: one register each.
fn register_lanes(s: &Schedule, machine: &Machine) -> u32 {
    let bytes = |v: &Value| match v.op {
        ValueOp::Reduce { .. } => Some(v.dtype.bytes()),
        ValueOp::ArgReduce { arg, .. } => Some(s.value(arg).dtype.compute().bytes()),
        _ => None,
    };
    let bytes = s.values.iter().filter_map(bytes).max().unwrap_or(4);
    (machine.vector_bytes / bytes as u32).clamp(2, 16)
}

/// The stride of neighbouring lanes if whole chunks of `axis` run along them: also inside a
/// division by a multiple of the chunk.
fn lane_stride(s: &Schedule, at: &Index, axis: Var) -> Option<i64> {
    const LANE: Var = Var(u32::MAX);
    let chunk = Index::var(axis).times(LANES as i64).plus(&Index::var(LANE));
    let range = |v: Var| match v {
        LANE => (0, LANES as i64 - 1),
        v if v == axis => (0, (s.extent(axis) / LANES as u64).saturating_sub(1) as i64),
        v => s.range(v),
    };
    at.substitute(&|v| (v == axis).then(|| chunk.clone()), &range).stride(LANE)
}

/// What an access costs per element if `axis` runs along the lanes.
fn stride_cost(stride: Option<i64>) -> f64 {
    match stride {
        Some(1) => 1.0,
        // One part of complex numbers: the other one shares its lines and its shuffles.
        Some(2) => 1.5,
        Some(0) => 0.3,
        _ => 12.0,
    }
}

/// The same for a load, which reads whole vectors of lanes that are a few elements apart.
fn load_cost(stride: Option<i64>) -> f64 {
    match stride {
        Some(n @ 2..=4) => 1.5 * n as f64,
        stride => stride_cost(stride),
    }
}

/// The axes that may run along the lanes, with what the accesses of an element cost then; the cheapest first.
fn vector_axes(s: &Schedule, axes: &[Var], reduction: &Option<(Var, Vec<Var>)>) -> Vec<(Var, f64)> {
    let domains = s.domains();
    let accesses = |axis: Var| -> f64 {
        let loads = s.values.iter().enumerate().filter_map(|(i, v)| match &v.op {
            ValueOp::Load { at, .. } if domains[i].contains(&axis) || reduction.is_none() => {
                Some(load_cost(lane_stride(s, at, axis)))
            }
            ValueOp::Gather { at, by, .. } if domains[i].contains(&axis) || reduction.is_none() => {
                let scattered = by.iter().any(|(p, _)| domains[p.0 as usize].contains(&axis));
                Some(stride_cost(if scattered { None } else { lane_stride(s, at, axis) }))
            }
            _ => None,
        });
        let stores = s.stores.iter().map(|st| stride_cost(s.store_stride(st, axis)) * 1.5);
        loads.sum::<f64>() + if reduction.is_none() { stores.sum::<f64>() } else { 0.0 }
    };
    // A short axis leaves lanes idle.
    let waste = |axis: Var| {
        let n = s.extent(axis).max(1) as f64;
        (n / 16.0).ceil() * 16.0 / n
    };
    let with_cost = |a: Var| (a, accesses(a) * waste(a));
    let mut out: Vec<(Var, f64)> = match reduction {
        None => axes.iter().copied().map(with_cost).collect(),
        Some((r, domain)) => {
            // Along the reduced axis lanes are the canonical ones; across it, 16 chains are kept per lane.
            let along = (*r, with_cost(*r).1 + 4.0 / s.extent(*r).max(1) as f64);
            let stored = |a: &Var| s.stores.iter().any(|st| st.at.stride(*a) == Some(1));
            let across = domain.iter().copied().filter(|a| stored(a) || accesses(*a) < accesses(*r));
            std::iter::once(along).chain(across.map(with_cost)).collect()
        }
    };
    out.sort_by(|a, b| a.1.total_cmp(&b.1));
    out
}

/// Another axis along which a load is contiguous that is strided along the vector axis.
fn transposed(s: &Schedule, vector: Var, others: &[Var]) -> Option<Var> {
    s.values.iter().find_map(|v| match &v.op {
        ValueOp::Load { at, .. } if !matches!(at.stride(vector), Some(0 | 1)) => {
            others.iter().copied().find(|u| at.stride(*u) == Some(1))
        }
        _ => None,
    })
}
