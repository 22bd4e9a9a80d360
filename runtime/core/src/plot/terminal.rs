//! A figure as text: lines and dots as Braille characters, bars as blocks, images as shades.

use super::axis::{Axis, number};
use super::clip::{self, Place};
use super::image::reduced;
use super::text::{centred, columns as width_of, fitting, padded, plain};
use super::{Bar, Figure, Image, Layer, Marks, Panel};
use crate::progress::Progress;
use std::io::IsTerminal;

/// Columns where there is no terminal to ask.
const COLUMNS: u32 = 80;
/// Columns between panels.
const BETWEEN: usize = 2;

/// A loop's progress as a line of a terminal.
pub fn bar(progress: &Progress) -> String {
    const WIDTH: usize = 30;
    let done = (progress.share() * WIDTH as f64) as usize;
    let (bar, rest) = ("█".repeat(done), "░".repeat(WIDTH - done));
    let words = [format!("{}/{}", progress.current, progress.total), plain(&progress.text), progress.time()];
    let words: Vec<String> = words.into_iter().filter(|w| !w.is_empty()).collect();
    // A line that is longer than the terminal cannot be written over.
    let room = wide(std::io::stderr(), libc::STDERR_FILENO) as usize - 1;
    format!("{bar}{rest} {}", fitting(&words.join("  "), room.saturating_sub(WIDTH + 1) as f64, |t| width_of(t) as f64))
}

/// The columns of the terminal that standard output is.
pub fn columns() -> u32 {
    wide(std::io::stdout(), libc::STDOUT_FILENO)
}

fn wide(stream: impl IsTerminal, number: i32) -> u32 {
    if !stream.is_terminal() {
        return COLUMNS;
    }
    // SAFETY: the structure is plain numbers, for which zeros are valid, and `ioctl` only fills it.
    let wide = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        if libc::ioctl(number, libc::TIOCGWINSZ, &mut size) == 0 { size.ws_col } else { 0 }
    };
    if wide == 0 { COLUMNS } else { u32::from(wide).min(super::TEXT_MAX) }
}

/// The text, whose lines have no spaces at their ends.
pub fn draw(figure: &Figure, columns: usize, rows: usize) -> String {
    let mut out = vec![];
    if !figure.title.is_empty() {
        out.push(centred(&plain(&figure.title), columns));
    }
    let across = figure.columns.max(1);
    let width = (columns.saturating_sub(BETWEEN * (across - 1)) / across).max(1);
    for row in figure.panels.chunks(across) {
        let texts: Vec<Vec<String>> = row.iter().map(|p| panel(p, width, rows)).collect();
        let most = texts.iter().map(Vec::len).max().unwrap_or(0);
        for i in 0..most {
            let part = |text: &Vec<String>| padded(text.get(i).map_or("", String::as_str), width + BETWEEN);
            out.push(texts.iter().map(part).collect());
        }
    }
    out.iter().map(|l| l.trim_end().to_owned() + "\n").collect()
}

fn panel(panel: &Panel, columns: usize, rows: usize) -> Vec<String> {
    let mut out = vec![];
    if !panel.title.is_empty() {
        out.push(centred(&plain(&panel.title), columns));
    }
    if !panel.y.name.is_empty() {
        out.push(plain(&panel.y.name));
    }
    out.extend(match &panel.layers[..] {
        [Layer { marks: Marks::Image(i @ Image { places: None, .. }), .. }] => {
            heat((i.rows, i.columns), &i.cells, columns)
        }
        _ => layers(panel, columns, rows),
    });
    if !panel.x.name.is_empty() {
        out.push(centred(&plain(&panel.x.name), columns));
    }
    out
}

/// What stands for the dots of each series, where there are several.
const SIGNS: [char; 6] = ['o', 'x', '+', '*', '#', '%'];

/// The sign of each layer: none where lines and the dots of one series are Braille.
fn signs(panel: &Panel) -> Vec<Option<char>> {
    let is_dots = |l: &&Layer| matches!(l.marks, Marks::Dots(_));
    let several = panel.layers.iter().filter(is_dots).count() > 1;
    let mut next = SIGNS.iter().copied().cycle();
    panel.layers.iter().map(|l| if several && is_dots(&l) { next.next() } else { None }).collect()
}

