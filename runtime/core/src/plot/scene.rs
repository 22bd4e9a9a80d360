//! The layout of a figure on a picture, as shapes that know nothing of what they mean.

use super::axis::Axis;
use super::colors::{self, Color, GRID, INK, WHITE};
use super::{Content, Figure, Series};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// In pixels from the top left corner, in the order in which they are painted.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    Rect {
        x: f64,
        y: f64,
        w: f64,
        h: f64,
        fill: Color,
    },
    Line {
        points: Vec<(f64, f64)>,
        stroke: Color,
        width: f64,
    },
    /// `y` is the base line. `upwards`: turned to be read from below.
    Text {
        x: f64,
        y: f64,
        text: String,
        size: f64,
        anchor: Anchor,
        upwards: bool,
        ink: Color,
    },
}

const SMALL: f64 = 12.0;
const LARGE: f64 = 15.0;
/// Width of a character over the size of the text.
const ADVANCE: f64 = 0.6;
/// Cells of a heat map along each axis; finer ones are averaged.
const CELLS_MAX: usize = 200;

/// The part of the picture inside the axes.
#[derive(Clone, Copy)]
struct Field {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Field {
    fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

/// The shapes of a figure on a picture of this size.
pub fn layout(figure: &Figure, width: f64, height: f64) -> Vec<Shape> {
    let mut out = vec![Shape::Rect { x: 0.0, y: 0.0, w: width, h: height, fill: WHITE }];
    match &figure.content {
        Content::Lines { series, log } => lines(figure, series, *log, width, height, &mut out),
        Content::Heat { rows, columns, cells } => heat(figure, (*rows, *columns), cells, width, height, &mut out),
    }
    out
}

/// The axes of lines; logarithms of heights that have none are NaN.
pub fn axes(series: &[Series], log: bool, ticks: (usize, usize)) -> (Axis, Axis) {
    let points = || series.iter().flat_map(|s| &s.points).filter(|p| p.0.is_finite() && height(p.1, log).is_finite());
    let x = Axis::over(points().map(|p| p.0), ticks.0.max(2), 0.0);
    let y = match log {
        true => Axis::over_logs(points().map(|p| height(p.1, true)), 0.04),
        false => Axis::over(points().map(|p| p.1), ticks.1.max(2), 0.04),
    };
    (x, y)
}

/// A height as the axis counts it.
pub fn height(y: f64, log: bool) -> f64 {
    if !log {
        y
    } else if y > 0.0 {
        y.log10()
    } else {
        f64::NAN
    }
}

fn label(x: f64, y: f64, text: &str, anchor: Anchor) -> Shape {
    Shape::Text { x, y, text: text.to_owned(), size: SMALL, anchor, upwards: false, ink: INK }
}

/// Title and names of the axes, and the field that is left.
fn frame(
    figure: &Figure,
    y_axis: &[(f64, String)],
    width: f64,
    height: f64,
    extra: f64,
    out: &mut Vec<Shape>,
) -> Field {
    let widest = y_axis.iter().map(|(_, t)| t.chars().count()).max().unwrap_or(0) as f64;
    let field = Field {
        left: 16.0 + widest * SMALL * ADVANCE + if figure.y.is_empty() { 0.0 } else { 20.0 },
        top: if figure.title.is_empty() { 14.0 } else { 36.0 },
        right: width - 18.0 - extra,
        bottom: height - 28.0 - if figure.x.is_empty() { 0.0 } else { 20.0 },
    };
    let middle = (field.left + field.right) / 2.0;
    if !figure.title.is_empty() {
        let text = figure.title.clone();
        out.push(Shape::Text {
            x: middle,
            y: 24.0,
            text,
            size: LARGE,
            anchor: Anchor::Middle,
            upwards: false,
            ink: INK,
        });
    }
    if !figure.x.is_empty() {
        out.push(label(middle, height - 12.0, &figure.x, Anchor::Middle));
    }
    if !figure.y.is_empty() {
        let (y, text) = ((field.top + field.bottom) / 2.0, figure.y.clone());
        out.push(Shape::Text { x: 18.0, y, text, size: SMALL, anchor: Anchor::Middle, upwards: true, ink: INK });
    }
    field
}

fn lines(figure: &Figure, series: &[Series], log: bool, width: f64, high: f64, out: &mut Vec<Shape>) {
    let (x, y) = axes(series, log, ((width / 80.0) as usize, (high / 65.0) as usize));
    let f = frame(figure, &y.ticks, width, high, 0.0, out);
    for (at, text) in &x.ticks {
        let px = f.x(x.share(*at));
        out.push(Shape::Line { points: vec![(px, f.top), (px, f.bottom)], stroke: GRID, width: 1.0 });
        out.push(label(px, f.bottom + 16.0, text, Anchor::Middle));
    }
    for (at, text) in &y.ticks {
        let py = f.y(y.share(*at));
        out.push(Shape::Line { points: vec![(f.left, py), (f.right, py)], stroke: GRID, width: 1.0 });
        out.push(label(f.left - 6.0, py + 4.0, text, Anchor::End));
    }
    let border = vec![(f.left, f.top), (f.left, f.bottom), (f.right, f.bottom)];
    out.push(Shape::Line { points: border, stroke: INK, width: 1.0 });
    for (i, s) in series.iter().enumerate() {
        let place = |p: &(f64, f64)| {
            let v = height(p.1, log);
            (p.0.is_finite() && v.is_finite()).then(|| (f.x(x.share(p.0)), f.y(y.share(v))))
        };
        let places: Vec<Option<(f64, f64)>> = s.points.iter().map(place).collect();
        for run in places.split(|p| p.is_none()).filter(|r| !r.is_empty()) {
            let mut points: Vec<(f64, f64)> = run.iter().flatten().copied().collect();
            // A point alone is a short stroke.
            if let [(px, py)] = points[..] {
                points = vec![(px - 1.5, py), (px + 1.5, py)];
            }
            out.push(Shape::Line { points, stroke: colors::line(i), width: 1.8 });
        }
    }
    legend(series, f, out);
}

/// The names of the lines in the top right corner.
fn legend(series: &[Series], f: Field, out: &mut Vec<Shape>) {
    let named: Vec<(usize, &Series)> = series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()).collect();
    let widest = named.iter().map(|(_, s)| s.name.chars().count()).max().unwrap_or(0) as f64 * SMALL * ADVANCE;
    if named.is_empty() {
        return;
    }
    let (left, top) = (f.right - widest - 44.0, f.top + 6.0);
    out.push(Shape::Rect { x: left, y: top, w: widest + 38.0, h: named.len() as f64 * 18.0 + 6.0, fill: WHITE });
    for (row, (i, s)) in named.into_iter().enumerate() {
        let y = top + 14.0 + row as f64 * 18.0;
        let points = vec![(left + 6.0, y - 2.0), (left + 26.0, y - 2.0)];
        out.push(Shape::Line { points, stroke: colors::line(i), width: 1.8 });
        out.push(label(left + 32.0, y + 2.0, &s.name, Anchor::Start));
    }
}

/// The means of blocks of a matrix, at most so many rows and columns of them; NaN where a block has no number.
pub fn reduced(size: (usize, usize), cells: &[f64], most: (usize, usize)) -> (usize, usize, Vec<f64>) {
    let (rows, columns) = (size.0.min(most.0), size.1.min(most.1));
    let mut out = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let (a, b) = (i * size.0 / rows, (i + 1) * size.0 / rows);
            let (c, d) = (j * size.1 / columns, (j + 1) * size.1 / columns);
            let block = (a..b).flat_map(|r| cells[r * size.1 + c..r * size.1 + d].iter().copied());
            let (sum, n) = block.filter(|v| v.is_finite()).fold((0.0, 0.0), |(s, n), v| (s + v, n + 1.0));
            out.push(if n > 0.0 { sum / n } else { f64::NAN });
        }
    }
    (rows, columns, out)
}

