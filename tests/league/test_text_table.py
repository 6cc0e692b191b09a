"""A table for people and for spreadsheets: columns as wide as their longest cell, and no cell that is a formula."""

from league.text_table import TextTable

TABLE = TextTable(("player", "games", "note"), [("main-0", 12, ""), ("a", "1,200", None), ("=x", -1.5, "so")], (0, 2))


def test_a_column_is_as_wide_as_its_longest_cell_and_numbers_end_at_the_right() -> None:
    assert TABLE.text() == "player  games  note\nmain-0     12\na       1,200\n=x       -1.5  so"


def test_in_csv_a_text_that_is_a_formula_is_inert_and_a_number_is_not_touched() -> None:
    assert TABLE.csv() == 'player,games,note\nmain-0,12,\na,"1,200",\n\'=x,-1.5,so\n'


def test_a_table_without_rows_is_its_heads() -> None:
    assert TextTable(("a", "b"), []).text() == "a  b"


def test_numbers_are_written_by_the_form_of_their_column_for_people_alone() -> None:
    table = TextTable(("a", "b", "c"), [("x", 0.25, 1234), ("y", "-", None)], forms=("", "+.1f", ","))
    assert table.lines() == ["a     b      c", "x  +0.2  1,234", "y     -"]
    assert table.csv() == "a,b,c\nx,0.25,1234\ny,'-,\n"


def test_in_html_a_cell_is_text_and_nothing_else() -> None:
    table = TextTable(("a", "<b>"), [("x & y", 0.25)], forms=("", ".1f"))
    head, row = (
        '<tr><th scope="col">a</th><th scope="col">&lt;b&gt;</th></tr>',
        "<tr><td>x &amp; y</td><td>0.2</td></tr>",
    )
    assert table.html() == f"<table><thead>{head}</thead><tbody>{row}</tbody></table>"


def test_in_markdown_a_cell_is_one_cell_and_numbers_end_at_the_right() -> None:
    table = TextTable(("a", "b"), [("x | <y>\nz", 0.25), ("`<p|q>`", None)], forms=("", ".1f"))
    assert table.markdown() == ["| a | b |", "|---|---:|", "| x \\| &lt;y> z | 0.2 |", "| `<p\\|q>` |  |"]
