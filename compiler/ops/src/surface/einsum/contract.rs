//! A contraction as transpositions, reshapes, sums and matrix products.

use super::super::diagonal::diagonal;
use super::super::expand;
use super::super::reduce::stepwise;
use super::super::{Build, Id};
use super::equation::Label;
use crate::map::MapOp;
use crate::prim::Reduction;
use tessera_base::DType;

type Term = (Id, Vec<Label>);

/// The sum of products of the terms, of one dtype, for the labels of the output. Products
/// accumulate in `accum`; the result is rounded once.
pub fn contract(b: &mut dyn Build, terms: Vec<Term>, output: &[Label], accum: DType, result: DType) -> Id {
    let mut terms: Vec<Term> = terms.into_iter().map(|term| distinct(b, term)).collect();
    drop_broadcast(b, &mut terms);
    for i in 0..terms.len() {
        let alone: Vec<Label> = terms[i]
            .1
            .iter()
            .copied()
            .filter(|l| !output.contains(l) && terms.iter().enumerate().all(|(j, t)| j == i || !t.1.contains(l)))
            .collect();
        terms[i] = sum_out(b, terms[i].clone(), &alone, accum);
    }
    let mut rest = terms.into_iter();
    let Some(mut left) = rest.next() else { return Id(0) };
    while let Some(right) = rest.next() {
        let later = rest.as_slice();
        let keep = |l: &Label| output.contains(l) || later.iter().any(|t| t.1.contains(l));
        let dtype = if later.is_empty() { result } else { accum };
        left = pair(b, left, right, &keep, accum, dtype);
    }
    let order: Vec<usize> = output.iter().filter_map(|l| left.1.iter().position(|m| m == l)).collect();
    let x = expand::transpose(b, left.0, &order);
    expand::cast(b, x, result)
}

/// Takes diagonals until no label occurs twice.
fn distinct(b: &mut dyn Build, (mut x, mut labels): Term) -> Term {
    while let Some((i, j)) = (0..labels.len()).find_map(|j| (0..j).find(|&i| labels[i] == labels[j]).map(|i| (i, j))) {
        x = diagonal(b, x, i, j, 0);
        let label = labels.remove(j);
        labels.remove(i);
        labels.push(label);
    }
    (x, labels)
}

/// Leaves out dims of size 1 whose label is larger elsewhere: they broadcast.
fn drop_broadcast(b: &mut dyn Build, terms: &mut [Term]) {
    for i in 0..terms.len() {
        let (x, labels) = terms[i].clone();
        let small = |l: &Label| size_of(b, &terms[i], *l) == 1 && terms.iter().any(|t| size_of(b, t, *l) != 1);
        let kept: Vec<Label> = labels.iter().copied().filter(|l| !small(l)).collect();
        if kept.len() < labels.len() {
            let shape: Vec<u64> = kept.iter().map(|l| size_of(b, &terms[i], *l)).collect();
            terms[i] = (expand::reshape(b, x, &shape), kept);
        }
    }
}

fn sum_out(b: &mut dyn Build, (x, labels): Term, gone: &[Label], accum: DType) -> Term {
    if gone.is_empty() {
        return (x, labels);
    }
    let axes: Vec<usize> = (0..labels.len()).filter(|&d| gone.contains(&labels[d])).collect();
    let x = expand::cast(b, x, accum);
    let x = expand::reduce(b, x, stepwise(Reduction::Sum, accum), &axes, false);
    (x, labels.into_iter().filter(|l| !gone.contains(l)).collect())
}

/// The product of two terms, summed over the shared labels that nothing else needs.
fn pair(b: &mut dyn Build, left: Term, right: Term, keep: &dyn Fn(&Label) -> bool, accum: DType, dtype: DType) -> Term {
    let both = |l: &&Label| right.1.contains(l);
    let batch: Vec<Label> = left.1.iter().filter(both).filter(|l| keep(l)).copied().collect();
    let inner: Vec<Label> = left.1.iter().filter(both).filter(|l| !keep(l)).copied().collect();
    let rows: Vec<Label> = left.1.iter().filter(|l| !both(l)).copied().collect();
    let columns: Vec<Label> = right.1.iter().filter(|l| !left.1.contains(l)).copied().collect();
    let labels = [&batch[..], &rows, &columns].concat();
    let same = b.dtype(left.0) == b.dtype(right.0);
    let common = |b: &mut dyn Build, x: Id| if same && !inner.is_empty() { x } else { expand::cast(b, x, accum) };
    let (x, y) = (common(b, left.0), common(b, right.0));
    let (left, right) = ((x, left.1), (y, right.1));
    if inner.is_empty() {
        let owner = |l: &Label| if left.1.contains(l) { &left } else { &right };
        let shape: Vec<u64> = labels.iter().map(|l| size_of(b, owner(l), *l)).collect();
        let spread = |b: &mut dyn Build, t: &Term| {
            let order: Vec<Label> = labels.iter().copied().filter(|l| t.1.contains(l)).collect();
            let x = arrange(b, t, &order);
            let dims = order.iter().filter_map(|l| labels.iter().position(|m| m == l)).collect();
            expand::broadcast_dims(b, x, &shape, dims)
        };
        let (x, y) = (spread(b, &left), spread(b, &right));
        return (expand::map(b, MapOp::mul, &[x, y]), labels);
    }
    let sizes = |b: &dyn Build, t: &Term, of: &[Label]| of.iter().map(|l| size_of(b, t, *l)).collect::<Vec<u64>>();
    let (bs, ms, ns) = (sizes(b, &left, &batch), sizes(b, &left, &rows), sizes(b, &right, &columns));
    let ks = sizes(b, &left, &inner);
    let (k, run) = (ks.iter().product(), ks.iter().skip(1).product());
    let x = arrange(b, &left, &[&batch[..], &rows, &inner].concat());
    let y = arrange(b, &right, &[&batch[..], &inner, &columns].concat());
    let x = expand::reshape(b, x, &[&bs[..], &[ms.iter().product(), k]].concat());
    let y = expand::reshape(b, y, &[&bs[..], &[k, ns.iter().product()]].concat());
    let product = expand::dot_over(b, [x, y], run, accum, dtype);
    (expand::reshape(b, product, &[bs, ms, ns].concat()), labels)
}

/// The size of a label in the term; 1 where it does not occur.
fn size_of(b: &dyn Build, t: &Term, label: Label) -> u64 {
    t.1.iter().position(|l| *l == label).map_or(1, |d| b.shape(t.0)[d])
}

fn arrange(b: &mut dyn Build, t: &Term, order: &[Label]) -> Id {
    let perm: Vec<usize> = order.iter().filter_map(|l| t.1.iter().position(|m| m == l)).collect();
    expand::transpose(b, t.0, &perm)
}
