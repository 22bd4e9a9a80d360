use super::*;

#[test]
fn directions_are_those_of_the_circle() {
    for n in [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 1000, 4096, 99991] {
        for k in (0..n).step_by(1 + n as usize / 97) {
            let angle = -std::f64::consts::TAU * k as f64 / n as f64;
            let [re, im] = unit_wide(k, n);
            assert!((re - angle.cos()).abs() < 2e-15 && (im - angle.sin()).abs() < 2e-15, "{k}/{n}: {re} {im}");
        }
    }
    assert_eq!(unit(0, 5), [1.0, 0.0]);
    assert_eq!(unit(1, 4), [0.0, -1.0]);
    let [re, im] = unit(1, 8);
    assert_eq!((re, im), (std::f32::consts::FRAC_1_SQRT_2, -std::f32::consts::FRAC_1_SQRT_2));
}

#[test]
fn stages_cover_the_length() {
    for n in 1..=POINTS_MAX {
        let Some(plan) = plan(FftKind::Forward, n) else {
            assert!(!smooth(n), "{n}");
            continue;
        };
        let mut before = 1;
        for s in &plan.stages {
            assert_eq!((s.before, s.before * s.radix * s.after), (before, n as usize), "{n}");
            before *= s.radix;
        }
        assert_eq!(before as u64, n);
        assert_eq!(plan.table().len(), plan.table_len(), "{n}");
    }
    assert!(plan(FftKind::Forward, 37).is_none() && plan(FftKind::Forward, 31).is_some());
    assert!(plan(FftKind::RealForward, 9).is_none() && plan(FftKind::RealForward, 10).is_some());
    assert!(plan(FftKind::Forward, 0).is_none());
}

#[test]
fn twists_multiply_to_the_whole_angle() {
    let (rows, columns) = (12, 37);
    let [first, second] = twist_tables(rows, columns);
    assert_eq!([first.len() as u64, second.len() as u64], twist_lens(rows, columns));
    for k in 0..rows as usize {
        for c in 0..columns as usize {
            let a = &first[2 * (c / 16 * rows as usize + k)..];
            let b = [second[2 * k * 16 + c % 16], second[(2 * k + 1) * 16 + c % 16]];
            let got = codelet::mul(&mut codelet::Numbers, [a[0], a[1]], b);
            let want = unit_wide((k * c) as u64, rows * columns);
            assert!((f64::from(got[0]) - want[0]).abs() < 3e-7 && (f64::from(got[1]) - want[1]).abs() < 3e-7);
        }
    }
}
