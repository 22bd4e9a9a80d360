//! A figure as programs hold it: the structs `Figure`, `Axes` and `Layer` of `std.plot`, field by field in their order.

use super::{Bar, Figure, Image, Layer, Marks, Panel, Side};
use crate::dry_run;
use crate::fault::Fault;
use crate::host_value::{HostKey, HostValue as V};
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
        return Err(Fault::new(
            711,
            format!("the limits of an axis are its low end and its high one, not {low} and {high}"),
        ));
    }
    Ok(side)
}

fn layer(value: &V) -> Result<Layer, Fault> {
    let V::Record(fields) = value else { return Err(no_figure()) };
    let [V::Str(kind), V::Str(name), V::List(labels), V::Dict(data)] = &fields[..] else { return Err(no_figure()) };
    let label = |v: &V| match v {
        V::Str(text) => Ok(text.to_string()),
        _ => Err(no_figure()),
    };
    let labels = labels.iter().map(label).collect::<Result<Vec<_>, _>>()?;
    let tensor = |name: &str| match data.iter().find(|(key, _)| matches!(key, HostKey::Str(k) if **k == *name)) {
        Some((_, V::Tensor(t))) => Ok(t),
        _ => Err(no_figure()),
    };
    let (x, y) = (tensor("x")?, tensor("y")?);
    let ys = numbers(y)?;
    let marks = match (&**kind, &y.shape[..]) {
        ("line", _) => Marks::Line(points(y, ys)?),
        ("dots", _) => Marks::Dots(points(y, ys)?),
        ("band", [_, 2]) => {
            let band = numbers(x)?.into_iter().zip(ys.chunks_exact(2)).map(|(x, ends)| (x, ends[0], ends[1]));
            Marks::Band(band.collect())
        }
        ("bars", [_]) => {
            let [first, width] = numbers(x)?[..] else { return Err(no_figure()) };
            let bar = |(i, height): (usize, f64)| Bar { from: i as f64 + first, to: i as f64 + first + width, height };
            Marks::Bars(ys.into_iter().enumerate().map(bar).collect())
        }
        ("bins", [_]) => {
            let edges = numbers(x)?;
            let bar = |(ends, height): (&[f64], f64)| Bar { from: ends[0], to: ends[1], height };
            Marks::Bars(edges.windows(2).zip(ys).map(bar).collect())
        }
        ("image", &[rows, columns]) if rows > 0 && columns > 0 => {
            let places = match numbers(x)?[..] {
                [left, right, top, bottom] if left < right && top != bottom => Some([(left, right), (top, bottom)]),
                _ => None,
            };
            Marks::Image(Image { rows: rows as usize, columns: columns as usize, cells: ys, places })
        }
        ("image", _) => return Err(Fault::new(711, "an image has at least one cell")),
        ("bars", shape) => {
            return Err(Fault::new(711, format!("the heights of bars have the shape (N,), not {}", shaped(shape))));
        }
        _ => return Err(no_figure()),
    };
    Ok(Layer { name: name.to_string(), marks, labels })
}

fn points(t: &Tensor, values: Vec<f64>) -> Result<Vec<(f64, f64)>, Fault> {
    match t.shape[..] {
        [_] => Ok(values.into_iter().enumerate().map(|(i, y)| (i as f64, y)).collect()),
        [_, 2] => Ok(values.chunks_exact(2).map(|p| (p[0], p[1])).collect()),
        _ => {
            let text = format!("points have the shape (N,) or, with their places, (N, 2), not {}", shaped(&t.shape));
            Err(Fault::new(711, text))
        }
    }
}

fn shaped(shape: &[u64]) -> String {
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("({}{})", sizes.join(", "), if sizes.len() == 1 { "," } else { "" })
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
