//! [`Coding`]: how the values of a matrix follow from codes of a few bits and from what groups of
//! them share.
//!
//! All quantised formats that are read say the same thing in layouts of their own. Each of them
//! fills [`CodedRows`], and this file owns the one formula:
//!
//! ```text
//! W[row, column] = (number(code) - zero) * scale * factor - minimum       in f32, in this order
//!                   code     of the element, 4 or 8 bits
//!                   zero, scale, minimum     of the row and of the column's group
//!                   factor                   of the whole matrix
//! ```
//!
//! The packed engine keeps codes in memory as they are and applies the formula while it multiplies
//! (`coded.rs`); everything else gets values that were dequantised by
//! [`Coding::dequantise`]. Both give the same bits: steps that a matrix does not have would change none.

use rayon::prelude::*;

/// What a code stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum CodeNumbers {
    /// An integer in two's complement.
    Signed,
    /// An integer without sign.
    Unsigned,
    /// An `E4M3` float of eight bits.
    E4m3,
    /// An entry of a table of finite numbers, for codes of four bits.
    Table([f32; 16]),
}

/// The groups of columns that share a scale in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Groups {
    /// Successive columns, so many in each group, at least one; the last group may have fewer.
    Even(usize),
    /// The group of each column, each less than the number of groups.
    Listed(Vec<u32>),
}

impl Groups {
    /// The group of a column.
    pub(crate) fn of(&self, column: usize) -> usize {
        match self {
            Self::Even(size) => column / size,
            Self::Listed(groups) => groups[column] as usize,
        }
    }
}

/// How a matrix is coded. The formula is that of the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Coding {
    /// Bits of a code: 4 or 8.
    pub bits: usize,
    /// What codes stand for.
    pub numbers: CodeNumbers,
    /// Columns of the matrix.
    pub width: usize,
    /// Which columns of a row share zero, scale and minimum.
    pub groups: Groups,
    /// Groups of a row.
    pub n_groups: usize,
    /// Whether zeros are other than 0 in any group.
    pub has_zeros: bool,
    /// Whether minima are other than 0 in any group.
    pub has_minima: bool,
    /// What products with scales are multiplied by; 1 in most formats.
    pub factor: f32,
}

/// Some rows of a coded matrix. Nothing is left out that the coding does not have: it is 0 then.
pub struct CodedRows<'a> {
    /// One code in each byte, in its lowest bits, `[rows, width]`.
    pub codes: &'a mut [u8],
    /// `[rows, n_groups]`.
    pub scales: &'a mut [f32],
    /// `[rows, n_groups]`; zeros when they come.
    pub(crate) zeros: &'a mut [f32],
    /// `[rows, n_groups]`; zeros when they come.
    pub minima: &'a mut [f32],
}

/// Memory for [`CodedRows`].
pub struct CodedMemory {
    /// One byte for each element.
    codes: Vec<u8>,
    /// Scales, zeros and minima.
    of_groups: [Vec<f32>; 3],
}

impl CodedMemory {
    /// Room for so many rows.
    pub fn new(coding: &Coding, rows: usize) -> Self {
        let of_groups = [(); 3].map(|()| vec![0.0; rows * coding.n_groups]);
        Self { codes: vec![0; rows * coding.width], of_groups }
    }

    /// The first rows, with zeros and minima of 0, to be filled.
    pub fn rows(&mut self, coding: &Coding, count: usize) -> CodedRows<'_> {
        let [scales, zeros, minima] = self.of_groups.each_mut().map(|numbers| &mut numbers[..count * coding.n_groups]);
        zeros.fill(0.0);
        minima.fill(0.0);
        CodedRows { codes: &mut self.codes[..count * coding.width], scales, zeros, minima }
    }
}

