//! What stands around the data of a panel: titles, names, ticks, and at the right the scale of colours and the legend.

use super::axis::Axis;
use super::colors::{self, GRID, INK, WHITE};
use super::shapes::{Anchor, Field, LARGE, SMALL, Shape};
use super::text::{ems, fitting, plain};
use super::{Layer, Marks, Panel};

/// The axes of a panel, and what is drawn between them.
pub struct Frame {
    pub field: Field,
    pub x: Axis,
    pub y: Axis,
    /// The range of the colours of an image.
    pub scale: Option<Axis>,
}

/// Length of a small text in pixels.
fn long(text: &str) -> f64 {
    ems(text) * SMALL
}

fn widest<'t>(texts: impl Iterator<Item = &'t str>) -> f64 {
    texts.map(long).fold(0.0, f64::max)
}

fn ticks_width(axis: &Axis) -> f64 {
    widest(axis.ticks.iter().map(|t| t.1.as_str()))
}

pub fn label(x: f64, y: f64, text: &str, anchor: Anchor) -> Shape {
    Shape::Text { x, y, text: text.to_owned(), size: SMALL, anchor, upwards: false, ink: INK }
}

/// A text in the middle of a length, cut where it is longer.
fn heading(x: f64, y: f64, text: &str, size: f64, most: f64, upwards: bool) -> Shape {
    let text = fitting(&plain(text), most, |t| ems(t) * size);
    Shape::Text { x, y, text, size, anchor: Anchor::Middle, upwards, ink: INK }
}

pub fn title(text: &str, place: Field, out: &mut Vec<Shape>) {
    let middle = (place.left + place.right) / 2.0;
    out.push(heading(middle, place.top + 24.0, text, LARGE, place.wide() - 8.0, false));
}

/// Draws all but the data of a panel into a part of the picture.
pub fn frame(panel: &Panel, place: Field, out: &mut Vec<Shape>) -> Frame {
    let (x, y) = panel.axes(((place.wide() / 80.0) as usize, (place.tall() / 44.0) as usize));
    let scale = panel.scale(((place.tall() / 44.0) as usize).max(2));
    let named: Vec<(usize, &Layer)> = panel.coloured().into_iter().filter(|(_, l)| panel.names(l)).collect();
    let most = place.wide() * 0.3;
    let names: Vec<String> = named.iter().map(|(_, l)| fitting(&plain(&l.name), most, long)).collect();
    let bar = scale.as_ref().map_or(0.0, |s| 32.0 + ticks_width(s));
    let legend = if names.is_empty() { 0.0 } else { 36.0 + widest(names.iter().map(String::as_str)) };
    let last = x.ticks.last().map_or(0.0, |t| long(&t.1) / 2.0);
    let left = place.left + 14.0 + ticks_width(&y) + if panel.y.name.is_empty() { 0.0 } else { 22.0 };
    let top = place.top + if panel.title.is_empty() { 14.0 } else { 36.0 };
    // A picture that is too small for all of it keeps a field of some pixels.
    let field = Field {
        left,
        top,
        right: (place.right - (bar + legend + 10.0).max(8.0 + last)).max(left + 8.0),
        bottom: (place.bottom - 28.0 - if panel.x.name.is_empty() { 0.0 } else { 20.0 }).max(top + 8.0),
    };
    if !panel.title.is_empty() {
        // Over the middle of the data, as long as the picture allows.
        let half = ((field.left + field.right) / 2.0 - place.left).min(place.right - (field.left + field.right) / 2.0);
        let middle = (field.left + field.right) / 2.0;
        title(&panel.title, Field { left: middle - half, right: middle + half, ..place }, out);
    }
    let middles = ((field.left + field.right) / 2.0, (field.top + field.bottom) / 2.0);
    if !panel.x.name.is_empty() {
        out.push(heading(middles.0, place.bottom - 10.0, &panel.x.name, SMALL, place.wide() - 8.0, false));
    }
    if !panel.y.name.is_empty() {
        out.push(heading(place.left + 18.0, middles.1, &panel.y.name, SMALL, place.tall() - 8.0, true));
    }
    sides(panel, &field, &x, &y, out);
    if let Some(scale) = &scale {
        colour_bar(scale, &field, out);
    }
    keys(&named, &names, field.right + bar + 10.0, field.top, out);
    Frame { field, x, y, scale }
}

