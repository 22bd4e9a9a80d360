//! The layout of a figure on a picture, as shapes.

use super::clip::{self, Place};
use super::colors::{self, Color};
use super::frame::{self, Frame};
use super::image::reduced;
use super::shapes::{Field, Shape};
use super::{Bar, Figure, Image, Layer, Marks, Panel};
use std::collections::BTreeMap;

/// Cells of an image along each axis; finer ones are averaged.
const CELLS_MAX: usize = 200;
/// Colours of an image.
const LEVELS: f64 = 128.0;
/// How far beyond the field lines are drawn, in shares of it: their thickness is cut off there.
const BEYOND: f64 = 0.1;

/// The shapes of a figure on a picture of this size.
pub fn layout(figure: &Figure, width: f64, height: f64) -> Vec<Shape> {
    let mut out = vec![frame::ground(width, height)];
    let mut top = 0.0;
    if !figure.title.is_empty() {
        frame::title(&figure.title, Field { left: 0.0, top, right: width, bottom: height }, &mut out);
        top = 30.0;
    }
    let (columns, rows) = (figure.columns.max(1), figure.rows().max(1));
    let (w, h) = (width / columns as f64, (height - top).max(1.0) / rows as f64);
    for (k, one) in figure.panels.iter().enumerate() {
        let (left, top) = ((k % columns) as f64 * w, top + (k / columns) as f64 * h);
        panel(one, Field { left, top, right: left + w, bottom: top + h }, &mut out);
    }
    out
}

fn panel(panel: &Panel, place: Field, out: &mut Vec<Shape>) {
    let frame = frame::frame(panel, place, out);
    let mut shapes = vec![];
    let several = panel.layers.iter().filter(|l| l.touches()).count() > 1;
    for (colour, layer) in panel.coloured() {
        let opacity = if several && layer.touches() { 0.6 } else { 1.0 };
        layer_shapes(layer, &frame, colors::line(colour), opacity, &mut shapes);
    }
    out.push(Shape::Inside { field: frame.field, shapes });
}

fn layer_shapes(layer: &Layer, frame: &Frame, color: Color, opacity: f64, out: &mut Vec<Shape>) {
    let f = &frame.field;
    let place = |p: &(f64, f64)| Some((frame.x.place(p.0)?, frame.y.place(p.1)?));
    let pixel = |p: &Place| (f.x(p.0), f.y(p.1));
    match &layer.marks {
        Marks::Line(points) => {
            let places: Vec<Option<Place>> = points.iter().map(place).collect();
            for run in clip::runs(&places, BEYOND) {
                let run: Vec<(f64, f64)> = clip::thinned(run, f.wide()).iter().map(pixel).collect();
                // A point alone is a dot.
                out.push(match run[..] {
                    [_] => Shape::Dots { points: run, fill: color, size: 3.0 },
                    _ => Shape::Line { points: run, stroke: color, width: 1.8 },
                });
            }
        }
        Marks::Dots(points) => {
            let seen = |p: &Place| clip::stroke(*p, *p, BEYOND).is_some();
            let places = points.iter().filter_map(place).filter(seen).collect();
            let places = clip::apart(places, f.wide(), f.tall());
            let size = if places.len() > 500 { 3.0 } else { 5.0 };
            out.push(Shape::Dots { points: places.iter().map(pixel).collect(), fill: color, size });
        }
        Marks::Bars(bars) => bar_shapes(bars, frame, color, opacity, out),
        Marks::Band(band) => band_shapes(band, frame, color, out),
        Marks::Image(cells) => image(cells, frame, out),
    }
}

/// The parts of a band between its interruptions.
fn band_shapes(band: &[(f64, f64, f64)], frame: &Frame, fill: Color, out: &mut Vec<Shape>) {
    let f = &frame.field;
    // Far enough away that the slopes are those of the data, and near enough for any viewer.
    let near = |v: f64| v.clamp(-100.0, 101.0);
    let place = |&(x, low, high): &(f64, f64, f64)| {
        Some((near(frame.x.place(x)?), near(frame.y.place(low)?), near(frame.y.place(high)?)))
    };
    let places: Vec<Option<(f64, f64, f64)>> = band.iter().map(place).collect();
    for run in places.split(Option::is_none) {
        let mut run: Vec<(f64, f64, f64)> = run.iter().flatten().copied().collect();
        if run.len() as f64 > f.wide() * 4.0 {
            let column = |p: &(f64, f64, f64)| (p.0 * f.wide()).floor();
            let widest = |g: &[(f64, f64, f64)]| g.iter().fold(g[0], |a, b| (a.0, a.1.min(b.1), a.2.max(b.2)));
            run = run.chunk_by(|a, b| column(a) == column(b)).map(widest).collect();
        }
        let above = run.iter().map(|p| (f.x(p.0), f.y(p.2)));
        let below = run.iter().rev().map(|p| (f.x(p.0), f.y(p.1)));
        let outline: Vec<(f64, f64)> = above.chain(below).collect();
        if outline.len() > 2 {
            out.push(Shape::Area { outline, fill, opacity: colors::BAND });
        }
    }
}

