//! A figure as programs hold it: the structs `Figure`, `Axes` and `Layer` of `std.plot`, field by field in their order.

use super::{Bar, Figure, Layer, Marks, Panel, Side};
use crate::dry_run;
use crate::fault::Fault;
use crate::host_value::HostValue as V;
use crate::tensor::Tensor;
use crate::tensor_print::{Element, element};

impl Figure {
    /// The figure that a value of the struct `Figure` is.
    ///
    /// # Errors
    /// E0711 for another value and for axes that cannot be, E0718 where a plan has no elements.
    pub fn of(value: &V) -> Result<Figure, Fault> {
        let V::Record(fields) = value else { return Err(no_figure()) };
        let [V::List(panels), V::Int(columns), V::Str(title)] = &fields[..] else { return Err(no_figure()) };
        let panels = panels.iter().map(panel).collect::<Result<Vec<_>, _>>()?;
        let columns = usize::try_from(*columns).unwrap_or(1).clamp(1, panels.len().max(1));
        Ok(Figure { title: title.to_string(), columns, panels })
    }
}

fn no_figure() -> Fault {
    Fault::new(711, "this draws a figure of `std.plot`, and the value is none")
}

fn panel(value: &V) -> Result<Panel, Fault> {
    let V::Record(fields) = value else { return Err(no_figure()) };
    let [
        V::List(layers),
        V::Str(title),
        V::Str(x),
        V::Str(y),
        V::Record(xlim),
        V::Record(ylim),
        V::Bool(log_x),
        V::Bool(log_y),
        V::Bool(legend),
    ] = &fields[..]
    else {
        return Err(no_figure());
    };
    Ok(Panel {
        title: title.to_string(),
        x: side(x, xlim, *log_x)?,
        y: side(y, ylim, *log_y)?,
        legend: *legend,
        layers: layers.iter().map(layer).collect::<Result<Vec<_>, _>>()?,
    })
}

fn side(name: &str, limits: &[V], log: bool) -> Result<Side, Fault> {
    let [V::Float(low), V::Float(high)] = limits else { return Err(no_figure()) };
    let end = |v: f64| (!v.is_nan()).then_some(v);
    let side = Side { name: name.to_owned(), low: end(*low), high: end(*high), log };
    for v in [side.low, side.high].into_iter().flatten() {
        if !v.is_finite() {
            return Err(Fault::new(711, format!("an axis ends at a finite number, not at {v}")));
        }
        if log && v <= 0.0 {
            return Err(Fault::new(711, format!("a logarithmic axis has no place for {v}")));
        }
    }
    if let (Some(low), Some(high)) = (side.low, side.high)
        && low >= high
    {
        return Err(Fault::new(711, format!("the limits of an axis are its low end and its high one, not {low} and {high}")));
    }
    Ok(side)
}

fn layer(value: &V) -> Result<Layer, Fault> {
    let V::Record(fields) = value else { return Err(no_figure()) };
    let [V::Str(kind), V::Str(name), V::List(labels), V::Tensor(x), V::Tensor(y)] = &fields[..] else {
        return Err(no_figure());
    };
    let label = |v: &V| match v {
        V::Str(text) => Ok(text.to_string()),
        _ => Err(no_figure()),
    };
    let labels = labels.iter().map(label).collect::<Result<Vec<_>, _>>()?;
    let (x, y) = (numbers(x)?, numbers(y)?);
    let points = |x: Vec<f64>| x.into_iter().zip(&y).map(|(x, &y)| (x, y)).collect();
    let marks = match &**kind {
        "line" => Marks::Line(points(x)),
        "dots" => Marks::Dots(points(x)),
        "bars" => {
            let bar = |(ends, &height): (&[f64], &f64)| Bar { from: ends[0], to: ends[1], height };
            Marks::Bars(x.chunks_exact(2).zip(&y).map(bar).collect())
        }
        "image" => {
            // Of an image `x` holds a place for each column.
            let columns = x.len();
            let rows = y.len().checked_div(columns).unwrap_or(0);
            if rows == 0 || rows * columns != y.len() {
                return Err(Fault::new(711, "an image of no cells"));
            }
            Marks::Image { rows, columns, cells: y }
        }
        _ => return Err(no_figure()),
    };
    Ok(Layer { name: name.to_string(), marks, labels })
}

/// The elements of a tensor, wherever its parts lie; of complex ones the real parts.
fn numbers(t: &Tensor) -> Result<Vec<f64>, Fault> {
    if t.has_no_elements() {
        return Err(dry_run::fault());
    }
    let whole = if t.parts.is_some() { t.whole()? } else { t.clone() };
    let number = |i| match element(&whole, i) {
        Element::Float(x) | Element::Complex(x, _) => x,
        Element::Int(n) => n as f64,
        Element::Bool(b) => f64::from(b),
    };
    Ok((0..whole.elems()).map(number).collect())
}
