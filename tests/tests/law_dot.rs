//! Matrix products of every type with every transposition of their operands, at sizes around
//! the register tile, the vector and the blocks.

use tessera_base::DType;
use tessera_ir::graph::{NodeId, Policy};
use tessera_ops::map::MapOp;
use tessera_ops::prim::fold::DOT_LEAF;
use tessera_ops::prim::{Order, Prim, Scalar, Steps};
use tessera_tests::laws::{hold, orders_of_bf16_here};
use tessera_tests::random::Fill;
use tessera_tests::random_graph::{Builder, Case, elems};

const SIZES: [u64; 9] = [1, 3, 14, 15, 16, 31, 33, 64, 257];
/// Steps of leaves: mostly the one that programs get, and others whose trees small products have.
const LEAVES: [u64; 9] = [DOT_LEAF, DOT_LEAF, DOT_LEAF, 1, 2, 6, 16, 30, 128];

fn operand(b: &mut Builder, batch: &[u64], rows: u64, columns: u64, dtype: DType, flipped: bool) -> NodeId {
    let shape = [batch, &[rows, columns]].concat();
    let source = if flipped { [batch, &[columns, rows]].concat() } else { shape.clone() };
    let fill = b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Ordinary, Fill::Wide, Fill::Special]);
    let bytes = b.random.elements(dtype, elems(&source), fill);
    let x = b.input_of(&source, dtype, bytes, false);
    if !flipped {
        return x;
    }
    let rank = shape.len();
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(rank - 2, rank - 1);
    b.push(Prim::Transpose { perm }, &[x], &shape, dtype)
}

fn product(seed: u64, dtype: DType, accum: DType, flips: usize, batch: &[u64], [m, k, n]: [u64; 3]) -> Case {
    let mut b = Builder::plain(seed);
    let x = operand(&mut b, batch, m, k, dtype, flips & 1 != 0);
    let y = operand(&mut b, batch, k, n, dtype, flips & 2 != 0);
    let to = if b.random.once_in(4) { accum } else { dtype };
    let leaf = b.random.pick(&LEAVES);
    let prim = Prim::Dot { accum, steps: Steps::All, order: Order::Chain, leaf };
    let z = b.push(prim, &[x, y], &[batch, &[m, n]].concat(), to);
    b.graph.outputs = vec![z];
    b.graph.name = format!("dot_{dtype}_{m}_{k}_{n}");
    Case { graph: b.graph, inputs: b.data }
}

#[test]
fn every_type_and_transposition() {
    let mut cases = vec![];
    let mut sizes = tessera_tests::random::Random::new(11);
    for dtype in DType::ALL {
        let accums: &[DType] = match dtype {
            DType::F64 => &[DType::F64],
            DType::C64 => &[DType::C64],
            DType::F16 => &[DType::F32, DType::F64, DType::F16],
            d if d.is_float() => &[DType::F32, DType::F64],
            _ => &[DType::I64, DType::I32],
        };
        for &accum in accums {
            for flips in 0..4 {
                for _ in 0..if accum == dtype.accumulator() { 9 } else { 3 } {
                    let mnk = [0; 3].map(|_| sizes.pick(&SIZES));
                    let batch = sizes.pick(&[&[][..], &[], &[2], &[2, 1, 3]]);
                    if mnk.iter().chain(batch).product::<u64>() < 6_000_000 {
                        cases.push(product(cases.len() as u64, dtype, accum, flips, batch, mnk));
                    }
                }
            }
        }
    }
    hold("products", cases);
}

/// tf32 and sums in f16: rows that take some steps, depths of several blocks, and what is computed before and behind.
#[test]
fn factors_and_sums_that_are_rounded() {
    let mut cases = vec![];
    let sizes = [[1, 1, 1], [14, 15, 33], [33, 64, 15], [64, 257, 257], [300, 2100, 70], [1, 300, 500], [500, 300, 1]];
    for (of, accum) in [(DType::Tf32, DType::F32), (DType::Tf32, DType::F64), (DType::F16, DType::F16)] {
        for (i, [m, k, n]) in sizes.into_iter().enumerate() {
            for steps in [Steps::All, Steps::To, Steps::From] {
                let mut b = Builder::plain(cases.len() as u64);
                let x = operand(&mut b, &[], m, k, of, i & 1 != 0);
                let y = operand(&mut b, &[], k, n, of, i & 2 != 0);
                let x = if i % 3 == 0 { b.push(Prim::Map(MapOp::neg), &[x], &[m, k], of) } else { x };
                let leaf = b.random.pick(&LEAVES);
                let z = b.push(Prim::Dot { accum, steps, order: Order::Chain, leaf }, &[x, y], &[m, n], accum);
                b.graph.outputs = vec![b.push(Prim::Map(MapOp::abs), &[z], &[m, n], accum)];
                b.graph.name = format!("rounded_{of}_{m}_{k}_{n}");
                cases.push(Case { graph: b.graph, inputs: b.data });
            }
        }
    }
    hold("rounded products", cases);
}

