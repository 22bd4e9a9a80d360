//! Fourier transforms: the stages of [`tessera_ops::fft`] as loops around butterflies.
//!
//! The lanes of a vector are different transforms, so that a butterfly is the scalar one in every
//! lane. Where the transforms lie side by side (an axis that is not the last) lanes are
//! neighbours in memory; rows are turned over on their way into scratch and out of it. A grid
//! point computes one vector of transforms; transforms left over get a narrower kernel. Between
//! stages values lie in scratch, a vector for each part of each point.

mod code;
mod stages;
mod ends;

use crate::{LowerError, Lowered, Operand, Step};
use code::Code;
use tessera_base::DType;
use tessera_ir::index::{Index, delinear};
use tessera_ir::schedule::Machine;
use tessera_ir::tile::{POINT, Space};
use tessera_ops::fft::{Plan, plan};
use tessera_ops::prim::{Fft, FftKind};

/// Nanoseconds of work that are worth a thread's wake-up.
const WAKE_NS: f64 = 20_000.0;
/// Additions and products per nanosecond and lane, roughly.
const SPEED: f64 = 2.0;

/// How the transforms of a tensor lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Element `j` of transform (a, b) at `(a·n + j)·B + b`.
    Columns,
    /// At `(a·B + b)·n + j`.
    Rows,
}

/// All transforms of a node: `outer` times `across`, of which lanes take those across.
#[derive(Clone, Copy, Debug)]
struct Layout {
    from: Form,
    to: Form,
    outer: u64,
    across: u64,
    /// Elements of the axis on both sides.
    n_from: u64,
    n_to: u64,
}

/// One kernel's share of the transforms across: `groups` vectors of `lanes`, from `first` on, with
/// `valid` transforms each.
#[derive(Clone, Copy, Debug)]
struct Share {
    first: u64,
    groups: u64,
    lanes: u32,
    valid: u32,
}

/// The kernels of a transform. `shapes`: of the operand and of the result. Operands: those of the
/// node in order, then its result.
///
/// # Errors
/// An arrangement of axes that kernels do not cover.
pub fn lower(f: &Fft, name: &str, shapes: [&[u64]; 2], twist: bool, machine: &Machine) -> Result<Lowered, LowerError> {
    let plan = plan(f.kind, f.points).ok_or_else(|| LowerError("a transform without a plan".into()))?;
    let layout = layout(f, shapes, twist)?;
    if layout.outer * layout.across == 0 {
        return Ok(Lowered::default());
    }
    let widest = u64::from(machine.vector_bytes / 4).clamp(2, 16);
    let whole = layout.across / widest;
    let rest = layout.across % widest;
    let mut steps = vec![];
    if whole > 0 {
        let share = Share { first: 0, groups: whole, lanes: widest as u32, valid: widest as u32 };
        steps.push(kernel(f, &plan, &layout, share, name, shapes, twist));
    }
    if rest > 0 {
        // A square of rows has two lanes at least: the parts of one point.
        let least = if [layout.from, layout.to].contains(&Form::Rows) { 2 } else { 1 };
        let lanes = rest.next_power_of_two().max(least) as u32;
        let share = Share { first: whole * widest, groups: 1, lanes, valid: rest as u32 };
        let name = if whole > 0 { format!("{name}_rest") } else { name.to_string() };
        steps.push(kernel(f, &plan, &layout, share, &name, shapes, twist));
    }
    Ok(Lowered { steps, temps: vec![] })
}

fn layout(f: &Fft, [from, to]: [&[u64]; 2], twist: bool) -> Result<Layout, LowerError> {
    let product = |dims: &[u64]| dims.iter().product::<u64>();
    let (outer, inner) = (product(&from[..f.axis]), product(&from[f.axis + 1..]));
    let (n_from, n_to) = (from[f.axis], to[f.to]);
    let same = |form, outer, across| Ok(Layout { from: form, to: form, outer, across, n_from, n_to });
    match (f.axis, f.to) {
        // Lanes of a twist are its columns, though there be one.
        (a, b) if a == b && inner == 1 && outer > 1 && !twist => same(Form::Rows, 1, outer),
        (a, b) if a == b => same(Form::Columns, outer, inner),
        (a, b) if a == b + 1 && inner == 1 => {
            let across = from[b];
            let outer = product(&from[..b]);
            // One row lies as its column does.
            let rows = if across > 1 { Form::Rows } else { Form::Columns };
            Ok(Layout { from: rows, to: Form::Columns, outer, across, n_from, n_to })
        }
        _ => Err(LowerError("a transform that moves its axis this far".into())),
    }
}

