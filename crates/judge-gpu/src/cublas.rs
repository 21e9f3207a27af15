//! Products on NVIDIA GPUs by cuBLASLt, on cubecl's memory.
//!
//! cubecl keeps its streams to itself, so products run on a stream of their own. Its kernels and
//! these products are ordered by events of the whole context, which cost a microsecond or two and
//! never wait on the host:
//!
//! ```text
//! cubecl's streams   … kernels │ record (context)              wait (context) │ kernels …
//! our stream                   └──────► wait ── product ── record ────►┘
//! ```
//!
//! All of it happens on the device's own thread, behind what was given to cubecl before. cubecl does
//! not see a failure there, so it is kept, and [`failure`](crate::failure) tells it after a pass. Products that find no memory are
//! counted instead ([`memory_failures`](crate::memory_failures)), since a smaller pass may do.
//!
//! There is no search: cuBLASLt's first suggestion for a shape is taken and kept. A bias is added within the product
//! (`CUBLASLT_EPILOGUE_BIAS`). Activations are not: its GELU is an approximation, and next to a bias it takes one of the result's dtype.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use cubecl::__private::Runtime;
use cubecl::cuda::CudaRuntime;
use cubecl::device::DeviceId;
use cubecl::device_handle::DeviceHandle;
use cubecl::server::{Handle, IoError, LaunchError, ServerError, ServerStorage};
use cudarc::cublaslt::sys as lt;
use cudarc::cublaslt::sys::cublasLtMatmulDescAttributes_t::{
    self, CUBLASLT_MATMUL_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_TRANSA,
};
use cudarc::driver::sys as cu;

type Server = <CudaRuntime as Runtime>::Server;

/// Memory that a product may use besides its operands, in bytes, once for each GPU.
pub const WORKSPACE: usize = 64 << 20;

/// Plans that are kept. Where there are more shapes they are made anew, which costs tens of microseconds each.
const PLANS: usize = 4096;

/// What numbers a product takes, and how they are added up: sums are f32 in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operands {
    /// bf16.
    Bf16,
    /// f16.
    F16,
    /// f32, with 23 bits after the point.
    F32,
    /// f32, of which ten bits after the point are used.
    Tf32,
}

/// Products `d = factor · a · b`, or `d = factor · a · b + c`, one behind the other in memory: `a` is `[m, k]` row by row, `c` and `d` are
/// `[m, n]`. A bias `[n]` is added to each row of `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) batches: usize,
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
    /// Whether `b` is stored `[n, k]`; else `[k, n]`.
    pub(crate) is_transposed: bool,
    /// Numbers from one row to the next, of `a`, `b`, `c` and `d`.
    pub(crate) rows: [usize; 4],
    /// Numbers from one product's operand to the next one's.
    pub(crate) strides: [usize; 4],
    pub(crate) operands: Operands,
    /// Whether `c` and `d` are f32; else they have the dtype of the operands.
    pub(crate) is_wide: bool,
    /// Whether there is a `c`.
    pub(crate) is_added: bool,
    /// Whether there is a bias, which has the dtype of `d`.
    pub(crate) is_biased: bool,
}

/// How a shape is computed.
struct Plan {
    desc: lt::cublasLtMatmulDesc_t,
    /// Of `a`, `b`, `c` and `d`. cuBLASLt counts by columns, so it is asked for `dᵀ = bᵀ aᵀ`.
    layouts: [lt::cublasLtMatrixLayout_t; 4],
    algorithm: lt::cublasLtMatmulAlgo_t,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: they were created with the plan, and a launch that used them has copied what it needs.
        unsafe {
            for layout in self.layouts {
                lt::cublasLtMatrixLayoutDestroy(layout);
            }
            lt::cublasLtMatmulDescDestroy(self.desc);
        }
    }
}

/// What is kept for a GPU.
struct Card {
    context: cu::CUcontext,
    handle: lt::cublasLtHandle_t,
    stream: cu::CUstream,
    before: cu::CUevent,
    after: cu::CUevent,
    workspace: cu::CUdeviceptr,
    /// By shape, and how many bytes all operands' addresses are multiples of.
    plans: HashMap<(Shape, u32), Plan>,
}

// SAFETY: CUDA's handles may be used from any thread; a lock lets one at a time.
unsafe impl Send for Card {}

