//! Every elementwise function and every conversion, compiled against the reference: all values
//! of the narrow types, special values and random bits of the wide ones.

use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::convert::cast;
use tessera_ops::map::{Gives, MapOp, kind_of};
use tessera_ops::prim::Prim;
use tessera_tests::laws::hold;
use tessera_tests::random::{Fill, Random, SPECIAL, SPECIAL_INTS};
use tessera_tests::random_graph::{Builder, Case};

/// Every value of an 8- or 16-bit type; otherwise special values, then random ones.
fn values(dtype: DType, random: &mut Random) -> Vec<u8> {
    match (dtype, dtype.bytes()) {
        (DType::Bool, _) => vec![0, 1],
        (_, 1) => (0..=255).collect(),
        (_, 2) => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        _ => {
            let floats: Vec<u8> = SPECIAL.iter().flat_map(|x| x.to_le_bytes()).collect();
            let ints: Vec<u8> = SPECIAL_INTS.iter().flat_map(|x| x.to_le_bytes()).collect();
            let mut out = cast(DType::F64, dtype, &floats);
            out.extend(cast(DType::I64, dtype, &ints));
            for fill in [Fill::Ordinary, Fill::Wide, Fill::Bits] {
                out.extend(random.elements(dtype, 700, fill));
            }
            out
        }
    }
}

/// `arity` columns: all pairs of special values, every pair of 8-bit values, then random ones.
fn columns(dtypes: &[DType], random: &mut Random) -> Vec<Vec<u8>> {
    let all: Vec<Vec<u8>> = dtypes.iter().map(|&d| values(d, random)).collect();
    if let [one] = all.as_slice() {
        return vec![one.clone()];
    }
    let counts: Vec<usize> = all.iter().zip(dtypes).map(|(v, d)| v.len() / d.bytes()).collect();
    let most: usize = counts.iter().product();
    let rows: Vec<Vec<usize>> = if most <= 1 << 16 {
        let digits = |mut i: usize| {
            let mut row = vec![];
            for n in &counts {
                row.push(i % n);
                i /= n;
            }
            row
        };
        (0..most).map(digits).collect()
    } else {
        // Special values come first in the list of a wide type.
        let special = SPECIAL.len() + SPECIAL_INTS.len();
        let pick = |r: &mut Random, n: usize| if r.once_in(2) { r.below(n.min(special)) } else { r.below(n) };
        (0..10_000).map(|_| counts.iter().map(|&n| pick(random, n)).collect()).collect()
    };
    let column = |k: usize| {
        let size = dtypes[k].bytes();
        rows.iter().flat_map(|row| all[k][row[k] * size..][..size].iter().copied()).collect()
    };
    (0..dtypes.len()).map(column).collect()
}

fn function(op: MapOp, dtype: DType, seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let dtypes: Vec<DType> =
        (0..op.def().arity).map(|i| if i == 0 && op == MapOp::r#where { DType::Bool } else { dtype }).collect();
    let mut data = columns(&dtypes, &mut b.random);
    if op == MapOp::copysign {
        // The sign of a NaN is the machine's business.
        let (size, one) = (dtype.bytes(), tessera_ops::convert::store(dtype, tessera_ops::prim::Scalar::F(1.0)));
        for e in data[1].chunks_mut(size).filter(|e| is_nan(dtype, e)) {
            e.copy_from_slice(&one);
        }
    }
    let n = (data[0].len() / dtypes[0].bytes()) as u64;
    let args: Vec<NodeId> = dtypes.iter().zip(data).map(|(&d, bytes)| b.input_of(&[n], d, bytes, false)).collect();
    let result = if op.def().gives == Gives::Bool { DType::Bool } else { dtype };
    let y = b.push(Prim::Map(op), &args, &[n], result);
    // The same for one element, without vectors.
    let first: Vec<NodeId> = args
        .iter()
        .zip(&dtypes)
        .map(|(&x, &d)| {
            let x = b.push(Prim::Slice { start: vec![n as i64 / 2], step: vec![1] }, &[x], &[1], d);
            b.push(Prim::Reshape, &[x], &[], d)
        })
        .collect();
    let z = b.push(Prim::Map(op), &first, &[], result);
    b.graph.outputs = vec![y, z];
    b.graph.name = format!("{}_{dtype}", op.name());
    Case { graph: b.graph, inputs: b.data }
}

fn is_nan(dtype: DType, element: &[u8]) -> bool {
    matches!(tessera_ops::convert::load(dtype, element, 0), Some(tessera_ops::prim::Scalar::F(x)) if x.is_nan())
}

#[test]
fn every_function_of_every_type() {
    let mut cases = vec![];
    for &op in MapOp::ALL {
        for dtype in DType::ALL {
            if kind_of(dtype).is_some_and(|k| op.def().takes.accepts(k)) {
                cases.push(function(op, dtype, cases.len() as u64));
            }
        }
    }
    hold("functions of element types", cases);
}

#[test]
fn every_conversion() {
    let mut cases = vec![];
    for from in DType::ALL {
        for to in DType::ALL {
            let mut b = Builder::plain(cases.len() as u64);
            let bytes = values(from, &mut b.random);
            let n = (bytes.len() / from.bytes()) as u64;
            let x = b.input_of(&[n], from, bytes, false);
            let y = b.push(Prim::Cast, &[x], &[n], to);
            // Through the type and back, in one kernel.
            let z = b.push(Prim::Cast, &[y], &[n], from);
            b.graph.outputs = vec![y, z];
            b.graph.name = format!("{from}_to_{to}");
            cases.push(Case { graph: b.graph, inputs: b.data });
        }
    }
    hold("conversions", cases);
}
