//! Matrices of more cells than a drawing has places for.

/// The means of blocks of a matrix, at most so many rows and columns of them; NaN where a block has no number.
pub fn reduced(size: (usize, usize), cells: &[f64], most: (usize, usize)) -> (usize, usize, Vec<f64>) {
    let (rows, columns) = (size.0.min(most.0), size.1.min(most.1));
    let mut out = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let (a, b) = (i * size.0 / rows, (i + 1) * size.0 / rows);
            let (c, d) = (j * size.1 / columns, (j + 1) * size.1 / columns);
            let block = (a..b).flat_map(|r| cells[r * size.1 + c..r * size.1 + d].iter().copied());
            let count = ((b - a) * (d - c)) as f64;
            // Divided first: a sum of large numbers may be more than a number holds.
            let (sum, n) = block.filter(|v| v.is_finite()).fold((0.0, 0.0), |(s, n), v| (s + v / count, n + 1.0));
            out.push(if n > 0.0 { sum * (count / n) } else { f64::NAN });
        }
    }
    (rows, columns, out)
}
