use super::*;

fn side(low: Option<f64>, high: Option<f64>, log: bool) -> Side {
    Side { name: String::new(), low, high, log }
}

fn layer(name: &str, marks: Marks) -> Layer {
    Layer { name: name.into(), marks, labels: vec![] }
}

fn panel(layers: Vec<Layer>) -> Panel {
    Panel { title: String::new(), x: Side::default(), y: Side::default(), legend: true, layers }
}

fn of(panels: Vec<Panel>, columns: usize) -> Figure {
    Figure { title: String::new(), columns, panels }
}

fn heights(ys: &[f64]) -> Vec<(f64, f64)> {
    ys.iter().enumerate().map(|(i, y)| (i as f64, *y)).collect()
}

fn line(ys: &[f64]) -> Figure {
    of(vec![panel(vec![layer("", Marks::Line(heights(ys)))])], 1)
}

fn bars(ys: &[f64]) -> Marks {
    Marks::Bars(
        ys.iter().enumerate().map(|(i, &height)| Bar { from: i as f64 - 0.4, to: i as f64 + 0.4, height }).collect(),
    )
}

fn cells((rows, columns): (usize, usize), cells: Vec<f64>, places: Option<[(f64, f64); 2]>) -> Marks {
    Marks::Image(Image { rows, columns, cells, places })
}

fn curve() -> Figure {
    let falling: Vec<f64> = (0..20).map(|i| f64::from(20 - i) / 20.0).collect();
    let second = vec![(0.0, 0.5), (19.0, 0.25)];
    let mut one = panel(vec![layer("train", Marks::Line(heights(&falling))), layer("b", Marks::Line(second))]);
    (one.title, one.x.name, one.y.name) = ("loss".into(), "step".into(), "nats".into());
    of(vec![one], 1)
}

fn over(values: &[f64]) -> axis::Axis {
    axis::Axis::over(values.iter().copied(), (None, None), false, 5, 0.0)
}

fn labels(axis: &axis::Axis) -> Vec<&str> {
    axis.ticks.iter().map(|t| t.1.as_str()).collect()
}

#[test]
fn axes_have_round_ticks() {
    assert_eq!(labels(&over(&[0.0, 97.0])), ["0", "20", "40", "60", "80"]);
    assert_eq!(labels(&over(&[-0.25, 0.3])), ["-0.2", "0.0", "0.2"]);
    assert_eq!(labels(&over(&[1e6, 1e6 + 2.0])), ["1e6", "1.0000005e6", "1.000001e6", "1.0000015e6", "1.000002e6"]);
    assert_eq!(labels(&over(&[0.0, 4e-9])), ["0", "1e-9", "2e-9", "3e-9", "4e-9"]);
    let logs = |values: &[f64]| axis::Axis::over(values.iter().copied(), (None, None), true, 8, 0.0);
    assert_eq!(labels(&logs(&[1e-3, 1e2])), ["0.001", "0.01", "0.1", "1", "10", "100"]);
    assert_eq!(labels(&logs(&[1.0, -5.0, 0.0, 9.0])), ["1", "2", "5"]);
    let narrow = logs(&[3.1, 3.4]);
    assert!(narrow.ticks.len() >= 2, "{narrow:?}");
}

#[test]
fn axes_are_over_any_numbers() {
    let odd: [&[f64]; 10] = [
        &[],
        &[f64::NAN],
        &[3.0],
        &[1e300, -1e300],
        &[f64::MAX, -f64::MAX],
        &[f64::MAX],
        &[f64::INFINITY, 1.0],
        &[1e-310, 0.0],
        &[5e-324],
        &[5e17, 5e17 + 64.0],
    ];
    for values in odd {
        for (log, margin) in [(false, 0.0), (false, 0.04), (true, 0.04)] {
            for ends in [(None, None), (Some(1e-300), None), (None, Some(1e308)), (Some(1.0), Some(1.0000000000000002))]
            {
                let axis = axis::Axis::over(values.iter().copied(), ends, log, 5, margin);
                assert!(axis.low.is_finite() && axis.high.is_finite() && axis.high > axis.low, "{values:?} {axis:?}");
                assert!(axis.ticks.len() < 30, "{values:?} {axis:?}");
                let shares: Vec<f64> = axis.ticks.iter().map(|t| axis.share(t.0)).collect();
                assert!(shares.iter().all(|s| (-0.01..=1.01).contains(s)), "{values:?} {axis:?}");
            }
        }
    }
}

