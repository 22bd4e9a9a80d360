use super::*;
use tessera_base::DType;

fn tensor(shape: &[u64], values: &[f64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_bytes(DType::F64, shape, &bytes).unwrap()
}

fn curve() -> Figure {
    let falling: Vec<f64> = (0..20).map(|i| 0.8f64.powi(i)).collect();
    let named =
        [("train".to_owned(), tensor(&[20], &falling)), ("b".to_owned(), tensor(&[2, 2], &[0.0, 0.5, 19.0, 0.25]))];
    Figure::lines(&named, false).unwrap().labelled(&["loss".into(), "step".into(), "nats".into()])
}

#[test]
fn axes_have_round_ticks() {
    let axis = axis::Axis::over([0.0, 97.0].into_iter(), 5, 0.0);
    let texts: Vec<&str> = axis.ticks.iter().map(|t| t.1.as_str()).collect();
    assert_eq!(texts, ["0", "20", "40", "60", "80"]);
    let axis = axis::Axis::over([-0.25, 0.3].into_iter(), 5, 0.0);
    let texts: Vec<&str> = axis.ticks.iter().map(|t| t.1.as_str()).collect();
    assert_eq!(texts, ["-0.2", "0.0", "0.2"]);
    for odd in [
        vec![],
        vec![f64::NAN],
        vec![3.0],
        vec![1e300, -1e300],
        vec![f64::INFINITY, 1.0],
        vec![1e-310, 0.0],
        vec![5e17, 5e17 + 64.0],
    ] {
        let axis = axis::Axis::over(odd.iter().copied(), 5, 0.04);
        assert!(axis.high > axis.low && axis.ticks.len() < 30, "{odd:?} {axis:?}");
    }
    let axis = axis::Axis::over_logs([-3.0, 2.0].into_iter(), 0.0);
    let texts: Vec<&str> = axis.ticks.iter().map(|t| t.1.as_str()).collect();
    assert_eq!(texts, ["0.001", "0.01", "0.1", "1", "10", "100"]);
}

#[test]
fn text_has_the_size_asked_for() {
    let text = curve().text(60, 8).unwrap();
    // Title, name of the axis, eight rows, two of the axis, its name.
    assert_eq!(text.lines().count(), 13, "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 60 + 12), "{text}");
    assert!(text.contains(" train\n") && text.contains(" b\n"), "{text}");
    assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{text}");
    assert!(curve().text(-1, 0).is_err() && curve().text(0, 100_000).is_err());
}

#[test]
fn numbers_that_are_none_interrupt_a_line() {
    let nan =
        Figure::lines(&[(String::new(), tensor(&[5], &[1.0, 2.0, f64::NAN, 1.0, f64::INFINITY]))], false).unwrap();
    let shapes = scene::layout(&nan, 300.0, 200.0);
    let drawn = shapes.iter().filter(|s| matches!(s, scene::Shape::Line { width, .. } if *width > 1.0)).count();
    assert_eq!(drawn, 2);
    let none = Figure::lines(&[(String::new(), tensor(&[0], &[]))], true).unwrap();
    assert!(none.text(20, 4).is_ok());
    assert!(Figure::lines(&[(String::new(), tensor(&[1, 1], &[1.0]))], false).is_err());
    assert!(Figure::heat(&tensor(&[0, 3], &[])).is_err() && Figure::heat(&tensor(&[1], &[1.0])).is_err());
}

#[test]
fn pictures_are_written_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let png = dir.path().join("a.png");
    curve().save(&png, 320, 200).unwrap();
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&png).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (320, 200));
    let mut pixels = vec![0; 320 * 200 * 3];
    reader.next_frame(&mut pixels).unwrap();
    let blue = pixels.chunks_exact(3).filter(|p| **p == colors::line(0)).count();
    assert!(blue > 50, "{blue} pixels of the first line");
    let svg = dir.path().join("a.SVG");
    Figure::heat(&tensor(&[300, 2], &[0.5; 600])).unwrap().labelled(&["a < b".into()]).save(&svg, 0, 0).unwrap();
    let text = std::fs::read_to_string(svg).unwrap();
    assert!(text.contains("a &lt; b") && text.matches("<rect").count() == 1 + 200 * 2 + 64, "{text}");
    assert_eq!(curve().save(&dir.path().join("a.gif"), 0, 0).unwrap_err().code, 711);
}