/// Dots, two in a column and four in a row of characters, over characters, and signs over them.
struct Cells {
    columns: usize,
    rows: usize,
    dots: Vec<u8>,
    below: Vec<char>,
    above: Vec<Option<char>>,
}

impl Cells {
    fn new(columns: usize, rows: usize) -> Cells {
        let n = columns * rows;
        Cells { columns, rows, dots: vec![0; n], below: vec![' '; n], above: vec![None; n] }
    }

    /// A place in dots.
    fn dot(&self, p: &Place) -> Place {
        (p.0 * (self.columns * 2 - 1) as f64, (1.0 - p.1) * (self.rows * 4 - 1) as f64)
    }

    fn set(&mut self, x: i64, y: i64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x < self.columns * 2 && y < self.rows * 4 {
            // Braille counts the left column, the right column, then the lowest row.
            let bit = match y % 4 {
                3 => 6 + x % 2,
                row => row + 3 * (x % 2),
            };
            self.dots[y / 4 * self.columns + x / 2] |= 1 << bit;
        }
    }

    /// A sign in the character around a dot.
    fn sign(&mut self, (x, y): Place, sign: char) {
        let (column, row) = (x.round() as i64 / 2, y.round() as i64 / 4);
        let (Ok(column), Ok(row)) = (usize::try_from(column), usize::try_from(row)) else { return };
        if column < self.columns && row < self.rows {
            self.above[row * self.columns + column] = Some(sign);
        }
    }

    /// The straight line between two dots.
    fn line(&mut self, a: Place, b: Place) {
        let steps = (b.0 - a.0).abs().max((b.1 - a.1).abs()).ceil().max(1.0);
        let mut i = 0.0;
        while i <= steps {
            let t = i / steps;
            self.set((a.0 + t * (b.0 - a.0)).round() as i64, (a.1 + t * (b.1 - a.1)).round() as i64);
            i += 1.0;
        }
    }

    /// The columns between two shares, one at least.
    fn between(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        let column = |share: f64| (share.clamp(0.0, 1.0) * self.columns as f64).round() as usize;
        let from = column(from).min(self.columns - 1);
        from..column(to).max(from + 1).min(self.columns)
    }

    /// A block in a column between two heights, as shares.
    fn block(&mut self, column: usize, low: f64, high: f64, hanging: bool) {
        let eighths = |share: f64| (share.clamp(0.0, 1.0) * (self.rows * 8) as f64).round() as usize;
        let (low, high) = (eighths(low), eighths(high));
        for r in 0..self.rows {
            let (bottom, top) = (r * 8, r * 8 + 8);
            let filled = high.min(top).saturating_sub(low.max(bottom));
            let sign = match filled {
                0 => continue,
                8 => '█',
                4.. if hanging => '▀',
                _ if hanging => '▔',
                n => ['▁', '▂', '▃', '▄', '▅', '▆', '▇'][n - 1],
            };
            self.below[(self.rows - 1 - r) * self.columns + column] = sign;
        }
    }

    fn row(&self, r: usize) -> String {
        let cells = r * self.columns..(r + 1) * self.columns;
        let sign = |i: usize| match (self.above[i], self.dots[i]) {
            (Some(sign), _) => sign,
            (None, 0) => self.below[i],
            (None, dots) => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(self.below[i]),
        };
        cells.map(sign).collect()
    }
}

