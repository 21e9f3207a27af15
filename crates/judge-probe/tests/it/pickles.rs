//! Hostile pickles, and the honest ones of the fixtures.

use std::sync::LazyLock;

use judge_probe::pickle::Limits;
use judge_probe::{Error, Precision, SklearnProbe};
use serde_json::Value;

/// A pickle whose name says what it tries.
pub(crate) type Attack = (&'static str, Vec<u8>);

/// Small fitted classifiers as scikit-learn 1.9.1 pickles them, in protocols 2 to 5.
pub(crate) fn honest() -> &'static [Vec<u8>] {
    static PICKLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let fixture: Value = serde_json::from_str(include_str!("../fixtures/sklearn_import_1_9_1.json")).unwrap();
        fixture["cases"].as_array().unwrap().iter().map(|case| hex(&case["pickle"])).collect()
    });
    &PICKLES
}

/// The bytes that a fixture has as hexadecimal digits.
pub(crate) fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Within the usual limits, in double precision.
pub(crate) fn import(pickle: &[u8]) -> Result<SklearnProbe, Error> {
    SklearnProbe::from_pickle(pickle, &Limits::default(), Precision::F64)
}

/// A pickle of protocol 4 with these opcodes.
pub(crate) fn program(opcodes: &[u8]) -> Vec<u8> {
    [b"\x80\x04", opcodes, b"."].concat()
}

/// Short text as an opcode.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [&[0x8c, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// A global as protocol 2 writes it.
pub(crate) fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

/// `levels` lists (or tuples), each holding the one before `width` times.
pub(crate) fn bomb(levels: usize, width: usize, tuples: bool) -> Vec<u8> {
    let mut opcodes = b"]\x94".to_vec();
    for level in 0..levels {
        opcodes.extend_from_slice(if tuples { b"0(" } else { b"0](" });
        for _ in 0..width {
            opcodes.extend([&b"j"[..], &(level as u32).to_le_bytes()].concat());
        }
        opcodes.extend_from_slice(if tuples { b"t\x94" } else { b"e\x94" });
    }
    program(&opcodes)
}

/// Large without help of sharing, or by sharing what is long to decode: each must end at a limit, or small.
pub(crate) fn resource_attacks() -> Vec<Attack> {
    let latin1 = |times: usize| {
        let long = "é".repeat(500_000);
        let mut opcodes = global("_codecs", "encode");
        opcodes.extend([b"\x94X", &(long.len() as u32).to_le_bytes()[..], long.as_bytes()].concat());
        opcodes.extend([&text("latin1")[..], b"\x86\x9400]("].concat());
        (0..times).for_each(|_| opcodes.extend(b"h\x00h\x01R"));
        program(&[&opcodes[..], b"e"].concat())
    };
    let huge_array = |axes: &[u8]| {
        let mut opcodes = [global("numpy.core.multiarray", "_reconstruct"), global("numpy", "ndarray")].concat();
        opcodes.extend(b"K\x00\x85C\x01b\x87R(K\x01");
        opcodes.extend(axes);
        opcodes.extend([&global("numpy", "dtype")[..], &text("f8")[..], b"\x89\x88\x87R\x89C\x00tb"].concat());
        program(&opcodes)
    };
    vec![
        ("lists that double", bomb(60, 2, false)),
        ("tuples that double", bomb(60, 2, true)),
        ("wide lists", bomb(4, 20_000, false)),
        ("deep lists", program(&[vec![b']'; 100_000], vec![b'a'; 99_999]].concat())),
        ("deep tuples", program(&[&b")"[..], &[0x85; 100_000]].concat())),
        ("a list in itself", program(b"]\x94h\x00a")),
        ("a dictionary in itself", program(b"}\x94K\x00h\x00s")),
        ("many values", program(&[vec![b'('], vec![b'N'; 600_000], vec![b't']].concat())),
        ("many memo entries", program(&[&b"N"[..], &[0x94; 600_000]].concat())),
        ("many marks", program(&[b'('; 600_000])),
        ("a copied stack", program(&[&b"N"[..], &[b'2'; 600_000]].concat())),
        ("long text", program(&[&b"X\0\0\x20\0"[..], &[b'a'; 2 << 20]].concat())),
        ("text for long bytes again and again", latin1(50_000)),
        ("bytes of 16 EiB", program(b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff")),
        ("text of 16 EiB", program(b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff")),
        ("a byte array of 16 EiB", program(b"\x96\xff\xff\xff\xff\xff\xff\xff\xff")),
        ("bytes of 4 GiB", program(b"B\xff\xff\xff\xff")),
        ("an integer of 4 GiB", program(b"\x8b\xff\xff\xff\xff")),
        ("a frame of 16 EiB", program(b"\x95\xff\xff\xff\xff\xff\xff\xff\xff")),
        ("an array of 2^62 numbers", huge_array(b"\x8a\x04\0\0\0\x40\x8a\x04\0\0\0\x40\x86")),
        ("an array of 2^30 rows of nothing", huge_array(b"\x8a\x04\0\0\0\x40K\0\x86")),
        ("an array of -1 numbers", huge_array(b"J\xff\xff\xff\xff\x85")),
    ]
}
