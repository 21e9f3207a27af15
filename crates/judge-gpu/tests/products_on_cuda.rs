//! Products by cuBLASLt, with a driver that runs no kernel and a cuBLASLt that multiplies on the host: which operands it is given, in which
//! order with cubecl's work, and what comes out. What a GPU does with them is not seen here.
//!
//! The libraries of `fake/` are compiled by the system's C compiler. Without one the test says that it is skipped.

#![cfg(feature = "cuda")]
#![allow(clippy::print_stderr)] // what was skipped

use std::ops::Range;

use burn::tensor::{DType, Device, Tensor, TensorData};
use judge_gpu::{Products, memory_failures, product, side_by_side, summed};

mod fake;

#[test]
fn products_reach_cublaslt_as_they_lie() {
    let Some((_, calls)) = fake::run_inside() else { return };
    // Every product is behind what cubecl has queued, and before what it queues next.
    let lines: Vec<&str> = calls.lines().collect();
    let products: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].starts_with("product")).collect();
    assert_eq!(products.len(), 16, "{calls}");
    // A residual stream and a bias are parts of the product: 4 is CUBLASLT_EPILOGUE_BIAS.
    let ends = ["epilogue 0, alone", "epilogue 0, onto another", "epilogue 4, alone", "epilogue 4, onto another"];
    for (at, end) in products.iter().zip(ends.iter().cycle()).take(8) {
        assert!(lines[*at].ends_with(end), "{calls}");
    }
    // What all rows have is one product with the rows of all for each key head, beside and onto which those of each row come.
    let beside = [
        "2 of 12 x 64 x 8, dtypes 14 and 0, rows 64, 64 and 16 apart, epilogue 0, alone",
        "6 of 4 x 64 x 8, dtypes 14 and 0, rows 64, 64 and 16 apart, epilogue 0, alone",
        "2 of 12 x 8 x 64, dtypes 14 and 14, rows 16, 64 and 64 apart, epilogue 0, alone",
        "6 of 4 x 8 x 64, dtypes 14 and 14, rows 16, 64 and 64 apart, epilogue 0, onto another",
    ];
    for (at, expected) in products.iter().skip(8).zip(beside) {
        assert_eq!(lines[*at].strip_prefix("product "), Some(expected), "{calls}");
    }
    for at in products {
        assert_eq!(lines[at - 2..at], ["record of the context", "a stream waits"], "{calls}");
        assert_eq!(lines[at + 1..at + 3], ["record of a stream", "the context waits"], "{calls}");
    }
}

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    // Multiples of 1/8 with few bits: exact in bf16, and so are their products in f32.
    (0..count).map(|i| ((i as u64 * 37 + seed * 11) % 17) as f32 / 8.0 - 1.0).collect()
}

