use super::super::*;

pub fn var(id: u32, name: &str, natural: bool) -> Size {
    Size::var(SizeVar { id, name: name.into(), rigid: true, natural, each: false })
}

fn v(id: u32, name: &str) -> Size {
    var(id, name, true)
}

fn c(n: i64) -> Size {
    Size::constant(n)
}

#[test]
fn products_and_sums_have_one_form() {
    let (h, w) = (v(0, "H"), v(1, "W"));
    assert_eq!(h.mul(&w), w.mul(&h));
    assert_eq!(h.add(&h), h.scale(2));
    assert_eq!(h.sub(&h), c(0));
    assert_eq!(h.scale(4).to_string(), "4*H");
    assert_eq!(h.mul(&w).add(&1.into()).to_string(), "H*W + 1");
    assert_eq!(h.mul(&w).floor_div(&2.into()).map(|s| s.to_string()), Some("(H*W)//2".into()));
    assert_eq!(h.greatest(&c(0)), h);
    assert_eq!(h.add(&w).least(&h), h);
    assert_eq!(h.sub(&c(1)).greatest(&c(0)).to_string(), "max(H - 1, 0)");
}

#[test]
fn four_h_is_three_h_only_for_no_h_at_all() {
    let h = v(0, "H");
    let Verdict::Depends(w) = h.scale(4).compare(&h.scale(3), &Facts::default()) else { panic!("not open") };
    assert_eq!(w.to_string(), "H=1 gives 4 and 3");
    let mut facts = Facts::default();
    facts.assume_at_least(&h, &c(1));
    assert!(matches!(h.scale(4).compare(&h.scale(3), &facts), Verdict::Differ(_)));
    assert!(matches!(h.compare(&h.add(&c(1)), &Facts::default()), Verdict::Differ(_)));
    assert!(matches!(h.compare(&v(1, "K"), &Facts::default()), Verdict::Depends(_)));
}

#[test]
fn a_divided_size_times_its_divisor_is_the_size() {
    let (d, h) = (v(0, "D"), v(1, "H"));
    let q = d.floor_div(&h).unwrap_or_default();
    let mut facts = Facts::default();
    assert!(matches!(q.mul(&h).compare(&d, &facts), Verdict::Depends(_)));
    facts.assume_divides(&h, &d);
    assert_eq!(q.mul(&h).compare(&d, &facts), Verdict::Equal);
    let b = v(2, "B");
    assert_eq!(b.mul(&q).mul(&h).compare(&b.mul(&d), &facts), Verdict::Equal);
    // A dividend that is no variable.
    let both = d.mul(&b);
    let mut facts = Facts::default();
    facts.assume_equal(&both.floor_mod(&h).unwrap_or_default(), &c(0));
    let q = both.floor_div(&h).unwrap_or_default();
    assert_eq!(q.mul(&h).compare(&both, &facts), Verdict::Equal);
    let t = v(3, "T");
    assert_eq!(q.mul(&h).mul(&t).compare(&both.mul(&t), &facts), Verdict::Equal);
    assert!(facts.at_least(&h, 1));
}

#[test]
fn inequalities_decide_extremes() {
    let (n, k) = (v(0, "N"), v(1, "k"));
    let rest = n.sub(&c(2)).greatest(&c(0));
    let mut facts = Facts::default();
    assert!(matches!(rest.add(&c(2)).compare(&n, &facts), Verdict::Depends(w) if w.to_string() == "N=1 gives 2 and 1"));
    facts.assume_at_least(&n, &c(2));
    assert_eq!(rest.add(&c(2)).compare(&n, &facts), Verdict::Equal);
    assert_eq!(rest.mul(&k).compare(&n.sub(&c(2)).mul(&k), &facts), Verdict::Equal);
    assert!(matches!(k.least(&n).compare(&k, &facts), Verdict::Depends(_)));
    facts.assume_at_least(&n, &k);
    assert_eq!(k.least(&n).compare(&k, &facts), Verdict::Equal);
    assert!(!facts.contradictory());
    facts.assume_at_least(&k, &n.add(&c(1)));
    assert!(facts.contradictory());
}

#[test]
fn windows_fit() {
    let (h, k, s) = (v(0, "H"), v(1, "K"), v(2, "S"));
    // (H + 2*1 - 3)//1 + 1 is H; floor((H - K)/S)*S <= H - K.
    let mut facts = Facts::default();
    facts.assume_at_least(&h, &k);
    facts.assume_at_least(&s, &c(1));
    let q = h.sub(&k).floor_div(&s).unwrap_or_default();
    assert!(facts.at_least(&q, 0), "{q}");
    assert!(facts.at_least(&h.sub(&k).sub(&q.mul(&s)), 0));
    assert!(!facts.at_least(&h.sub(&k).sub(&q.mul(&s)).sub(&s), 0));
    assert!(facts.at_least(&h.mul(&s).sub(&k.mul(&s)), 0));
    assert!(facts.at_least(&h.mul(&s).sub(&k), 0));
}

#[test]
fn products_have_lower_bounds() {
    let (n, m) = (v(0, "N"), v(1, "M"));
    let mut facts = Facts::default();
    assert!(facts.at_least(&n.mul(&m), 0));
    assert!(!facts.at_least(&n.mul(&m), 1));
    facts.assume_at_least(&n, &c(2));
    facts.assume_at_least(&m, &c(3));
    assert!(facts.at_least(&n.mul(&m), 6));
    assert!(!facts.at_least(&n.mul(&m), 7));
    assert!(facts.at_least(&n.mul(&m).sub(&n).sub(&m), 1));
}

