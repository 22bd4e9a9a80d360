use crate::body::Part as Half;
use crate::index::{Index, Term};
use crate::prim::columns::*;
use tessera_ops::fft::codelet::{self, Arith, Pair};
use tessera_ops::fft::{self, TWIST_BLOCK};
use tessera_ops::map::MapOp;
use tessera_ops::prim::FftKind;

/// A discrete Fourier transform.
pub struct Fft {
    pub fft: prim::Fft,
}

impl Primitive for Fft {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let f = &self.fft;
        ensure(matches!(x.len(), 2 | 4), || format!("{} operands instead of 2 or 4", x.len()))?;
        axis_in(f.axis, x[0].shape)?;
        axis_in(f.to, x[0].shape)?;
        let (from, to) = (x[0].shape[f.axis], result.shape.get(f.to).copied().unwrap_or(0));
        let half = f.points / 2 + 1;
        let (types, sizes) = match f.kind {
            FftKind::Forward | FftKind::Inverse => ((DType::C64, DType::C64), from == f.points && to == f.points),
            FftKind::RealForward => ((DType::F32, DType::C64), from == f.points && (1..=half).contains(&to)),
            FftKind::RealInverse => ((DType::C64, DType::F32), (1..=half).contains(&from) && to == f.points),
        };
        ensure((x[0].dtype, result.dtype) == types, || format!("`{}` of {}", f.kind.name(), x[0].dtype))?;
        ensure(sizes, || format!("`{}` of {} points takes {from} to {to}", f.kind.name(), f.points))?;
        let mut shape = without(x[0].shape, &[f.axis]);
        shape.insert(f.to, to);
        shape_is(&shape, result)?;
        let Some(plan) = fft::plan(f.kind, f.points) else { return Err(format!("{} points have no plan", f.points)) };
        let table = |t: TypeRef, want: u64| {
            ensure(t.dtype == DType::F32 && t.shape == [want], || format!("a table is f32[{want}], not {}", shown(t)))
        };
        table(x[1], plan.table_len() as u64)?;
        if let [.., a, b] = x[2..] {
            let plain = !f.kind.real() && f.axis + 2 == x[0].shape.len() && f.to == f.axis;
            ensure(plain, || "a twist turns the results of complex transforms of the last dim but one".into())?;
            let lengths = fft::twist_lens(f.points, x[0].shape[f.axis + 1]);
            table(a, lengths[0])?;
            table(b, lengths[1])?;
        }
        Ok(())
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.fft.axis);
        put.place("to", self.fft.to);
        put.size("points", self.fft.points);
        put.float("scale", self.fft.scale);
        self.fft.kind.name().into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let kind = FftKind::parse(name)?;
        let scale = || match op.attr("scale") {
            Some(Attr::Float(x)) => Ok(*x),
            Some(Attr::Int(n)) => Ok(*n as f64),
            _ => Err(op.error("the attribute `scale` must be a number")),
        };
        let read = || {
            let (axis, to, points) = (op.index("axis")?, op.index("to")?, op.index("points")? as u64);
            Ok(Prim::Fft(prim::Fft { kind, axis, to, points, scale: scale()? }))
        };
        Some(read())
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        reference::fft::fft(&self.fft, x, result.shape)
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let f = &self.fft;
        // A twist is a factor for each position of the dims after the axis.
        let twist = at.count() > 2;
        let link = |d: usize| {
            if d == f.axis {
                return Link::Along(f.to);
            }
            if twist && d > f.axis {
                return Link::Whole;
            }
            let among = if d < f.axis { d } else { d - 1 };
            Link::Pass(if among < f.to { among } else { among + 1 })
        };
        at.others_whole((0..at.rank(0)).map(link).collect())
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, _: &mut At) -> Pulled {
        Err("a transform whose operator does not state its derivative")
    }

    fn lifted(&self, dims: usize) -> Lifted {
        let f = self.fft;
        Lifted::First(Prim::Fft(prim::Fft { axis: f.axis + dims, to: f.to + dims, ..f }))
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, at: Site) -> Role {
        if at.is_empty() { Role::Alone } else { Role::Transform }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    /// Both parts at once; they share all but their names.
    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        q.without_guards("transforms")?;
        let f = &self.fft;
        let x = q.operand(0)?;
        let (from, count) = (b.graph.ty(x).shape[f.axis], q.node.ty.shape[f.to]);
        let axis = b.named_axis(format!("t{}", q.n.0), from, true);
        let to = match q.at.get(f.to).map(|e| (&e.terms[..], e.constant)) {
            Some(([(Term::Var(v), 1)], 0)) => *v,
            // A dim of one position needs no axis.
            Some(([], 0)) if count == 1 => b.named_axis(format!("k{}", q.n.0), 1, false),
            _ => return Err(q.refuse("runs along what is no axis of the kernel")),
        };
        let mut at = q.at.to_vec();
        at.remove(f.to);
        at.insert(f.axis, Index::var(axis));
        let mut args = vec![b.value(x, &at, &[], Half::Real)?];
        if f.kind != FftKind::RealForward {
            args.push(b.value(x, &at, &[], Half::Imag)?);
        }
        let swapped = f.kind == FftKind::Inverse;
        if swapped {
            args.reverse();
        }
        let kind = if swapped { FftKind::Forward } else { f.kind };
        let table = b.input(q, q.operand(1)?)?;
        let part = |imag| ValueOp::Transform { kind, points: f.points, args: args.clone(), axis, to, table, imag };
        if f.kind == FftKind::RealInverse {
            let y = b.push(part(false), DType::F32);
            return Ok(scaled(b, f.scale, y));
        }
        let mut z = [part(false), part(true)].map(|op| b.push(op, DType::F32));
        if q.node.operands.len() > 2 {
            z = twisted(b, q, f, z)?;
        }
        // The two halves of a spectrum of real numbers are summed.
        let by = if f.kind == FftKind::RealForward { 0.5 * f.scale } else { f.scale };
        z = z.map(|v| scaled(b, by, v));
        if swapped {
            z.reverse();
        }
        b.known_part(q, Half::Real, z[0]);
        b.known_part(q, Half::Imag, z[1]);
        Ok(z[usize::from(q.part == Half::Imag)])
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    /// The usual count: `5·n·log2 n` operations for a complex transform, half of it for a real one.
    fn cost(&self, at: Site) -> Cost {
        let (points, deep) = (self.fft.points as f64, (self.fft.points as f64).log2());
        let per_point = 5.0 * deep * if self.fft.kind.real() { 0.5 } else { 1.0 };
        let others = |(d, n): (usize, &u64)| if d == self.fft.axis { 1 } else { *n };
        let rows: u64 = at.shape(0).iter().enumerate().map(others).product();
        Cost {
            operations: (rows as f64 * points * per_point) as u64,
            again: Again::Dear((at.elems() as f64 + at.elems_of(0) as f64) * deep.max(1.0)),
            interpreted: at.touched() * deep.max(1.0) * 8.0,
        }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        self.fft.kind.name().into()
    }
}

