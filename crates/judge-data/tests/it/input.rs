//! Compressed files, pipes, and files that change while they are read.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use judge_data::{Dataset, DatasetOptions, Error, Input, InputFile, Rows};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const ROWS: &[u8] = b"{\"id\":1,\"prompt\":\"p\"}\n{\"id\":2,\"prompt\":\"q\"}\n{\"id\":3,\"prompt\":\"r\"}\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn count(input: &Input) -> Result<usize, Error> {
    Dataset::open(input, &DatasetOptions::default())?.try_fold(0, |n, record| record.map(|_| n + 1))
}

fn written(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows"); // no extension: the content says what it is
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn compression_is_told_by_content_and_may_have_parts() {
    let (first, second) = ROWS.split_at(30); // in the middle of a row
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
    for bytes in [
        ROWS.to_vec(),
        gzip(ROWS),
        [gzip(first), gzip(second)].concat(),
        zstd(ROWS),
        [zstd(first), zstd(b""), zstd(second)].concat(),
        [skippable.clone(), zstd(first), skippable, zstd(second)].concat(),
    ] {
        let (_folder, path) = written(&bytes);
        let input = Input::open(&path).unwrap();
        for _ in 0..2 {
            assert_eq!(count(&input).unwrap(), 3);
            let mut text = Vec::new();
            input.reader().unwrap().read_to_end(&mut text).unwrap();
            assert_eq!(text, ROWS);
        }
        assert_eq!(input.identity().unwrap(), InputFile::of(&path).unwrap(), "the hash is that of the stored bytes");
        assert_eq!(Rows::open(&path).unwrap().count(), 3);
    }
}

#[test]
fn several_readers_do_not_disturb_each_other() {
    let (_folder, path) = written(&gzip(ROWS));
    let input = Input::open(&path).unwrap();
    let (mut a, mut b) = (input.rows().unwrap(), input.rows().unwrap());
    for line in 1..=3 {
        assert_eq!(a.next().unwrap().unwrap().place().line, line);
        assert_eq!(b.next().unwrap().unwrap().place().line, line);
    }
}

#[test]
fn long_files_span_blocks_and_buffers() {
    let text: String =
        (0..60_000_u64).map(|id| format!("{{\"id\":{id},\"prompt\":\"prompt {}\"}}\n", id * id)).collect();
    for bytes in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
        let (_folder, path) = written(&bytes);
        assert_eq!(count(&Input::open(&path).unwrap()).unwrap(), 60_000);
    }
}

#[test]
fn truncated_and_corrupt_data_are_errors_with_the_path() {
    let text = ROWS.repeat(200);
    for whole in [gzip(&text), zstd(&text)] {
        for cut in [5, whole.len() / 2, whole.len() - 1] {
            let (_folder, path) = written(&whole[..cut]);
            let mut rows = match Input::open(&path).unwrap().rows() {
                Ok(rows) => rows,
                Err(error) => {
                    assert!(error.to_string().contains("corrupt or cut off"), "{error}");
                    continue;
                }
            };
            let error =
                rows.find_map(Result::err).unwrap_or_else(|| panic!("{cut} of {} bytes were enough", whole.len()));
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            assert!(error.to_string().contains("corrupt or cut off"), "{error}");
        }
    }
    // A flipped bit of what zstd stores as it is: only the checksum can tell.
    let mut flipped = zstd(b"{\"id\":1,\"prompt\":\"p\"}");
    let at = flipped.windows(6).position(|bytes| bytes == b"prompt").unwrap();
    flipped[at] ^= 1;
    let (_folder, path) = written(&flipped);
    let error = Input::open(&path).unwrap().rows().map(|rows| rows.map(Result::err).collect::<Vec<_>>());
    assert!(format!("{error:?}").contains("checksum"), "{error:?}");
}