impl CodedRows<'_> {
    /// Sets the zero and the scale of each row, counted from `first`, and each of its groups to what
    /// `of` says of them.
    pub fn fill_groups(&mut self, n_groups: usize, first: usize, of: impl Fn(usize, usize) -> (f32, f32)) {
        for (index, (zero, scale)) in self.zeros.iter_mut().zip(&mut *self.scales).enumerate() {
            (*zero, *scale) = of(first + index / n_groups, index % n_groups);
        }
    }

    /// One row after another.
    pub fn each(&mut self, coding: &Coding) -> impl Iterator<Item = CodedRows<'_>> {
        let groups = coding.n_groups.max(1);
        let numbers = self.scales.chunks_mut(groups).zip(self.zeros.chunks_mut(groups));
        let codes = self.codes.chunks_mut(coding.width.max(1)).zip(numbers.zip(self.minima.chunks_mut(groups)));
        codes.map(|(codes, ((scales, zeros), minima))| CodedRows { codes, scales, zeros, minima })
    }

    /// Cuts rows into parts of so many, the last one shorter, for several threads.
    pub fn parts(&mut self, coding: &Coding, rows: usize) -> impl IndexedParallelIterator<Item = CodedRows<'_>> {
        let of_groups = (rows * coding.n_groups).max(1);
        let numbers = self.scales.par_chunks_mut(of_groups).zip(self.zeros.par_chunks_mut(of_groups));
        let numbers = numbers.zip(self.minima.par_chunks_mut(of_groups));
        let codes = self.codes.par_chunks_mut((rows * coding.width).max(1));
        codes.zip(numbers).map(|(codes, ((scales, zeros), minima))| CodedRows { codes, scales, zeros, minima })
    }
}

/// The formula of the module: the value of a number, given the zero, the scale and the minimum of its
/// group, and the factor of the matrix.
#[inline(always)]
pub(crate) fn value(number: f32, [zero, scale, minimum]: [f32; 3], factor: f32) -> f32 {
    (number - zero) * scale * factor - minimum
}

impl Coding {
    /// Codes of one kind with scales alone: no zeros, no minima, no factor.
    pub fn scaled(bits: usize, numbers: CodeNumbers, width: usize, size: usize) -> Self {
        let (size, n_groups) = (size.clamp(1, width.max(1)), width.div_ceil(size.max(1)));
        let groups = Groups::Even(size);
        Self { bits, numbers, width, groups, n_groups, has_zeros: false, has_minima: false, factor: 1.0 }
    }

    /// Whether a matrix is worth keeping as codes: what its groups have, in f32, is at most a quarter
    /// of a bf16 matrix.
    pub fn is_small(&self) -> bool {
        let each = 1 + usize::from(self.has_zeros) + usize::from(self.has_minima);
        8 * each * self.n_groups <= self.width
    }

    /// What each byte with a code stands for; bits above a code's are ignored.
    pub(crate) fn table(&self) -> [f32; 256] {
        let mask = if self.bits == 4 { 15 } else { 255 };
        std::array::from_fn(|byte| {
            let code = byte & mask;
            match &self.numbers {
                CodeNumbers::Unsigned => code as f32,
                CodeNumbers::Signed if self.bits == 4 => ((code as u8) << 4) as i8 as f32 / 16.0,
                CodeNumbers::Signed => code as u8 as i8 as f32,
                CodeNumbers::E4m3 if code & 0x7f == 0x7f => f32::NAN,
                CodeNumbers::E4m3 => e4m3(code as u32),
                CodeNumbers::Table(table) => table[code & 15],
            }
        })
    }

