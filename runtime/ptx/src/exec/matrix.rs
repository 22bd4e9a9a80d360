//! Matrix products of tensor cores and the loads and stores of their fragments.
//!
//! Products and the accumulator are summed in f64 and rounded once for each instruction: a model; the hardware's own
//! order and precision are not documented.

use super::Fault;
use super::block::Block;
use super::spaces::{Place, Who};
use super::tensor::swizzled;
use crate::decode::fragment_registers;
use crate::inst::*;
use crate::ops::round::{Format, Round};
use crate::types::{Class, Ty, sign_extend};

/// An element as a number. Integers of 8 bits and all small formats are exact in f64.
fn number(ty: Ty, bits: u64) -> f64 {
    match (ty.class, ty.bits) {
        (Class::Float, 16) => half::f16::from_bits(bits as u16).to_f64(),
        (Class::Brain, _) => f64::from(f32::from_bits((bits as u32) << 16)),
        // Of tf32 the lowest 13 bits are not looked at.
        (Class::Tf32, _) => f64::from(f32::from_bits(bits as u32 & !0x1FFF)),
        (Class::Float, 32) => f64::from(f32::from_bits(bits as u32)),
        (Class::Float, _) => f64::from_bits(bits),
        (Class::E4m3, _) => Format::E4M3.decode(bits & 0xFF),
        (Class::E5m2, _) => Format::E5M2.decode(bits & 0xFF),
        (Class::Signed, bits_of) => sign_extend(bits, bits_of.into()) as i64 as f64,
        (_, bits_of) => (bits & crate::types::mask(bits_of.into())) as f64,
    }
}

/// Elements of one register.
fn per_register(ty: Ty) -> usize {
    (32 / usize::from(ty.bits)).max(1)
}

/// A place to read from and write to, with its matrix.
type Matrices = (u32, u8, bool);

