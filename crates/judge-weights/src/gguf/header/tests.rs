use super::*;

/// The number of the type u32.
const U32: u32 = 4;

/// A header with these values behind `general.architecture`, and with one tensor of these dimensions.
fn file(values: &[u8], keys: u64, dimensions: &[u64], kind: u32, offset: u64, data: usize) -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3_u32.to_le_bytes());
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend((1 + keys).to_le_bytes());
    bytes.extend(text("general.architecture"));
    bytes.extend(TEXT.to_le_bytes());
    bytes.extend(text("llama"));
    bytes.extend(values);
    bytes.extend(text("t"));
    bytes.extend((dimensions.len() as u32).to_le_bytes());
    dimensions.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(32) + data, 7);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn value(key: &str, kind: u32, rest: &[&[u8]]) -> Vec<u8> {
    [text(key), kind.to_le_bytes().to_vec(), rest.concat()].concat()
}

#[test]
fn values_of_every_type_are_kept_or_passed_over() {
    let mut values = Vec::new();
    for (kind, size) in SIZES {
        values.extend(value(&format!("one {kind}"), kind, &[&vec![1; size]]));
        values.extend(value(
            &format!("list {kind}"),
            LIST,
            &[&kind.to_le_bytes(), &3_u64.to_le_bytes(), &vec![1; 3 * size]],
        ));
    }
    let texts = [&TEXT.to_le_bytes()[..], &2_u64.to_le_bytes(), &text("ab"), &text("")].concat();
    values.extend(value("texts", LIST, &[&texts]));
    values.extend(value("lists", LIST, &[&LIST.to_le_bytes(), &1_u64.to_le_bytes(), &texts]));
    values.extend(value("general.alignment", U32, &[&64_u32.to_le_bytes()]));
    let keys = 2 * SIZES.len() as u64 + 3;
    let bytes = file(&values, keys, &[32, 3], 8, 0, 64 + 102);
    let header = read(&bytes).unwrap();
    let entry = &header.tensors["t"];
    assert_eq!(
        (header.text("general.architecture"), entry.shape.as_slice(), entry.kind),
        ("llama", &[3, 32][..], Kind::Q8_0)
    );
    assert_eq!((entry.range.len(), entry.range.start % 64), (102, 0));
}