fn scaled(b: &mut Body, by: f64, v: ValueId) -> ValueId {
    if by == 1.0 {
        return v;
    }
    let by = Arith::constant(b, by as f32);
    Arith::mul(b, v, by)
}

/// Result `z` turned by the factor of its column, which is the dim behind the axis.
fn twisted(b: &mut Body, q: &Asked, f: &prim::Fft, z: Pair<ValueId>) -> Result<Pair<ValueId>, Refusal> {
    let (k, column, width) = (q.along(f.to), q.along(f.to + 1), TWIST_BLOCK as i64);
    let (block, lane) = column.div_mod(width, &|v| b.s.range(v));
    let at = block.times(f.points as i64).plus(&k).times(2);
    let lanes = |part: i64| k.times(2).offset(part).times(width).plus(&lane);
    let load = |b: &mut Body, n: usize, at: Index| -> Result<ValueId, Refusal> {
        let operand = b.input(q, q.operand(n)?)?;
        Ok(b.push(ValueOp::Load { operand, at, guards: vec![] }, DType::F32))
    };
    let first = [load(b, 2, at.clone())?, load(b, 2, at.offset(1))?];
    let second = [load(b, 3, lanes(0))?, load(b, 3, lanes(1))?];
    let w = codelet::mul(b, first, second);
    Ok(codelet::mul(b, z, w))
}

/// Straight lines of values of a kernel.
impl Arith for Body<'_> {
    type V = ValueId;

    fn constant(&mut self, x: f32) -> ValueId {
        self.push(ValueOp::Const(Scalar::F(f64::from(x))), DType::F32)
    }

    fn neg(&mut self, a: ValueId) -> ValueId {
        self.push(ValueOp::Map { op: MapOp::neg, args: vec![a] }, DType::F32)
    }

    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.push(ValueOp::Map { op: MapOp::add, args: vec![a, b] }, DType::F32)
    }

    fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.push(ValueOp::Map { op: MapOp::sub, args: vec![a, b] }, DType::F32)
    }

    fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.push(ValueOp::Map { op: MapOp::mul, args: vec![a, b] }, DType::F32)
    }

    fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        self.push(ValueOp::Map { op: MapOp::fma, args: vec![a, b, c] }, DType::F32)
    }
}
