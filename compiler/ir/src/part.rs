//! Parts of a tensor: along each dim a first position, a step and a number of positions.

/// One dim of a part: elements `start + i * step` for `i` below `size`.
pub type Dim = (i64, i64, u64);

/// Elements that a slice takes, dim by dim. The step of a single position is 1, so that equal
/// parts are equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Part(Vec<Dim>);

impl FromIterator<Dim> for Part {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Part {
        Part(dims.into_iter().map(|(start, step, size)| (start, if size == 1 { 1 } else { step }, size)).collect())
    }
}

impl Part {
    /// Everything.
    pub fn all(shape: &[u64]) -> Part {
        shape.iter().map(|n| (0, 1, *n)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().any(|d| d.2 == 0)
    }

    pub fn dim(&self, d: usize) -> Dim {
        self.0[d]
    }

    /// Positions along each dim.
    pub fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|d| d.2).collect()
    }

    pub fn start_and_step(&self) -> (Vec<i64>, Vec<i64>) {
        self.0.iter().map(|d| (d.0, d.1)).unzip()
    }

    /// The part of a tensor that this part of a slice of it is.
    pub fn of_slice(&self, start: &[i64], step: &[i64]) -> Part {
        let dims = self.0.iter().zip(start.iter().zip(step));
        dims.map(|((first, by, size), (start, step))| (start + first * step, by * step, *size)).collect()
    }

    /// The part of a tensor of `inner` shape that is this part of it as a tensor of `outer` shape, its
    /// elements in the same order; `None` where they are no part.
    pub fn reshaped(&self, outer: &[u64], inner: &[u64]) -> Option<Part> {
        let (mut o, mut i) = (0, 0);
        let mut dims: Vec<Dim> = vec![];
        while o < outer.len() || i < inner.len() {
            // The next dims of both shapes with one number of elements.
            let (from, to) = (o, i);
            let (mut a, mut b) = (1u64, 1u64);
            loop {
                match a.cmp(&b) {
                    std::cmp::Ordering::Less if o < outer.len() => (a, o) = (a * outer[o], o + 1),
                    std::cmp::Ordering::Greater if i < inner.len() => (b, i) = (b * inner[i], i + 1),
                    std::cmp::Ordering::Equal if o == from && o < outer.len() => (a, o) = (a * outer[o], o + 1),
                    std::cmp::Ordering::Equal if i == to && i < inner.len() => (b, i) = (b * inner[i], i + 1),
                    std::cmp::Ordering::Equal => break,
                    _ => return None,
                }
            }
            let line = joined(&self.0[from..o], &outer[from..o])?;
            dims.extend(divided(line, &inner[to..i])?);
        }
        Some(dims.into_iter().collect())
    }
}

/// A part of neighbouring dims as one dim, if its elements are evenly apart.
fn joined(part: &[Dim], shape: &[u64]) -> Option<Dim> {
    let (mut start, mut step, mut size) = (0, 1, 1);
    let mut stride = 1i64;
    for ((first, by, n), extent) in part.iter().zip(shape).rev() {
        start += first * stride;
        if *n > 1 {
            if size > 1 && by * stride != step * size as i64 {
                return None;
            }
            step = if size > 1 { step } else { by * stride };
            size *= n;
        }
        stride *= *extent as i64;
    }
    Some((start, step, size))
}

/// The opposite.
fn divided((start, step, size): Dim, shape: &[u64]) -> Option<Vec<Dim>> {
    let Some((&extent, outer)) = shape.split_last() else { return (start == 0 && size == 1).then(Vec::new) };
    let n = extent as i64;
    let last = start + (size as i64 - 1) * step;
    let (inside, rest) = if size == 1 || start.div_euclid(n) == last.div_euclid(n) {
        ((start.rem_euclid(n), step, size), (start.div_euclid(n), 1, 1))
    } else if step % n == 0 {
        ((start.rem_euclid(n), 1, 1), (start.div_euclid(n), step / n, size))
    } else if step > 0 && n % step == 0 && start.rem_euclid(n) < step && size.is_multiple_of((n / step) as u64) {
        // The same positions of every row.
        let per = (n / step) as u64;
        ((start.rem_euclid(n), step, per), (start.div_euclid(n), 1, size / per))
    } else {
        return None;
    };
    let mut dims = divided(rest, outer)?;
    dims.push(inside);
    Some(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions of a part's elements, row-major.
    fn positions(part: &Part, shape: &[u64]) -> Vec<i64> {
        part.0.iter().zip(shape).fold(vec![0], |all, ((start, step, size), extent)| {
            let each = |at: i64| (0..*size as i64).map(move |i| at * *extent as i64 + start + i * step);
            all.into_iter().flat_map(each).collect()
        })
    }

    /// Every part of every shape of 12 elements, in every other shape: the same elements in the same order.
    #[test]
    fn a_part_in_another_shape_has_the_same_elements() {
        let shapes: Vec<Vec<u64>> = [&[12][..], &[2, 6], &[6, 2], &[3, 4], &[4, 3], &[2, 3, 2], &[1, 12], &[3, 1, 4]]
            .map(<[u64]>::to_vec)
            .into();
        let (mut found, mut none) = (0, 0);
        for outer in &shapes {
            for part in parts(outer) {
                for inner in &shapes {
                    match part.reshaped(outer, inner) {
                        Some(p) => {
                            found += 1;
                            assert_eq!(positions(&p, inner), positions(&part, outer), "{part:?} {outer:?} {inner:?}");
                        }
                        None => none += 1,
                    }
                }
            }
        }
        assert!(found > 1000 && none > 100, "{found} {none}");
    }

    fn parts(shape: &[u64]) -> Vec<Part> {
        let dims = |n: u64| {
            let n = n as i64;
            let of = move |start: i64, step: i64| {
                (1..=n as u64).map(move |size| (start, step, size)).filter(move |(s, t, z)| {
                    let last = s + (*z as i64 - 1) * t;
                    (0..n).contains(&last)
                })
            };
            (0..n).flat_map(move |start| [1, 2, 3, -1].into_iter().flat_map(move |step| of(start, step)))
        };
        shape.iter().fold(vec![Part(vec![])], |all, n| {
            let with = |p: &Part| dims(*n).map(|d| p.0.iter().copied().chain([d]).collect()).collect::<Vec<Part>>();
            all.iter().flat_map(with).collect()
        })
    }
}