#[test]
fn witnesses_are_small_and_true() {
    let (n, m) = (v(0, "N"), v(1, "M"));
    let mut facts = Facts::default();
    let show = |a: &Size, b: &Size, facts: &Facts| match a.compare(b, facts) {
        Verdict::Equal => "equal".to_owned(),
        Verdict::Differ(w) => format!("never: {w}"),
        Verdict::Depends(w) => w.to_string(),
    };
    // max(N - 1, 0) + 1 is N but for 0.
    let shorter = n.sub(&c(1)).greatest(&c(0)).add(&c(1));
    assert_eq!(show(&shorter, &n, &facts), "N=0 gives 1 and 0");
    facts.assume_at_least(&n, &c(1000));
    assert_eq!(show(&n, &m, &facts), "N=1000, M=1 gives 1000 and 1");
    assert_eq!(show(&n.mul(&m), &m, &facts), "N=1000, M=1 gives 1000 and 1");
    facts.assume_equal(&n, &m);
    assert_eq!(show(&n, &m, &facts), "equal");
    assert_eq!(show(&n.scale(2), &m, &facts), "never: N=1000, M=1000 gives 2000 and 1000");
    let i = var(5, "i", false);
    assert!(matches!(i.reach(&c(0), &Facts::default()), Reach::Depends(w) if w.to_string() == "i=-2 gives -2 and 0"));
    assert!(matches!(n.reach(&c(5), &Facts::default()), Reach::Depends(w) if w.to_string() == "N=1 gives 1 and 5"));
    assert_eq!(n.add(&m).reach(&m, &Facts::default()), Reach::Always);
    assert!(matches!(n.reach(&n.add(&c(1)), &Facts::default()), Reach::Never(_)));
}

#[test]
fn what_is_not_equal_splits_in_cases() {
    let (n, m) = (v(0, "N"), v(1, "M"));
    let mut facts = Facts::default();
    facts.assume_differ(&n, &c(0));
    assert!(facts.at_least(&n, 1));
    facts.assume_differ(&n, &m);
    assert!(matches!(n.compare(&m, &facts), Verdict::Differ(_)));
    facts.assume_at_least(&n, &m);
    assert!(facts.at_least(&n.sub(&m), 1));
}

#[test]
fn facts_in_other_variables() {
    let (n, m, k) = (v(0, "N"), v(1, "M"), v(2, "K"));
    let mut facts = Facts::default();
    facts.assume_equal(&n, &k);
    facts.assume_equal(&m, &k);
    facts.assume_at_least(&n, &c(3));
    let known = facts.translate(&mut |v| (v.id < 2).then(|| Size::var(v.clone())));
    assert_eq!(n.compare(&m, &known), Verdict::Equal);
}

#[test]
fn a_polynomial_that_is_a_multiple_is_divided() {
    let (i, m, h) = (v(0, "i"), v(1, "M"), v(2, "H"));
    let rows = i.add(&c(1000)).least(&m).sub(&i);
    assert_eq!(rows.scale(1568).floor_div(&rows), Some(c(1568)));
    assert_eq!(rows.mul(&h).mul(&m).floor_div(&rows.mul(&h)), Some(m.clone()));
    let (sum, difference) = (m.add(&h), m.sub(&h));
    assert_eq!(m.mul(&m).sub(&h.mul(&h)).exact_div(&sum), Some(difference));
    assert_eq!(m.mul(&m).add(&h.mul(&h)).exact_div(&sum), None);
    assert_eq!(sum.scale(3).exact_div(&sum.scale(2)), None);
    assert_eq!(c(0).exact_div(&sum), Some(c(0)));
}

#[test]
fn products_of_what_facts_bound_are_bounded() {
    let (k, b) = (var(0, "k", false), var(1, "b", false));
    let mut facts = Facts::default();
    facts.assume_at_least(&k, &c(0));
    assert!(!facts.at_least(&k.mul(&b), 0));
    facts.assume_at_least(&b, &c(0));
    assert!(facts.at_least(&k.mul(&b), 0));
    let rows = b.add(&c(128)).least(&v(2, "N")).sub(&b);
    facts.assume_at_least(&rows, &c(0));
    assert!(facts.at_least(&rows.mul(&k), 0));
}

#[test]
fn sizes_follow_from_others_that_are_known() {
    let (k, a, b) = (var(0, "k", false), var(1, "a", false), var(2, "b", false));
    let known = |sizes: &[(&Size, i64)]| sizes.iter().map(|(s, n)| ((*s).clone(), *n)).collect();
    let both = |whole: &Size| whole.mul(&c(24).floor_div(whole).unwrap_or_default());
    for whole in [k.add(&c(1)), a.add(&b), k.greatest(&k.neg()).add(&c(2)), k.scale(2).add(&a), a.mul(&b).add(&c(3))] {
        assert_eq!(both(&whole).eval_known(&known(&[(&whole, 5)])), Some(20), "{whole}");
    }
    // Twice k + a and a + b and k - b: k is 3, b is 1.
    let told = known(&[(&k.scale(2).add(&a), 8), (&a.add(&b), 3), (&k.sub(&b), 2)]);
    assert_eq!(k.eval_known(&told), Some(3));
    assert_eq!(k.mul(&b).eval_known(&told), None, "a product of what is told in sums");
    assert_eq!(k.eval_known(&known(&[(&k.add(&a), 1)])), None);
    assert_eq!(both(&k).eval_known(&known(&[(&k, 0)])), None, "a division by zero");
    // A product of which one factor follows from what is told.
    let part = b.mul(&a.floor_div(&c(4)).unwrap_or_default());
    assert_eq!(part.scale(4).mul(&k).eval_known(&known(&[(&a, 16), (&part, 21), (&k, 2)])), Some(168));
}
