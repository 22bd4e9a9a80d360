//! Numbers in blocks of every format, and products with them, at sizes around the panels.

use tessera_base::{Blocks, DType};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Steps};
use tessera_tests::compare::Bench;
use tessera_tests::laws::hold;
use tessera_tests::random::Fill;
use tessera_tests::random_graph::{Builder, Case, elems};

/// Rows, blocks in a row of numbers, columns.
const SIZES: [[u64; 3]; 8] =
    [[1, 1, 1], [1, 3, 31], [1, 2, 65], [2, 1, 32], [5, 2, 33], [8, 1, 64], [17, 1, 40], [1, 0, 3]];

/// `x @ dequantize(w).T` with the numbers themselves, or the product alone.
fn product(format: Blocks, [m, count, n]: [u64; 3], both: bool, seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let k = count * format.elems() as u64;
    let bytes = b.random.elements(DType::F32, elems(&[m, k]), Fill::Ordinary);
    let x = b.input_of(&[m, k], DType::F32, bytes, false);
    let shape = [n, count, format.bytes() as u64];
    let bytes = b.random.elements(DType::U8, elems(&shape), Fill::Wide);
    let w = b.input_of(&shape, DType::U8, bytes, false);
    let numbers = b.push(Prim::Dequantize { format }, &[w], &[n, k], DType::F32);
    let turned = b.push(Prim::Transpose { perm: vec![1, 0] }, &[numbers], &[k, n], DType::F32);
    let dot = Prim::dot(DType::F32, Steps::All);
    let y = b.push(dot, &[x, turned], &[m, n], DType::F32);
    b.graph.outputs = if both { vec![y, numbers] } else { vec![y] };
    Case { graph: b.graph, inputs: b.data }
}

#[test]
fn products_with_blocks() {
    let each = |f: &Blocks| {
        let f = *f;
        SIZES.into_iter().enumerate().map(move |(i, size)| product(f, size, i % 2 == 0, i as u64)).collect::<Vec<_>>()
    };
    hold("products with blocks", Blocks::ALL.iter().flat_map(each).collect());
}

/// Numbers as they come and computed, put into blocks: each byte.
#[test]
fn numbers_are_put_into_blocks() {
    let mut cases = vec![];
    for (n, format) in Blocks::ALL.into_iter().filter(|f| f.writes()).enumerate() {
        for (m, fill) in [Fill::Small, Fill::Ordinary, Fill::Wide, Fill::Special].into_iter().enumerate() {
            for (rows, count, computed) in [(1, 1, false), (3, 5, false), (40, 2, true), (0, 2, false), (7, 1, true)] {
                let mut b = Builder::plain((n * 64 + m * 8 + count as usize) as u64);
                let shape = [rows, count * format.elems() as u64];
                let bytes = b.random.elements(DType::F32, elems(&shape), fill);
                let mut x = b.input_of(&shape, DType::F32, bytes, false);
                if computed {
                    x = b.push(Prim::Map(MapOp::neg), &[x], &shape, DType::F32);
                }
                let blocks = [rows, count, format.bytes() as u64];
                let q = b.push(Prim::Quantize { format }, &[x], &blocks, DType::U8);
                let back = b.push(Prim::Dequantize { format }, &[q], &shape, DType::F32);
                b.graph.outputs = vec![q, back];
                let case = Case { graph: b.graph, inputs: b.data };
                assert_eq!(Bench::new().kernels(&case).is_empty(), rows == 0, "{}", format.name());
                cases.push(case);
            }
        }
    }
    hold("blocks", cases);
}
