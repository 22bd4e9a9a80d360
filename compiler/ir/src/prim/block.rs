//! A number of a block as values of a kernel's body: what [`Blocks::decode`] says of each format.

pub mod encode;

use crate::prim::columns::*;

/// Number `i` of a block.
struct Block<'a, 'g> {
    b: &'a mut Body<'g>,
    q: &'a Asked<'a>,
    /// The index of the block among blocks.
    at: Vec<Index>,
    i: Index,
}

/// The number that is asked for, of blocks that are the operand.
pub fn number(b: &mut Body, q: &Asked, format: Blocks) -> Result<ValueId, Refusal> {
    let Some((last, lead)) = q.at.split_last() else { return Err(q.refuse("has no dim of blocks")) };
    let (block, i) = last.div_mod(format.elems() as i64, &|v| b.s.range(v));
    let mut x = Block { b, q, at: [lead, &[block]].concat(), i };
    match format {
        Blocks::Q8_0 => {
            let code = x.byte(x.i.offset(2))?;
            let (d, code) = (x.half(0)?, x.signed(code));
            Ok(x.map(MapOp::mul, &[d, code]))
        }
        Blocks::Q4_0 => x.around(8.0, 2, None),
        Blocks::Q5_0 => x.around(16.0, 6, Some(2)),
        Blocks::Q4_1 => x.above(4, None),
        Blocks::Q5_1 => x.above(8, Some(4)),
        Blocks::Q4K => x.groups(16, None),
        Blocks::Q5K => x.groups(48, Some(16)),
        Blocks::Q6K => x.sixes(),
    }
}

impl Block<'_, '_> {
    /// A byte of the block.
    fn byte(&mut self, at: Index) -> Result<ValueId, Refusal> {
        let place = [&self.at[..], &[at]].concat();
        self.b.value(self.q.operand(0)?, &place, self.q.guards, body::Part::Real)
    }

    /// The f16 at a byte, as f32.
    fn half(&mut self, at: i64) -> Result<ValueId, Refusal> {
        let (low, high) = (self.byte(Index::constant(at))?, self.byte(Index::constant(at + 1))?);
        let half = self.b.push(ValueOp::Half { low, high }, DType::F16);
        Ok(self.b.cast(half, DType::F32))
    }