impl Block<'_> {
    fn pool(&self, list: u32, at: usize) -> Reg {
        self.grid.kernel.pool[list as usize + at]
    }

    pub fn mma(&mut self, base: usize, list: u32, shape: u32) {
        let shape = self.grid.kernel.shapes[shape as usize];
        let [d_count, a_count, b_count, _] = fragment_registers(&shape);
        let (a_list, b_list) = (list + d_count as u32, list + (d_count + a_count) as u32);
        let c_list = b_list + b_count as u32;
        let mut a = [[0f64; 32]; 16];
        let mut b = [[0f64; 8]; 32];
        let e = per_register(shape.a);
        let width = usize::from(shape.a.bits);
        for lane in 0..32 {
            let (group, t) = (lane / 4, lane % 4);
            for r in 0..a_count {
                let value = self.reg(base + lane, self.pool(a_list, r));
                for s in 0..e {
                    a[group + 8 * (r % 2)][t * e + s + 4 * e * (r / 2)] = number(shape.a, value >> (width * s));
                }
            }
            for r in 0..b_count {
                let value = self.reg(base + lane, self.pool(b_list, r));
                for s in 0..e {
                    b[t * e + s + 4 * e * r][group] = number(shape.b, value >> (width * s));
                }
            }
        }
        let elements = usize::from(shape.m) * usize::from(shape.n) / 32;
        for lane in 0..32 {
            let mut results = [0u64; 4];
            for (at, result) in results.iter_mut().enumerate().take(elements) {
                let (row, column) = (lane / 4 + 8 * (at / 2), lane % 4 * 2 + at % 2);
                let c = number(shape.c, self.element(base + lane, c_list, shape.c, at));
                let products = (0..usize::from(shape.k)).map(|k| (a[row][k], b[k][column]));
                *result = match shape.d.bits {
                    64 => products.fold(c, |sum, (x, y)| x.mul_add(y, sum)).to_bits(),
                    _ => rounded(&shape, products.fold(c, |sum, (x, y)| sum + x * y)),
                };
            }
            self.set_elements(base + lane, list, shape.d, &results[..elements]);
        }
    }

    /// The n-th accumulator element of a lane.
    fn element(&self, thread: usize, list: u32, ty: Ty, at: usize) -> u64 {
        if ty.bits == 16 {
            return self.reg(thread, self.pool(list, at / 2)) >> (16 * (at % 2)) & 0xFFFF;
        }
        self.reg(thread, self.pool(list, at))
    }

    fn set_elements(&mut self, thread: usize, list: u32, ty: Ty, values: &[u64]) {
        if ty.bits == 16 {
            for (at, pair) in values.chunks_exact(2).enumerate() {
                self.set(thread, self.pool(list, at), pair[0] | pair[1] << 16);
            }
            return;
        }
        for (at, value) in values.iter().enumerate() {
            self.set(thread, self.pool(list, at), *value);
        }
    }

    /// Reads 8 by 8 matrices whose rows the lanes point to.
    pub fn load_matrix(
        &mut self,
        base: usize,
        (list, count, transposed): Matrices,
        space: Space,
        address: Reg,
        offset: i64,
    ) -> Result<(), Fault> {
        for matrix in 0..usize::from(count) {
            let mut elements = [[0u64; 8]; 8];
            for (row, elements) in elements.iter_mut().enumerate() {
                let (place, who) = self.row(base + matrix * 8 + row, space, address, offset)?;
                for (column, element) in elements.iter_mut().enumerate() {
                    *element = self.mem.load(place.plus(2 * column), 2, who)?;
                }
            }
            for lane in 0..32 {
                let (group, t) = (lane / 4, lane % 4);
                let at = |n: usize| if transposed { elements[2 * t + n][group] } else { elements[group][2 * t + n] };
                self.set(base + lane, self.pool(list, matrix), at(0) | at(1) << 16);
            }
        }
        Ok(())
    }

    pub fn store_matrix(
        &mut self,
        base: usize,
        (list, count, transposed): Matrices,
        space: Space,
        address: Reg,
        offset: i64,
    ) -> Result<(), Fault> {
        for matrix in 0..usize::from(count) {
            let mut elements = [[0u64; 8]; 8];
            for lane in 0..32 {
                let (group, t) = (lane / 4, lane % 4);
                let value = self.reg(base + lane, self.pool(list, matrix));
                for n in 0..2 {
                    let (row, column) = if transposed { (2 * t + n, group) } else { (group, 2 * t + n) };
                    elements[row][column] = value >> (16 * n) & 0xFFFF;
                }
            }
            for (row, elements) in elements.iter().enumerate() {
                let (place, who) = self.row(base + matrix * 8 + row, space, address, offset)?;
                for (column, element) in elements.iter().enumerate() {
                    self.mem.store(place.plus(2 * column), 2, *element, who)?;
                }
            }
        }
        Ok(())
    }

    /// The row of a matrix that a lane points to.
    fn row(&mut self, thread: usize, space: Space, address: Reg, offset: i64) -> Result<(Place, Who), Fault> {
        let at = self.reg(thread, address).wrapping_add(offset as u64);
        let who = Who { thread: thread as u32, pc: self.threads[thread].pc, strong: false };
        let place = self.mem.resolve(space, at, 16, who.thread)?;
        match place {
            Place::Shared(_) => Ok((place, who)),
            _ => Err(Fault::new("a matrix outside of shared memory")),
        }
    }

    /// A product of a group of four warps, both operands in shared memory with 128-byte rows exchanged.
    pub fn wgmma(&mut self, first: usize, what: &Collective) -> Result<(), Fault> {
        let Collective::Wgmma { list, n, a, b, scale, brain } = *what else { return Ok(()) };
        let (a, b) = (self.reg(first, a), self.reg(first, b));
        let accumulate = self.reg(first, scale) & 1 == 1;
        let n = usize::from(n);
        let a = self.described(a, 64, brain)?;
        let b = self.described(b, n, brain)?;
        for thread in 0..128 {
            let (warp, group, t) = (thread / 32, thread % 32 / 4, thread % 4);
            for at in 0..n / 2 {
                let (row, column) = (16 * warp + group + 8 * (at % 4 / 2), at / 4 * 8 + 2 * t + at % 2);
                let reg = self.pool(list, at);
                let old = f64::from(f32::from_bits(self.reg(first + thread, reg) as u32));
                let start = if accumulate { old } else { 0.0 };
                let sum = (0..16).fold(start, |sum, k| sum + a[row][k] * b[column][k]);
                self.set(first + thread, reg, Format::F32.encode_f64(sum, Round::Nearest, false));
            }
        }
        Ok(())
    }

    /// The rows of 16 elements that a descriptor of shared memory names.
    fn described(&mut self, descriptor: u64, rows: usize, brain: bool) -> Result<Vec<[f64; 16]>, Fault> {
        if descriptor >> 62 != 1 {
            return Err(Fault::new("only exchanged rows of 128 bytes are supported"));
        }
        let (start, stride) = ((descriptor & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4);
        let ty = Ty::new(if brain { Class::Brain } else { Class::Float }, 16);
        let mut result = vec![[0.0; 16]; rows];
        for (row, elements) in result.iter_mut().enumerate() {
            for (k, element) in elements.iter_mut().enumerate() {
                let at = start + row as u64 / 8 * stride + row as u64 % 8 * 128 + 2 * k as u64;
                let place = self.mem.resolve(Space::Shared, swizzled(at), 2, 0)?;
                *element = number(ty, self.mem.peek(place, 2));
            }
        }
        Ok(result)
    }
}

/// The sum in the type of the result.
fn rounded(shape: &MmaShape, sum: f64) -> u64 {
    match (shape.d.class, shape.d.bits) {
        (Class::Signed | Class::Bits | Class::Unsigned, _) if shape.saturate => u64::from(sum as i32 as u32),
        (Class::Signed | Class::Bits | Class::Unsigned, _) => u64::from(sum as i64 as u32),
        (_, 16) => Format::F16.encode_f64(sum, Round::Nearest, false),
        _ => Format::F32.encode_f64(sum, Round::Nearest, false),
    }
}