// https://github.com/sile/libflate/issues/75, https://github.com/rust-lang/flate2-rs/issues/396
#[test]
fn what_is_behind_compressed_data_is_passed_over_or_named() {
    for (name, whole) in [("gzip", gzip(ROWS)), ("zstd", zstd(ROWS))] {
        let input = |behind: &[u8]| Input::from_reader(&[&whole[..], behind].concat()[..], "rows").unwrap();
        for zeros in [1, 512, 100_000] {
            let padded = input(&vec![0; zeros]);
            assert_eq!((count(&padded).unwrap(), padded.notes()), (3, vec![]));
        }
        let more = input(&[&[0; 9][..], &whole].concat());
        assert!(count(&more).unwrap_err().to_string().contains("appears twice"), "zeros, and then the same rows again");
        let noisy = input(b"\0junk\xff");
        assert_eq!((count(&noisy).unwrap(), count(&noisy).unwrap()), (3, 3));
        let note = format!("rows: 5 bytes behind the {name} data are not read; they begin with \"junk\\xff\"");
        assert_eq!(noisy.notes(), [note], "it is said once");
        let said = |behind: &[u8]| count(&input(behind)).unwrap_err().to_string();
        let other = if name == "gzip" { zstd(ROWS) } else { gzip(ROWS) };
        assert!(
            said(&other).contains(&format!("data behind the {name} data; write all rows into one file")),
            "{}",
            said(&other)
        );
        assert!(
            said(ROWS).contains(&format!("found JSON that is not compressed behind the {name} data")),
            "{}",
            said(ROWS)
        );
        assert!(said(&whole[..1]).contains("corrupt or cut off"), "{}", said(&whole[..1]));
    }
}

/// A frame of zstd as it is stored, with a window of `2^exponent` bytes.
fn frame(exponent: u8, content: &[u8]) -> Vec<u8> {
    let block = (u32::try_from(content.len()).unwrap() << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0, (exponent - 10) << 3], &block[..3], content].concat()
}

// https://github.com/facebook/zstd/issues/887, https://github.com/klauspost/compress/issues/390
#[test]
fn long_windows_of_zstd_are_read_and_longer_ones_are_sound() {
    for exponent in [20, 27, 28] {
        assert_eq!(count(&Input::from_reader(&frame(exponent, ROWS)[..], "rows").unwrap()).unwrap(), 3, "{exponent}");
    }
    let said = count(&Input::from_reader(&frame(32, ROWS)[..], "rows").unwrap()).unwrap_err().to_string();
    assert!(said.contains("a window of 4096 MiB: windows of up to 2048 MiB are read; the file is sound"), "{said}");
    assert!(said.contains("compress it again with a smaller window") && !said.contains("corrupt"), "{said}");
}

#[test]
fn a_file_that_grows_shrinks_or_is_written_over_is_refused() {
    let (_folder, path) = written(ROWS);
    let append = |bytes: &[u8]| OpenOptions::new().append(true).open(&path).unwrap().write_all(bytes).unwrap();
    let input = Input::open(&path).unwrap();
    assert_eq!(count(&input).unwrap(), 3);
    append(b"{\"id\":4,\"prompt\":\"s\"}\n");
    let error = count(&input).unwrap_err();
    let (before, now) = (ROWS.len() as u64, ROWS.len() as u64 + 22);
    assert!(
        matches!(error, Error::InputChanged { bytes_before, bytes_now, .. } if (bytes_before, bytes_now) == (before, now)),
        "{error}"
    );
    assert!(matches!(input.identity(), Err(Error::InputChanged { .. })), "the bytes that were read cannot be named");
    assert_eq!(count(&Input::open(&path).unwrap()).unwrap(), 4, "opened again, it is another input");

    // During a pass: what came later is not read, what is gone is an error.
    let input = Input::open(&path).unwrap();
    let rows = input.rows().unwrap();
    append(b"{\"id\":5,\"prompt\":\"s\"}\n");
    assert_eq!(rows.map(|row| row.map(|_| ())).collect::<Result<Vec<_>, _>>().unwrap().len(), 4);
    let long = ROWS.repeat(20_000);
    fs::write(&path, &long).unwrap();
    let input = Input::open(&path).unwrap();
    let rows = input.rows().unwrap();
    File::options().write(true).open(&path).unwrap().set_len(100_000).unwrap();
    let error = rows.map(|row| row.map(|_| ())).collect::<Result<Vec<_>, _>>().unwrap_err();
    assert!(matches!(error, Error::InputChanged { bytes_now: 100_000, .. }), "{error}");
}