#[test]
fn counts_and_offsets_are_checked_before_anything_is_made_for_them() {
    let tensor =
        |dimensions: &[u64], kind, offset| read(&file(&[], 0, dimensions, kind, offset, 128)).map(|_| ()).unwrap_err();
    assert!(matches!(tensor(&[32], 0, 96), GgufProblem::Truncated { .. }));
    assert!(matches!(tensor(&[33], 0, 0), GgufProblem::Truncated { expected, found, .. } if expected == found + 4));
    assert!(matches!(tensor(&[u64::MAX, 2], 0, 0), GgufProblem::Truncated { expected: u64::MAX, .. }));
    assert!(matches!(tensor(&[1 << 62, 1 << 2], 0, 0), GgufProblem::Truncated { expected: u64::MAX, .. }));
    assert!(matches!(tensor(&[4], 0, u64::MAX - 31), GgufProblem::Truncated { .. }));
    let offset = "tensor t begins at byte 8 of the data, expected a multiple of 32";
    assert_eq!(tensor(&[4], 0, 8), GgufProblem::Header(offset.to_owned()));
    assert!(matches!(tensor(&[48], 8, 0), GgufProblem::Dimensions { block: 32, .. }));
    assert!(matches!(tensor(&[], 0, 0), GgufProblem::Dimensions { .. }));
    assert!(matches!(tensor(&[1; 5], 0, 0), GgufProblem::Dimensions { .. } | GgufProblem::Header(_)));
    for (kind, name) in [(9, "Q8_1"), (15, "Q8_K"), (77, "77")] {
        let message = tensor(&[4], kind, 0).to_string();
        assert!(message.starts_with(&format!("tensor t: type {name} is not supported, only ")), "{message}");
    }
    let with = |values: Vec<u8>| read(&file(&values, 1, &[4], 0, 0, 128)).map(|_| ()).unwrap_err();
    let vast = [&U32.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat();
    assert!(matches!(with(value("k", LIST, &[&vast])), GgufProblem::Truncated { .. }));
    let vast = [&TEXT.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat();
    assert!(matches!(with(value("k", LIST, &[&vast])), GgufProblem::Truncated { .. }));
    assert!(matches!(with(value("k", TEXT, &[&u64::MAX.to_le_bytes()])), GgufProblem::Truncated { .. }));
    let deep: Vec<u8> = [LIST.to_le_bytes().to_vec(), 1_u64.to_le_bytes().to_vec()].concat().repeat(9);
    assert_eq!(with(value("k", LIST, &[&deep])).to_string(), "the value of k has the unknown type 9");
    assert_eq!(with(value("k", 13, &[])).to_string(), "the value of k has the unknown type 13");
    let zero = with(value("general.alignment", U32, &[&[0; 4]]));
    assert!(matches!(zero, GgufProblem::Value { key, .. } if key == "general.alignment"));
}

#[test]
fn other_files_are_named() {
    let said = |bytes: &[u8]| read(bytes).map(|_| ()).unwrap_err().to_string();
    assert_eq!(said(b"lmgg"), "it begins with [108, 109, 103, 103], expected \"GGUF\"");
    assert_eq!(said(b"GGUF\0\0\0\x03"), "version 50331648, expected 2 or 3 (little-endian)");
    assert!(matches!(read(b"GG"), Err(GgufProblem::Truncated { expected: 4, found: 2, .. })));
    let mut bytes = file(&[], 0, &[4], 0, 0, 128);
    bytes[8..16].fill(0xff);
    assert!(matches!(read(&bytes), Err(GgufProblem::Truncated { .. } | GgufProblem::Header(_))));
    bytes[16..24].fill(0xff);
    assert!(read(&bytes).is_err());
}

#[test]
fn numbers_and_short_texts_are_kept() {
    let integers = [&5_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &(-7_i32).to_le_bytes(), &9_i32.to_le_bytes()];
    let values = [
        value("f", 6, &[&1e-5_f32.to_le_bytes()]),
        value("i", 3, &[&(-2_i16).to_le_bytes()]),
        value("list", LIST, &integers),
        value("text", TEXT, &[&text("linear")]),
        value("not UTF-8", TEXT, &[&1_u64.to_le_bytes(), &[0xff]]),
        value("long", TEXT, &[&text(&"x".repeat(257))]),
        value("texts", LIST, &[&TEXT.to_le_bytes(), &1_u64.to_le_bytes(), &text("a")]),
    ];
    let header = read(&file(&values.concat(), values.len() as u64, &[4], 0, 0, 128)).unwrap();
    assert_eq!(header.numbers("f"), Some(&[f64::from(1e-5_f32)][..]));
    assert_eq!(header.numbers("i"), Some(&[-2.0][..]));
    assert_eq!(header.numbers("list"), Some(&[-7.0, 9.0][..]));
    assert_eq!((header.text("text"), header.text("long"), header.text("not UTF-8")), ("linear", "", ""));
    assert_eq!((header.numbers("text"), header.numbers("texts"), header.text("f")), (None, None, ""));
}

/// A setting that is stated as something else is not one that is not stated.
#[test]
fn settings_are_numbers_or_not_there() {
    let empty = [&6_u32.to_le_bytes()[..], &0_u64.to_le_bytes()];
    let values = [
        value("one", 6, &[&2.5_f32.to_le_bytes()]),
        value("none", LIST, &empty),
        value("text", TEXT, &[&text("linear")]),
        value("long", TEXT, &[&text(&"x".repeat(257))]),
        value("texts", LIST, &[&TEXT.to_le_bytes(), &1_u64.to_le_bytes(), &text("a")]),
    ];
    let header = read(&file(&values.concat(), values.len() as u64, &[4], 0, 0, 128)).unwrap();
    assert_eq!(header.setting("one").unwrap(), Some(&[2.5][..]));
    assert_eq!((header.setting("absent").unwrap(), header.setting_text("absent").unwrap()), (None, ""));
    assert_eq!(header.setting_text("text").unwrap(), "linear");
    for (key, found) in [
        ("none", "an empty list"),
        ("text", "the text \"linear\""),
        ("long", "a long text"),
        ("texts", "a list of texts, or a long one"),
    ] {
        let message = header.setting(key).unwrap_err().to_string();
        assert_eq!(message, format!("{key} is {found}, expected a number, or one for each block"));
    }
    for (key, found) in [("one", "2.5"), ("none", "an empty list"), ("texts", "a list of texts, or a long one")] {
        let message = header.setting_text(key).unwrap_err().to_string();
        assert_eq!(message, format!("{key} is {found}, expected a text of up to 256 bytes"));
    }
}

/// Two readers would see two models in one file.
#[test]
fn a_key_that_appears_twice_is_refused() {
    let number = |key: &str| value(key, 6, &[&2.5_f32.to_le_bytes()]);
    let texts = |key: &str| value(key, LIST, &[&TEXT.to_le_bytes(), &1_u64.to_le_bytes(), &text("a")]);
    let values = [number("a"), texts("b"), number("c")];
    assert!(read(&file(&values.concat(), 3, &[4], 0, 0, 128)).is_ok());
    for (again, key) in [(number("a"), "a"), (texts("a"), "a"), (number("b"), "b"), (texts("b"), "b")] {
        let values = [&values[..], &[again]].concat().concat();
        let problem = read(&file(&values, 4, &[4], 0, 0, 128)).map(|_| ()).unwrap_err();
        assert_eq!(problem.to_string(), format!("the key {key} appears twice"));
    }
}
