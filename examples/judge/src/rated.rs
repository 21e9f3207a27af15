//! Grades of a file as the ratings that statistics compare.

use judge_data::Grade;
use judge_metrics::comparison::Rating;

/// What a judge or a person said.
#[must_use]
pub fn rating(grade: Grade) -> Rating {
    match grade {
        Grade::Number(number) => Rating::Number(number),
        Grade::Label(text) => Rating::Text(text),
    }
}

/// What raters said, each in the same place.
#[must_use]
pub fn ratings(grades: Vec<Option<Grade>>) -> Vec<Option<Rating>> {
    grades.into_iter().map(|grade| grade.map(rating)).collect()
}
