//! A scene as PNG.

use super::colors::Color;
use super::font::glyph;
use super::scene::{Anchor, Shape};
use std::io::{Error, Write};

/// Columns and rows of a letter with the space to the next one, and the size of text for which a dot is one pixel.
const LETTER: (f64, f64) = (6.0, 7.0);
const DOT: f64 = 10.0;

/// Paints the scene and writes the file.
pub fn write(scene: &[Shape], width: u32, height: u32, out: &mut dyn Write) -> Result<(), Error> {
    let mut picture = Picture::new(width as usize, height as usize);
    scene.iter().for_each(|shape| picture.paint(shape));
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.bytes)?;
    Ok(writer.finish()?)
}

/// Three bytes for each pixel.
struct Picture {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Picture {
    fn new(width: usize, height: usize) -> Picture {
        Picture { width, height, bytes: vec![255; width * height * 3] }
    }

    fn paint(&mut self, shape: &Shape) {
        match shape {
            Shape::Rect { x, y, w, h, fill } => self.rect(*x, *y, x + w, y + h, *fill),
            Shape::Line { points, stroke, width } => self.line(points, *stroke, *width),
            Shape::Text { x, y, text, size, anchor, upwards, ink } => {
                self.text((*x, *y), text, size / DOT, *anchor, *upwards, *ink)
            }
        }
    }

    /// Mixes a colour into a pixel.
    fn mix(&mut self, x: usize, y: usize, color: Color, share: f64) {
        let at = (y * self.width + x) * 3;
        if let Some(pixel) = self.bytes.get_mut(at..at + 3) {
            for (old, new) in pixel.iter_mut().zip(color) {
                *old = (f64::from(*old) * (1.0 - share) + f64::from(new) * share).round() as u8;
            }
        }
    }

    /// The pixels that a range of places touches.
    fn pixels(low: f64, high: f64, count: usize) -> std::ops::Range<usize> {
        let end = (high.ceil().max(0.0) as usize).min(count);
        (low.floor().max(0.0) as usize).min(end)..end
    }

    /// A rectangle; pixels at its edges take as much of the colour as it covers of them.
    fn rect(&mut self, x0: f64, y0: f64, x1: f64, y1: f64, fill: Color) {
        let part = |low: f64, high: f64, i: usize| (high.min(i as f64 + 1.0) - low.max(i as f64)).clamp(0.0, 1.0);
        for y in Picture::pixels(y0, y1, self.height) {
            for x in Picture::pixels(x0, x1, self.width) {
                self.mix(x, y, fill, part(x0, x1, x) * part(y0, y1, y));
            }
        }
    }

    /// A line through points: each pixel takes the colour by its distance from the nearest part.
    fn line(&mut self, points: &[(f64, f64)], stroke: Color, width: f64) {
        let reach = width / 2.0 + 0.5;
        let mut nearest = std::collections::BTreeMap::new();
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            for y in Picture::pixels(a.1.min(b.1) - reach, a.1.max(b.1) + reach, self.height) {
                for x in Picture::pixels(a.0.min(b.0) - reach, a.0.max(b.0) + reach, self.width) {
                    let far = distance(a, b, (x as f64 + 0.5, y as f64 + 0.5));
                    if far < reach {
                        let least = nearest.entry((y, x)).or_insert(far);
                        *least = far.min(*least);
                    }
                }
            }
        }
        for ((y, x), far) in nearest {
            self.mix(x, y, stroke, (reach - far).min(1.0));
        }
    }

    fn text(&mut self, at: (f64, f64), text: &str, dot: f64, anchor: Anchor, upwards: bool, ink: Color) {
        let long = text.chars().count() as f64 * LETTER.0 * dot - dot;
        let start = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -long / 2.0,
            Anchor::End => -long,
        };
        for (i, c) in text.chars().enumerate() {
            for (row, dots) in glyph(c).into_iter().enumerate() {
                for column in (0..5).filter(|k| dots >> (4 - k) & 1 == 1) {
                    let along = start + (i as f64 * LETTER.0 + f64::from(column)) * dot;
                    let above = (LETTER.1 - row as f64) * dot;
                    match upwards {
                        false => {
                            let (x, y) = (at.0 + along, at.1 - above);
                            self.rect(x, y, x + dot, y + dot, ink);
                        }
                        true => {
                            let (x, y) = (at.0 - above, at.1 - along);
                            self.rect(x, y - dot, x + dot, y, ink);
                        }
                    }
                }
            }
        }
    }
}

/// How far a point is from the line between two.
fn distance(a: (f64, f64), b: (f64, f64), p: (f64, f64)) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx * dx + dy * dy;
    let along = if length > 0.0 { (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    let (x, y) = (p.0 - a.0 - along * dx, p.1 - a.1 - along * dy);
    (x * x + y * y).sqrt()
}
