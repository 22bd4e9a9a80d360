//! Every reduction of every type over every position of the reduced axis, at lengths around
//! the vector and the leaf of the canonical order.

use tessera_base::DType;
use tessera_ops::prim::{Prim, Reduction};
use tessera_tests::laws::hold;
use tessera_tests::random::Fill;
use tessera_tests::random_graph::{Builder, Case, elems};

const LENGTHS: [u64; 10] = [0, 1, 15, 16, 17, 257, 511, 512, 513, 70_000];

fn kinds(dtype: DType) -> &'static [Reduction] {
    use Reduction::*;
    match dtype {
        DType::Bool => &[Sum, Prod, Max, Min, Any, All],
        DType::C64 => &[Sum, Prod],
        DType::F16 => &[Sum, Prod, HalfSum, HalfProd, Max, Min],
        _ => &[Sum, Prod, Max, Min],
    }
}

/// The shapes in which an axis of this length stands first, last, in the middle and alone.
fn shapes(length: u64) -> Vec<(Vec<u64>, usize)> {
    match length {
        70_000 => vec![(vec![length], 0), (vec![2, length], 1), (vec![length, 3], 0)],
        _ => vec![
            (vec![length], 0),
            (vec![3, length], 1),
            (vec![length, 5], 0),
            (vec![length, 33], 0),
            (vec![2, length, 3], 1),
        ],
    }
}

fn reduction(kind: Reduction, dtype: DType, shape: &[u64], axis: usize, seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let fill = match kind {
        // Products of many ordinary numbers vanish.
        Reduction::Prod => b.random.pick(&[Fill::Wide, Fill::Ordinary]),
        // With the infinities of e5m2, which no conversion makes.
        Reduction::Max | Reduction::Min => {
            b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Wide, Fill::Special, Fill::Bits])
        }
        _ => b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Wide, Fill::Special]),
    };
    let bytes = b.random.elements(dtype, elems(shape), fill);
    let x = b.input_of(shape, dtype, bytes, false);
    let mut small = shape.to_vec();
    small.remove(axis);
    let wide = match kind {
        Reduction::Any | Reduction::All => DType::Bool,
        _ => dtype.accumulator(),
    };
    let to = if b.random.once_in(3) { wide } else { dtype };
    let y = b.push(Prim::Reduce { kind, axes: vec![axis] }, &[x], &small, to);
    b.graph.outputs = vec![y];
    Case { graph: b.graph, inputs: b.data }
}

#[test]
fn every_reduction_at_every_length() {
    let (mut cases, mut n) = (vec![], 0);
    for dtype in DType::ALL {
        for &kind in kinds(dtype) {
            for length in LENGTHS {
                for (shape, axis) in shapes(length) {
                    // Not every position of each length, but all of them over the types.
                    n += 1;
                    if n % 7 < 4 || dtype == DType::F32 {
                        cases.push(reduction(kind, dtype, &shape, axis, n));
                    }
                }
            }
        }
    }
    hold("reductions", cases);
}

/// Several axes at once, apart from one another, and none.
#[test]
fn every_set_of_axes() {
    let mut cases = vec![];
    for shape in [vec![5, 16, 33], vec![3, 1, 17, 4], vec![2, 0, 3], vec![64, 65]] {
        for mask in 0..1u32 << shape.len() {
            for dtype in [DType::F32, DType::Bf16, DType::I32] {
                let mut b = Builder::plain(cases.len() as u64);
                let bytes = b.random.elements(dtype, elems(&shape), Fill::Ordinary);
                let x = b.input_of(&shape, dtype, bytes, false);
                let axes: Vec<usize> = (0..shape.len()).filter(|i| mask >> i & 1 == 1).collect();
                let small: Vec<u64> = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect();
                let y = b.push(Prim::Reduce { kind: Reduction::Sum, axes }, &[x], &small, dtype);
                b.graph.outputs = vec![y];
                cases.push(Case { graph: b.graph, inputs: b.data });
            }
        }
    }
    hold("sets of axes", cases);
}
