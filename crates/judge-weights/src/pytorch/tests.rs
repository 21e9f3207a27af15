//! Against torch: `scripts/parity/make_pytorch_fixtures.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::Dtype;
use serde::Deserialize;

use super::{Stored, pickle, tensors};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pytorch").join(name)).unwrap()
}

#[derive(Deserialize)]
struct Expected {
    shape: Vec<usize>,
    dtype: String,
    bytes: String,
}

/// The numbers of a tensor in row-major order, in hexadecimal.
fn numbers(file: &[u8], tensor: &Stored) -> String {
    let mut bytes = vec![0; tensor.size()];
    match tensor.strides {
        Some(_) => tensor.gather(file, &mut bytes),
        None => bytes.copy_from_slice(&file[tensor.bytes.clone()]),
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn tensors_of_every_type_and_layout_are_those_of_torch() {
    let expected: BTreeMap<String, Expected> = serde_json::from_slice(&fixture("odd.json")).unwrap();
    let file = fixture("odd.bin");
    let found = tensors(&file).unwrap();
    assert_eq!(found.len(), expected.len());
    for tensor in &found {
        let Expected { shape, dtype, bytes } = &expected[&tensor.name];
        let named = match tensor.dtype {
            Dtype::F64 => "float64",
            Dtype::F32 => "float32",
            Dtype::F16 => "float16",
            Dtype::BF16 => "bfloat16",
            Dtype::I64 => "int64",
            Dtype::I32 => "int32",
            Dtype::I16 => "int16",
            Dtype::I8 => "int8",
            Dtype::U8 => "uint8",
            Dtype::BOOL => "bool",
            other => panic!("{other:?}"),
        };
        assert_eq!((&tensor.shape, named), (shape, dtype.as_str()), "{}", tensor.name);
        assert_eq!(&numbers(&file, tensor), bytes, "{}", tensor.name);
    }
    let is_copied = |name: &str| found.iter().any(|tensor| tensor.name == name && tensor.strides.is_some());
    for (name, copied) in
        [("permuted", true), ("steps", true), ("column", true), ("part", true), ("row", false), ("one", true)]
    {
        assert_eq!(is_copied(name), copied, "{name}");
    }
}

#[test]
fn sizes_of_64_bits_are_read() {
    let file = fixture("wide.bin");
    let found = tensors(&file).unwrap();
    assert_eq!((found.len(), numbers(&file, &found[0]).as_str()), (1, "0000803f0000803f"));
}

#[test]
fn what_is_more_than_tensors_is_refused_by_name() {
    for (name, words) in [
        ("command.bin", "posix.system"),
        ("module.bin", "torch.nn.modules.linear.Linear"),
        ("float8.bin", "torch._utils._rebuild_tensor_v3"),
        ("sparse.bin", "torch._utils._rebuild_sparse_tensor"),
        ("nested.bin", "\"state_dict\" is no tensor"),
        ("integer.bin", "a key is no text"),
        ("list.bin", "operation 0x5d"),
        ("negative.bin", "other arguments"),
        ("old.bin", "before 1.6"),
        ("compressed.bin", "compressed"),
        ("big_endian.bin", "\"big\""),
        ("empty.bin", "no data.pkl"),
        ("expanded.bin", "many times"),
    ] {
        let error = tensors(&fixture(name)).expect_err(name);
        assert!(error.contains(words), "{name}: {error}");
    }
    assert!(tensors(b"no archive at all").is_err_and(|problem| problem.contains("no zip archive")));
}

#[test]
fn a_cut_file_is_an_error() {
    for name in ["odd.bin", "wide.bin"] {
        let whole = fixture(name);
        for length in 0..whole.len() {
            assert!(tensors(&whole[..length]).is_err(), "{name} cut at {length}");
        }
    }
}

/// Whatever a byte is changed to, nothing panics, and no tensor leads out of the file.
#[test]
fn changed_bytes_do_no_harm() {
    for name in ["odd.bin", "wide.bin"] {
        let whole = fixture(name);
        for at in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] ^= change;
                for tensor in tensors(&changed).unwrap_or_default() {
                    assert_eq!(numbers(&changed, &tensor).len(), 2 * tensor.size());
                }
            }
        }
    }
}

