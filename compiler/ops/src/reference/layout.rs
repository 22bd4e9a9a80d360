//! Copies between strided views: the one loop behind all movement of data.

/// Runs `$body` with a constant `$n` equal to `$size`, which is the size of an element type.
macro_rules! sized {
    ($size:expr, $n:ident => $body:expr) => {
        match $size {
            1 => {
                const $n: usize = 1;
                $body
            }
            2 => {
                const $n: usize = 2;
                $body
            }
            4 => {
                const $n: usize = 4;
                $body
            }
            _ => {
                const $n: usize = 8;
                $body
            }
        }
    };
}

pub(super) use sized;

/// A walk over an array: where it starts and how far each dim steps, in elements.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub start: isize,
    pub strides: Vec<isize>,
}

impl View {
    /// All of a row-major array.
    pub fn dense(shape: &[u64]) -> View {
        View { start: 0, strides: strides(shape) }
    }
}

/// Row-major strides in elements.
pub(super) fn strides(shape: &[u64]) -> Vec<isize> {
    let mut out = vec![1isize; shape.len()];
    for i in (1..shape.len()).rev() {
        // Wraps only where another dim is 0, and then nothing is read.
        out[i - 1] = out[i].wrapping_mul(shape[i] as isize);
    }
    out
}

/// `to[view] = from[view]` for every position of `shape`. Both arrays hold elements of `size` bytes.
pub(super) fn copy(size: usize, shape: &[u64], from: &[u8], source: &View, to: &mut [u8], target: &View) {
    sized!(size, N => copy_sized::<N>(shape, from.as_chunks().0, source, to.as_chunks_mut().0, target))
}

fn copy_sized<const N: usize>(shape: &[u64], from: &[[u8; N]], source: &View, to: &mut [[u8; N]], target: &View) {
    let Some(dims) = merged(shape, source, target) else { return };
    let (inner, outer) = match dims.split_last() {
        Some((&inner, outer)) => (inner, outer),
        None => ((1, 1, 1), &[][..]),
    };
    let mut at = vec![0usize; outer.len()];
    let (mut s, mut t) = (source.start, target.start);
    loop {
        row(from, s, to, t, inner);
        let mut d = outer.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            let (n, ss, ts) = outer[d];
            at[d] += 1;
            s += ss;
            t += ts;
            if at[d] < n {
                break;
            }
            at[d] = 0;
            s -= ss * n as isize;
            t -= ts * n as isize;
        }
    }
}

/// The inner loop: `(count, source step, target step)`.
fn row<const N: usize>(from: &[[u8; N]], s: isize, to: &mut [[u8; N]], t: isize, inner: (usize, isize, isize)) {
    let (n, ss, ts) = inner;
    if ts == 1 {
        let to = &mut to[t as usize..][..n];
        match ss {
            1 => to.copy_from_slice(&from[s as usize..][..n]),
            0 => to.fill(from[s as usize]),
            _ => {
                for (i, to) in to.iter_mut().enumerate() {
                    *to = from[(s + i as isize * ss) as usize];
                }
            }
        }
        return;
    }
    for i in 0..n as isize {
        to[(t + i * ts) as usize] = from[(s + i * ss) as usize];
    }
}

/// The dims as `(size, source step, target step)` without those of size 1, neighbours that
/// both views walk as one joined; `None` where there is nothing to copy.
fn merged(shape: &[u64], source: &View, target: &View) -> Option<Vec<(usize, isize, isize)>> {
    let mut dims: Vec<(usize, isize, isize)> = Vec::with_capacity(shape.len());
    for (i, &n) in shape.iter().enumerate() {
        let n = n as usize;
        match n {
            0 => return None,
            1 => continue,
            _ => {}
        }
        let (ss, ts) = (source.strides[i], target.strides[i]);
        match dims.last_mut() {
            Some(last) if last.1 == ss.wrapping_mul(n as isize) && last.2 == ts.wrapping_mul(n as isize) => {
                *last = (last.0 * n, ss, ts)
            }
            _ => dims.push((n, ss, ts)),
        }
    }
    Some(dims)
}

/// An array seen from one axis: `outer × n × inner`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

/// Sizes before, of and after an axis.
pub(super) fn split(shape: &[u64], axis: usize) -> Split {
    let product = |dims: &[u64]| dims.iter().fold(1usize, |n, &d| n.wrapping_mul(d as usize));
    Split { outer: product(&shape[..axis]), n: shape[axis] as usize, inner: product(&shape[axis + 1..]) }
}