fn bar_shapes(bars: &[Bar], frame: &Frame, fill: Color, opacity: f64, out: &mut Vec<Shape>) {
    let f = &frame.field;
    let base = Bar::base(&frame.y);
    let mut rects = vec![];
    for b in bars {
        let (Some(from), Some(to), Some(end)) = (frame.x.place(b.from), frame.x.place(b.to), frame.y.place(b.height))
        else {
            continue;
        };
        let near = |v: f64| v.clamp(-BEYOND, 1.0 + BEYOND);
        let (x0, x1) = (f.x(near(from)), f.x(near(to)));
        let (y0, y1) = (f.y(near(end.max(base))), f.y(near(end.min(base))));
        // Neighbours are told apart where there is room.
        let gap = if x1 - x0 > 4.0 { 0.5 } else { 0.0 };
        rects.push([x0 + gap, y0, (x1 - x0 - 2.0 * gap).max(0.0), y1 - y0]);
    }
    if rects.len() as f64 > f.wide() * 2.0 {
        rects = columns(&rects);
    }
    out.push(Shape::Rects { rects, fill, opacity, crisp: false });
}

/// Bars that are finer than pixels as one for each column of pixels.
fn columns(rects: &[[f64; 4]]) -> Vec<[f64; 4]> {
    let mut out: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for [x, y, w, h] in rects {
        for column in (x.floor() as i64)..=((x + w).ceil() as i64 - 1).max(x.floor() as i64) {
            let ends = out.entry(column).or_insert((f64::INFINITY, f64::NEG_INFINITY));
            *ends = (ends.0.min(*y), ends.1.max(y + h));
        }
    }
    out.into_iter().map(|(x, (y0, y1))| [x as f64, y0, 1.0, y1 - y0]).collect()
}

/// The cells, those of a colour together and neighbours in a row as one.
fn image(image: &Image, frame: &Frame, out: &mut Vec<Shape>) {
    let Image { rows, columns, cells, .. } = image;
    let (f, size) = (&frame.field, (*rows, *columns));
    let (down, across, means) = reduced(size, cells, (CELLS_MAX, CELLS_MAX));
    let level = |v: f64| match frame.scale.as_ref().map_or(f64::NAN, |s| s.share(v)) {
        share if share.is_nan() => -1,
        share => (share.clamp(0.0, 1.0) * LEVELS).round() as i64,
    };
    let mut of_level: BTreeMap<i64, Vec<[f64; 4]>> = BTreeMap::new();
    let x = |k: usize| {
        f.x(frame.x.place(image.x(k * columns / across)).unwrap_or(0.0).clamp(-BEYOND, 1.0 + BEYOND)).round()
    };
    let y = |k: usize| f.y(frame.y.place(image.y(k * rows / down)).unwrap_or(0.0).clamp(-BEYOND, 1.0 + BEYOND)).round();
    for (i, row) in means.chunks(across).enumerate() {
        let mut j = 0;
        for run in row.chunk_by(|a, b| level(*a) == level(*b)) {
            let (x0, x1, y0, y1) = (x(j), x(j + run.len()), y(i).min(y(i + 1)), y(i).max(y(i + 1)));
            j += run.len();
            if x1 > x0 && y1 > y0 {
                of_level.entry(level(run[0])).or_default().push([x0, y0, x1 - x0, y1 - y0]);
            }
        }
    }
    for (level, rects) in of_level {
        let share = if level < 0 { f64::NAN } else { level as f64 / LEVELS };
        out.push(Shape::Rects { rects, fill: colors::heat(share), opacity: 1.0, crisp: true });
    }
}
