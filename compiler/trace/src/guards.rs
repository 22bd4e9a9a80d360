//! A cache of specialisations by the guards that they rely on.
//!
//! Also called: an inline cache.

use super::Guard;
use super::scalar::{Known, ScalarExpr};
use std::sync::Arc;

/// Entries for arguments of the same shapes. Guards come in the order in which tracing asked,
/// so the entries form a decision tree: each node asks for one scalar and branches on it.
#[derive(Clone, Debug, Default)]
pub enum GuardTree<T> {
    #[default]
    Empty,
    Entry(T),
    Ask {
        expr: Arc<ScalarExpr>,
        answers: Vec<(Option<Known>, GuardTree<T>)>,
    },
}

impl<T> GuardTree<T> {
    /// The entry whose guards hold for the scalar leaves given.
    pub fn find(&self, leaf: &dyn Fn(u32) -> Known) -> Option<&T> {
        match self {
            GuardTree::Empty => None,
            GuardTree::Entry(entry) => Some(entry),
            GuardTree::Ask { expr, answers } => {
                let answer = expr.eval(leaf).ok();
                answers.iter().find(|(known, _)| agrees(*known, answer))?.1.find(leaf)
            }
        }
    }

    /// Adds an entry under its guards; one for the same answers is replaced.
    pub fn insert(&mut self, guards: &[Guard], entry: T) {
        let Some((first, rest)) = guards.split_first() else {
            *self = GuardTree::Entry(entry);
            return;
        };
        if !matches!(self, GuardTree::Ask { expr, .. } if *expr == first.expr) {
            *self = GuardTree::Ask { expr: first.expr.clone(), answers: vec![] };
        }
        let GuardTree::Ask { answers, .. } = self else { return };
        let at = answers.iter().position(|(known, _)| agrees(*known, Some(first.value))).unwrap_or_else(|| {
            answers.push((Some(first.value), GuardTree::Empty));
            answers.len() - 1
        });
        answers[at].1.insert(rest, entry);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            GuardTree::Empty => 0,
            GuardTree::Entry(_) => 1,
            GuardTree::Ask { answers, .. } => answers.iter().map(|(_, t)| t.len()).sum(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn agrees(known: Option<Known>, answer: Option<Known>) -> bool {
    match (known, answer) {
        (Some(a), Some(b)) => a.same(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scalar::Kind;
    use super::*;

    #[test]
    fn entries_are_found_by_their_answers() {
        let leaf = Arc::new(ScalarExpr::Leaf(0, Kind::Int));
        let guard = |n| vec![Guard { expr: leaf.clone(), value: Known::Int(n) }];
        let mut tree = GuardTree::default();
        tree.insert(&guard(1), "one");
        tree.insert(&guard(2), "two");
        assert_eq!(tree.find(&|_| Known::Int(2)), Some(&"two"));
        assert_eq!(tree.find(&|_| Known::Int(3)), None);
        assert_eq!(tree.len(), 2);
    }
}