#[test]
fn text_has_the_size_asked_for() {
    let text = curve().text(60, 8).unwrap();
    // Title, name of the axis, eight rows, two of the axis, its name.
    assert_eq!(text.lines().count(), 13, "{text}");
    assert!(text.lines().all(|l| text::columns(l) <= 60), "{text}");
    assert!(text.contains(" train\n") && text.contains(" b\n"), "{text}");
    assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{text}");
    assert!(curve().text(-1, 0).is_err() && curve().text(0, 100_000).is_err());
}

#[test]
fn texts_are_as_wide_as_terminals_show_them() {
    let mut one =
        panel(vec![Layer {
            name: "損失".into(), marks: bars(&[1.0, 2.0]), labels: vec!["猫".into(), "犬".into()]
        }]);
    one.title = "漢字".into();
    let text = of(vec![one.clone(), one], 2).text(48, 5).unwrap();
    let ends: Vec<usize> = text.lines().map(text::columns).collect();
    assert!(ends.iter().all(|w| *w <= 48), "{ends:?}\n{text}");
    assert_eq!(text.matches("損失").count(), 2, "{text}");
    assert_eq!(text.matches("猫").count(), 2, "{text}");
}

/// Everything that can be drawn, over numbers that are hard to draw.
fn hard() -> Vec<Figure> {
    let values: [&[f64]; 9] = [
        &[],
        &[1.0],
        &[f64::NAN],
        &[2.0, 2.0, 2.0],
        &[1.0, f64::NAN, f64::INFINITY, -1.0],
        &[f64::MAX, -f64::MAX, 0.0],
        &[1e-320, 1e308],
        &[-5.0, -3.0],
        &[0.0, 0.0],
    ];
    let mut out = vec![of(vec![], 1), of(vec![panel(vec![])], 1)];
    for ys in values {
        let mut all = vec![Marks::Line(heights(ys)), Marks::Dots(heights(ys)), bars(ys)];
        all.push(Marks::Line(ys.iter().map(|y| (*y, *y)).collect()));
        if !ys.is_empty() {
            all.push(Marks::Band(ys.iter().map(|y| (*y, *y, 1.0 - *y)).collect()));
            all.push(cells((1, ys.len()), ys.to_vec(), Some([(-1.0, 1.0), (2.0, -2.0)])));
            all.push(cells((1, ys.len()), ys.to_vec(), None));
        }
        let sides = [
            Side::default(),
            side(None, None, true),
            side(Some(0.5), Some(0.6), false),
            side(Some(-1e308), Some(1e308), false),
            side(Some(1e-300), Some(1e300), true),
            side(None, Some(-1e308), false),
        ];
        for marks in all {
            for s in &sides {
                let one = Panel {
                    x: s.clone(),
                    y: s.clone(),
                    ..panel(vec![layer("a", marks.clone()), layer("", bars(&[1.0]))])
                };
                let alone = Panel { layers: vec![layer("a", marks.clone())], ..one.clone() };
                out.push(of(vec![one, alone], 2));
            }
        }
    }
    out
}

#[test]
fn whatever_is_drawn_has_a_drawing() {
    for figure in hard() {
        let svg = figure.svg(0, 0).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf\"") && !svg.contains("inf "), "{figure:?}\n{svg}");
        assert!(svg.len() < 40_000, "{figure:?}");
        let text = figure.text(40, 4).unwrap();
        assert!(!text.contains('\u{0}') && text.lines().all(|l| text::columns(l) < 80), "{figure:?}\n{text}");
        assert!(figure.svg(1, 1).is_ok() && figure.text(1, 1).is_ok());
    }
    for figure in hard().iter().step_by(23) {
        figure.png(90, 50).unwrap();
        figure.png(1, 1).unwrap();
    }
}

#[test]
fn numbers_that_are_none_interrupt_a_line() {
    let svg = line(&[1.0, 2.0, f64::NAN, 1.0, 2.0, f64::INFINITY]).svg(300, 200).unwrap();
    assert_eq!(svg.matches("stroke-width=\"1.8\"").count(), 2, "{svg}");
}

#[test]
fn lines_are_cut_at_limits() {
    let mut figure = line(&[0.0, 100.0, 0.0, 1.0]);
    figure.panels[0].y = side(Some(0.0), Some(10.0), false);
    let svg = figure.svg(300, 200).unwrap();
    assert_eq!(svg.matches("stroke-width=\"1.8\"").count(), 2, "{svg}");
    assert_eq!(clip::stroke((-1e300, 0.5), (1e300, 0.5), 0.0).map(|(a, b)| (a.1, b.1)), Some((0.5, 0.5)));
    assert_eq!(clip::stroke((2.0, 2.0), (3.0, 3.0), 0.1), None);
}