fn layers(panel: &Panel, columns: usize, rows: usize) -> Vec<String> {
    let (x, y) = panel.axes((columns / 12, rows / 3));
    let left = y.ticks.iter().map(|(_, t)| width_of(t)).max().unwrap_or(0);
    let cut = |name: &str| fitting(&plain(name), (columns / 3) as f64, |t| width_of(t) as f64);
    let signs = signs(panel);
    let signed = |name: String, sign: &Option<char>| match sign {
        Some(sign) => format!("{sign} {name}"),
        None => name,
    };
    let named = |(l, sign)| panel.names(l).then(|| signed(cut(&l.name), sign));
    let names: Vec<Option<String>> = panel.layers.iter().zip(&signs).map(named).collect();
    let right = names.iter().flatten().map(|n| width_of(n) + 1).max().unwrap_or(0);
    let width = columns.saturating_sub(left + 2 + right).max(8);
    let mut cells = Cells::new(width, rows);
    let mut labels: Vec<Option<&str>> = vec![None; rows];
    for ((layer, sign), name) in panel.layers.iter().zip(&signs).zip(&names) {
        let end = paint(layer, *sign, panel, (&x, &y), &mut cells);
        // The name stands where the layer ends, or in the nearest free row.
        if let (Some(name), Some(end)) = (name, end) {
            let at = (cells.dot(&end).1 / 4.0) as i64;
            let free = |r: &i64| usize::try_from(*r).ok().and_then(|r| labels.get(r)).is_some_and(Option::is_none);
            let near = (0..rows as i64).flat_map(|d| [at + d, at - d]).find(free);
            if let Some(slot) = near.and_then(|r| labels.get_mut(r as usize)) {
                *slot = Some(name);
            }
        }
    }
    let mut out = vec![];
    for (r, label) in labels.iter().enumerate() {
        let tick = y.ticks.iter().find(|(at, _)| ((1.0 - y.share(*at)) * (rows - 1) as f64).round() as usize == r);
        let (text, mark) = tick.map_or(("", '│'), |(_, t)| (t.as_str(), '┤'));
        let space = " ".repeat(left - width_of(text));
        out.push(format!("{space}{text} {mark}{} {}", cells.row(r), label.unwrap_or("")));
    }
    out.extend(below(&x, left, width, columns));
    out
}

/// Draws a layer and says where it ends.
fn paint(layer: &Layer, sign: Option<char>, panel: &Panel, (x, y): (&Axis, &Axis), cells: &mut Cells) -> Option<Place> {
    let place = |p: &(f64, f64)| Some((x.place(p.0)?, y.place(p.1)?));
    let near = |p: Place| (p.0.clamp(0.0, 1.0), p.1.clamp(0.0, 1.0));
    match &layer.marks {
        Marks::Line(points) => {
            let places: Vec<Option<Place>> = points.iter().map(place).collect();
            for run in clip::runs(&places, 0.0) {
                let run: Vec<Place> =
                    clip::thinned(run, (cells.columns * 2) as f64).iter().map(|p| cells.dot(p)).collect();
                run.iter().take(1).for_each(|p| cells.line(*p, *p));
                run.windows(2).for_each(|pair| cells.line(pair[0], pair[1]));
            }
            places.into_iter().flatten().next_back().map(near)
        }
        Marks::Dots(points) => {
            let places: Vec<Place> = points.iter().filter_map(place).collect();
            for p in places.iter().filter(|p| clip::stroke(**p, **p, 0.0).is_some()) {
                let dot = cells.dot(p);
                match sign {
                    Some(sign) => cells.sign(dot, sign),
                    None => cells.line(dot, dot),
                }
            }
            places.last().copied().map(near)
        }
        Marks::Bars(bars) => bar_blocks(bars, (x, y), cells).map(near),
        Marks::Band(band) => {
            band_shades(band, (x, y), cells);
            band.iter().filter_map(|&(x, low, high)| place(&(x, low / 2.0 + high / 2.0))).next_back().map(near)
        }
        Marks::Image(image @ Image { rows, columns, cells: values, .. }) => {
            let scale = panel.scale(5)?;
            let share = |axis: &Axis, v: f64| axis.place(v).unwrap_or(0.0);
            let across = (share(x, image.x(0)), share(x, image.x(*columns)));
            let down = (share(y, image.y(0)), share(y, image.y(*rows)));
            for r in 0..cells.rows {
                for c in 0..cells.columns {
                    let middle = ((c as f64 + 0.5) / cells.columns as f64, 1.0 - (r as f64 + 0.5) / cells.rows as f64);
                    let j = (middle.0 - across.0) / (across.1 - across.0) * *columns as f64;
                    let i = (middle.1 - down.0) / (down.1 - down.0) * *rows as f64;
                    if i >= 0.0 && j >= 0.0 && (i as usize) < *rows && (j as usize) < *columns {
                        cells.below[r * cells.columns + c] = shade(&scale, values[i as usize * columns + j as usize]);
                    }
                }
            }
            None
        }
    }
}