/// Ticks with their labels, lines behind the data, and the two edges.
fn sides(panel: &Panel, f: &Field, x: &Axis, y: &Axis, out: &mut Vec<Shape>) {
    let image = panel.layers.iter().any(Layer::is_image);
    let labelled = panel.layers.iter().any(|l| !l.labels.is_empty());
    let line = |a: (f64, f64), b: (f64, f64), out: &mut Vec<Shape>| {
        if !image {
            out.push(Shape::Line { points: vec![a, b], stroke: GRID, width: 1.0 });
        }
    };
    let mut free = f64::NEG_INFINITY;
    let slot = f.wide() / x.ticks.len().max(1) as f64 - 6.0;
    for (at, text) in &x.ticks {
        let px = f.x(x.share(*at));
        if !labelled {
            line((px, f.top), (px, f.bottom), out);
        }
        let text = if labelled { fitting(text, slot.max(72.0), long) } else { text.clone() };
        let half = long(&text) / 2.0;
        if px - half >= free {
            out.push(label(px, f.bottom + 16.0, &text, Anchor::Middle));
            free = px + half + 4.0;
        }
    }
    for (at, text) in &y.ticks {
        let py = f.y(y.share(*at));
        line((f.left, py), (f.right, py), out);
        out.push(label(f.left - 6.0, py + 4.0, text, Anchor::End));
    }
    let border = vec![(f.left, f.top), (f.left, f.bottom), (f.right, f.bottom)];
    out.push(Shape::Line { points: border, stroke: INK, width: 1.0 });
}

/// What the colours of an image mean.
fn colour_bar(scale: &Axis, f: &Field, out: &mut Vec<Shape>) {
    const PARTS: u32 = 64;
    for k in 0..PARTS {
        let share = |k: u32| f64::from(k) / f64::from(PARTS);
        let (y0, y1) = (f.y(share(k + 1)).round(), f.y(share(k)).round());
        let rects = vec![[f.right + 10.0, y0, 12.0, y1 - y0]];
        out.push(Shape::Rects {
            rects,
            fill: colors::heat((share(k) + share(k + 1)) / 2.0),
            opacity: 1.0,
            crisp: true,
        });
    }
    for (at, text) in &scale.ticks {
        out.push(label(f.right + 27.0, f.y(scale.share(*at)) + 4.0, text, Anchor::Start));
    }
}

/// The names of the layers, one below the other, beside the data.
fn keys(named: &[(usize, &Layer)], names: &[String], left: f64, top: f64, out: &mut Vec<Shape>) {
    for (row, ((i, layer), name)) in named.iter().zip(names).enumerate() {
        let y = top + 8.0 + row as f64 * 18.0;
        let color = colors::line(*i);
        out.push(match layer.marks {
            Marks::Dots(_) => Shape::Dots { points: vec![(left + 9.0, y)], fill: color, size: 6.0 },
            Marks::Bars(_) => {
                Shape::Rects { rects: vec![[left + 3.0, y - 5.0, 12.0, 10.0]], fill: color, opacity: 1.0, crisp: false }
            }
            Marks::Band(_) => Shape::Rects {
                rects: vec![[left, y - 5.0, 18.0, 10.0]],
                fill: color,
                opacity: colors::BAND,
                crisp: false,
            },
            Marks::Line(_) | Marks::Image(_) => {
                Shape::Line { points: vec![(left, y), (left + 18.0, y)], stroke: color, width: 1.8 }
            }
        });
        out.push(label(left + 24.0, y + 4.0, name, Anchor::Start));
    }
}

/// The white ground of a picture.
pub fn ground(width: f64, height: f64) -> Shape {
    Shape::Rects { rects: vec![[0.0, 0.0, width, height]], fill: WHITE, opacity: 1.0, crisp: false }
}