    /// Applies the formula to some rows. Values may be NaN or infinite where a scale is.
    ///
    /// # Panics
    /// If there is not room for exactly these rows.
    pub fn dequantise(&self, rows: &CodedRows<'_>, values: &mut [f32]) {
        assert_eq!(values.len(), rows.codes.len());
        let table = self.table();
        let in_rows = values.chunks_exact_mut(self.width.max(1)).zip(rows.codes.chunks_exact(self.width.max(1)));
        for (row, (values, codes)) in in_rows.enumerate() {
            let value = |code: u8, group: usize| {
                let at = row * self.n_groups + group;
                value(table[usize::from(code)], [rows.zeros[at], rows.scales[at], rows.minima[at]], self.factor)
            };
            match &self.groups {
                Groups::Even(size) => {
                    for (group, (values, codes)) in values.chunks_mut(*size).zip(codes.chunks(*size)).enumerate() {
                        values.iter_mut().zip(codes).for_each(|(x, &code)| *x = value(code, group));
                    }
                }
                Groups::Listed(groups) => {
                    let columns = values.iter_mut().zip(codes).zip(groups);
                    columns.for_each(|((x, &code), &group)| *x = value(code, group as usize));
                }
            }
        }
    }
}

/// `2^120`: what the biases of exponents of E4M3 and f32 differ by.
pub(crate) const E4M3_BIAS: f32 = f32::from_bits((127 + 120) << 23);

/// The float in the lowest byte in E4M3 of the OFP8 specification: a sign, four bits of exponent with bias 7, three of fraction; the
/// largest is 448. The exponent is put where that of an f32 is, and the difference of their biases, 120, is made up for by a product,
/// which is exact for subnormals too. All ones behind the sign is no number, which checkpoints must not have, and 480 here.
#[inline(always)]
pub(crate) fn e4m3(code: u32) -> f32 {
    let magnitude = f32::from_bits((code & 0x7f) << 20) * E4M3_BIAS;
    f32::from_bits(magnitude.to_bits() | (code & 0x80) << 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_e4m3_are_those_of_the_standard() {
        // The examples of the OFP8 specification: largest, smallest normal, largest and smallest subnormal, zeros.
        let e4m3 = Coding::scaled(8, CodeNumbers::E4m3, 1, 1).table();
        for (byte, value) in [(0x7e, 448.0), (0x08, 0.015625), (0x07, 0.013671875), (0x01, 0.001953125), (0x38, 1.0)] {
            assert_eq!((e4m3[byte], e4m3[byte | 128]), (value, -value));
        }
        assert!(e4m3[0x7f].is_nan() && e4m3[0xff].is_nan());
        assert_eq!((e4m3[0].to_bits(), e4m3[128].to_bits()), (0, 1 << 31));
    }

    #[test]
    fn integers_of_four_and_eight_bits_have_their_signs() {
        let table = |bits, numbers| Coding::scaled(bits, numbers, 8, 8).table();
        let (four, eight) = (table(4, CodeNumbers::Signed), table(8, CodeNumbers::Signed));
        assert_eq!((four[7], four[8], four[15], four[0x1f]), (7.0, -8.0, -1.0, -1.0));
        assert_eq!((eight[127], eight[128], eight[255]), (127.0, -128.0, -1.0));
        assert_eq!((table(4, CodeNumbers::Unsigned)[15], table(8, CodeNumbers::Unsigned)[255]), (15.0, 255.0));
    }

    #[test]
    fn values_follow_the_formula_in_listed_groups_too() {
        let coding = Coding {
            groups: Groups::Listed(vec![1, 0, 1, 0]),
            n_groups: 2,
            has_zeros: true,
            has_minima: true,
            factor: 0.5,
            ..Coding::scaled(8, CodeNumbers::Unsigned, 4, 2)
        };
        let mut codes = [10, 20, 30, 40];
        let (mut scales, mut zeros, mut minima) = ([2.0, 3.0], [4.0, 5.0], [0.25, 0.5]);
        let rows = CodedRows { codes: &mut codes, scales: &mut scales, zeros: &mut zeros, minima: &mut minima };
        let mut values = [f32::NAN; 4];
        coding.dequantise(&rows, &mut values);
        assert_eq!(values, [7.0, 15.75, 37.0, 35.75]);
    }
}
