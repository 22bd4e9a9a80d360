//! Dims of a shape in another one that has the same elements.

/// Where dim `at` of `from` is in `to`, which has the same elements, and whether it is the last one of the dims that are
/// joined there; `None` where it is divided.
pub fn dim_after(from: &[u64], to: &[u64], at: usize) -> Option<(usize, bool)> {
    let behind: u64 = from[at + 1..].iter().product();
    let mut inner = 1;
    for (d, &n) in to.iter().enumerate().rev() {
        if n > 1 && inner <= behind && behind * from[at] <= inner * n {
            return Some((d, inner == behind));
        }
        inner *= n;
    }
    None
}

/// Whether every dim of `from` is some dims of `to`, or part of one: its index is then an index
/// of axes, without divisions.
pub fn regroups(from: &[u64], to: &[u64]) -> bool {
    if from == to {
        return true;
    }
    if from.contains(&0) {
        return false;
    }
    // Elements behind each dim: where the dims of a row-major index begin.
    let steps = |shape: &[u64]| -> Vec<u64> {
        let inner = shape.iter().rev().scan(1, |step, n| {
            let here = *step;
            *step *= n;
            Some(here)
        });
        inner.chain([shape.iter().product()]).collect()
    };
    let to = steps(to);
    steps(from).iter().all(|step| {
        to.contains(step)
            || to
                .windows(2)
                .any(|w| w[0] < *step && *step < w[1] && step.is_multiple_of(w[0]) && w[1].is_multiple_of(*step))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dims_are_found_behind_a_reshape() {
        assert_eq!(dim_after(&[4, 6], &[24], 1), Some((0, true)));
        assert_eq!(dim_after(&[4, 6], &[24], 0), Some((0, false)));
        assert_eq!(dim_after(&[4, 6], &[4, 2, 3], 1), None);
        assert!(regroups(&[4, 6], &[4, 2, 3]) && regroups(&[4, 6], &[24]) && !regroups(&[4, 6], &[3, 8]));
    }
}