/// Sums of ints that wrap as their results do, factors of at most 16 bits in pairs.
#[test]
fn ints_with_narrow_results() {
    let mut cases = vec![];
    let mut random = tessera_tests::random::Random::new(23);
    for case in 0..120 {
        let dtype = random.pick(&[DType::I8, DType::U8, DType::I16, DType::I16, DType::I32, DType::Bool]);
        let [m, n] = [(); 2].map(|()| random.pick(&[1, 2, 5, 8, 15, 16, 17, 33, 70]));
        let k = random.pick(&[1, 2, 3, 8, 30, 31, 64, 160, 1030, 4100]);
        let batch = random.pick(&[&[][..], &[], &[2]]);
        let Case { mut graph, inputs } = product(case, dtype, DType::I64, case as usize % 4, batch, [m, k, n]);
        for node in &mut graph.nodes {
            if let Prim::Dot { accum, .. } = &mut node.prim {
                *accum = random.pick(&[DType::I64, DType::I64, DType::I32]);
                node.ty.dtype = random.pick(&[DType::I32, DType::I32, DType::I16]);
            }
        }
        graph.name = format!("dot_{dtype}_{m}_{k}_{n}");
        cases.push(Case { graph, inputs });
    }
    hold("products of ints", cases);
}

/// Factors of bf16 in the orders of the processor's instructions for them, at depths around their units.
#[test]
fn orders_of_bf16() {
    let orders = orders_of_bf16_here();
    let mut cases = vec![];
    let mut random = tessera_tests::random::Random::new(19);
    for case in 0..96 {
        let m = random.pick(&[1, 2, 4, 5, 15, 16, 17, 32, 33, 70]);
        let n = random.pick(&[1, 3, 15, 16, 17, 31, 32, 33, 100]);
        let k = random.pick(&[2, 14, 30, 32, 34, 62, 64, 66, 160, 1030]);
        let batch = random.pick(&[&[][..], &[], &[2]]);
        let Case { mut graph, inputs } = product(case, DType::Bf16, DType::F32, case as usize % 4, batch, [m, k, n]);
        let order = random.pick(&orders);
        for node in &mut graph.nodes {
            if let Prim::Dot { order: of, leaf, .. } = &mut node.prim {
                *of = order;
                *leaf = leaf.next_multiple_of(2);
            }
        }
        graph.name = format!("dot_{}_{m}_{k}_{n}", order.name());
        cases.push(Case { graph, inputs });
    }
    hold("products of bf16", cases);
}

/// Under `kahan_sum`: of every type and transposition, and rows that take some steps.
#[test]
fn compensated_products() {
    let mut cases = vec![];
    let mut sizes = tessera_tests::random::Random::new(12);
    for dtype in DType::ALL.into_iter().filter(|d| d.is_float()) {
        for flips in 0..4 {
            for _ in 0..3 {
                let mnk = [0; 3].map(|_| sizes.pick(&SIZES));
                let batch = sizes.pick(&[&[][..], &[2]]);
                if mnk.iter().chain(batch).product::<u64>() < 1_000_000 {
                    let accum = dtype.accumulator();
                    cases.push(product(cases.len() as u64, dtype, accum, flips, batch, mnk));
                }
            }
        }
    }
    for mkn in [[1, 1, 1], [14, 15, 33], [33, 64, 15], [31, 5000, 3]] {
        for steps in [Steps::All, Steps::To, Steps::From] {
            cases.push(cut(cases.len() as u64, steps, false, mkn));
        }
    }
    for case in &mut cases {
        case.graph.nodes.iter_mut().for_each(|n| n.policy = Policy::KahanSum);
    }
    hold("compensated products", cases);
}

