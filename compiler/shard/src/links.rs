//! Which box of an operand a box of a result needs, by the links of its dims.

use std::ops::Range;
use tessera_ir::graph::{Graph, Node};
use tessera_ir::links::{Link, reshaped};
use tessera_ir::prim::{Site, row};

/// One link for each dim of each operand.
pub fn links(g: &Graph, node: &Node) -> Vec<Vec<Link>> {
    row(&node.prim).links(Site { g, node })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_before_a_reshape_have_its_elements() {
        assert_eq!(before_reshape(&[2, 3, 12], &[2, 3, 4, 3], &[0..1, 0..3, 1..3, 0..3]), Some(vec![0..1, 0..3, 3..9]));
        assert_eq!(before_reshape(&[2, 3, 4], &[6, 4], &[3..6, 0..4]), Some(vec![1..2, 0..3, 0..4]));
        assert_eq!(before_reshape(&[2, 3, 4], &[6, 4], &[2..6, 0..4]), None);
        assert_eq!(before_reshape(&[2, 3, 4], &[6, 4], &[0..0, 0..4]), Some(vec![0..0, 0..3, 0..4]));
        assert_eq!(before_reshape(&[6, 4], &[2, 3, 4], &[0..2, 0..1, 0..4]), None);
        assert_eq!(before_reshape(&[4, 1, 5], &[4, 5], &[1..2, 2..5]), Some(vec![1..2, 0..1, 2..5]));
    }
}
