//! Tensors in which some files keep what others keep as several. The description of a model says which there may be.

/// A tensor in which some checkpoints keep what others keep as several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSpec {
    /// Full name.
    pub name: String,
    /// Its shape, which a file must have exactly.
    pub shape: Vec<usize>,
    /// All tensors that it holds. Together they cover every number of it exactly once.
    pub parts: Vec<StackPart>,
    /// Whether no folder keeps the parts one by one, so that their names are this crate's own and
    /// the stack must be there. Merged folders (`merge.rs`) are written with such stacks.
    pub is_only_form: bool,
}

/// A tensor inside a stack. The number at `[i, j]` of a matrix is number
/// `start + i * strides[0] + j * strides[1]` of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackPart {
    /// The name that it has where it is stored alone, and its shape: one axis or two.
    pub tensor: (String, Vec<usize>),
    /// Index of its first number in the stack, which is row-major.
    pub start: usize,
    /// Distance in numbers between neighbours in the stack, for each axis of the part.
    pub strides: Vec<usize>,
}