/// What is kept for each GPU, by its number, from its first product on.
static CARDS: Mutex<Option<HashMap<usize, Card>>> = Mutex::new(None);

/// The first failure of a product in this process that is not one of memory.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// For each GPU, how many products found no memory in this process, and what the last of them said.
static MEMORY: Mutex<Option<HashMap<usize, (u64, String)>>> = Mutex::new(None);

/// Whether cuBLASLt can be loaded, by the names that are tried.
pub fn is_present() -> bool {
    // SAFETY: it only tries to load a library by each of its names.
    unsafe { lt::is_culib_present() }
}

/// The first failure of a product in this process that is not one of memory. It stays: what came out of the product has been used since,
/// and a GPU whose products fail is of no more use.
pub(crate) fn failure() -> Option<String> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// How many products on a GPU found no memory in this process, and what the last of them said.
pub(crate) fn memory_failures(gpu: usize) -> (u64, String) {
    let all = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    all.as_ref().and_then(|all| all.get(&gpu)).cloned().unwrap_or_default()
}

/// Why a product did not run.
enum Fault {
    /// An operand, the result or the workspace has no memory. The GPU stays usable.
    Memory(String),
    /// Anything else.
    Other(String),
}

impl Fault {
    /// Of operands that cubecl cannot give.
    fn of_server(error: &ServerError) -> Self {
        let text = format!("memory of a product: {error}");
        if is_memory(error) { Self::Memory(text) } else { Self::Other(text) }
    }
}

impl From<String> for Fault {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// Whether all that went wrong is that the GPU had no memory left for something.
fn is_memory(error: &ServerError) -> bool {
    match error {
        ServerError::Io(IoError::OutOfMemory { .. } | IoError::BufferTooBig { .. })
        | ServerError::Launch(LaunchError::OutOfMemory { .. }) => true,
        ServerError::Unwritten { root, .. } => is_memory(root),
        ServerError::Several { errors, .. } => !errors.is_empty() && errors.iter().all(is_memory),
        _ => false,
    }
}

/// Queues products behind what was given to cubecl before. `operands` are `a`, `b`, `c`, `d` and the bias; `d` in the place of a `c` or a
/// bias that is not there.
pub(crate) fn enqueue(device: DeviceId, shape: Shape, factor: f32, operands: [Handle; 5]) {
    let gpu = device.index_id as usize;
    DeviceHandle::<Server>::new(device).submit(move |server: &mut Server| {
        let text = |error: String| format!("a product on GPU {gpu} failed: {error} ({shape:?})");
        match run(server, gpu, &shape, factor, operands) {
            Ok(()) => {}
            Err(Fault::Memory(error)) => {
                let mut all = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
                let (count, last) = all.get_or_insert_default().entry(gpu).or_default();
                (*count, *last) = (*count + 1, text(error));
            }
            Err(Fault::Other(error)) => {
                FAILURE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| text(error));
            }
        }
    });
}

fn run(server: &mut Server, gpu: usize, shape: &Shape, factor: f32, operands: [Handle; 5]) -> Result<(), Fault> {
    // All threads share one stream (judge-models sets cubecl up so), whichever is named.
    let mut found = Vec::with_capacity(5);
    for handle in operands {
        let binding = handle.binding();
        let stream = binding.stream;
        found.push(server.get_resource(binding, stream).map_err(|error| Fault::of_server(&error))?);
    }
    let places = [0, 1, 2, 3, 4].map(|i| found[i].resource().ptr);
    let mut cards = CARDS.lock().unwrap_or_else(PoisonError::into_inner);
    let cards = cards.get_or_insert_default();
    let card = match cards.entry(gpu) {
        Entry::Occupied(card) => card.into_mut(),
        Entry::Vacant(place) => place.insert(Card::new(gpu)?),
    };
    Ok(card.multiply(shape, factor, places)?)
}

fn driver(result: cu::CUresult, call: &str) -> Result<(), String> {
    if result == cu::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{call}: {result:?}")) }
}

fn blas(status: lt::cublasStatus_t, call: &str) -> Result<(), String> {
    if status == lt::cublasStatus_t::CUBLAS_STATUS_SUCCESS { Ok(()) } else { Err(format!("{call}: {status:?}")) }
}

