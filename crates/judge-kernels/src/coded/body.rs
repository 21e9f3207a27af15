//! The loops that make numbers of codes, written once for all registers.
//!
//! One step takes a word of codes of a register's lanes apart and makes 2 or 4 times two numbers of it:
//!
//! ```text
//! word of codes ─► number of each place ─► (number - zero) * scale - minimum ─► two places ─► taken
//!                  shifts, or a look into a table
//! ```
//!
//! What [takes](Take) them rounds them to bf16 if products want that, and writes them to memory, for products of many rows, or
//! multiplies them as they are made: then sums of few rows stay in registers, and the chain of their additions runs beside the
//! expansion.
//!
//! Loops are inlined into entries that enable the instructions of one kernel, so all functions between are `inline(always)`.

use crate::codes::{CodeNumbers, Coding, E4M3_BIAS, Groups};
use crate::piece::{AHEAD, Lanes, Piece, Sums, per_word};
use crate::registers::Register;
use crate::tile::{LANES, Words, prefetch};

/// Lanes of a cache line.
const LINE: usize = 16;

/// Whether there is a loop for the coding: groups do not end within a word of codes, there is no factor, and groups have what those of
/// some format have. A loop for every codes and groups would be three times as much to compile, for matrices that nobody writes.
pub(crate) fn suits(coding: &Coding) -> bool {
    let are_whole = |size: usize| size > 0 && size.is_multiple_of(per_word(coding));
    let Coding { bits, numbers, has_zeros, has_minima, factor, groups, .. } = coding;
    let has_loop = match numbers {
        CodeNumbers::Signed => !has_minima && (*bits == 8 || !has_zeros),
        CodeNumbers::Unsigned => has_zeros != has_minima,
        CodeNumbers::E4m3 | CodeNumbers::Table(_) => !has_zeros && !has_minima,
    };
    has_loop && *factor == 1.0 && matches!(groups, Groups::Even(size) if are_whole(*size))
}

/// Checks what entries that write rely on.
///
/// # Panics
/// If the coding does not suit, there are fewer words, or `out` has no room for what they make.
pub(crate) fn check_write(piece: &Piece<'_>, words: usize, out: &[Lanes]) {
    assert!(suits(piece.coding) && words <= piece.panel.codes.len());
    assert!(out.len() >= piece.written.rows(words * per_word(piece.coding)));
}

/// Checks what entries that multiply rely on.
///
/// # Panics
/// If the coding does not suit, there are fewer words, or rows are shorter than what they make.
pub(crate) fn check_multiply(piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &[Sums]) {
    let width = piece.written.rows(words * per_word(piece.coding));
    assert!(suits(piece.coding) && words <= piece.panel.codes.len() && width <= a.stride && !sums.is_empty());
    assert!(a.data.len() >= (sums.len() - 1) * a.stride + width);
}

/// What is done with the numbers of two columns as they are made.
pub(crate) trait Take<R: Register, const ACROSS: usize> {
    /// Starts with the lanes from `lane` on.
    ///
    /// # Safety
    /// The processor must have the value's instructions.
    #[inline(always)]
    unsafe fn start(&mut self, lane: usize) {
        let _ = lane;
    }

    /// Takes both numbers of the lanes that were started with, register by register. `pair` is that of the columns, counted from the
    /// piece's first.
    ///
    /// # Safety
    /// The processor must have the value's instructions; the columns must be some of those that the value was made for.
    unsafe fn take(&mut self, pair: usize, both: [[R::Floats; 2]; ACROSS]);

    /// Ends with these lanes.
    ///
    /// # Safety
    /// The processor must have the value's instructions.
    #[inline(always)]
    unsafe fn end(&mut self) {}
}

/// Where words are written, `[rows][LANES]`.
pub(crate) struct Out {
    /// The first row.
    rows: *mut Lanes,
    /// The first of the lanes that were started with.
    lane: usize,
}

impl Out {
    /// Rows that begin here.
    pub(crate) fn new(rows: *mut Lanes) -> Self {
        Self { rows, lane: 0 }
    }

    /// Starts with the lanes from `lane` on.
    #[inline(always)]
    pub(crate) fn start(&mut self, lane: usize) {
        self.lane = lane;
    }

