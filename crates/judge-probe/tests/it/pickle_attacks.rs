//! Malicious and damaged pickles are refused, and the error says what was refused and where.

use crate::pickles::{bomb, global, honest, import, program, resource_attacks, text};
use judge_probe::pickle::{Limits, Problem, ReadError, Value, read};
use judge_probe::{Precision, SklearnProbe};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[track_caller]
fn refused(pickle: &[u8]) -> ReadError {
    read(pickle, &Limits::default()).unwrap_err()
}

#[track_caller]
fn problem(pickle: &[u8]) -> String {
    refused(pickle).problem.to_string()
}

fn foreign(module: &str, name: &str) -> Problem {
    Problem::ForeignGlobal { module: module.to_owned(), name: name.to_owned() }
}

#[test]
fn foreign_globals_are_named_with_their_place_and_never_looked_up() {
    let names = [
        ("os", "system"),
        ("posix", "system"),
        ("nt", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("builtins", "getattr"),
        ("__builtin__", "eval"),
        ("operator", "attrgetter"),
        ("functools", "partial"),
        ("importlib", "import_module"),
        ("copyreg", "_reconstructor"),
        ("numpy", "load"),
        ("numpy.core.multiarray", "frombuffer"),
        ("sklearn.svm", "SVC"),
        ("sklearn", "svm._classes.SVC"),
        ("sklearn.svm._classes", "SVR"),
        ("sklearn.svm._classes", ""),
        ("", "sklearn.svm._classes.SVC"),
        ("_codecs", "decode"),
    ];
    // What old releases of joblib write is as foreign, and the error says what to do.
    let joblib = [&b"\x80\x02]"[..], &global("joblib.numpy_pickle", "NDArrayWrapper"), b"X\x02\0\0\0id\x85R."].concat();
    assert!(refused(&joblib).to_string().starts_with("byte 3, GLOBAL: written by joblib 0.9 or older"));
    for (module, name) in names {
        let old = [&b"\x80\x02]"[..], &global(module, name), b"X\x02\0\0\0id\x85R."].concat();
        assert_eq!(refused(&old), ReadError { offset: 3, opcode: "GLOBAL", problem: foreign(module, name) });
        let new = program(&[text(module), text(name), b"\x93".to_vec(), text("id"), b"\x85R".to_vec()].concat());
        let offset = 6 + module.len() + name.len();
        assert_eq!(refused(&new), ReadError { offset, opcode: "STACK_GLOBAL", problem: foreign(module, name) });
    }
    let long = "x".repeat(5_000);
    let error = refused(&[&b"\x80\x02"[..], &global(&long, "y")].concat());
    assert_eq!(error.problem, foreign(&long[..100], "y"));
    assert_eq!(refused(b"\x80\x02cos\nsystem\n.").to_string(), "byte 2, GLOBAL: the global os.system is not allowed");
}

#[test]
fn allowed_globals_do_only_what_numpy_and_scikit_learn_do_with_them() {
    let role = |opcodes: &[Vec<u8>]| refused(&program(&opcodes.concat())).problem.to_string();
    let class = global("sklearn.svm._classes", "SVC");
    let end = |bytes: &[u8]| bytes.to_vec();
    assert_eq!(role(&[class.clone(), end(b")R")]), "sklearn.svm._classes.SVC may not be called here");
    assert_eq!(role(&[global("numpy", "ndarray"), end(b")R")]), "numpy.ndarray may not be called here");
    assert_eq!(
        role(&[global("numpy", "dtype"), end(b")\x81")]),
        "numpy.dtype may not be the class of a new object here"
    );
    // Of a function nothing but the name is known, and that only where nothing reads it.
    let score = ("sklearn.metrics._classification", "f1_score");
    assert_eq!(role(&[global(score.0, score.1), end(b")R")]), foreign(score.0, score.1).to_string());
    let with_arguments = |global| format!("{global} may not be called with these arguments here");
    assert_eq!(role(&[global("builtins", "bytes"), end(b"K\x05\x85R")]), with_arguments("builtins.bytes"));
    assert_eq!(role(&[global("_codecs", "encode"), end(b")R")]), with_arguments("_codecs.encode"));
    let codec = role(&[global("_codecs", "encode"), text("id"), text("rot13"), end(b"\x86R")]);
    assert_eq!(codec, "expected the text latin1, found text");
    assert_eq!(role(&[class.clone(), end(b"K\x01\x85\x81")]), "expected no arguments, found a tuple");
    // Attributes and slots at once, as __setstate__ would take.
    let slots = role(&[class.clone(), end(b")\x81}}\x86b")]);
    assert_eq!(slots, "expected a dictionary of attributes, found a tuple");
    let twice = role(&[class.clone(), end(b")\x81}b}b")]);
    assert_eq!(twice, "sklearn.svm._classes.SVC is changed after it was complete");
    let later = role(&[end(b"}\x940"), class, end(b")\x81h\x00bh\x00K\x01Ns")]);
    assert_eq!(later, "a dictionary is changed after it was complete");
    for code in ["U5", "S1"] {
        let dtype = role(&[global("numpy", "dtype"), text(code), end(b"\x89\x88\x87R")]);
        assert!(dtype.starts_with(&format!("text (dtype {code:?}) is not read")), "{dtype}");
    }
    for code in ["V8", "M8", "c16", ">f8", "f8,i4", "O", "f16"] {
        let dtype = role(&[global("numpy", "dtype"), text(code), end(b"\x89\x88\x87R")]);
        assert_eq!(dtype, format!("elements of dtype {code:?} in byte order \"\" are not read"));
    }
    let swapped = [
        global("numpy", "dtype"),
        text("f8"),
        end(b"\x89\x88\x87R(K\x03"),
        text(">"),
        end(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"),
    ];
    assert_eq!(read(&program(&swapped.concat()), &Limits::default()), Ok(Value::Global("float64")));
    let [number, code, made, _, end_of_state] = swapped;
    let other = [number, code, made, text("="), end_of_state];
    assert_eq!(role(&other), "elements of dtype \"float64\" in byte order \"=\" are not read");
}

#[test]
fn opcodes_that_no_such_pickle_needs_are_refused() {
    for opcode in *b"FILPQSTUVdgilop\x82\x83\x84\x8f\x90\x91\x92\x97\x98" {
        let error = refused(&program(&[opcode]));
        assert_eq!((error.offset, &*error.problem.to_string()), (2, "the opcode is not allowed"), "{opcode:02x}");
    }
    assert_eq!(problem(&program(b"\x80\x04")), "the opcode is not allowed");
    assert_eq!(problem(&program(b"\xff")), "0xff is no opcode");
    for start in [&b""[..], b"\x80", b"\x80\x01N.", b"\x80\x06N.", b"\0"] {
        assert!(problem(start).starts_with("expected the announcement of protocol"), "{start:02x?}");
    }
    // https://github.com/msmbuilder/msmbuilder/issues/496
    for start in [&b"N."[..], b"(dp0\n.", b"ccopy_reg\n_reconstructor\np0\n(", b"}q\0."] {
        assert!(problem(start).starts_with("protocol 0 or 1 is not read"), "{start:02x?}");
    }
    // `joblib.dump(…, compress=("lzma", 3))`, whose first byte is an opcode of protocol 1.
    let lzma = problem(b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0");
    assert!(lzma.starts_with("the file is compressed (lzma)"), "{lzma}");
}

#[test]
fn a_stack_that_does_not_add_up_is_refused() {
    let problem = |opcodes: &[u8]| problem(&program(opcodes));
    for opcodes in [&b"0"[..], b"N(0", b"N(\x85", b"(\x94", b"2", b"N(R", b"", b"]a", b"\x93"] {
        assert_eq!(problem(opcodes), "nothing left to take from the stack", "{opcodes:02x?}");
    }
    assert_eq!(problem(b"Nt"), "no mark on the stack");
    assert_eq!(problem(b"NN"), "1 values and marks are left below the result");
    assert_eq!(problem(b"(N"), "1 values and marks are left below the result");
    assert_eq!(problem(b"h\x07"), "the memo has no entry 7");
    assert_eq!(problem(b"N(K\x01e"), "expected a list, found None");
    assert_eq!(problem(b"}(Nu"), "expected as many values as keys, found a key without value");
    assert_eq!(problem(b"}K\x01NsK\x01Ns"), "the key 1 stands twice in one dictionary");
    assert!(problem(b"}]Ns").starts_with("expected a key"));
    let trailing = refused(&[program(b"N"), vec![0]].concat());
    assert_eq!(trailing.problem.to_string(), "1 bytes follow the end of the pickle");
    assert_eq!(problem(b"\x8a\x09123456789"), "an integer of 9 bytes, at most 8 expected");
    assert_eq!(problem(b"\x8c\x02\xc3\x28"), "text is not UTF-8 from its byte 0");
    // A frame that ends within an opcode; and one within another.
    assert!(problem(b"\x95\x01\0\0\0\0\0\0\0K\x05").contains("expected the end of an opcode"));
    assert!(
        problem(b"\x95\x0b\0\0\0\0\0\0\0\x95\x01\0\0\0\0\0\0\0N").contains("expected the frame around it to end first")
    );
}

#[test]
fn integers_are_read_with_their_sign() {
    let value = |opcodes: &[u8]| read(&program(opcodes), &Limits::default()).map(|value| format!("{value:?}")).unwrap();
    assert_eq!(value(b"J\xff\xff\xff\xff"), "Int(-1)");
    assert_eq!(value(b"\x8a\x00"), "Int(0)");
    assert_eq!(value(b"\x8a\x01\x80"), "Int(-128)");
    assert_eq!(value(b"\x8a\x02\x80\x00"), "Int(128)");
    assert_eq!(value(b"\x8a\x08\0\0\0\0\0\0\0\x80"), "Int(-9223372036854775808)");
    assert_eq!(value(b"\x8b\x02\0\0\0\xff\xff"), "Int(-1)");
}

#[test]
fn what_would_grow_ends_at_a_limit() {
    for (name, pickle) in resource_attacks() {
        let read = read(&pickle, &Limits::default());
        match name {
            // Long, but as short as the pickle itself: nothing is decoded.
            "text for long bytes again and again" => {
                assert!(matches!(read, Ok(Value::List(items)) if items.len() == 50_000))
            }
            _ => assert!(read.is_err(), "{name}"),
        }
    }
    let limit = |pickle: &[u8]| match refused(pickle).problem {
        Problem::TooLarge { limit, .. } => limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(&bomb(60, 2, false)), "values of the tree with shared ones written out");
    assert_eq!(limit(&program(&[vec![b']'; 100], vec![b'a'; 99]].concat())), "depth of the tree");
    assert_eq!(limit(&program(&[&b"N"[..], &[0x94; 200_000]].concat())), "entries of the memo");
    let cycle = refused(&program(b"]\x94h\x00a"));
    assert_eq!(cycle.to_string(), "byte 2, EMPTY_LIST: the value contains itself");

    let small = Limits { pickle_bytes: 3, ..Limits::default() };
    let found = Problem::TooLarge { limit: "bytes of the pickle", most: 3, found: 4 };
    assert_eq!(read(b"\x80\x04N.", &small).unwrap_err().problem, found);
    let small = Limits { opcodes: 2, text_bytes: 2, array_elements: 0, ..Limits::default() };
    assert!(read(&program(b"N"), &small).is_ok());
    assert!(read(&program(b"N0N"), &small).is_err());
    assert!(read(&program(&text("ab")), &small).is_ok());
    assert!(read(&program(&text("abc")), &small).is_err());
}

#[test]
fn a_pickle_cut_anywhere_is_refused() {
    for pickle in honest() {
        assert!(import(pickle).is_ok());
        for length in 0..pickle.len() {
            assert!(read(&pickle[..length], &Limits::default()).is_err(), "cut at {length}");
        }
    }
}

/// Opcodes, most of them meaningful, with small arguments: what random bytes seldom are.
fn opcodes() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        8 => prop::sample::select(&b"(0129N]})tabesuR.2\x81\x85\x86\x87\x88\x89\x93\x94"[..]).prop_map(|byte| vec![byte]),
        2 => (prop::sample::select(&b"KhqC\x8c\x8a"[..]), 0..4u8).prop_map(|(byte, argument)| vec![byte, argument]),
        1 => prop::sample::select(vec!["numpy dtype", "numpy ndarray", "sklearn.svm._classes SVC", "_codecs encode", "numpy.core.multiarray scalar"])
            .prop_map(|name| { let (module, name) = name.split_once(' ').unwrap(); global(module, name) }),
        1 => prop::sample::select(vec!["f8", "i8", "latin1", "<", "C"]).prop_map(text),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(one, 0..60).prop_map(|opcodes| opcodes.concat())
}

proptest! {
    // The same cases on every machine and in every run.
    #![proptest_config(ProptestConfig { cases: 2_000, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_opcodes_panic(opcodes in opcodes()) {
        let _ = SklearnProbe::from_pickle(&program(&opcodes), &Limits::default(), Precision::F16);
    }

    #[test]
    fn no_damage_panics(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        flips in any::<bool>(),
    ) {
        let mut pickle = which.get(honest()).clone();
        for (place, byte) in damage {
            let place = place.index(pickle.len());
            pickle[place] = if flips { pickle[place] ^ (1 << (byte % 8)) } else { byte };
        }
        if let Ok(imported) = import(&pickle) {
            let numbers = imported.probe.classifier().coefficients().values();
            prop_assert!(numbers.iter().all(|number| number.is_finite()));
        }
    }
}

/// What joblib writes for an array of objects is followed by a pickle of its own, which may begin with another.
#[test]
fn pickles_within_pickles_are_bounded() {
    let level = [
        &b"\x80\x02"[..],
        &global("joblib.numpy_pickle", "NumpyArrayWrapper"),
        b")\x81}(X\x08\0\0\0subclass",
        &global("numpy", "ndarray"),
        b"X\x05\0\0\0shapeK\x01\x85X\x05\0\0\0orderX\x01\0\0\0CX\x05\0\0\0dtype",
        &global("numpy", "dtype"),
        b"X\x02\0\0\0O8\x89\x88\x87Rub",
    ]
    .concat();
    let most = Limits::default().depth;
    let deep = refused(&level.repeat(most + 2));
    assert_eq!(deep.problem, Problem::TooLarge { limit: "depth of the tree", most, found: most + 1 });
    let ended = refused(&level.repeat(3));
    assert_eq!(ended.offset, 3 * level.len());
    assert!(ended.to_string().ends_with("expected the announcement of protocol 2, 3, 4 or 5, found []"), "{ended}");
    let no_array = problem(&[&level[..], b"\x80\x02K\x01.."].concat());
    assert_eq!(no_array, "expected an array, found an integer");
}
