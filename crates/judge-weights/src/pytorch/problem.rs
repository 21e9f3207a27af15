//! The errors of PyTorch's files. They are made in this folder and reach users inside `Error::PyTorch`, which names the
//! file.

/// What is wrong with a file of `torch.save`, or keeps it from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PyTorchProblem {
    /// The format of releases before 1.6, which is one pickle after another.
    #[error(
        "the format of PyTorch before 1.6 is not supported, only zip archives: load the file with torch.load and save it \
        again with torch.save, or the model with save_pretrained of transformers, which writes safetensors"
    )]
    OldFormat,
    /// Something else, or a file that was cut off.
    #[error("truncated, or no zip archive as torch.save writes it: {what} is missing; fetch the file again")]
    NoArchive {
        /// What of the archive.
        what: &'static str,
    },
    /// The archive's list of entries contradicts itself or the file.
    #[error("damaged zip archive: {what} at byte {at}; fetch the file again")]
    Archive {
        /// What is wrong.
        what: &'static str,
        /// Where in the file.
        at: usize,
    },
    /// An entry that torch.save would not have written.
    #[error(
        "the entry {entry} is {found}, expected plain bytes as torch.save writes them: save the file again with it"
    )]
    Entry {
        /// Its name.
        entry: String,
        /// What it is.
        found: &'static str,
    },
    /// An archive of something else.
    #[error("the archive has no data.pkl, which describes the tensors: it is no file of torch.save")]
    NoPickle,
    /// Numbers of another order of bytes.
    #[error("its byte order is {found:?}, expected \"little\"")]
    ByteOrder {
        /// What the file says.
        found: String,
    },
    /// The pickle asks for something that no dictionary of tensors needs. Nothing of it was run.
    #[error(
        "the pickle asks for {name}, which is not read: only dictionaries of plain tensors are. If you trust the file, load it \
        with torch.load and save its state_dict() again"
    )]
    Global {
        /// Module and name.
        name: String,
    },
    /// An operation that no dictionary of tensors needs.
    #[error("the pickle has the operation {code:#04x} at byte {at}, which no dictionary of tensors needs")]
    Operation {
        /// Its code.
        code: u8,
        /// Where in the pickle.
        at: usize,
    },
    /// The pickle is damaged, or not what torch.save writes for tensors.
    #[error("the pickle is damaged or no dictionary of tensors: {what} before byte {at}")]
    Pickle {
        /// What is wrong.
        what: &'static str,
        /// Where in the pickle.
        at: usize,
    },
    /// A value of the dictionary that is no tensor.
    #[error(
        "{name:?} is no tensor: only dictionaries from names to tensors are read; save the model's state_dict() alone"
    )]
    Value {
        /// Its key.
        name: String,
    },
    /// A tensor that does not fit its storage.
    #[error("tensor {tensor}: {problem}")]
    Tensor {
        /// Its name.
        tensor: String,
        /// What is wrong.
        problem: &'static str,
    },
}