    /// Puts a register of a row.
    ///
    /// # Safety
    /// The processor must have the register's instructions; the row must be there.
    #[inline(always)]
    pub(crate) unsafe fn put<R: Register>(&self, row: usize, register: usize, x: R::Integers) {
        // SAFETY: the caller's promise.
        unsafe { R::store(self.rows.add(row).cast::<u32>().add(self.lane + register * R::WIDTH), x) }
    }
}

/// Writes numbers, `[columns][LANES]`, rounded to bf16 if `ROUNDED`.
pub(crate) struct WriteNumbers<const ROUNDED: bool>(Out);

impl<const ROUNDED: bool> WriteNumbers<ROUNDED> {
    /// Writes to `out`.
    pub(crate) fn new(out: *mut Lanes) -> Self {
        Self(Out::new(out))
    }
}

impl<R: Register, const ACROSS: usize, const ROUNDED: bool> Take<R, ACROSS> for WriteNumbers<ROUNDED> {
    #[inline(always)]
    unsafe fn start(&mut self, lane: usize) {
        self.0.start(lane);
    }

    #[inline(always)]
    unsafe fn take(&mut self, pair: usize, both: [[R::Floats; 2]; ACROSS]) {
        for (register, both) in both.into_iter().enumerate() {
            for (second, x) in both.into_iter().enumerate() {
                // SAFETY: the row is there, by the caller's promise.
                unsafe {
                    let x = if ROUNDED { R::bf16_bits(x) } else { R::bits(x) };
                    self.0.put::<R>(2 * pair + second, register, x);
                }
            }
        }
    }
}

/// Rows that are multiplied, and their sums in some registers.
pub(crate) struct RowBlock<'a, R: Register, const ROWS: usize, const ACROSS: usize> {
    /// The first word of each row.
    pub(crate) a: [*const u32; ROWS],
    /// The sums of each row, of the lanes that were started with.
    pub(crate) sums: [[R::Floats; ACROSS]; ROWS],
    /// All sums. Their number is constant, and so are loops over them, so that the compiler keeps `sums` in registers.
    out: &'a mut [Sums; ROWS],
    /// The first lane of those that were started with.
    lane: usize,
}

impl<'a, R: Register, const ROWS: usize, const ACROSS: usize> RowBlock<'a, R, ROWS, ACROSS> {
    /// The rows `a`, with sums that go on from `out`.
    ///
    /// # Safety
    /// The processor must have the register's instructions; there must be so many rows of both.
    #[inline(always)]
    pub(crate) unsafe fn new(a: Words<'_>, out: &'a mut [Sums; ROWS]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let a = std::array::from_fn(|row| a.data.as_ptr().wrapping_add(row * a.stride));
            Self { a, sums: [[R::splat_float(0.0); ACROSS]; ROWS], out, lane: 0 }
        }
    }

    /// Loads the sums of the registers of lanes from `lane` on.
    ///
    /// # Safety
    /// The processor must have the register's instructions, and there must be so many lanes.
    #[inline(always)]
    pub(crate) unsafe fn start(&mut self, lane: usize) {
        self.lane = lane;
        for (sums, out) in self.sums.iter_mut().zip(&*self.out) {
            for (register, sum) in sums.iter_mut().enumerate() {
                // SAFETY: these are a register's lanes.
                *sum = unsafe { R::load_floats(out.as_ptr().add(lane + register * R::WIDTH)) };
            }
        }
    }

    /// Puts them back.
    ///
    /// # Safety
    /// The processor must have the register's instructions.
    #[inline(always)]
    pub(crate) unsafe fn end(&mut self) {
        for (sums, out) in self.sums.iter().zip(&mut *self.out) {
            for (register, &sum) in sums.iter().enumerate() {
                // SAFETY: these are a register's lanes.
                unsafe { R::store_floats(out.as_mut_ptr().add(self.lane + register * R::WIDTH), sum) };
            }
        }
    }
}

