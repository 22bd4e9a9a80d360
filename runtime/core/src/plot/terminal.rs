//! A figure as text: lines as dots of Braille characters, matrices as shades.

use super::axis::Axis;
use super::scene::{axes, height, reduced};
use super::{Content, Figure, Series};
use std::io::IsTerminal;

/// Columns where there is no terminal to ask.
const COLUMNS: u32 = 80;

/// The columns of the terminal that standard output is.
pub fn columns() -> u32 {
    if !std::io::stdout().is_terminal() {
        return COLUMNS;
    }
    // SAFETY: the structure is plain numbers, for which zeros are valid, and `ioctl` only fills it.
    let wide = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        if libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) == 0 { size.ws_col } else { 0 }
    };
    if wide == 0 { COLUMNS } else { u32::from(wide).min(super::TEXT_MAX) }
}

/// The text, whose lines have no spaces at their ends.
pub fn draw(figure: &Figure, columns: usize, rows: usize) -> String {
    let mut out = vec![];
    let lines = match &figure.content {
        Content::Lines { series, log } => lines(series, *log, columns, rows),
        Content::Heat { rows: r, columns: c, cells } => heat((*r, *c), cells, columns),
    };
    if !figure.title.is_empty() {
        out.push(format!("{:^columns$}", figure.title));
    }
    if !figure.y.is_empty() {
        out.push(figure.y.clone());
    }
    out.extend(lines);
    if !figure.x.is_empty() {
        out.push(format!("{:^columns$}", figure.x));
    }
    out.iter().map(|l| l.trim_end().to_owned() + "\n").collect()
}

/// Dots, two in a column and four in a row of characters.
struct Dots {
    columns: usize,
    rows: usize,
    cells: Vec<u8>,
}

impl Dots {
    fn set(&mut self, x: i64, y: i64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x < self.columns * 2 && y < self.rows * 4 {
            // Braille counts the left column, the right column, then the lowest row.
            let bit = match y % 4 {
                3 => 6 + x % 2,
                row => row + 3 * (x % 2),
            };
            self.cells[y / 4 * self.columns + x / 2] |= 1 << bit;
        }
    }

    /// The straight line between two dots.
    fn line(&mut self, a: (f64, f64), b: (f64, f64)) {
        let steps = (b.0 - a.0).abs().max((b.1 - a.1).abs()).ceil().max(1.0);
        let mut i = 0.0;
        while i <= steps {
            let t = i / steps;
            self.set((a.0 + t * (b.0 - a.0)).round() as i64, (a.1 + t * (b.1 - a.1)).round() as i64);
            i += 1.0;
        }
    }

    fn row(&self, r: usize) -> String {
        let cells = &self.cells[r * self.columns..(r + 1) * self.columns];
        cells.iter().map(|&c| char::from_u32(0x2800 + u32::from(c)).filter(|_| c != 0).unwrap_or(' ')).collect()
    }
}

fn lines(series: &[Series], log: bool, columns: usize, rows: usize) -> Vec<String> {
    let (x, y) = axes(series, log, (columns / 12, rows / 3));
    let left = y.ticks.iter().map(|(_, t)| t.chars().count()).max().unwrap_or(0);
    let names = series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    let right = if names == 0 { 0 } else { names + 1 };
    let width = columns.saturating_sub(left + 2 + right).max(8);
    let mut dots = Dots { columns: width, rows, cells: vec![0; width * rows] };
    let mut labels: Vec<Option<&str>> = vec![None; rows];
    for s in series {
        let place = |p: &(f64, f64)| {
            let v = height(p.1, log);
            let across = x.share(p.0) * (width * 2 - 1) as f64;
            (p.0.is_finite() && v.is_finite()).then(|| (across, (1.0 - y.share(v)) * (rows * 4 - 1) as f64))
        };
        let places: Vec<Option<(f64, f64)>> = s.points.iter().map(place).collect();
        for run in places.split(|p| p.is_none()) {
            let run: Vec<(f64, f64)> = run.iter().flatten().copied().collect();
            run.iter().take(1).for_each(|p| dots.line(*p, *p));
            run.windows(2).for_each(|pair| dots.line(pair[0], pair[1]));
        }
        // The name stands where the line ends, or in the nearest free row.
        if let Some(end) = places.iter().flatten().next_back() {
            let at = (end.1 / 4.0) as i64;
            let free = |r: &i64| usize::try_from(*r).ok().and_then(|r| labels.get(r)).is_some_and(Option::is_none);
            let near = (0..rows as i64).flat_map(|d| [at + d, at - d]).find(free);
            if let Some(slot) = near.and_then(|r| labels.get_mut(r as usize)) {
                *slot = Some(&s.name);
            }
        }
    }
    let mut out = vec![];
    for (r, label) in labels.iter().enumerate() {
        let tick = y.ticks.iter().find(|(at, _)| ((1.0 - y.share(*at)) * (rows - 1) as f64).round() as usize == r);
        let (text, mark) = tick.map_or(("", '│'), |(_, t)| (t.as_str(), '┤'));
        out.push(format!("{text:>left$} {mark}{} {}", dots.row(r), label.unwrap_or("")));
    }
    out.extend(below(&x, left, width));
    out
}

/// The horizontal axis with its labels.
fn below(x: &Axis, left: usize, width: usize) -> [String; 2] {
    let mut rule: Vec<char> = vec!['─'; width];
    let mut text: Vec<char> = vec![' '; left + 2 + width + 12];
    let mut free = 0;
    for (at, label) in &x.ticks {
        let column = (x.share(*at) * (width - 1) as f64).round() as usize;
        rule[column.min(width - 1)] = '┬';
        let long = label.chars().count();
        let start = (left + 2 + column).saturating_sub(long / 2);
        if start >= free && start + long <= text.len() {
            label.chars().enumerate().for_each(|(i, c)| text[start + i] = c);
            free = start + long + 1;
        }
    }
    [format!("{:left$} └{}", "", rule.into_iter().collect::<String>()), text.into_iter().collect()]
}

/// Shades from the least to the greatest value; `?` where there is no number.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

fn heat(size: (usize, usize), cells: &[f64], columns: usize) -> Vec<String> {
    let left = size.0.saturating_sub(1).to_string().len();
    let (rows, across, means) = reduced(size, cells, (size.0.min(64), ((columns - left.min(columns)) / 2).max(1)));
    let scale = Axis::over(cells.iter().copied(), 5, 0.0);
    let shade = |v: f64| match v.is_nan() {
        true => '?',
        false => SHADES[((scale.share(v) * 5.0) as usize).min(4)],
    };
    let mut out = vec![];
    for i in 0..rows {
        let row = means.get(i * across..(i + 1) * across).unwrap_or(&[]);
        let drawn: String = row.iter().flat_map(|v| [shade(*v); 2]).collect();
        out.push(format!("{:>left$} {drawn}", i * size.0 / rows));
    }
    let ends = (scale.low, scale.high);
    out.push(format!("{:left$} {:.4} {} {:.4}", "", ends.0, SHADES.iter().collect::<String>(), ends.1));
    out
}
