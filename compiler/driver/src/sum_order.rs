//! In which order an operation adds up, in words: the orders of docs/numerics.md with the numbers of one operation. All of it is
//! read off the operation, whose attributes and sizes decide it.

use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, Policy};
use tessera_ops::prim::fold::{DOT_LEAF, levels};
use tessera_ops::prim::{LANES, LEAF, Order, Prim, Reduction, Steps};

/// The order of a product, a sum or a running sum of numbers that round; `None` of what has no sum, or one that is the same in
/// every order.
pub fn of(graph: &Graph, node: &Node) -> Option<String> {
    let shape = |i: usize| node.operands.get(i).map(|o| &graph.ty(*o).shape[..]);
    let dtype = |i: usize| node.operands.get(i).map(|o| graph.ty(*o).dtype);
    match &node.prim {
        Prim::Dot { accum, steps, order, leaf } if rounds(*accum) => {
            let mut text = product(*accum, *order, *leaf, *shape(0)?.last()?);
            if (0..2).any(|i| dtype(i) == Some(DType::Tf32)) {
                text.push_str("; factors are rounded to 10 fraction bits before");
            }
            text.push_str(match steps {
                Steps::All => "",
                Steps::To => "; row i takes the positions up to its own",
                Steps::From => "; row i takes the positions from its own on",
            });
            Some(text)
        }
        Prim::BlockDot { .. } => Some(product(DType::F32, Order::Chain, DOT_LEAF, *shape(0)?.last()?)),
        Prim::Reduce { kind, axes } => {
            let of = sum_of(*kind, dtype(0)?)?;
            let count = axes.iter().map(|a| shape(0).and_then(|s| s.get(*a)).copied().unwrap_or(1)).product();
            Some(reduction(of, count, *kind == Reduction::Sum && node.policy == Policy::KahanSum))
        }
        Prim::Cumulate { kind, axis } => {
            let of = sum_of(*kind, dtype(0)?)?;
            Some(format!("{of} over {}, one after the other", positions(*shape(0)?.get(*axis)?)))
        }
        Prim::Scatter { add: true } | Prim::ScatterAddAlong { .. } if rounds(dtype(0)?) => {
            Some("what falls on one element is added in ascending order of the source".into())
        }
        _ => None,
    }
}

/// Whether a sum in this type depends on its order.
fn rounds(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// `summed in f32`; `None` of what is the same in every order.
fn sum_of(kind: Reduction, dtype: DType) -> Option<String> {
    let accum = if kind.is_half() { DType::F16 } else { dtype.accumulator() };
    let what = match kind {
        Reduction::Sum | Reduction::HalfSum => "summed",
        Reduction::Prod | Reduction::HalfProd => "multiplied",
        Reduction::Max | Reduction::Min | Reduction::Any | Reduction::All => return None,
    };
    rounds(accum).then(|| format!("{what} in {accum}"))
}

fn product(accum: DType, order: Order, leaf: u64, depth: u64) -> String {
    let chain = match order {
        Order::Chain => "a chain of fused multiply-adds in ascending position".to_owned(),
        Order::Pairs => "a chain of pairs of positions, of each the odd one first".into(),
        Order::Units => format!(
            "units of {} positions, of each a chain of the even ones and a chain of the odd ones, whose sum is added to what was before",
            order.unit()
        ),
        Order::Atoms => format!("atoms of {} positions, as the matrix units of a GPU sum them", order.unit()),
    };
    format!("summed in {accum} over {}: {}", positions(depth), leaves(depth, leaf, &chain))
}

fn reduction(of: String, count: u64, compensated: bool) -> String {
    let lanes = format!("{LANES} lanes side by side, element i into lane i mod {LANES}, and the lanes added by halves");
    let lanes = if compensated { format!("{lanes}, all with what their additions round away") } else { lanes };
    format!("{of} over {}: {}", positions(count), leaves(count, LEAF as u64, &lanes))
}

/// The leaves that positions are cut into, what each is, and the tree over them.
fn leaves(count: u64, leaf: u64, each: &str) -> String {
    let parts = count.div_ceil(leaf.max(1));
    if parts <= 1 {
        return each.to_owned();
    }
    let rest = if count.is_multiple_of(leaf) { String::new() } else { format!(", the last one of {}", count % leaf) };
    let levels = match levels(parts) {
        1 => "1 level".into(),
        n => format!("{n} levels"),
    };
    format!("{parts} leaves of {leaf}{rest}, in each {each}; the leaves in a balanced tree of {levels}")
}

fn positions(n: u64) -> String {
    format!("{n} position{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_leaves() {
        let chain = "a chain of fused multiply-adds in ascending position";
        assert_eq!(product(DType::F32, Order::Chain, 256, 256), format!("summed in f32 over 256 positions: {chain}"));
        let long = product(DType::F32, Order::Chain, 256, 1000);
        let tree = "the leaves in a balanced tree of 2 levels";
        assert_eq!(
            long,
            format!("summed in f32 over 1000 positions: 4 leaves of 256, the last one of 232, in each {chain}; {tree}")
        );
        assert_eq!(sum_of(Reduction::Max, DType::F32), None);
        assert_eq!(sum_of(Reduction::Sum, DType::I32), None);
        let short = reduction(sum_of(Reduction::Sum, DType::Bf16).unwrap_or_default(), 512, false);
        assert!(short.starts_with("summed in f32 over 512 positions: 16 lanes side by side"), "{short}");
        assert!(
            reduction("summed in f64".into(), 513, false)
                .contains("2 leaves of 512, the last one of 1, in each 16 lanes")
        );
    }
}