/// Numbers rounded to bf16, ties to even, where they are zero or from `2^-126` to `2^110`, as those of a [moderate](super::moderate)
/// matrix are. A zero loses its sign. At most the sign of a piece of a sum that is zero shows it, and pieces are added to a sum that
/// begins at zero without sign.
///
/// With `power` the number's largest power of two, `1.5 · 2^16 · power` has last places of `2^-7 · power`, which are those of bf16
/// here, and an even number of them. So adding the number to it rounds the number, and taking it away again is exact; both are fused
/// with its product.
///
/// # Safety
/// The processor must have the register's instructions.
#[inline(always)]
pub(crate) unsafe fn rounded_of_moderate<R: Register>(x: R::Floats) -> R::Floats {
    // SAFETY: the caller's promise.
    unsafe {
        let power = R::of_bits(R::and(R::bits(x), R::splat(0x7f80_0000)));
        let factor = R::splat_float(98_304.0);
        R::neg_mul_add(power, factor, R::mul_add(power, factor, x))
    }
}

/// Adds products with rows of numbers, [rounded](rounded_of_moderate) to bf16 if `ROUNDED`, to sums: the first column's before the
/// second's, as `tile/body.rs` does with what is in memory.
pub(crate) struct MultiplyNumbers<'a, R: Register, const ROUNDED: bool, const ROWS: usize, const ACROSS: usize>(
    pub(crate) RowBlock<'a, R, ROWS, ACROSS>,
);