    /// A byte as the i8 that it is, as f32.
    fn signed(&mut self, byte: ValueId) -> ValueId {
        let signed = self.b.cast(byte, DType::I8);
        self.b.cast(signed, DType::F32)
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

    fn index(&mut self, e: Index, dtype: DType) -> ValueId {
        let v = self.b.push(ValueOp::Index(e), DType::I64);
        self.b.cast(v, dtype)
    }

    /// `count` bits of a number from bit `from` on.
    fn bits(&mut self, x: ValueId, from: Index, count: u32) -> ValueId {
        let from = self.index(from, self.b.s.value(x).dtype);
        let x = self.map(MapOp::shr, &[x, from]);
        self.with(MapOp::bit_and, x, (1 << count) - 1)
    }

    fn parts(&self, e: &Index, n: i64) -> (Index, Index) {
        e.div_mod(n, &|v| self.b.s.range(v))
    }

    /// Codes of four bits in 16 bytes from `at` on, the lower halves first; `fifth`: where the fifth bits of all stand.
    fn code(&mut self, at: i64, fifth: Option<i64>) -> Result<ValueId, Refusal> {
        let (upper, j) = self.parts(&self.i, 16);
        let byte = self.byte(j.offset(at))?;
        let four = self.bits(byte, upper.times(4), 4);
        let Some(fifth) = fifth else { return Ok(self.b.cast(four, DType::F32)) };
        let mut word = None;
        for n in 0..4 {
            let byte = self.byte(Index::constant(fifth + n))?;
            let byte = self.b.cast(byte, DType::I32);
            let byte = self.with(MapOp::shl, byte, 8 * n);
            word = Some(word.map_or(byte, |w| self.map(MapOp::bit_or, &[w, byte])));
        }
        let Some(word) = word else { return Err(self.q.refuse("has no fifth bits")) };
        let five = self.bits(word, self.i.clone(), 1);
        let five = self.with(MapOp::shl, five, 4);
        let four = self.b.cast(four, DType::I32);
        let code = self.map(MapOp::bit_or, &[four, five]);
        Ok(self.b.cast(code, DType::F32))
    }

    /// `d · (code − half)`.
    fn around(&mut self, half: f64, at: i64, fifth: Option<i64>) -> Result<ValueId, Refusal> {
        let (d, code) = (self.half(0)?, self.code(at, fifth)?);
        let half = self.b.constant(Scalar::F(half), DType::F32);
        let code = self.map(MapOp::sub, &[code, half]);
        Ok(self.map(MapOp::mul, &[d, code]))
    }

    /// `d · code + least`.
    fn above(&mut self, at: i64, fifth: Option<i64>) -> Result<ValueId, Refusal> {
        let (d, least, code) = (self.half(0)?, self.half(2)?, self.code(at, fifth)?);
        let x = self.map(MapOp::mul, &[d, code]);
        Ok(self.map(MapOp::add, &[x, least]))
    }

    /// Eight groups of 32 with scales and least values of six bits each.
    fn groups(&mut self, at: i64, fifth: Option<i64>) -> Result<ValueId, Refusal> {
        let (g, l) = self.parts(&self.i, 32);
        let (pair, upper) = self.parts(&g, 2);
        let (d, least) = (self.half(0)?, self.half(2)?);
        let [near, far, before] = [4, 8, 0].map(|n| g.offset(n));
        let [near, far, before] = [self.byte(near)?, self.byte(far)?, self.byte(before)?];
        // The first four groups have bytes of their own; those of the others are put together.
        let first = vec![Guard { index: g.clone(), lo: 0, hi: 4 }];
        let joined = |x: &mut Self, low: ValueId, top: ValueId| {
            let top = x.with(MapOp::shr, top, 6);
            let top = x.with(MapOp::shl, top, 4);
            x.map(MapOp::bit_or, &[low, top])
        };
        let (scale, low) = (self.with(MapOp::bit_and, near, 63), self.with(MapOp::bit_and, far, 63));
        let (four, rest) = (self.with(MapOp::bit_and, far, 15), self.with(MapOp::shr, far, 4));
        let (scale2, low2) = (joined(self, four, before), joined(self, rest, near));
        let (scale, low) = (self.b.select(first.clone(), scale, scale2), self.b.select(first, low, low2));
        let (scale, low) = (self.b.cast(scale, DType::F32), self.b.cast(low, DType::F32));
        let (scale, low) = (self.map(MapOp::mul, &[d, scale]), self.map(MapOp::mul, &[least, low]));
        let byte = self.byte(pair.times(32).plus(&l).offset(at))?;
        let mut code = self.bits(byte, upper.times(4), 4);
        if let Some(fifth) = fifth {
            let high = self.byte(l.offset(fifth))?;
            let five = self.bits(high, g, 1);
            let five = self.with(MapOp::shl, five, 4);
            code = self.map(MapOp::bit_or, &[code, five]);
        }
        let code = self.b.cast(code, DType::F32);
        let x = self.map(MapOp::mul, &[scale, code]);
        Ok(self.map(MapOp::sub, &[x, low]))
    }

    /// Six bits each: four lower ones, two upper ones, a scale of eight bits for 16.
    fn sixes(&mut self) -> Result<ValueId, Refusal> {
        let (half, rest) = self.parts(&self.i, 128);
        let (part, l) = self.parts(&rest, 32);
        let (upper, odd) = self.parts(&part, 2);
        let sixteen = self.parts(&l, 16).0;
        let d = self.half(208)?;
        let low = self.byte(half.times(64).plus(&odd.times(32)).plus(&l))?;
        let high = self.byte(half.times(32).plus(&l).offset(128))?;
        let scale = self.byte(half.times(8).plus(&part.times(2)).plus(&sixteen).offset(192))?;
        let (four, two) = (self.bits(low, upper.times(4), 4), self.bits(high, part.times(2), 2));
        let two = self.with(MapOp::shl, two, 4);
        let code = self.map(MapOp::bit_or, &[four, two]);
        let code = self.b.cast(code, DType::I32);
        let code = self.with(MapOp::sub, code, 32);
        let code = self.b.cast(code, DType::F32);
        let scale = self.signed(scale);
        let scale = self.map(MapOp::mul, &[d, scale]);
        Ok(self.map(MapOp::mul, &[scale, code]))
    }
}
