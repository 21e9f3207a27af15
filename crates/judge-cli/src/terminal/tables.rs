//! Tables on stdout: lined up for people, or in a form that other programs and papers take.

use std::sync::OnceLock;

use clap::ValueEnum;

/// How tables are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Lined up, for people
    #[default]
    Plain,
    /// Comma-separated values, each row with as many; the ends of an interval have columns of their own
    Csv,
    /// As GitHub and most notebooks show it
    Markdown,
    /// An environment `tabular`
    Latex,
}

/// How this process writes tables; [`TableFormat::Plain`] before [`write_as`].
static FORMAT: OnceLock<TableFormat> = OnceLock::new();

/// All tables from now on are written so. A second start in one process, which only a test has, changes nothing.
pub fn write_as(format: TableFormat) {
    let _ = FORMAT.set(format);
}

/// The form that the command line asks for.
pub(crate) fn format() -> TableFormat {
    FORMAT.get().copied().unwrap_or_default()
}

/// Rows of cells as a table, in the form that the command line asks for; the first row is its head, and the first column stands left.
#[must_use]
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    match format() {
        TableFormat::Plain => plain(&in_lines(rows)),
        TableFormat::Csv => csv(rows),
        TableFormat::Markdown => markdown(&in_lines(rows)),
        TableFormat::Latex => latex(&in_lines(rows)),
    }
}

/// The same cells, each on one line, where a line is a row.
fn in_lines(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| cell.lines().collect::<Vec<_>>().join(" ")).collect()).collect()
}

/// The most cells of a row.
fn columns(rows: &[Vec<String>]) -> usize {
    rows.iter().map(Vec::len).max().unwrap_or(0)
}

/// The cells of a row, with empty ones up to so many.
fn filled(row: &[String], columns: usize) -> impl Iterator<Item = &str> {
    row.iter().map(String::as_str).chain(std::iter::repeat("")).take(columns)
}

/// Cells lined up: the first column to the left, the others to the right.
fn plain(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns(rows)).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if column == 0 {
                line += &format!("{cell}{pad}");
            } else {
                line += &format!("  {pad}{cell}");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// What the names of rows under a heading begin with.
const INDENT: &str = "  ";

/// For programs: nothing is indented, a row of one cell among longer ones is a heading for people and is left out, and a number with an
/// interval is three numbers.
fn csv(rows: &[Vec<String>]) -> String {
    let columns = columns(rows);
    let has_interval = |column: usize| rows.iter().filter_map(|row| row.get(column)).any(|cell| parted(cell).is_some());
    let has_interval: Vec<bool> = (0..columns).map(has_interval).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.len() > 1 || columns == 1) {
        let cells = filled(row, columns).zip(&has_interval).flat_map(|(cell, &has_interval)| match has_interval {
            false => vec![cell.strip_prefix(INDENT).unwrap_or(cell).to_owned()],
            true if at == 0 => {
                let name = cell.split(" [").next().unwrap_or_default();
                vec![name.to_owned(), format!("{name} low"), format!("{name} high")]
            }
            true => parted(cell).unwrap_or([cell.trim(), "", ""]).map(str::to_owned).to_vec(),
        });
        writer.write_record(cells).expect("memory takes it, and all rows have as many cells");
    }
    String::from_utf8(writer.into_inner().expect("memory takes it")).expect("cells are UTF-8")
}

/// The three numbers of `0.5 [0.4, 0.6]`.
fn parted(cell: &str) -> Option<[&str; 3]> {
    let (number, ends) = cell.trim().strip_suffix(']')?.split_once(" [")?;
    let (low, high) = ends.split_once(", ")?;
    let all = [number, low, high];
    all.iter().all(|number| number.parse::<f64>().is_ok()).then_some(all)
}

fn markdown(rows: &[Vec<String>]) -> String {
    let columns = columns(rows);
    let line = |row: &[String]| {
        let cells: Vec<String> = filled(row, columns).map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text += &line(row);
        if at == 0 {
            text += &format!("|---{}|\n", "|---:".repeat(columns.saturating_sub(1)));
        }
    }
    text
}

fn latex(rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let columns = columns(rows);
    let mut text = format!("\\begin{{tabular}}{{l{}}}\n\\hline\n", "r".repeat(columns.saturating_sub(1)));
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> = filled(row, columns).map(of_latex).collect();
        text += &format!("{} \\\\\n", cells.join(" & "));
        if at == 0 || at + 1 == rows.len() {
            text += "\\hline\n";
        }
    }
    text + "\\end{tabular}\n"
}

/// A cell whose characters mean themselves. Behind the end of a row a star or a bracket would be of that end.
fn of_latex(cell: &str) -> String {
    let mut text = if cell.starts_with(['[', '*']) { "{}".to_owned() } else { String::new() };
    for c in cell.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => text.extend(['\\', c]),
            '\\' => text += "\\textbackslash{}",
            '~' => text += "\\textasciitilde{}",
            '^' => text += "\\textasciicircum{}",
            '<' => text += "$<$",
            '>' => text += "$>$",
            '|' => text += "\\textbar{}",
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
    }

    #[test]
    fn a_table_lines_up_and_survives_short_rows() {
        let rows = rows(&[&["name", "a", "bcd"], &["long name", "10", "2"], &["ä"]]);
        assert_eq!(table(&rows), "name        a  bcd\nlong name  10    2\nä\n");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn other_forms_have_all_cells_of_all_rows_and_none_that_ends_them() {
        let rows = rows(&[&["", "a, b", "p"], &["x_1 | y", "0.5 [0.1, 0.9]", "<=1e-4"], &["50 %"]]);
        assert_eq!(csv(&rows), ",\"a, b\",\"a, b low\",\"a, b high\",p\nx_1 | y,0.5,0.1,0.9,<=1e-4\n");
        let expected = "|  | a, b | p |\n|---|---:|---:|\n| x_1 \\| y | 0.5 [0.1, 0.9] | <=1e-4 |\n| 50 % |  |  |\n";
        assert_eq!(markdown(&rows), expected);
        let expected = "\\begin{tabular}{lrr}\n\\hline\n & a, b & p \\\\\n\\hline\n\
                        x\\_1 \\textbar{} y & 0.5 [0.1, 0.9] & $<$=1e-4 \\\\\n50 \\% &  &  \\\\\n\\hline\n\\end{tabular}\n";
        assert_eq!(latex(&rows), expected);
        assert_eq!((csv(&[]), markdown(&[]), latex(&[])), Default::default());
        let odd = self::rows(&[&["name", "n"], &["*", "1"], &["[a\r\nb]", "2"], &["   lead ", "3"], &["  row", "4"]]);
        assert_eq!(csv(&odd), "name,n\n*,1\n\"[a\r\nb]\",2\n lead ,3\nrow,4\n");
        let odd = in_lines(&odd);
        assert!(plain(&odd).contains("\n[a b]") && markdown(&odd).contains("\n| [a b] | 2 |\n"), "{}", plain(&odd));
        assert!(latex(&odd).contains("\n{}* & 1") && latex(&odd).contains("\n{}[a b] & 2"), "{}", latex(&odd));
        assert_eq!(
            of_latex("a\\b~c^d{e}$#&"),
            "a\\textbackslash{}b\\textasciitilde{}c\\textasciicircum{}d\\{e\\}\\$\\#\\&"
        );
    }
}
