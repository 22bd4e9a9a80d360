//! Plots: lines over an axis and matrices as colours, in a terminal, as SVG and as PNG.
//!
//! One [`Figure`] is drawn by [`terminal`] as text, or laid out as [`scene::Shape`]s, which [`svg`] writes
//! and [`raster`] paints.

mod axis;
mod colors;
mod font;
mod raster;
mod scene;
mod svg;
mod terminal;

use crate::fault::Fault;
use crate::io::files;
use crate::tensor::Tensor;
use crate::tensor_print::{Element, element};
use std::path::Path;

/// Sizes of pictures in pixels, and of text in columns and rows.
const PICTURE: (u32, u32) = (640, 400);
const PICTURE_MAX: u32 = 8192;
const TEXT_ROWS: u32 = 16;
const TEXT_MAX: u32 = 1000;

/// A line through points; a coordinate that is not finite interrupts it.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// `log`: the vertical axis has powers of ten at equal distances.
    Lines { series: Vec<Series>, log: bool },
    /// Row-major, the first row at the top.
    Heat { rows: usize, columns: usize, cells: Vec<f64> },
}

/// What is drawn, whatever it is drawn on.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    pub title: String,
    pub x: String,
    pub y: String,
    pub content: Content,
}

impl Figure {
    /// Lines of tensors `[N]` (heights at 0, 1, 2, …) or `[N, 2]` (pairs x, y).
    ///
    /// # Errors
    /// E0711 for a tensor of another shape.
    pub fn lines(named: &[(String, Tensor)], log: bool) -> Result<Figure, Fault> {
        let series = named.iter().map(|(name, t)| series(name, t)).collect::<Result<Vec<_>, Fault>>()?;
        Ok(Figure { title: String::new(), x: String::new(), y: String::new(), content: Content::Lines { series, log } })
    }

    /// A matrix as colours.
    ///
    /// # Errors
    /// E0711 for a tensor that is no matrix.
    pub fn heat(t: &Tensor) -> Result<Figure, Fault> {
        let [rows, columns] = t.shape[..] else {
            return Err(Fault::new(
                711,
                format!("a heat map shows a matrix, and this tensor has rank {}", t.shape.len()),
            ));
        };
        if rows == 0 || columns == 0 {
            return Err(Fault::new(711, "a heat map of no cells"));
        }
        let content = Content::Heat { rows: rows as usize, columns: columns as usize, cells: numbers(t) };
        Ok(Figure { title: String::new(), x: String::new(), y: String::new(), content })
    }

    /// With a title and the names of the axes, in this order.
    pub fn labelled(mut self, labels: &[String]) -> Figure {
        let mut labels = labels.iter().cloned();
        self.title = labels.next().unwrap_or_default();
        self.x = labels.next().unwrap_or_default();
        self.y = labels.next().unwrap_or_default();
        self
    }

    /// As text of so many columns and rows; 0 stands for the terminal's width (80 without one) and 16 rows.
    ///
    /// # Errors
    /// E0711 for a size that is none.
    pub fn text(&self, width: i64, height: i64) -> Result<String, Fault> {
        let columns = size(width, terminal::columns(), TEXT_MAX, "columns")?;
        let rows = size(height, TEXT_ROWS, TEXT_MAX, "rows")?;
        Ok(terminal::draw(self, columns as usize, rows as usize))
    }

    /// Writes a picture, SVG or PNG by the name of the file; 0 stands for 640 × 400 pixels.
    ///
    /// # Errors
    /// E0711 for another kind of file or a size that is none, E0706 where the file cannot be written.
    pub fn save(&self, path: &Path, width: i64, height: i64) -> Result<(), Fault> {
        let width = size(width, PICTURE.0, PICTURE_MAX, "pixels")?;
        let height = size(height, PICTURE.1, PICTURE_MAX, "pixels")?;
        let kind = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        if !matches!(kind.as_str(), "svg" | "png") {
            let text = format!("plots are written as `.svg` or `.png`, and `{}` is neither", path.display());
            return Err(Fault::new(711, text));
        }
        let scene = scene::layout(self, f64::from(width), f64::from(height));
        files::write_atomically(path, |out| {
            let done = match kind.as_str() {
                "svg" => out.write_all(svg::write(&scene, width, height).as_bytes()),
                _ => raster::write(&scene, width, height, out),
            };
            done.map_err(|e| files::write_fault(path, &e))
        })
    }
}

fn size(given: i64, default: u32, max: u32, unit: &str) -> Result<u32, Fault> {
    match u32::try_from(given) {
        Ok(0) => Ok(default),
        Ok(n) if n <= max => Ok(n),
        _ => Err(Fault::new(711, format!("a plot has 1 to {max} {unit}, not {given}"))),
    }
}

fn series(name: &str, t: &Tensor) -> Result<Series, Fault> {
    let values = numbers(t);
    let points = match t.shape[..] {
        [_] => values.into_iter().enumerate().map(|(i, y)| (i as f64, y)).collect(),
        [_, 2] => values.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
        _ => {
            let text = format!("a line has the shape (N,) or, with its places, (N, 2), not {:?}", t.shape);
            return Err(Fault::new(711, text));
        }
    };
    Ok(Series { name: name.to_owned(), points })
}

/// The elements of a tensor; of complex ones the real parts.
fn numbers(t: &Tensor) -> Vec<f64> {
    let number = |i| match element(t, i) {
        Element::Float(x) | Element::Complex(x, _) => x,
        Element::Int(n) => n as f64,
        Element::Bool(b) => f64::from(b),
    };
    (0..t.elems()).map(number).collect()
}

#[cfg(test)]
mod tests;
