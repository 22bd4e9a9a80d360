//! How the dims of a node's operands and of its result belong together.

use crate::reach::Reach;
use std::ops::Range;
use tessera_ir::graph::{Graph, Node};
use tessera_ops::prim::{Prim, Reduction, Steps};

/// What becomes of one dim of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Position `i` is needed for position `i` of that dim of the result only.
    Pass(usize),
    /// The same for equal blocks: the sizes differ, the majority of the elements goes along
    /// (a dim that is divided or joined).
    Blocks(usize),
    /// A block of that dim of the result needs a range of positions, which its device gets where it
    /// does not have them.
    Reach(usize, Reach),
    /// It is needed in full, and becomes that dim of the result: another dim is split meanwhile.
    Along(usize),
    /// Few of its positions are chosen by their values; everyone gets those.
    Few,
    /// It vanishes in a reduction.
    Reduce(Reduction),
    /// Positions from data choose from it.
    Indexed,
    /// Any position may be needed for any.
    Whole,
}

/// One link for each dim of each operand.
pub fn links(g: &Graph, node: &Node) -> Vec<Vec<Link>> {
    let shape = |i: usize| node.operands.get(i).map_or(&[][..], |&o| &g.ty(o).shape);
    let whole = |i: usize| vec![Link::Whole; shape(i).len()];
    let all_whole = || (0..node.operands.len()).map(whole).collect::<Vec<_>>();
    let pass = |i: usize| (0..shape(i).len()).map(Link::Pass).collect::<Vec<_>>();
    // All dims go along but one.
    let but = |i: usize, axis: usize, link: Link| {
        (0..shape(i).len()).map(|d| if d == axis { link } else { Link::Pass(d) }).collect::<Vec<_>>()
    };
    let rest = |first: Vec<Link>| [first].into_iter().chain((1..node.operands.len()).map(whole)).collect::<Vec<_>>();
    match &node.prim {
        Prim::Map(_) | Prim::Check(_) | Prim::Cast | Prim::Part { .. } | Prim::Complex | Prim::Layout => {
            (0..node.operands.len()).map(pass).collect()
        }
        Prim::Broadcast { dims } => {
            let result = &node.ty.shape;
            let link = |(d, &to): (usize, &usize)| match shape(0).get(d) == result.get(to) {
                true => Link::Pass(to),
                false => Link::Whole,
            };
            vec![dims.iter().enumerate().map(link).collect()]
        }
        Prim::Reshape => vec![reshaped(shape(0), &node.ty.shape)],
        Prim::Transpose { perm } => {
            let to = |d: usize| perm.iter().position(|&p| p == d).map_or(Link::Whole, Link::Pass);
            vec![(0..shape(0).len()).map(to).collect()]
        }
        Prim::Slice { start, step } => {
            let few = first_of_sorted(g, node);
            let link = |d: usize| match (start[d], step[d], shape(0)[d] == node.ty.shape[d]) {
                _ if few == Some(d) => Link::Few,
                (0, 1, true) => Link::Pass(d),
                (start, step, _) => Link::Reach(d, Reach::Steps { start, step, count: 1 }),
            };
            vec![(0..shape(0).len()).map(link).collect()]
        }
        Prim::Windows { stride, dilation } => {
            let before = shape(0).len().saturating_sub(stride.len());
            let link = |d: usize| {
                let Some(i) = d.checked_sub(before) else { return Link::Pass(d) };
                let kernel = node.ty.shape[shape(0).len() + i];
                let count = kernel.saturating_sub(1) * dilation[i] + 1;
                Link::Reach(d, Reach::Steps { start: 0, step: stride[i] as i64, count })
            };
            vec![(0..shape(0).len()).map(link).collect()]
        }
        Prim::Pad { low, high } => {
            let link = |d: usize| match (low[d], high[d]) {
                (0, 0) => Link::Pass(d),
                (low, _) => Link::Reach(d, Reach::Steps { start: -(low as i64), step: 1, count: 1 }),
            };
            rest((0..shape(0).len()).map(link).collect())
        }
        Prim::Concat { axis } => {
            let mut before = 0;
            let one = |i: usize| {
                let start = -(before as i64);
                before += shape(i)[*axis];
                but(i, *axis, Link::Reach(*axis, Reach::Steps { start, step: 1, count: 1 }))
            };
            (0..node.operands.len()).map(one).collect()
        }
        Prim::Reduce { kind, axes } => {
            let link = |d: usize| match axes.contains(&d) {
                true => Link::Reduce(*kind),
                false => Link::Pass(d - axes.iter().filter(|&&a| a < d).count()),
            };
            vec![(0..shape(0).len()).map(link).collect()]
        }
        Prim::ArgReduce { axis, .. } => {
            let link = |d: usize| match d.cmp(axis) {
                std::cmp::Ordering::Less => Link::Pass(d),
                std::cmp::Ordering::Equal => Link::Few,
                std::cmp::Ordering::Greater => Link::Pass(d - 1),
            };
            vec![(0..shape(0).len()).map(link).collect()]
        }
        Prim::Cumulate { axis, .. } | Prim::Sort { axis, .. } | Prim::ArgSort { axis, .. } => {
            vec![but(0, *axis, Link::Along(*axis))]
        }
        Prim::Dot { steps, .. } => dot(shape(0).len(), shape(1).len(), *steps == Steps::All),
        Prim::Quantize { .. } => {
            let n = shape(0).len();
            vec![(0..n).map(|d| if d + 1 < n { Link::Pass(d) } else { Link::Whole }).collect()]
        }
        Prim::Dequantize { .. } => {
            let n = shape(0).len();
            vec![(0..n).map(|d| if d + 2 < n { Link::Pass(d) } else { Link::Whole }).collect()]
        }
        Prim::BlockDot { .. } => vec![vec![Link::Pass(0), Link::Whole], vec![Link::Pass(1), Link::Whole, Link::Whole]],
        Prim::DynamicSlice { sizes } => {
            let link = |d: usize| if sizes[d] == shape(0)[d] { Link::Pass(d) } else { Link::Whole };
            rest((0..shape(0).len()).map(link).collect())
        }
        Prim::DynamicUpdate => {
            let link = |d: usize| if shape(0)[d] == shape(1)[d] { Link::Pass(d) } else { Link::Whole };
            let both: Vec<Link> = (0..shape(0).len()).map(link).collect();
            [both.clone(), both].into_iter().chain((2..node.operands.len()).map(whole)).collect()
        }
        Prim::UpdateSlice { start, step } => {
            let link = |d: usize| match (start[d], step[d], shape(0)[d] == shape(1)[d]) {
                (0, 1, true) => Link::Pass(d),
                (start, step, _) => Link::Reach(d, Reach::Written { start, step }),
            };
            vec![pass(0), (0..shape(1).len()).map(link).collect()]
        }
        Prim::Take { axis } => {
            let more = shape(1).len();
            let link = |d: usize| match d.cmp(axis) {
                std::cmp::Ordering::Less => Link::Pass(d),
                std::cmp::Ordering::Equal => Link::Indexed,
                std::cmp::Ordering::Greater => Link::Pass(d + more - 1),
            };
            vec![(0..shape(0).len()).map(link).collect(), (0..more).map(|d| Link::Pass(axis + d)).collect()]
        }
        Prim::Gather => {
            let (depth, more) = (node.operands.len() - 1, shape(1).len());
            let link = |d: usize| if d < depth { Link::Indexed } else { Link::Pass(d - depth + more) };
            let base = (0..shape(0).len()).map(link).collect();
            [base].into_iter().chain((1..node.operands.len()).map(pass)).collect()
        }
        Prim::Scatter { .. } => {
            // base, values [indices…, rest…], indices…: what is not indexed goes along.
            let depth = node.operands.len() - 2;
            let (whole_of, more) = (shape(0).len(), shape(2).len());
            let base = (0..whole_of).map(|d| if d < depth { Link::Whole } else { Link::Pass(d) }).collect();
            let value = |d: usize| if d < more { Link::Whole } else { Link::Pass(d - more + depth) };
            let values = (0..shape(1).len()).map(value).collect();
            [base, values].into_iter().chain((2..node.operands.len()).map(whole)).collect()
        }
        Prim::TakeAlong { axis } => {
            // Positions that the values themselves chose.
            let few = node.operands.get(1).is_some_and(|&at| first_of_sorted(g, g.node(at)) == Some(*axis));
            vec![but(0, *axis, if few { Link::Few } else { Link::Indexed }), pass(1)]
        }
        Prim::ScatterAddAlong { axis } => (0..3).map(|i| but(i, *axis, Link::Whole)).collect(),
        Prim::Fft(f) => {
            // A twist is a factor for each position of the dims after the axis.
            let twist = node.operands.len() > 2;
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
            rest((0..shape(0).len()).map(link).collect())
        }
        // Devices that have one position each send them to each other; see `crate::layout`.
        Prim::Rows { .. } => vec![pass(0)],
        Prim::Input(_) | Prim::Full { .. } | Prim::Iota { .. } | Prim::Literal(_) => vec![],
        // A key gives numbers of its own, all of them in one place.
        Prim::RandomBits => {
            let n = shape(0).len();
            vec![(0..n).map(|d| if d + 1 < n { Link::Pass(d) } else { Link::Whole }).collect()]
        }
        Prim::Scan { .. } | Prim::Get { .. } | Prim::Exchange(_) | Prim::Collective(_) => all_whole(),
    }
}

