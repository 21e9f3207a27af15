//! Products by cuBLASLt, with a driver that runs no kernel and a cuBLASLt that multiplies on the host: which operands it is given, in which
//! order with cubecl's work, and what comes out. What a GPU does with them is not seen here.
//!
//! The libraries of `fake/` are compiled by the system's C compiler. Without one the test says that it is skipped.

#![cfg(feature = "cuda")]
#![allow(clippy::print_stderr)] // what was skipped

use burn::tensor::{DType, Device, Tensor, TensorData};
use judge_gpu::{Products, batched, memory_failures, product};

mod fake;

#[test]
fn products_reach_cublaslt_as_they_lie() {
    let Some((_, calls)) = fake::run_inside() else { return };
    // Every product is behind what cubecl has queued, and before what it queues next.
    let lines: Vec<&str> = calls.lines().collect();
    let products: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].starts_with("product")).collect();
    assert_eq!(products.len(), 12, "{calls}");
    // A residual stream and a bias are parts of the product: 4 is CUBLASLT_EPILOGUE_BIAS.
    let ends = ["epilogue 0, alone", "epilogue 0, onto another", "epilogue 4, alone", "epilogue 4, onto another"];
    for (at, end) in products.iter().zip(ends.iter().cycle()).take(8) {
        assert!(lines[*at].ends_with(end), "{calls}");
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
    // Keys lie in a cache with more places than are used, and values likewise: neither is copied, where cubecl can name such a part.
    let (heads, rows, places, used, width) = (3, 4, 16, 8, 64);
    let (q, cache) = (numbers(heads * rows * width, 4), numbers(heads * places * width, 5));
    let tensor = |values: &[f32], middle: usize, last: usize| {
        Tensor::<3>::from_data(host(values.to_vec(), &[heads, middle, last], DType::BF16), (&device, DType::BF16))
    };
    let keys = || tensor(&cache, places, width).narrow(1, 0, used);
    let scores = read(batched(tensor(&q, rows, width), keys(), true, DType::F32, Products::default()).into_data());
    let expected: Vec<f32> = (0..heads * rows * used)
        .map(|at| {
            let (head, row, key) = (at / used / rows, at / used % rows, at % used);
            (0..width).map(|i| q[(head * rows + row) * width + i] * cache[(head * places + key) * width + i]).sum()
        })
        .collect();
    assert_eq!(scores, expected);
    let weights = numbers(heads * rows * used, 6);
    let mixed = read(batched(tensor(&weights, rows, used), keys(), false, DType::F32, Products::default()).into_data());
    let expected: Vec<f32> = (0..heads * rows * width)
        .map(|at| {
            let (head, row, i) = (at / width / rows, at / width % rows, at % width);
            (0..used)
                .map(|key| weights[(head * rows + row) * used + key] * cache[(head * places + key) * width + i])
                .sum()
        })
        .collect();
    assert_eq!(mixed, expected);
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
