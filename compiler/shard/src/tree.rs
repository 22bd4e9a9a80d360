//! The upper part of a tree of sums, over what devices have folded.

use crate::adder::Adder;
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id, expand};

/// What a balanced tree makes of the `count` positions along dim `at`, which goes: neighbours by pairs, and the last of an
/// odd number as it is.
pub fn tree(b: &mut Adder, op: MapOp, x: Id, at: usize, count: u64) -> Id {
    let (mut now, mut n) = (x, count);
    while n > 1 {
        let halves = [0, 1].map(|first| every_second(b, now, at, first, n / 2));
        let pairs = expand::map(b, op, &halves);
        now = match n % 2 {
            0 => pairs,
            _ => {
                let last = every_second(b, now, at, n - 1, 1);
                expand::concat(b, &[pairs, last], at)
            }
        };
        n = n.div_ceil(2);
    }
    now
}

fn every_second(b: &mut Adder, x: Id, at: usize, first: u64, count: u64) -> Id {
    let (mut shape, dtype) = (b.shape(x), b.dtype(x));
    let (mut start, mut step) = (vec![0; shape.len()], vec![1; shape.len()]);
    (start[at], step[at], shape[at]) = (first as i64, 2, count);
    b.push(Prim::Slice { start, step }, &[x], shape, dtype)
}