/// The box of an operand that a box of the result needs.
pub fn needed(links: &[Link], shape: &[u64], result: &[Range<u64>]) -> Vec<Range<u64>> {
    let one = |(link, &n): (&Link, &u64)| match link {
        Link::Pass(to) => result[*to].clone(),
        Link::Reach(to, reach) => reach.range(&result[*to], n),
        _ => 0..n,
    };
    links.iter().zip(shape).map(one).collect()
}

/// The axis of which a node takes the first few positions in the order of its values.
pub fn first_of_sorted(g: &Graph, node: &Node) -> Option<usize> {
    let (Prim::Slice { start, step }, [order]) = (&node.prim, &node.operands[..]) else { return None };
    let Prim::ArgSort { axis, .. } = g.node(*order).prim else { return None };
    let whole = &g.ty(*order).shape;
    let others = (0..whole.len()).all(|d| d == axis || whole[d] == node.ty.shape[d]);
    (others && start.iter().all(|s| *s == 0) && step.iter().all(|s| *s == 1)).then_some(axis)
}

/// `[batch…, m, k] @ [batch…, k, n]`, or with several dims in place of `n` ([`crate::apart`]); the ranks of both. Rows
/// that do not take `all` steps know their position.
fn dot(rank: usize, right: usize, all: bool) -> Vec<Vec<Link>> {
    let sum = Link::Reduce(Reduction::Sum);
    let batch = rank.saturating_sub(2);
    let (mut a, mut b): (Vec<Link>, Vec<Link>) =
        ((0..batch).map(Link::Pass).collect(), (0..batch).map(Link::Pass).collect());
    a.extend([if all { Link::Pass(batch) } else { Link::Whole }, if all { sum } else { Link::Whole }]);
    b.push(if all { sum } else { Link::Whole });
    b.extend((batch + 1..right).map(Link::Pass));
    vec![a, b]
}

