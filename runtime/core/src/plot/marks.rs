//! What layers say of the axes that they are drawn over.

use super::axis::{Axis, number};
use super::{Bar, Image, Layer, Marks, Panel};

/// Share of the range that is left free above and below.
const MARGIN: f64 = 0.04;

impl Bar {
    /// Where it begins: at 0, or at the low end of an axis without one.
    pub fn base(y: &Axis) -> f64 {
        if y.log || y.low > 0.0 {
            return if y.flipped { 1.0 } else { 0.0 };
        }
        y.share(0.0)
    }
}

impl Layer {
    pub fn is_image(&self) -> bool {
        matches!(self.marks, Marks::Image(_))
    }

    fn is_bars(&self) -> bool {
        matches!(self.marks, Marks::Bars(_))
    }

    /// Whether it is bars without spaces between them, as a histogram has them.
    pub fn touches(&self) -> bool {
        matches!(&self.marks, Marks::Bars(bars) if bars.len() > 1 && bars.windows(2).all(|p| p[0].to == p[1].from))
    }

    fn points(&self) -> Vec<(f64, f64)> {
        match &self.marks {
            Marks::Line(points) | Marks::Dots(points) => points.clone(),
            Marks::Bars(bars) => bars.iter().flat_map(|b| [(b.from, b.height), (b.to, b.height)]).collect(),
            Marks::Band(band) => band.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect(),
            Marks::Image(image) => vec![(image.x(0), image.y(0)), (image.x(image.columns), image.y(image.rows))],
        }
    }
}

impl Image {
    /// Where the left edge of a column lies; behind the last one its right edge.
    pub fn x(&self, column: usize) -> f64 {
        edge(self.places.map(|p| p[0]), self.columns, column)
    }

    /// Where the upper edge of a row lies; behind the last one its lower edge.
    pub fn y(&self, row: usize) -> f64 {
        edge(self.places.map(|p| p[1]), self.rows, row)
    }

    /// Whether numbers grow from the top to the bottom.
    fn falls(&self) -> bool {
        self.places.is_none_or(|p| p[1].0 < p[1].1)
    }
}

/// The edge before cell `k` of `count` whose first and last middle lie there.
fn edge(middles: Option<(f64, f64)>, count: usize, k: usize) -> f64 {
    let (first, step) = match middles {
        Some((first, last)) if count > 1 => (first, (last - first) / (count - 1) as f64),
        Some((first, last)) => ((first + last) / 2.0, last - first),
        None => (0.0, 1.0),
    };
    first + (k as f64 - 0.5) * step
}

impl Panel {
    /// The axes with about so many ticks.
    pub fn axes(&self, wanted: (usize, usize)) -> (Axis, Axis) {
        let shown = |v: f64, log: bool| v.is_finite() && (!log || v > 0.0);
        let all: Vec<(f64, f64)> = self.layers.iter().flat_map(Layer::points).collect();
        let points = || all.iter().filter(|p| shown(p.0, self.x.log) && shown(p.1, self.y.log));
        let within = |v: f64, side: &super::Side| side.low.is_none_or(|l| v >= l) && side.high.is_none_or(|h| v <= h);
        let has = |f: fn(&Marks) -> bool| self.layers.iter().any(|l| f(&l.marks));
        let bars = has(|m| matches!(m, Marks::Bars(_)));
        let image = self.images().next();
        let images = image.is_some();
        let free =
            has(|m| matches!(m, Marks::Dots(_))) && !bars || self.layers.iter().any(|l| l.is_bars() && !l.touches());
        let x_margin = if images || !free { 0.0 } else { MARGIN / 2.0 };
        let ends = |side: &super::Side| (side.low, side.high);
        let mut x = Axis::over(points().map(|p| p.0), ends(&self.x), self.x.log, wanted.0, x_margin);
        // Heights count where they are seen.
        let zero = (bars && !self.y.log).then_some(0.0);
        let heights = points().filter(|p| within(p.0, &self.x)).map(|p| p.1).chain(zero);
        let mut y = Axis::over(heights, ends(&self.y), self.y.log, wanted.1, if images { 0.0 } else { MARGIN });
        let stands =
            bars && !images && !self.y.log && self.y.low.is_none() && y.high > 0.0 && points().all(|p| p.1 >= 0.0);
        if stands {
            // Bars stand on the lower edge.
            y.low = 0.0;
            y.ticks.retain(|(at, _)| *at >= 0.0);
        }
        y.flipped = image.is_some_and(Image::falls);
        if image.is_some_and(|i| i.places.is_none()) {
            // Cells are counted.
            for axis in [&mut x, &mut y].into_iter().filter(|a| !a.log) {
                axis.ticks.retain(|(at, _)| at.fract() == 0.0);
                axis.ticks.iter_mut().for_each(|(at, text)| *text = number(*at, 1.0));
            }
        }
        let named = self.layers.iter().find(|l| !l.labels.is_empty());
        if let Some(layer) = named.filter(|_| !self.x.log) {
            let label = |(i, text): (usize, &String)| (i as f64, super::text::plain(text));
            x.ticks =
                layer.labels.iter().enumerate().map(label).filter(|(at, _)| *at >= x.low && *at <= x.high).collect();
        }
        (x, y)
    }

    /// The range of the numbers of the first image.
    pub fn scale(&self, wanted: usize) -> Option<Axis> {
        self.images().next().map(|i| Axis::over(i.cells.iter().copied(), (None, None), false, wanted, 0.0))
    }

    fn images(&self) -> impl Iterator<Item = &Image> {
        self.layers.iter().filter_map(|l| match &l.marks {
            Marks::Image(image) => Some(image),
            _ => None,
        })
    }

    /// The layers with the numbers of their colours. A band has the colour of what is drawn next; an image has none, and the
    /// first colour of all is hard to see on one.
    pub fn coloured(&self) -> Vec<(usize, &Layer)> {
        let mut next = usize::from(self.layers.iter().any(Layer::is_image));
        let number = |l| {
            let own = next;
            next += usize::from(!matches!(l, &Layer { marks: Marks::Image(_) | Marks::Band(_), .. }));
            (own, l)
        };
        self.layers.iter().map(number).collect()
    }

    /// Whether the name of a layer is shown.
    pub fn names(&self, layer: &Layer) -> bool {
        self.legend && !layer.name.is_empty() && !layer.is_image()
    }
}
