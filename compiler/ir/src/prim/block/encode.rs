//! A byte of a block as values of a kernel's body: what [`Blocks::encode`] says of each format.

use crate::prim::columns::*;

/// Numbers of a block.
const NUMBERS: i64 = 32;

/// The numbers of one block, and what is known of all of them.
struct Numbers<'a, 'g> {
    b: &'a mut Body<'g>,
    q: &'a Asked<'a>,
    /// The index of the numbers' rows, and of the first number of the block.
    lead: &'a [Index],
    first: Index,
    /// Runs over the numbers of the block.
    row: Var,
}

/// How codes come from numbers: steps of `scale` from `least`, held between two codes, `up` further.
#[derive(Clone, Copy)]
struct Code {
    scale: ValueId,
    least: ValueId,
    low: i64,
    high: i64,
    up: i64,
}

/// The byte that is asked for, of blocks of the operand's numbers.
pub fn byte(b: &mut Body, q: &Asked, format: Blocks) -> Result<ValueId, Refusal> {
    q.without_guards("goes over blocks")?;
    let [lead @ .., block, t] = q.at else { return Err(q.refuse("has no dim of blocks")) };
    let row = b.reduced_axis(NUMBERS as u64);
    let mut x = Numbers { b, q, lead, first: block.times(NUMBERS), row };
    let zero = x.number(0.0);
    // The largest size is no number, or infinite, where one of the numbers is.
    let size = x.each(MapOp::abs)?;
    let top = x.reduce(Reduction::Max, size);
    let infinite = x.number(f64::INFINITY);
    let finite = x.b.push(ValueOp::Map { op: MapOp::lt, args: vec![top, infinite] }, DType::Bool);
    match format {
        Blocks::Q8_0 => {
            let (scale, bits) = x.held(finite, top, 127.0);
            let code = Code { scale, least: zero, low: -127, high: 127, up: 0 };
            let value = x.at(t.offset(-2))?;
            let code = x.code(value, code);
            let code = x.b.cast(code, DType::U8);
            Ok(x.behind(t, 0, bits, 2, code))
        }
        Blocks::Q4_0 | Blocks::Q5_0 => {
            let half = if format == Blocks::Q4_0 { 8 } else { 16 };
            let most = x.first_of(size, top)?;
            let (scale, bits) = x.held(finite, most, -half as f64);
            let code = Code { scale, least: zero, low: -half, high: half - 1, up: half };
            let codes = x.packed(t, 2, code, half == 16)?;
            Ok(x.behind(t, 0, bits, 2, codes))
        }
        Blocks::Q4_1 | Blocks::Q5_1 => {
            let most = if format == Blocks::Q4_1 { 15 } else { 31 };
            let value = x.value()?;
            let (low, high) = (x.reduce(Reduction::Min, value), x.reduce(Reduction::Max, value));
            let range = x.map(MapOp::sub, &[high, low]);
            let (scale, bits) = x.held(finite, range, most as f64);
            let (least, low_bits) = x.held(finite, low, 1.0);
            let codes = x.packed(t, 4, Code { scale, least, low: 0, high: most, up: 0 }, most == 31)?;
            let rest = x.behind(t, 2, low_bits, 4, codes);
            Ok(x.behind(t, 0, bits, 2, rest))
        }
        _ => Err(q.refuse("writes a format that is only read")),
    }
}

impl Numbers<'_, '_> {
    fn number(&mut self, x: f64) -> ValueId {
        self.b.constant(Scalar::F(x), DType::F32)
    }

    fn map(&mut self, op: MapOp, args: &[ValueId]) -> ValueId {
        let dtype = self.b.s.value(args[args.len() - 1]).dtype;
        self.b.push(ValueOp::Map { op, args: args.to_vec() }, dtype)
    }

    /// An operation with an int.
    fn with(&mut self, op: MapOp, x: ValueId, n: i64) -> ValueId {
        let n = self.b.constant(Scalar::I(n), self.b.s.value(x).dtype);
        self.map(op, &[x, n])
    }

    fn compare(&mut self, op: MapOp, x: ValueId, y: ValueId) -> ValueId {
        self.b.push(ValueOp::Map { op, args: vec![x, y] }, DType::Bool)
    }

    /// Number `i` of the block, which counts only where there is one.
    fn at(&mut self, i: Index) -> Result<ValueId, Refusal> {
        let (lo, hi) = i.range(&|v| self.b.s.range(v));
        let inside = lo >= 0 && hi < NUMBERS;
        let guards = if inside { vec![] } else { vec![Guard { index: i.clone(), lo: 0, hi: NUMBERS }] };
        let place = [self.lead, &[self.first.plus(&i)]].concat();
        self.b.value(self.q.operand(0)?, &place, &guards, body::Part::Real)
    }