#[test]
#[ignore = "started as a process of its own by the test above, with other libraries"]
fn inside() {
    let Some(calls) = fake::calls() else { return };
    let device = Device::cuda(0);
    let host = |x: Vec<f32>, shape: &[usize], dtype: DType| TensorData::new(x, shape).convert_dtype(dtype);
    let (m, k, n) = (5, 12, 7);
    let (x, w, c, b) = (numbers(m * k, 1), numbers(n * k, 2), numbers(m * n, 3), numbers(n, 4));
    let dot = |i: usize, j: usize| (0..k).map(|l| x[i * k + l] * w[j * k + l]).sum::<f32>();
    let expected = |f: &dyn Fn(usize, usize) -> f32| (0..m * n).map(|at| f(at / n, at % n)).collect::<Vec<f32>>();
    let read = |data: TensorData| data.convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
    for dtype in [DType::BF16, DType::F32] {
        let matrix = |values: &[f32], rows: usize| {
            Tensor::<2>::from_data(host(values.to_vec(), &[rows, values.len() / rows], dtype), (&device, dtype))
        };
        let wide = product(matrix(&x, m), matrix(&w, n), None, None, 1.0, DType::F32, Products::default());
        assert_eq!(read(wide.into_data()), expected(&dot), "{dtype:?}");
        let onto = Tensor::<2>::from_data(host(c.clone(), &[m, n], DType::F32), (&device, DType::F32));
        let sum = product(matrix(&x, m), matrix(&w, n), Some(onto.clone()), None, 0.5, DType::F32, Products::default());
        assert_eq!(read(sum.into_data()), expected(&|i, j| c[i * n + j] + 0.5 * dot(i, j)), "{dtype:?}");
        let bias = Tensor::<1>::from_data(host(b.clone(), &[n], DType::F32), (&device, DType::F32));
        let biased =
            product(matrix(&x, m), matrix(&w, n), None, Some(bias.clone()), 1.0, DType::F32, Products::default());
        assert_eq!(read(biased.into_data()), expected(&|i, j| dot(i, j) + b[j]), "{dtype:?}");
        let both = product(matrix(&x, m), matrix(&w, n), Some(onto), Some(bias), 0.5, DType::F32, Products::default());
        assert_eq!(read(both.into_data()), expected(&|i, j| c[i * n + j] + 0.5 * dot(i, j) + b[j]), "{dtype:?}");
    }
    // Three rows of the batch with two key heads each, head by head. Some keys are those of all rows. The others lie in a cache with more
    // places than are used, and values likewise: neither is copied, where cubecl can name such a part.
    let (batch, heads, rows, common, places, used, width) = (3, 6, 4, 8, 16, 8, 64);
    let all = common + used;
    let (q, cache, prefix) = (
        numbers(heads * rows * width, 4),
        numbers(heads * places * width, 5),
        numbers(heads / batch * common * width, 6),
    );
    let tensor = |values: &[f32], middle: usize, last: usize| {
        let shape = [values.len() / middle / last, middle, last];
        Tensor::<3>::from_data(host(values.to_vec(), &shape, DType::BF16), (&device, DType::BF16))
    };
    let keys = || [tensor(&prefix, common, width), tensor(&cache, places, width).narrow(1, 0, used)];
    let key = |head: usize, key: usize, i: usize| match key.checked_sub(common) {
        None => prefix[(head / batch * common + key) * width + i],
        Some(key) => cache[(head * places + key) * width + i],
    };
    let scores = read(side_by_side(tensor(&q, rows, width), &keys(), DType::F32, Products::default()).into_data());
    let expected: Vec<f32> = (0..heads * rows * all)
        .map(|at| (0..width).map(|i| q[at / all * width + i] * key(at / all / rows, at % all, i)).sum())
        .collect();
    assert_eq!(scores, expected);
    let weights = numbers(heads * rows * all, 7);
    let mixed = read(summed(tensor(&weights, rows, all), &keys(), Products::default()).into_data());
    let rounded = |x: f32| read(host(vec![x], &[1], DType::BF16))[0];
    let expected: Vec<f32> = (0..heads * rows * width)
        .map(|at| {
            let of = |keys: Range<usize>| {
                keys.map(|j| weights[at / width * all + j] * key(at / width / rows, j, at % width)).sum::<f32>()
            };
            rounded(rounded(of(0..common)) + of(common..all))
        })
        .collect();
    assert_eq!(mixed, expected);
    // The same keys twice are two products of one shape, of which the second's result does not begin at a multiple of 256 bytes.
    let few = || tensor(&cache, places, width).narrow(1, 0, 4);
    let twice = side_by_side(tensor(&q, rows, width), &[few(), few()], DType::F32, Products::default());
    for (twice, scores) in read(twice.into_data()).chunks(2 * 4).zip(scores.chunks(all)) {
        assert_eq!(twice, [&scores[common..common + 4]; 2].concat());
    }
    assert_eq!(judge_gpu::failure(), None);
    // A result that finds no memory is counted, and the products after it are right.
    let matrix =
        |rows: usize| Tensor::<2>::from_data(host(numbers(rows * k, 1), &[rows, k], DType::F32), (&device, DType::F32));
    let before = memory_failures(&device).0;
    let (tall, wide) = (matrix(4096), matrix(8192));
    device.sync().unwrap();
    let full = calls.with_extension("most");
    std::fs::write(&full, (64 << 20).to_string()).unwrap();
    let lost = product(tall.clone(), wide.clone(), None, None, 1.0, DType::F32, Products::default()); // 128 MiB
    let next = product(lost.clone(), lost.clone(), None, None, 1.0, DType::F32, Products::default());
    let said = lost.try_into_data().unwrap_err().to_string();
    assert!(said.contains("out of device memory allocating"), "{said}");
    drop(next);
    device.sync().unwrap();
    let (count, last) = memory_failures(&device);
    assert_eq!(count, before + 2, "{last}");
    assert!(last.contains("a product on GPU 0 failed") && last.contains("out of device memory"), "{last}");
    assert_eq!(judge_gpu::failure(), None);
    let some = product(matrix(5), matrix(7), None, None, 1.0, DType::F32, Products::default());
    assert_eq!(read(some.into_data()).len(), 35);
    assert_eq!(memory_failures(&device).0, count);
    std::fs::remove_file(full).unwrap();
    let all = product(tall, wide, None, None, 1.0, DType::F32, Products::default());
    assert_eq!(all.try_into_data().unwrap().num_elements(), 4096 * 8192);
}
