use super::*;

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = vec![];
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn int(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value as u64)].concat()
}

fn bytes(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn tensor(name: &str, dims: &[i64], kind: i64, fields: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|n| int(1, *n)).collect();
    [dims, int(2, kind), bytes(8, name.as_bytes()), fields.to_vec()].concat()
}

/// `y = Relu(x)` beside weights in all the ways in which they may stand.
fn model() -> Vec<u8> {
    let raw: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let packed: Vec<u8> = [varint(3), varint(-1i64 as u64)].concat();
    let attribute = [bytes(1, b"axes"), bytes(8, &packed), int(20, 7)].concat();
    let node = [bytes(1, b"x"), bytes(2, b"y"), bytes(3, b"first"), bytes(4, b"Relu"), bytes(5, &attribute)].concat();
    let dims = [bytes(1, &bytes(2, b"batch")), bytes(1, &int(1, 2)), bytes(1, &[])].concat();
    let ty = bytes(1, &[int(1, 1), bytes(2, &dims)].concat());
    let graph = [
        bytes(1, &node),
        bytes(5, &tensor("raw", &[2], 1, &bytes(9, &raw))),
        bytes(5, &tensor("packed", &[2], 7, &bytes(7, &packed))),
        bytes(5, &tensor("small", &[1], 3, &int(5, -7))),
        bytes(5, &tensor("raw", &[], 1, &bytes(4, &raw[..4]))),
        bytes(11, &[bytes(1, b"x"), bytes(2, &ty)].concat()),
        bytes(12, &bytes(1, b"y")),
    ]
    .concat();
    [int(1, 8), bytes(7, &graph), bytes(8, &int(2, 17))].concat()
}

#[test]
fn a_whole_model() {
    let file = model();
    let m = parse(&file).unwrap();
    assert_eq!(m.opset, 17);
    let node = &m.graph.nodes[0];
    assert_eq!((node.op, node.inputs[0], node.outputs[0]), ("Relu", "x", "y"));
    assert!(matches!(&node.attributes[0], ("axes", Attribute::Ints(v)) if *v == [3, -1]));
    assert_eq!(m.graph.inputs[0].shape, Some(vec![Dim::Name("batch"), Dim::Size(2), Dim::Unknown]));
    let keys: Vec<&str> = m.graph.tensors.iter().map(|t| &*t.key).collect();
    assert_eq!(keys, ["raw", "packed", "small", "raw#2"]);
    assert_eq!(m.graph.tensors[1].ints().unwrap(), [3, -1]);
    assert_eq!(m.graph.tensors[2].ints().unwrap(), [-7]);
    assert_eq!(m.graph.tensors[3].first_float().unwrap(), 1.5);
}

#[test]
fn sizes_are_compared_with_the_bytes() {
    for (dims, kind) in [(&[3][..], 1), (&[1 << 62, 4], 1), (&[2], 11), (&[2], 8)] {
        let file = bytes(7, &bytes(5, &tensor("w", dims, kind, &bytes(9, &[0; 8]))));
        assert!(parse(&file).unwrap().graph.tensors[0].data().is_err());
    }
    assert!(parse(&bytes(7, &bytes(5, &tensor("w", &[-1], 1, &[])))).is_err());
}

#[test]
fn graphs_do_not_nest_without_end() {
    let mut graph = vec![];
    for _ in 0..40 {
        graph = bytes(1, &bytes(5, &bytes(6, &graph)));
    }
    assert!(parse(&bytes(7, &graph)).is_err());
}

#[test]
fn any_bytes_are_read_or_refused() {
    let file = model();
    for end in 0..file.len() {
        let _ = parse(&file[..end]);
    }
    let mut seed = 7u64;
    for round in 0..20_000 {
        let mut broken = file.clone();
        for _ in 0..=round % 3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % broken.len();
            broken[at] = (seed >> 20) as u8;
        }
        if let Ok(m) = parse(&broken) {
            let mut all = vec![];
            m.graph.all_tensors(&mut all);
            all.iter().for_each(|t| drop((t.data(), t.ints(), t.first_float())));
        }
    }
}