#[test]
fn a_file_replaced_by_another_is_still_the_first() {
    let (folder, path) = written(ROWS);
    let input = Input::open(&path).unwrap();
    let other = folder.path().join("other");
    fs::write(&other, b"{\"id\":9,\"prompt\":\"p\"}\n").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(count(&input).unwrap(), 3);
}

#[test]
fn what_is_no_file_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join("absent.jsonl.gz")] {
        let error = Input::open(&path).unwrap_err();
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        match error {
            Error::Content { found, .. } => assert!(path.is_dir() && found == "a folder"),
            other => assert!(matches!(other, Error::Io { .. }) && !path.is_dir(), "{other}"),
        }
    }
}

#[test]
fn a_stream_is_kept_for_several_passes() {
    let input = Input::from_reader(&gzip(ROWS)[..], Input::STDIN).unwrap();
    assert_eq!((count(&input).unwrap(), count(&input).unwrap()), (3, 3));
    assert_eq!(input.identity().unwrap().blake3, blake3::hash(&gzip(ROWS)).to_hex().to_string());
    let broken = Input::from_reader(&b"{\"id\":1}\nx\n"[..], Input::STDIN).unwrap();
    let error = Rows::open(&broken).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().starts_with("stdin, line 2"), "{error}");
    assert_eq!(Input::from_reader(&b""[..], "empty").unwrap().rows().unwrap().count(), 0);
}

/// The child of the test below: reads the path in the variable twice and prints the counts.
#[test]
fn child_reads_its_standard_input() {
    let Some(path) = std::env::var_os("JUDGE_DATA_TEST_CHILD") else { return };
    let input = Input::open(Path::new(&path)).unwrap();
    assert_eq!((count(&input).unwrap(), count(&input).unwrap()), (3, 3));
    fs::write(std::env::var_os("JUDGE_DATA_TEST_DONE").unwrap(), input.path().to_str().unwrap()).unwrap();
}

#[cfg(unix)]
#[test]
fn standard_input_and_pipes_are_read_twice() {
    let (folder, file) = written(ROWS);
    let done = folder.path().join("done");
    for (path, piped) in [("-", true), ("-", false), ("/dev/stdin", true), ("/dev/stdin", false)] {
        let stdin = if piped { Stdio::piped() } else { File::open(&file).unwrap().into() };
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "input::child_reads_its_standard_input"])
            .env("JUDGE_DATA_TEST_CHILD", path)
            .env("JUDGE_DATA_TEST_DONE", &done)
            .stdin(stdin)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        if piped {
            child.stdin.take().unwrap().write_all(&gzip(ROWS)).unwrap();
        }
        assert!(child.wait().unwrap().success(), "{path}, piped: {piped}");
        assert_eq!(fs::read_to_string(&done).unwrap(), if path == "-" { "stdin" } else { path });
        fs::remove_file(&done).unwrap();
    }
}

fn is_send<T: Send>() {}

#[test]
fn readers_can_go_to_another_thread() {
    is_send::<Dataset>();
    is_send::<Input>();
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(start in 0..5_usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let whole = [ROWS.to_vec(), gzip(ROWS), zstd(ROWS), vec![0x1f, 0x8b, 8, 0], vec![0x28, 0xb5, 0x2f, 0xfd]][start].clone();
        let input = Input::from_reader(&[whole, bytes].concat()[..], "any").unwrap();
        if let Ok(rows) = input.rows() {
            let _ = rows.map(|row| row.map(|_| ())).collect::<Result<Vec<_>, _>>();
        }
    }

    #[test]
    fn one_changed_byte_never_panics(at in 0..1000_usize, value: u8, gz: bool) {
        let mut bytes = if gz { gzip(ROWS) } else { zstd(ROWS) };
        let at = at % bytes.len();
        bytes[at] = value;
        let input = Input::from_reader(&bytes[..], "any").unwrap();
        if let Ok(rows) = input.rows() {
            let _ = rows.map(|row| row.map(|_| ())).collect::<Result<Vec<_>, _>>();
        }
    }
}