impl<R: Register, const ROUNDED: bool, const ROWS: usize, const ACROSS: usize> Take<R, ACROSS>
    for MultiplyNumbers<'_, R, ROUNDED, ROWS, ACROSS>
{
    #[inline(always)]
    unsafe fn start(&mut self, lane: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.0.start(lane) }
    }

    #[inline(always)]
    unsafe fn take(&mut self, pair: usize, mut both: [[R::Floats; 2]; ACROSS]) {
        // SAFETY: the rows have these columns, by the caller's promise.
        unsafe {
            if ROUNDED {
                for x in both.as_flattened_mut() {
                    *x = rounded_of_moderate::<R>(*x);
                }
            }
            for (a, sums) in self.0.a.iter().zip(&mut self.0.sums) {
                for second in 0..2 {
                    let a = R::of_bits(R::splat(*a.add(2 * pair + second)));
                    for (sum, both) in sums.iter_mut().zip(&both) {
                        *sum = R::mul_add(a, both[second], *sum);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn end(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.end() }
    }
}

/// What codes stand for.
trait Number<R: Register>: Copy {
    /// The number at this place of each word of codes.
    ///
    /// # Safety
    /// The processor must have the register's instructions.
    unsafe fn of(self, word: R::Integers, place: u32) -> R::Floats;
}

/// Integers of so many bits with a sign.
#[derive(Clone, Copy)]
struct Signed<const BITS: u32>;

impl<R: Register, const BITS: u32> Number<R> for Signed<BITS> {
    #[inline(always)]
    unsafe fn of(self, word: R::Integers, place: u32) -> R::Floats {
        // SAFETY: the caller's promise.
        unsafe { R::floats(R::right_signed(R::left(word, 32 - BITS * (place + 1)), 32 - BITS)) }
    }
}

/// Integers of so many bits without a sign.
#[derive(Clone, Copy)]
struct Unsigned<const BITS: u32>;

impl<R: Register, const BITS: u32> Number<R> for Unsigned<BITS> {
    #[inline(always)]
    unsafe fn of(self, word: R::Integers, place: u32) -> R::Floats {
        // SAFETY: the caller's promise.
        unsafe { R::floats(R::and(R::right(word, BITS * place), R::splat((1 << BITS) - 1))) }
    }
}

/// Floats; see [`e4m3`](crate::codes::e4m3).
#[derive(Clone, Copy)]
struct E4m3;

impl<R: Register> Number<R> for E4m3 {
    #[inline(always)]
    unsafe fn of(self, word: R::Integers, place: u32) -> R::Floats {
        // SAFETY: the caller's promise.
        unsafe {
            let code = R::right(word, 8 * place);
            let magnitude = R::and(R::left(code, 20), R::splat(0x7f << 20));
            let magnitude = R::mul(R::of_bits(magnitude), R::splat_float(E4M3_BIAS));
            let sign = R::and(R::left(code, 24), R::splat(1 << 31));
            R::of_bits(R::or(R::bits(magnitude), sign))
        }
    }
}

/// Entries of a table, by codes of four bits.
struct Table<R: Register>(R::Table);

impl<R: Register> Clone for Table<R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Register> Copy for Table<R> {}

impl<R: Register> Number<R> for Table<R> {
    #[inline(always)]
    unsafe fn of(self, word: R::Integers, place: u32) -> R::Floats {
        // SAFETY: the caller's promise.
        unsafe { R::look_up(self.0, R::right(word, 4 * place)) }
    }
}

/// The integers of four bits without a sign.
const UNSIGNED: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

/// Those with a sign.
const SIGNED: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0];

/// Makes the numbers of so many words of codes and hands them to `to`, `ACROSS` registers side by side, by the loop for what codes
/// stand for and for what groups have.
///
/// # Safety
/// The processor must have the instructions of `R` and `to`; the coding must [suit](suits); there must be so many words of codes, and
/// `to` must take all columns that they have.
#[inline(always)]
pub(crate) unsafe fn expand<R: Register, const ACROSS: usize>(
    piece: &Piece<'_>,
    words: usize,
    to: impl Take<R, ACROSS>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (&piece.coding.numbers, piece.coding.bits) {
            (CodeNumbers::Signed, 8) if piece.coding.has_zeros => {
                run::<R, ACROSS, 4, true, false>(piece, words, to, Signed::<8>);
            }
            (CodeNumbers::Signed, 8) => run::<R, ACROSS, 4, false, false>(piece, words, to, Signed::<8>),
            (CodeNumbers::Unsigned, 8) => with_groups::<R, ACROSS, 4>(piece, words, to, Unsigned::<8>),
            (CodeNumbers::E4m3, _) => run::<R, ACROSS, 4, false, false>(piece, words, to, E4m3),
            (CodeNumbers::Unsigned, _) if R::LOOKS_UP_INTEGERS => {
                with_groups::<R, ACROSS, 8>(piece, words, to, Table::<R>(R::table(&UNSIGNED)));
            }
            (CodeNumbers::Unsigned, _) => with_groups::<R, ACROSS, 8>(piece, words, to, Unsigned::<4>),
            (CodeNumbers::Signed, _) if !R::LOOKS_UP_INTEGERS => {
                run::<R, ACROSS, 8, false, false>(piece, words, to, Signed::<4>);
            }
            (CodeNumbers::Signed | CodeNumbers::Table(_), _) => {
                let table = match &piece.coding.numbers {
                    CodeNumbers::Table(table) => table,
                    _ => &SIGNED,
                };
                run::<R, ACROSS, 8, false, false>(piece, words, to, Table::<R>(R::table(table)));
            }
        }
    }
}

/// Picks the loop for what groups of numbers without sign have: zeros, or minima.
///
/// # Safety
/// As for [`expand`].
#[inline(always)]
unsafe fn with_groups<R: Register, const ACROSS: usize, const PLACES: usize>(
    piece: &Piece<'_>,
    words: usize,
    to: impl Take<R, ACROSS>,
    number: impl Number<R>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match piece.coding.has_zeros {
            true => run::<R, ACROSS, PLACES, true, false>(piece, words, to, number),
            false => run::<R, ACROSS, PLACES, false, true>(piece, words, to, number),
        }
    }
}

/// What a group has in some lanes, and zero where it has nothing.
#[derive(Clone, Copy)]
struct OfGroup<F> {
    scales: F,
    zeros: F,
    minima: F,
}

impl<F: Copy> OfGroup<F> {
    /// The values of numbers, without what there is none of.
    ///
    /// # Safety
    /// The processor must have the register's instructions.
    #[inline(always)]
    unsafe fn value<R: Register<Floats = F>, const ZEROS: bool, const MINIMA: bool>(self, mut x: F) -> F {
        // SAFETY: the caller's promise.
        unsafe {
            if ZEROS {
                x = R::sub(x, self.zeros);
            }
            x = R::mul(x, self.scales);
            if MINIMA { R::sub(x, self.minima) } else { x }
        }
    }
}