/// Every size at every place for f32, the others small.
#[test]
fn every_size_at_every_place() {
    let mut cases = vec![];
    for a in [1, 3, 14, 15, 31, 33, 64, 257, 1025] {
        for (b, c) in [(1, 1), (1, 17), (17, 1), (15, 33)] {
            for mnk in [[a, b, c], [b, a, c], [b, c, a]] {
                cases.push(product(cases.len() as u64, DType::F32, DType::F32, cases.len() % 4, &[], mnk));
            }
        }
    }
    for mnk in [[0, 3, 4], [3, 0, 4], [3, 4, 0], [0, 0, 0]] {
        for dtype in [DType::F32, DType::I32, DType::Bf16] {
            cases.push(product(cases.len() as u64, dtype, dtype.accumulator(), 0, &[2], mnk));
        }
    }
    hold("sizes of products", cases);
}

/// Trees of several levels over blocks of several leaves, plain and with something behind.
#[test]
fn leaves_under_a_tree() {
    let mut cases = vec![];
    let sizes =
        [[1, 700, 1], [14, 1000, 33], [3, 5000, 15], [33, 640, 15], [1, 3000, 300], [300, 900, 1], [70, 2500, 31]];
    for (i, [m, k, n]) in sizes.into_iter().enumerate() {
        for (dtype, leaf) in [(DType::F32, 16), (DType::F32, 96), (DType::F64, 50), (DType::Bf16, 32), (DType::F16, 7)]
        {
            for batch in [&[][..], &[2]] {
                let mut b = Builder::plain(cases.len() as u64);
                let shape = [batch, &[m, n]].concat();
                let [x, y] =
                    [(m, k, 1), (k, n, 2)].map(|(r, c, bit)| operand(&mut b, batch, r, c, dtype, i & bit != 0));
                let prim = Prim::Dot { accum: dtype.accumulator(), steps: Steps::All, order: Order::Chain, leaf };
                let z = b.push(prim, &[x, y], &shape, dtype);
                b.graph.outputs = vec![b.push(Prim::Map(MapOp::abs), &[z], &shape, dtype)];
                if i % 2 == 0 {
                    b.graph.outputs.push(z);
                }
                b.graph.name = format!("leaves_{dtype}_{leaf}_{m}_{k}_{n}");
                cases.push(Case { graph: b.graph, inputs: b.data });
            }
        }
    }
    hold("leaves of products", cases);
}

/// Rows whose steps end or begin at the diagonal, and results that a mask cuts off there.
#[test]
fn rows_that_take_some_steps() {
    let mut cases = vec![];
    let sizes = [[1, 1, 1], [14, 15, 33], [33, 64, 15], [257, 257, 64], [64, 257, 257], [257, 64, 3], [31, 2500, 17]];
    for mkn in sizes.into_iter().chain([[2500, 2500, 3], [300, 40, 300], [300, 2100, 300]]) {
        for steps in [Steps::All, Steps::To, Steps::From] {
            for masked in [false, true] {
                cases.push(cut(cases.len() as u64, steps, masked, mkn));
            }
        }
    }
    hold("products of some steps", cases);
}

fn cut(seed: u64, steps: Steps, masked: bool, [m, k, n]: [u64; 3]) -> Case {
    let mut b = Builder::plain(seed);
    let dtype = if seed.is_multiple_of(5) { DType::Bf16 } else { DType::F32 };
    let x = operand(&mut b, &[], m, k, dtype, seed & 1 != 0);
    let y = operand(&mut b, &[], k, n, dtype, seed & 2 != 0);
    let shape = [m, n];
    let leaf = b.random.pick(&LEAVES);
    let prim = Prim::Dot { accum: DType::F32, steps, order: Order::Chain, leaf };
    let mut z = b.push(prim, &[x, y], &shape, DType::F32);
    if masked {
        let [row, column] = [0, 1].map(|axis| b.push(Prim::Iota { axis }, &[], &shape, DType::I64));
        let keep = b.push(Prim::Map(MapOp::ge), &[row, column], &shape, DType::Bool);
        let other = b.push(Prim::Full { value: Scalar::F(f64::NEG_INFINITY) }, &[], &shape, DType::F32);
        z = b.push(Prim::Map(MapOp::r#where), &[keep, z, other], &shape, DType::F32);
    }
    b.graph.outputs = vec![z];
    b.graph.name = format!("cut_{m}_{k}_{n}");
    Case { graph: b.graph, inputs: b.data }
}