    /// Each number.
    fn value(&mut self) -> Result<ValueId, Refusal> {
        self.at(Index::var(self.row))
    }

    fn each(&mut self, op: MapOp) -> Result<ValueId, Refusal> {
        let value = self.value()?;
        Ok(self.map(op, &[value]))
    }

    fn reduce(&mut self, kind: Reduction, arg: ValueId) -> ValueId {
        let dtype = self.b.s.value(arg).dtype;
        self.b.push(ValueOp::Reduce { kind, arg, axis: self.row }, dtype)
    }

    /// The first number of the largest size, with its sign.
    fn first_of(&mut self, size: ValueId, top: ValueId) -> Result<ValueId, Refusal> {
        let largest = self.compare(MapOp::eq, size, top);
        let here = self.b.push(ValueOp::Index(Index::var(self.row)), DType::I64);
        let none = self.b.constant(Scalar::I(NUMBERS), DType::I64);
        let place = self.map(MapOp::r#where, &[largest, here, none]);
        let first = self.reduce(Reduction::Min, place);
        let is = self.compare(MapOp::eq, here, first);
        let (value, zero) = (self.value()?, self.number(0.0));
        let only = self.map(MapOp::r#where, &[is, value, zero]);
        Ok(self.reduce(Reduction::Sum, only))
    }

    /// `x / over` in f16 (NaN where a number is not finite): as f32, and its bits.
    fn held(&mut self, finite: ValueId, x: ValueId, over: f64) -> (ValueId, ValueId) {
        let (over, nan) = (self.number(over), self.number(f64::NAN));
        let scale = self.map(MapOp::div, &[x, over]);
        let scale = self.map(MapOp::r#where, &[finite, scale, nan]);
        let scale = self.b.cast(scale, DType::F16);
        let bits = self.b.push(ValueOp::HalfBits(scale), DType::I16);
        (self.b.cast(scale, DType::F32), bits)
    }

    /// The code of a number, i32.
    fn code(&mut self, value: ValueId, c: Code) -> ValueId {
        let from = self.map(MapOp::sub, &[value, c.least]);
        let steps = self.map(MapOp::div, &[from, c.scale]);
        let steps = self.map(MapOp::round, &[steps]);
        let code = self.b.cast(steps, DType::I32);
        let code = self.with(MapOp::maximum, code, c.low);
        let code = self.with(MapOp::minimum, code, c.high);
        if c.up == 0 { code } else { self.with(MapOp::add, code, c.up) }
    }

    /// Byte `t` of codes of four bits in two halves from byte `at` on, behind the fifth bits of all where there are any.
    fn packed(&mut self, t: &Index, at: i64, c: Code, fifths: bool) -> Result<ValueId, Refusal> {
        let start = at + if fifths { 4 } else { 0 };
        let (lower, upper) = (self.at(t.offset(-start))?, self.at(t.offset(16 - start))?);
        let (lower, upper) = (self.code(lower, c), self.code(upper, c));
        let (lower, upper) = (self.with(MapOp::bit_and, lower, 15), self.with(MapOp::bit_and, upper, 15));
        let upper = self.with(MapOp::shl, upper, 4);
        let both = self.map(MapOp::bit_or, &[lower, upper]);
        let both = self.b.cast(both, DType::U8);
        if !fifths {
            return Ok(both);
        }
        // Each bit at its place, so that their sum is all of them.
        let value = self.value()?;
        let code = self.code(value, c);
        let fifth = self.with(MapOp::shr, code, 4);
        let fifth = self.with(MapOp::bit_and, fifth, 1);
        let fifth = self.b.cast(fifth, DType::I64);
        let place = self.b.push(ValueOp::Index(Index::var(self.row)), DType::I64);
        let fifth = self.map(MapOp::shl, &[fifth, place]);
        let all = self.reduce(Reduction::Sum, fifth);
        let from = self.b.push(ValueOp::Index(t.offset(-at).times(8)), DType::I64);
        let byte = self.map(MapOp::shr, &[all, from]);
        let byte = self.b.cast(byte, DType::U8);
        Ok(self.b.select(vec![Guard { index: t.clone(), lo: 0, hi: start }], byte, both))
    }

    /// Byte `t`: from `at` up to `end` the two bytes of a number, `rest` elsewhere.
    fn behind(&mut self, t: &Index, at: i64, bits: ValueId, end: i64, rest: ValueId) -> ValueId {
        let high = self.with(MapOp::shr, bits, 8);
        let (low, high) = (self.b.cast(bits, DType::U8), self.b.cast(high, DType::U8));
        let half = self.b.select(vec![Guard { index: t.clone(), lo: at, hi: at + 1 }], low, high);
        self.b.select(vec![Guard { index: t.clone(), lo: at, hi: end }], half, rest)
    }
}