fn kernel(
    f: &Fft,
    plan: &Plan,
    layout: &Layout,
    share: Share,
    name: &str,
    [from, to]: [&[u64]; 2],
    twist: bool,
) -> Step {
    let floats = |shape: &[u64], real: bool| shape.iter().product::<u64>() * if real { 1 } else { 2 };
    let mut c = Code::new(name, share.lanes);
    c.kernel.grid = layout.outer * share.groups;
    let place = delinear(&Index::var(POINT), &[layout.outer, share.groups], &|v| c.range(v));
    let input = c.buffer("x", floats(from, f.kind == FftKind::RealForward), Space::In);
    let table = c.buffer("table", plan.table_len() as u64, Space::In);
    let mut operands = vec![Operand::Tensor(0), Operand::Tensor(1)];
    let mut twists = None;
    if twist {
        let [a, b] = tessera_ops::fft::twist_lens(f.points, layout.across);
        twists = Some([c.buffer("twist", a, Space::In), c.buffer("twist_lanes", b, Space::In)]);
        operands.extend([Operand::Tensor(2), Operand::Tensor(3)]);
    }
    let output = c.buffer("y", floats(to, f.kind == FftKind::RealInverse), Space::Out);
    operands.push(Operand::Tensor(operands.len() as u32));
    let mut t = Transform {
        c,
        f,
        plan,
        layout: *layout,
        share,
        outer: place[0].clone(),
        column: place[1].times(i64::from(share.lanes)).offset(share.first as i64),
        input,
        output,
        table,
        twists,
    };
    t.write();
    let work = 5.0 * f.points as f64 * (f.points as f64).log2().max(1.0) * f64::from(share.lanes);
    t.c.kernel.grain = (WAKE_NS / (work / SPEED / f64::from(share.lanes))).ceil().max(1.0) as u64;
    Step { kernel: t.c.finish(), operands, scalars: vec![] }
}

/// A kernel that is being written.
struct Transform<'p> {
    c: Code,
    f: &'p Fft,
    plan: &'p Plan,
    layout: Layout,
    share: Share,
    /// Position among the outer transforms, and of lane 0 among those across.
    outer: Index,
    column: Index,
    input: u32,
    output: u32,
    table: u32,
    twists: Option<[u32; 2]>,
}

/// Where a stage reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StageBuffer {
    Operand,
    Scratch(u32),
}

impl Transform<'_> {
    fn scratch(&mut self, name: &str, points: u64) -> u32 {
        self.c.buffer(name, 2 * points * u64::from(self.share.lanes), Space::Scratch)
    }

    /// All passes: what brings the points to scratch, the stages, what takes the results out.
    fn write(&mut self) {
        let n = self.plan.n as u64;
        let real = self.f.kind.real();
        let mut from = StageBuffer::Operand;
        if self.layout.from == Form::Rows {
            let floats = self.layout.n_from * if self.f.kind == FftKind::RealForward { 1 } else { 2 };
            let rows = self.scratch("rows", floats.div_ceil(2));
            self.rows_in(rows, floats);
            from = StageBuffer::Scratch(rows);
        }
        if self.f.kind == FftKind::RealInverse {
            let joined = self.scratch("joined", n);
            self.join(from, joined);
            from = StageBuffer::Scratch(joined);
        }
        let direct = self.layout.to == Form::Columns && self.f.kind != FftKind::RealForward;
        let stages = self.plan.stages.clone();
        let mut spare: Vec<u32> = vec![];
        for (i, s) in stages.iter().enumerate() {
            let to = if i + 1 == stages.len() && direct {
                StageBuffer::Operand
            } else {
                // A buffer that nothing reads any more, or a new one.
                let free = spare.pop();
                StageBuffer::Scratch(free.unwrap_or_else(|| self.scratch(&format!("points{i}"), n)))
            };
            self.stage(s, from, to, [i == 0, i + 1 == stages.len()]);
            if let StageBuffer::Scratch(done) = from
                && self.holds(done) >= n
            {
                spare.push(done);
            }
            from = to;
        }
        let StageBuffer::Scratch(results) = from else { return };
        match (self.layout.to, real) {
            (Form::Rows, _) => self.rows_out(results),
            (Form::Columns, _) => self.columns_out(results),
        }
    }

    /// Points of a scratch buffer.
    fn holds(&self, buf: u32) -> u64 {
        self.c.kernel.bufs[buf as usize].elems / 2 / u64::from(self.share.lanes)
    }
}

/// Elements of all buffers are f32; parts of complex numbers lie side by side.
const DTYPE: DType = DType::F32;

#[cfg(test)]
mod tests;