fn heat(figure: &Figure, size: (usize, usize), cells: &[f64], width: f64, high: f64, out: &mut Vec<Shape>) {
    let scale = Axis::over(cells.iter().copied(), 6, 0.0);
    let (down, across) = (cell_axis(size.0), cell_axis(size.1));
    let widest = scale.ticks.iter().map(|(_, t)| t.chars().count()).max().unwrap_or(0) as f64;
    let f = frame(figure, &down.ticks, width, high, 30.0 + widest * SMALL * ADVANCE, out);
    let (rows, columns, means) = reduced(size, cells, (CELLS_MAX, CELLS_MAX));
    for (k, mean) in means.iter().enumerate() {
        let (i, j) = ((k / columns) as f64, (k % columns) as f64);
        // Whole pixels: no light comes through between the cells.
        let (x0, x1) = (f.x(j / columns as f64).round(), f.x((j + 1.0) / columns as f64).round());
        let (y0, y1) = (f.y(1.0 - i / rows as f64).round(), f.y(1.0 - (i + 1.0) / rows as f64).round());
        out.push(Shape::Rect { x: x0, y: y0, w: x1 - x0, h: y1 - y0, fill: colors::heat(scale.share(*mean)) });
    }
    for (at, text) in &across.ticks {
        out.push(label(f.x((at + 0.5) / size.1 as f64), f.bottom + 16.0, text, Anchor::Middle));
    }
    for (at, text) in &down.ticks {
        out.push(label(f.left - 6.0, f.y(1.0 - (at + 0.5) / size.0 as f64) + 4.0, text, Anchor::End));
    }
    for k in 0..64 {
        let share = f64::from(k) / 64.0;
        let (y0, y1) = (f.y(share + 1.0 / 64.0).round(), f.y(share).round());
        let fill = colors::heat((f64::from(k) + 0.5) / 64.0);
        out.push(Shape::Rect { x: f.right + 10.0, y: y0, w: 12.0, h: y1 - y0, fill });
    }
    for (at, text) in &scale.ticks {
        out.push(label(f.right + 27.0, f.y(scale.share(*at)) + 4.0, text, Anchor::Start));
    }
}

/// Whole numbers of cells as ticks.
fn cell_axis(n: usize) -> Axis {
    let mut axis = Axis::over([0.0, n.saturating_sub(1) as f64].into_iter(), 8, 0.0);
    axis.ticks.retain(|(at, _)| at.fract() == 0.0 && *at >= 0.0 && *at < n.max(1) as f64);
    axis
}