/// The box of a reshape's operand that has just the elements of a box of its result, in their order.
pub fn before_reshape(from: &[u64], to: &[u64], result: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
    let whole: Vec<Range<u64>> = from.iter().map(|&n| 0..n).collect();
    let part = |j: &usize| result[*j] != (0..to[*j]);
    let mut out = whole.clone();
    for j in (0..to.len()).filter(part) {
        // Only the first dim of a group may be cut.
        let i = reshaped(from, to).iter().position(|l| matches!(l, Link::Pass(d) | Link::Blocks(d) if *d == j))?;
        let each = |shape: &[u64], d: usize| shape[d + 1..].iter().product::<u64>();
        // Elements for one position of either side.
        let (one, of) = (each(to, j), each(from, i).max(1));
        let (start, end) = (result[j].start * one, result[j].end * one);
        if !start.is_multiple_of(of) || !end.is_multiple_of(of) {
            return None;
        }
        out[i] = start / of..end / of;
    }
    Some(out)
}

/// Walks both shapes from the major side in groups of equal numbers of elements; the first dims
/// of a group's sides go along in blocks.
fn reshaped(from: &[u64], to: &[u64]) -> Vec<Link> {
    let mut out = vec![Link::Whole; from.len()];
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        // Sizes of 1 stand between the groups.
        if from[i] == 1 && to[j] != 1 {
            i += 1;
            continue;
        }
        if to[j] == 1 && from[i] != 1 {
            j += 1;
            continue;
        }
        let (first, first_to) = (i, j);
        let (mut a, mut b) = (from[i], to[j]);
        (i, j) = (i + 1, j + 1);
        while a != b {
            if a < b && i < from.len() {
                a = a.saturating_mul(from[i]);
                i += 1;
            } else if a > b && j < to.len() {
                b = b.saturating_mul(to[j]);
                j += 1;
            } else {
                return out;
            }
        }
        let alone = i == first + 1 && j == first_to + 1;
        out[first] = if alone { Link::Pass(first_to) } else { Link::Blocks(first_to) };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_go_along_from_the_major_side() {
        use Link::{Blocks, Pass, Whole};
        assert_eq!(reshaped(&[4, 6], &[4, 6]), [Pass(0), Pass(1)]);
        assert_eq!(reshaped(&[2, 3, 12], &[2, 3, 4, 3]), [Pass(0), Pass(1), Blocks(2)]);
        assert_eq!(reshaped(&[2, 3, 4], &[6, 4]), [Blocks(0), Whole, Pass(1)]);
        assert_eq!(reshaped(&[4, 1, 5], &[4, 5]), [Pass(0), Whole, Pass(1)]);
        assert_eq!(reshaped(&[4, 5], &[4, 1, 5]), [Pass(0), Pass(2)]);
        assert_eq!(reshaped(&[6], &[2, 3]), [Blocks(0)]);
        assert_eq!(reshaped(&[], &[1, 1]), []);
    }

    #[test]
    fn boxes_before_a_reshape_have_its_elements() {
        assert_eq!(before_reshape(&[2, 3, 12], &[2, 3, 4, 3], &[0..1, 0..3, 1..3, 0..3]), Some(vec![0..1, 0..3, 3..9]));
        assert_eq!(before_reshape(&[2, 3, 4], &[6, 4], &[3..6, 0..4]), Some(vec![1..2, 0..3, 0..4]));
        assert_eq!(before_reshape(&[2, 3, 4], &[6, 4], &[2..6, 0..4]), None);
        assert_eq!(before_reshape(&[2, 3, 4], &[6, 4], &[0..0, 0..4]), Some(vec![0..0, 0..3, 0..4]));
        assert_eq!(before_reshape(&[6, 4], &[2, 3, 4], &[0..2, 0..1, 0..4]), None);
        assert_eq!(before_reshape(&[4, 1, 5], &[4, 5], &[1..2, 2..5]), Some(vec![1..2, 0..1, 2..5]));
    }

    #[test]
    fn causal_products_keep_their_rows() {
        assert_eq!(dot(3, 3, false)[0], [Link::Pass(0), Link::Whole, Link::Whole]);
        assert_eq!(dot(2, 2, true)[1], [Link::Reduce(Reduction::Sum), Link::Pass(1)]);
        assert_eq!(dot(2, 3, true)[1], [Link::Reduce(Reduction::Sum), Link::Pass(1), Link::Pass(2)]);
    }
}