#[test]
fn many_points_make_a_small_picture_of_the_same_look() {
    let n = 1_000_000;
    let wave = |i: usize| if i == 500_000 { 9.0 } else { ((i * 7919) % 1000) as f64 / 1000.0 };
    let points: Vec<(f64, f64)> = (0..n).map(|i| (i as f64, wave(i))).collect();
    for marks in [
        Marks::Line(points.clone()),
        Marks::Dots(points.clone()),
        bars(&points.iter().map(|p| p.1).collect::<Vec<_>>()),
    ] {
        let svg = of(vec![panel(vec![layer("", marks)])], 1).svg(0, 0).unwrap();
        assert!(svg.len() < 2_000_000, "{}", svg.len());
    }
    let seen = clip::thinned((0..n).map(|i| (i as f64 / n as f64, wave(i))).collect(), 100.0);
    assert!(seen.len() <= 400 && seen.iter().any(|p| p.1 == 9.0), "{}", seen.len());
}

#[test]
fn legends_stand_beside_the_data() {
    let svg = curve().svg(0, 0).unwrap();
    let field = svg.lines().find(|l| l.starts_with("<svg x=")).unwrap();
    let number = |text: &str, key: &str| -> f64 {
        let from = text.find(&format!(" {key}=\"")).unwrap() + key.len() + 3;
        text[from..].split('"').next().unwrap().parse().unwrap()
    };
    let right = number(field, "x") + number(field, "width");
    let name = svg.lines().find(|l| l.ends_with(">train</text>")).unwrap();
    assert!(number(name, "x") > right, "{svg}");
}

#[test]
fn pictures_are_written_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let png = dir.path().join("a.png");
    curve().save(&png, 320, 200).unwrap();
    let pixels = resvg::tiny_skia::Pixmap::load_png(&png).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (320, 200));
    let [r, g, b] = colors::line(0);
    let blue = pixels.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) == (r, g, b)).count();
    assert!(blue > 50, "{blue} pixels of the first line");
    assert_eq!(curve().png(320, 200).unwrap(), std::fs::read(&png).unwrap());
    let svg = dir.path().join("a.SVG");
    let mut heat = of(vec![panel(vec![layer("", cells((300, 2), vec![0.5; 600], None))])], 1);
    heat.panels[0].title = "a < b".into();
    heat.save(&svg, 0, 0).unwrap();
    assert!(std::fs::read_to_string(svg).unwrap().contains("a &lt; b"));
    assert_eq!(curve().save(&dir.path().join("a.gif"), 0, 0).unwrap_err().code, 711);
}

#[test]
fn letters_of_many_scripts_are_painted() {
    let dark = |title: &str| {
        let mut figure = line(&[]);
        figure.panels[0].title = title.into();
        let picture = resvg::tiny_skia::Pixmap::decode_png(&figure.png(300, 200).unwrap()).unwrap();
        // The part of the title.
        picture.pixels()[..300 * 30].iter().filter(|p| p.red() < 128).count()
    };
    let titles = ["loss", "Ωμέγα", "потеря", "الخسارة", "הפסד", "été"];
    let counts = titles.map(dark);
    assert!(counts.iter().all(|n| *n > 40) && dark(" ") == 0, "{counts:?}");
}

#[test]
fn a_band_has_the_colour_of_what_follows_it() {
    let band = layer("sure", Marks::Band(vec![(0.0, 0.0, 1.0), (1.0, 1.0, 3.0), (2.0, f64::NAN, 1.0)]));
    let figure =
        of(vec![panel(vec![layer("a", bars(&[1.0])), band, layer("b", Marks::Line(heights(&[0.5, 2.0])))])], 1);
    let numbers: Vec<usize> = figure.panels[0].coloured().iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 1]);
    let svg = figure.svg(0, 0).unwrap();
    assert_eq!(svg.matches("<polygon").count(), 1, "what is not finite interrupts a band");
    assert!(figure.text(40, 8).unwrap().contains('░'));
}

#[test]
fn an_image_lies_where_it_is_told() {
    let image = |places| of(vec![panel(vec![layer("", cells((2, 3), vec![0.0; 6], places))])], 1);
    let axes = |f: &Figure| f.panels[0].axes((4, 4));
    let (x, y) = axes(&image(None));
    assert_eq!(((x.low, x.high), (y.low, y.high), y.flipped), ((-0.5, 2.5), (-0.5, 1.5), true));
    let (x, y) = axes(&image(Some([(0.0, 1.0), (5.0, 3.0)])));
    assert_eq!(((x.low, x.high), (y.low, y.high), y.flipped), ((-0.25, 1.25), (2.0, 6.0), false));
    // The first row is at the top.
    assert_eq!(y.place(6.0), Some(1.0));
}
