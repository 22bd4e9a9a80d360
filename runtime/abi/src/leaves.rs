//! Leaves of matrix products and the balanced tree over them, for what computes products without generated code. The order is
//! defined in the compiler (`tessera_ops::prim::fold`).

/// Steps of a leaf, where nothing asks for others.
pub const DOT_LEAF: usize = 256;

/// The sum of the leaves `numbers`, which ascend: `chain` makes that of one, `add` puts a later sum onto an earlier one. Nothing
/// of no leaf.
///
/// A binary counter: leaf `i` meets the sums of as many levels as `i` has ones at its end, and its sum stays at the level of
/// the first zero. After the last leaf what is left meets from the lowest level up. What a number left out would have met
/// goes up as it is.
pub fn tree<T>(
    numbers: impl Iterator<Item = usize>,
    mut chain: impl FnMut(usize) -> T,
    add: impl Fn(&T, &T) -> T,
) -> Option<T> {
    let mut waiting: Vec<Option<T>> = vec![];
    for number in numbers {
        let mut now = chain(number);
        let level = number.trailing_ones() as usize;
        waiting.resize_with(waiting.len().max(level + 1), || None);
        for earlier in waiting.iter_mut().take(level).filter_map(Option::take) {
            now = add(&earlier, &now);
        }
        if let Some(slot) = waiting.get_mut(level) {
            *slot = Some(now);
        }
    }
    waiting.into_iter().flatten().reduce(|later, earlier| add(&earlier, &later))
}

#[cfg(test)]
mod tests {
    use super::tree;

    /// The tree as it is defined: level by level.
    fn by_levels(mut now: Vec<String>) -> Option<String> {
        while now.len() > 1 {
            now = now.chunks(2).map(|p| if let [a, b] = p { format!("({a}{b})") } else { p[0].clone() }).collect();
        }
        now.pop()
    }

    #[test]
    fn the_counter_makes_the_tree() {
        let add = |a: &String, b: &String| format!("({a}{b})");
        for leaves in 0..40 {
            let all = (0..leaves).map(|n| format!("{n}.")).collect();
            assert_eq!(tree(0..leaves, |n| format!("{n}."), add), by_levels(all));
        }
        // What is missing changes no place.
        let some = tree(2..7, |n| n.to_string(), add);
        assert_eq!(some.as_deref(), Some("((23)((45)6))"));
    }
}