#[test]
fn damaged_pickles_are_errors_and_deep_ones_no_danger() {
    let error = |bytes: &[u8]| pickle::read(bytes).expect_err("no dictionary");
    for (bytes, words) in [
        (b"".as_slice(), "cut off"),
        (b"\x80\x02.", "no dictionary"),
        (b"\x80\x02}K\x01K\x02s.", "no text"),
        (b"\x80\x02}h\x05.", "memo has no such"),
        (b"\x80\x02}q\x05.", "memo has gaps"),
        (b"\x80\x02}(K\x01u.", "key without a value"),
        (b"\x80\x02u.", "mark is missing"),
        (b"\x80\x02(}.", "no dictionary"),
        (b"\x80\x02\x85.", "too few values"),
        (b"\x80\x02X\xff\xff\xff\xff.", "cut off"),
        (b"\x80\x02X\x01\0\0\0\xff.", "UTF-8"),
        (b"\x80\x02K\x01)R.", "no function"),
        (b"\x80\x02cos\nsystem\n.", "os.system"),
        (b"\x80\x04\x8c\x05posix\x8c\x06system\x93.", "posix.system"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", "other arguments"),
        (b"\x80\x02K\x01Q.", "than a tuple"),
        (b"\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\x01.", "64 bits"),
        (b"\x80\x02i", "operation 0x69"),
    ] {
        let found = error(bytes);
        assert!(found.contains(words), "{bytes:?}: {found}");
    }
    let deep = [b"\x80\x02)".as_slice(), &vec![0x85; 1 << 20], b"."].concat();
    assert!(error(&deep).contains("no dictionary"));
}

/// Sizes beside an axis of none may be any, and their product does not matter.
#[test]
fn a_tensor_without_numbers_may_say_any_sizes() {
    let vast = 1_usize << (usize::BITS / 2 + 1);
    let view = pickle::View {
        name: "t",
        dtype: Dtype::F32,
        key: "0",
        numbers: 0,
        offset: 0,
        shape: vec![0, vast, vast],
        strides: vec![1, vast, 1],
    };
    let found = super::located(&view, 0..0).unwrap();
    assert_eq!((found.bytes, found.strides, found.shape), (0..0, None, vec![0, vast, vast]));
}

/// Two readers would see two models in one file.
#[test]
fn an_entry_that_is_listed_twice_is_refused() {
    let file = fixture("odd.bin");
    assert!(tensors(&file).is_ok());
    // The list, the record with its place and length in 64 bits, the place of that record, and the end, which has both in 32.
    let at = |mark: &[u8]| file.windows(4).rposition(|four| four == mark).unwrap();
    let [wide, locator, end] = [&b"PK\x06\x06"[..], b"PK\x06\x07", b"PK\x05\x06"].map(at);
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let (length, start) = (number(wide + 40), number(wide + 48) as usize);
    let lengths = [28, 30, 32].map(|place| u16::from_le_bytes([file[start + place], file[start + place + 1]]));
    let first = 46 + lengths.into_iter().map(usize::from).sum::<usize>();
    let mut twice = file.clone();
    twice[wide + 40..wide + 48].copy_from_slice(&(length + first as u64).to_le_bytes());
    twice[locator + 8..locator + 16].copy_from_slice(&(wide as u64 + first as u64).to_le_bytes());
    assert!(end > locator);
    twice.splice(wide..wide, file[start..start + first].to_vec());
    let problem = tensors(&twice).unwrap_err();
    assert!(problem.contains("a second entry of one name"), "{problem}");
}
