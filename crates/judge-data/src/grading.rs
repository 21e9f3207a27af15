//! People's grades of rows: what is asked of a row, what people see of it, and the row that is written of what they said.

mod import;
mod record;
mod row;
mod task;

pub use import::{GradingTool, ImportedGrades};
pub use record::{GradingRecord, Shown};
pub use row::{Given, RaterGrade, graded_row, grades_of};
pub use task::{GradingGroup, GradingOption, GradingScale, GradingTask};