impl Card {
    fn new(gpu: usize) -> Result<Self, Fault> {
        let ordinal = i32::try_from(gpu).map_err(|_| format!("GPU {gpu}"))?;
        // SAFETY: every place that is written to lives through the call, and a handle is used only where its call has succeeded.
        unsafe {
            let (mut device, mut context) = (0, std::ptr::null_mut());
            driver(cu::cuDeviceGet(&mut device, ordinal), "cuDeviceGet")?;
            driver(cu::cuDevicePrimaryCtxRetain(&mut context, device), "cuDevicePrimaryCtxRetain")?;
            driver(cu::cuCtxSetCurrent(context), "cuCtxSetCurrent")?;
            // First, since it alone may be tried again.
            let mut workspace = 0;
            let allocated = cu::cuMemAlloc_v2(&mut workspace, WORKSPACE);
            driver(allocated, "cuMemAlloc of a workspace for products").map_err(|error| match allocated {
                cu::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Fault::Memory(error),
                _ => Fault::Other(error),
            })?;
            let mut handle = std::ptr::null_mut();
            blas(lt::cublasLtCreate(&mut handle), "cublasLtCreate")?;
            let mut stream = std::ptr::null_mut();
            let flags = cu::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
            driver(cu::cuStreamCreate(&mut stream, flags), "cuStreamCreate")?;
            let event = || {
                let mut event = std::ptr::null_mut();
                let flags = cu::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
                driver(cu::cuEventCreate(&mut event, flags), "cuEventCreate")?;
                Ok::<_, String>(event)
            };
            let (before, after) = (event()?, event()?);
            Ok(Self { context, handle, stream, before, after, workspace, plans: HashMap::new() })
        }
    }