/// Shades where the middle of a character lies in a band.
fn band_shades(band: &[(f64, f64, f64)], (x, y): (&Axis, &Axis), cells: &mut Cells) {
    let place = |&(at, low, high): &(f64, f64, f64)| Some((x.place(at)?, y.place(low)?, y.place(high)?));
    let places: Vec<Option<(f64, f64, f64)>> = band.iter().map(place).collect();
    for pair in places.windows(2) {
        let &[Some(a), Some(b)] = pair else { continue };
        let (a, b) = if b.0 < a.0 { (b, a) } else { (a, b) };
        for c in cells.between(a.0, b.0) {
            let middle = (c as f64 + 0.5) / cells.columns as f64;
            let t = if b.0 > a.0 { ((middle - a.0) / (b.0 - a.0)).clamp(0.0, 1.0) } else { 0.0 };
            let (low, high) = (a.1 + t * (b.1 - a.1), a.2 + t * (b.2 - a.2));
            for r in 0..cells.rows {
                let height = 1.0 - (r as f64 + 0.5) / cells.rows as f64;
                if (low..=high).contains(&height) {
                    cells.below[r * cells.columns + c] = '░';
                }
            }
        }
    }
}

/// Bars as blocks, and where the last one ends. Those that share a column are as high as the highest.
fn bar_blocks(bars: &[Bar], (x, y): (&Axis, &Axis), cells: &mut Cells) -> Option<Place> {
    let base = Bar::base(y);
    let mut ends = vec![None; cells.columns];
    let mut last = None;
    for b in bars {
        let (Some(from), Some(to), Some(top)) = (x.place(b.from), x.place(b.to), y.place(b.height)) else { continue };
        if to <= 0.0 || from >= 1.0 {
            continue;
        }
        last = Some((to, top));
        for c in cells.between(from, to) {
            let (low, high) = ends[c].unwrap_or((base, base));
            ends[c] = Some((top.min(low), top.max(high)));
        }
    }
    for (c, (low, high)) in ends.into_iter().enumerate().filter_map(|(c, e)| Some((c, e?))) {
        cells.block(c, low, base, true);
        cells.block(c, base, high, false);
    }
    last
}

/// The horizontal axis with its labels.
fn below(x: &Axis, left: usize, width: usize, columns: usize) -> [String; 2] {
    let mut rule: Vec<char> = vec!['─'; width];
    let mut text = String::new();
    for (at, label) in &x.ticks {
        let column = (x.share(*at) * (width - 1) as f64).round() as usize;
        rule[column.min(width - 1)] = '┬';
        let (taken, long) = (width_of(&text), width_of(label));
        let start = (left + 2 + column).saturating_sub(long / 2);
        let free = if taken == 0 { 0 } else { taken + 1 };
        if start >= free && start + long <= columns.max(left + 2 + width) + 12 {
            text = padded(&text, start) + label;
        }
    }
    [format!("{:left$} └{}", "", rule.into_iter().collect::<String>()), text]
}

/// Shades from the least to the greatest value; `?` where there is no number.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

fn shade(scale: &Axis, v: f64) -> char {
    match scale.place(v) {
        Some(share) => SHADES[((share * 5.0) as usize).min(4)],
        None if v.is_nan() => '?',
        None => SHADES[if v > 0.0 { 4 } else { 0 }],
    }
}

fn heat(size: (usize, usize), cells: &[f64], columns: usize) -> Vec<String> {
    let left = size.0.saturating_sub(1).to_string().len();
    let (rows, across, means) = reduced(size, cells, (size.0.min(64), ((columns - left.min(columns)) / 2).max(1)));
    let scale = Axis::over(cells.iter().copied(), (None, None), false, 5, 0.0);
    let mut out = vec![];
    for i in 0..rows {
        let row = means.get(i * across..(i + 1) * across).unwrap_or(&[]);
        let drawn: String = row.iter().flat_map(|v| [shade(&scale, *v); 2]).collect();
        out.push(format!("{:>left$} {drawn}", i * size.0 / rows));
    }
    let step = (scale.high / 2.0 - scale.low / 2.0) / 500.0;
    let (low, high) = (number(scale.low, step), number(scale.high, step));
    out.push(format!("{:left$} {low} {} {high}", "", SHADES.iter().collect::<String>()));
    out
}