/// The loop: registers of lanes, groups, and words of codes. What a group has is loaded once for all of its words.
///
/// # Safety
/// As for [`expand`].
#[inline(always)]
unsafe fn run<R: Register, const ACROSS: usize, const PLACES: usize, const ZEROS: bool, const MINIMA: bool>(
    piece: &Piece<'_>,
    words: usize,
    mut to: impl Take<R, ACROSS>,
    number: impl Number<R>,
) {
    const { assert!(LANES.is_multiple_of(ACROSS * R::WIDTH)) }
    let Groups::Even(size) = piece.coding.groups else { unreachable!("groups of a coding that suits") };
    assert_eq!(PLACES, per_word(piece.coding));
    let words_of_group = size / PLACES;
    let start = piece.columns.start / PLACES;
    for lane in (0..LANES).step_by(ACROSS * R::WIDTH) {
        // SAFETY: every load is of lanes of a row that is there, as indices are checked; words are taken up to their number.
        unsafe {
            to.start(lane);
            let none = R::splat_float(0.0);
            let (mut from, mut group) = (0, start / words_of_group);
            while from < words {
                let end = words.min((group + 1) * words_of_group - start);
                let mut of_group = [OfGroup { scales: none, zeros: none, minima: none }; ACROSS];
                for (register, of_group) in of_group.iter_mut().enumerate() {
                    let place = lane + register * R::WIDTH;
                    of_group.scales = R::load_floats(piece.panel.scales[group].as_ptr().add(place).cast());
                    if ZEROS {
                        of_group.zeros = R::load_floats(piece.panel.zeros[group].as_ptr().add(place).cast());
                    }
                    if MINIMA {
                        of_group.minima = R::load_floats(piece.panel.minima[group].as_ptr().add(place).cast());
                    }
                }
                for (index, codes) in (from..end).zip(&piece.panel.codes[from..end]) {
                    let codes = codes.as_ptr().add(lane);
                    for line in (0..ACROSS * R::WIDTH).step_by(LINE) {
                        prefetch(codes.wrapping_add(AHEAD + line));
                    }
                    let mut loaded = [R::splat(0); ACROSS];
                    for (register, word) in loaded.iter_mut().enumerate() {
                        *word = R::load(codes.add(register * R::WIDTH));
                    }
                    for pair in 0..PLACES / 2 {
                        let mut both = [[none; 2]; ACROSS];
                        for ((both, &word), of_group) in both.iter_mut().zip(&loaded).zip(&of_group) {
                            for (second, x) in both.iter_mut().enumerate() {
                                let number = number.of(word, (2 * pair + second) as u32);
                                *x = of_group.value::<R, ZEROS, MINIMA>(number);
                            }
                        }
                        to.take(index * (PLACES / 2) + pair, both);
                    }
                }
                (from, group) = (end, group + 1);
            }
            to.end();
        }
    }
}

/// An entry that enables instructions for [`expand`] to somewhere.
macro_rules! write_entry {
    ($name:ident, $features:literal, $register:ty, $across:literal, $to:expr) => {
        /// Makes the numbers of so many words of codes and writes them.
        ///
        /// # Safety
        /// The processor must have the instructions; the coding must suit; there must be so many words of codes, and `out` must have
        /// room for what they make.
        #[target_feature(enable = $features)]
        unsafe fn $name(piece: &Piece<'_>, words: usize, out: *mut Lanes) {
            // SAFETY: the caller's promise.
            unsafe { expand::<$register, $across>(piece, words, $to(out)) };
        }
    };
}

/// An entry that enables instructions for [`expand`] to products with as many rows as there are sums: one of the numbers that are
/// listed, with so many registers side by side.
macro_rules! multiply_entry {
    ($name:ident, $features:literal, $register:ty, $to:expr, $($rows:literal: $across:literal),*) => {
        /// Makes the numbers of so many words of codes and multiplies rows by them. `false`, and nothing happens, where there are too
        /// many rows for its registers.
        ///
        /// # Safety
        /// The processor must have the instructions; the coding must suit; there must be so many words of codes, and rows and sums
        /// for them.
        #[target_feature(enable = $features)]
        unsafe fn $name(piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) -> bool {
            // SAFETY: the caller's promise.
            unsafe {
                $(if let Ok(sums) = sums.try_into() {
                    let rows = RowBlock::<$register, $rows, $across>::new(a, sums);
                    expand::<$register, $across>(piece, words, $to(rows));
                    return true;
                })*
            }
            false
        }
    };
}

pub(crate) use {multiply_entry, write_entry};