    fn multiply(&mut self, shape: &Shape, factor: f32, [a, b, c, d, bias]: [u64; 5]) -> Result<(), String> {
        if self.plans.len() >= PLANS {
            self.plans.clear();
        }
        // Operands may begin anywhere in a tensor; cuBLASLt assumes multiples of 256 bytes where it is not told.
        let alignment = 1 << (a | b | c | d | 256).trailing_zeros();
        let plan = match self.plans.entry((*shape, alignment)) {
            Entry::Occupied(plan) => plan.into_mut(),
            Entry::Vacant(place) => place.insert(plan(self.handle, shape, alignment)?),
        };
        let past = if shape.is_added { 1.0f32 } else { 0.0 };
        let [of_a, of_b, of_c, of_d] = plan.layouts;
        // SAFETY: operands are cubecl's memory, kept alive by the handles that the caller holds until cubecl is told to go on; the events
        // order it behind what writes them and before what reads the result.
        unsafe {
            driver(cu::cuCtxSetCurrent(self.context), "cuCtxSetCurrent")?;
            if shape.is_biased {
                set(plan.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
            }
            driver(cu::cuCtxRecordEvent(self.context, self.before), "cuCtxRecordEvent")?;
            driver(cu::cuStreamWaitEvent(self.stream, self.before, 0), "cuStreamWaitEvent")?;
            let status = lt::cublasLtMatmul(
                self.handle,
                plan.desc,
                (&raw const factor).cast(),
                b as *const c_void,
                of_b,
                a as *const c_void,
                of_a,
                (&raw const past).cast(),
                c as *const c_void,
                of_c,
                d as *mut c_void,
                of_d,
                &raw const plan.algorithm,
                self.workspace as *mut c_void,
                WORKSPACE,
                self.stream.cast(),
            );
            blas(status, "cublasLtMatmul")?;
            driver(cu::cuEventRecord(self.after, self.stream), "cuEventRecord")?;
            driver(cu::cuCtxWaitEvent(self.context, self.after), "cuCtxWaitEvent")
        }
    }
}

/// Gives a product's description an attribute.
///
/// # Safety
/// The description must be one, and the value of the type that the attribute has.
unsafe fn set<T>(
    desc: lt::cublasLtMatmulDesc_t,
    attribute: cublasLtMatmulDescAttributes_t,
    value: &T,
) -> Result<(), String> {
    // SAFETY: the library copies the value's bytes before it returns; the rest is the caller's.
    let status =
        unsafe { lt::cublasLtMatmulDescSetAttribute(desc, attribute, (&raw const *value).cast(), size_of::<T>()) };
    blas(status, "cublasLtMatmulDescSetAttribute")
}

/// cuBLASLt's first suggestion for a shape, of operands at multiples of `alignment` bytes.
fn plan(handle: lt::cublasLtHandle_t, shape: &Shape, alignment: u32) -> Result<Plan, String> {
    use lt::cublasLtMatmulPreferenceAttributes_t::{
        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
    };
    use lt::cublasLtMatrixLayoutAttribute_t::{
        CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
    };
    let (element, compute) = match shape.operands {
        Operands::Bf16 => (lt::cudaDataType::CUDA_R_16BF, lt::cublasComputeType_t::CUBLAS_COMPUTE_32F),
        Operands::F16 => (lt::cudaDataType::CUDA_R_16F, lt::cublasComputeType_t::CUBLAS_COMPUTE_32F),
        Operands::F32 => (lt::cudaDataType::CUDA_R_32F, lt::cublasComputeType_t::CUBLAS_COMPUTE_32F),
        Operands::Tf32 => (lt::cudaDataType::CUDA_R_32F, lt::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32),
    };
    let of_result = if shape.is_wide { lt::cudaDataType::CUDA_R_32F } else { element };
    // SAFETY: every place that is written to or read from lives through the call and has the size that is named, and a handle is used
    // only where its call has succeeded. What a failure leaves behind is lost: some hundred bytes, once for a shape.
    unsafe {
        let mut desc = std::ptr::null_mut();
        blas(
            lt::cublasLtMatmulDescCreate(&mut desc, compute, lt::cudaDataType::CUDA_R_32F),
            "cublasLtMatmulDescCreate",
        )?;
        // CUBLAS_OP_N is 0 and CUBLAS_OP_T is 1.
        let op = i32::from(shape.is_transposed);
        set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &op)?;
        if shape.is_biased {
            // As the library counts, `d` is [n, m]: each of its columns gets the bias.
            set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &lt::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS)?;
        }
        let layout = |dtype, rows: usize, columns: usize, side: usize| {
            let mut layout = std::ptr::null_mut();
            let create = lt::cublasLtMatrixLayoutCreate(
                &mut layout,
                dtype,
                rows as u64,
                columns as u64,
                shape.rows[side] as i64,
            );
            blas(create, "cublasLtMatrixLayoutCreate")?;
            let (count, stride) = (shape.batches as i32, shape.strides[side] as i64);
            let count = (&raw const count).cast();
            let set = lt::cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count, 4);
            blas(set, "cublasLtMatrixLayoutSetAttribute")?;
            let stride = (&raw const stride).cast();
            let set =
                lt::cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride, 8);
            blas(set, "cublasLtMatrixLayoutSetAttribute")?;
            Ok::<_, String>(layout)
        };
        let (rows, columns) = if shape.is_transposed { (shape.k, shape.n) } else { (shape.n, shape.k) };
        let of_a = layout(element, shape.k, shape.m, 0)?;
        let of_b = layout(element, rows, columns, 1)?;
        let [of_c, of_d] = [layout(of_result, shape.n, shape.m, 2)?, layout(of_result, shape.n, shape.m, 3)?];
        let mut preference = std::ptr::null_mut();
        blas(lt::cublasLtMatmulPreferenceCreate(&mut preference), "cublasLtMatmulPreferenceCreate")?;
        let size = WORKSPACE;
        let set = lt::cublasLtMatmulPreferenceSetAttribute(
            preference,
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            (&raw const size).cast(),
            8,
        );
        blas(set, "cublasLtMatmulPreferenceSetAttribute")?;
        for side in [
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        ] {
            let alignment = (&raw const alignment).cast();
            let set = lt::cublasLtMatmulPreferenceSetAttribute(preference, side, alignment, 4);
            blas(set, "cublasLtMatmulPreferenceSetAttribute")?;
        }
        let mut result: lt::cublasLtMatmulHeuristicResult_t = std::mem::zeroed();
        let mut found = 0;
        let status = lt::cublasLtMatmulAlgoGetHeuristic(
            handle,
            desc,
            of_b,
            of_a,
            of_c,
            of_d,
            preference,
            1,
            &mut result,
            &mut found,
        );
        lt::cublasLtMatmulPreferenceDestroy(preference);
        blas(status, "cublasLtMatmulAlgoGetHeuristic")?;
        if found < 1 {
            return Err("cuBLASLt has no algorithm for this shape".into());
        }
        Ok(Plan { desc, layouts: [of_a, of_b, of_c, of_d], algorithm: result.algo })
    }
}
