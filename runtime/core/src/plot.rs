//! Plots: layers over axes, several axes in a figure, in a terminal, as SVG and as PNG.
//!
//! One [`Figure`] is read from a value of `std.plot` ([`value`]). [`terminal`] draws it as text, or [`scene`] lays it out
//! as [`shapes::Shape`]s, which [`svg`] writes; [`png`] paints that SVG.

mod text;
mod axis;
mod clip;
mod colors;
mod image;
mod marks;
mod shapes;
mod frame;
mod scene;
mod svg;
mod png;
mod terminal;
mod value;

pub use terminal::bar;

use crate::fault::Fault;
use crate::io::files;
use std::path::Path;

/// Sizes of pictures in pixels: one panel, one of several, and the most.
const PICTURE: (u32, u32) = (640, 400);
const PANEL: (u32, u32) = (440, 300);
const PICTURE_MAX: u32 = 8192;
/// Rows of a text, and the most rows and columns.
const TEXT_ROWS: u32 = 16;
const TEXT_MAX: u32 = 1000;

/// What is drawn, whatever it is drawn on: panels from left to right and from top to bottom.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    pub title: String,
    /// Panels in a row.
    pub columns: usize,
    pub panels: Vec<Panel>,
}

/// Layers over one pair of axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    pub title: String,
    pub x: Side,
    pub y: Side,
    /// Whether the names of layers are shown.
    pub legend: bool,
    pub layers: Vec<Layer>,
}

/// What is asked of an axis; an end that is `None` follows from what is drawn.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Side {
    pub name: String,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub log: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Layer {
    pub name: String,
    pub marks: Marks,
    /// What stands below the places 0, 1, 2, … instead of numbers.
    pub labels: Vec<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Marks {
    /// A line through points; a coordinate that is not finite interrupts it.
    Line(Vec<(f64, f64)>),
    Dots(Vec<(f64, f64)>),
    Bars(Vec<Bar>),
    /// What lies between two heights at each x: (x, low, high); one that is not finite interrupts it.
    Band(Vec<(f64, f64, f64)>),
    Image(Image),
}

/// A matrix as colours, row-major, the first row at the top.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    pub rows: usize,
    pub columns: usize,
    pub cells: Vec<f64>,
    /// Where the middles of the first and of the last column lie, and those of the rows; without it at their numbers.
    pub places: Option<[(f64, f64); 2]>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    pub from: f64,
    pub to: f64,
    pub height: f64,
}

impl Figure {
    /// As text of so many columns and rows; 0 stands for the terminal's width (80 without one) and 16 rows a panel.
    ///
    /// # Errors
    /// E0711 for a size that is none.
    pub fn text(&self, width: i64, height: i64) -> Result<String, Fault> {
        let columns = size(width, terminal::columns(), TEXT_MAX, "columns")?;
        let rows = size(height, TEXT_ROWS, TEXT_MAX, "rows")?;
        Ok(terminal::draw(self, columns as usize, rows as usize))
    }

    /// The text of an SVG file; 0 stands for 640 × 400 pixels, and for 440 × 300 a panel where there are several.
    ///
    /// # Errors
    /// E0711 for a size that is none.
    pub fn svg(&self, width: i64, height: i64) -> Result<String, Fault> {
        let (width, height) = self.pixels(width, height)?;
        Ok(svg::write(&scene::layout(self, f64::from(width), f64::from(height)), width, height))
    }

    /// The bytes of a PNG file; sizes as those of [`Figure::svg`].
    ///
    /// # Errors
    /// E0711 for a size that is none.
    pub fn png(&self, width: i64, height: i64) -> Result<Vec<u8>, Fault> {
        png::paint(&self.svg(width, height)?)
    }

    /// Writes a picture, SVG or PNG by the name of the file.
    ///
    /// # Errors
    /// E0711 for another kind of file or a size that is none, E0706 where the file cannot be written.
    pub fn save(&self, path: &Path, width: i64, height: i64) -> Result<(), Fault> {
        let kind = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        let bytes = match kind.as_str() {
            "svg" => self.svg(width, height)?.into_bytes(),
            "png" => self.png(width, height)?,
            _ => {
                let text = format!("plots are written as `.svg` or `.png`, and `{}` is neither", path.display());
                return Err(Fault::new(711, text));
            }
        };
        files::write_atomically(path, |out| out.write_all(&bytes).map_err(|e| files::write_fault(path, &e)))
    }

    fn pixels(&self, width: i64, height: i64) -> Result<(u32, u32), Fault> {
        let (columns, rows) = (self.columns.clamp(1, 64) as u32, self.rows().clamp(1, 64) as u32);
        let default = match columns * rows {
            1 => PICTURE,
            _ => ((PANEL.0 * columns).min(PICTURE_MAX), (PANEL.1 * rows).min(PICTURE_MAX)),
        };
        Ok((size(width, default.0, PICTURE_MAX, "pixels")?, size(height, default.1, PICTURE_MAX, "pixels")?))
    }

    fn rows(&self) -> usize {
        self.panels.len().div_ceil(self.columns.max(1))
    }
}

fn size(given: i64, default: u32, max: u32, unit: &str) -> Result<u32, Fault> {
    match u32::try_from(given) {
        Ok(0) => Ok(default),
        Ok(n) if n <= max => Ok(n),
        _ => Err(Fault::new(711, format!("a plot has 1 to {max} {unit}, not {given}"))),
    }
}

#[cfg(test)]
mod tests;
