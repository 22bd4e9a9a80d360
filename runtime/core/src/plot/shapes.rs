//! Shapes that know nothing of what they mean.

use super::colors::Color;

/// Sizes of texts.
pub const SMALL: f64 = 12.0;
pub const LARGE: f64 = 15.0;

/// A rectangle of a picture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Field {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Field {
    pub fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    pub fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }

    pub fn wide(&self) -> f64 {
        self.right - self.left
    }

    pub fn tall(&self) -> f64 {
        self.bottom - self.top
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// In pixels from the top left corner, in the order in which they are painted.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// Left, top, width, height of each. `crisp`: no light comes through between neighbours.
    Rects {
        rects: Vec<[f64; 4]>,
        fill: Color,
        opacity: f64,
        crisp: bool,
    },
    Line {
        points: Vec<(f64, f64)>,
        stroke: Color,
        width: f64,
    },
    /// What lies inside an outline.
    Area {
        outline: Vec<(f64, f64)>,
        fill: Color,
        opacity: f64,
    },
    /// `size` is their diameter.
    Dots {
        points: Vec<(f64, f64)>,
        fill: Color,
        size: f64,
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
    /// Shapes of which only what lies in the field is seen.
    Inside {
        field: Field,
        shapes: Vec<Shape>,
    },
}
