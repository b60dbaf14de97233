# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""run_code: rich results. What a value or a displayed object arrives as, in which order, and what
becomes of images, tables, magics, errors and large values."""

import base64
import io
import json
import zipfile

import pytest
from harness import got
from interpreter.client import needs_routing_headers, run, succeed
from interpreter.shared_sandbox import shared  # noqa: F401

pytestmark = [needs_routing_headers, pytest.mark.limit(180)]

_PNG = b"\x89PNG\r\n\x1a\n"
_FIGURE = "<Figure size 640x480 with 1 Axes>"
_VEGA = "application/vnd.vegalite.v5+json"


async def _only(sandbox, code):
    """The only result of code that must not fail."""
    (result,) = (await succeed(sandbox, code)).results
    return result


# MIME types

_OBJECTS = {
    "html": ("HTML('<b>x</b>')", "<b>x</b>"),
    "markdown": ("Markdown('*x*')", "*x*"),
    "latex": ("Latex('$x$')", "$x$"),
    "svg": ("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    "json": ("JSON({'a': [1, None, 'é']})", {"a": [1, None, "é"]}),
    "javascript": ("Javascript('f()')", "f()"),
}


@pytest.mark.parametrize("name", _OBJECTS)
async def test_display_objects(shared, name):
    made, want = _OBJECTS[name]
    value = await _only(shared, f"from IPython.display import *\n{made}")
    assert (value.is_main_result, value.formats(), value[name]) == (True, ["text", name], want)
    shown = await _only(shared, f"display({made})")
    assert (shown.is_main_result, shown.formats(), shown[name]) == (False, ["text", name], want)


@pytest.mark.parametrize("name", ["png", "jpeg", "pdf"])
async def test_bytes_are_base64(shared, name):
    code = f"class T:\n    def _repr_{name}_(self): return bytes(range(256)) * 1000\n    def __repr__(self): return 'T'\nT()"
    value = await _only(shared, code)
    assert (value.text, value.formats(), value.extra) == ("T", ["text", name], {})
    assert base64.b64decode(value[name], validate=True) == bytes(range(256)) * 1000


async def test_all_fields_at_once_and_other_mime_types_in_extra(shared):
    bundle = {
        "text/plain": "t",
        "text/html": "h",
        "text/markdown": "m",
        "image/svg+xml": "<svg/>",
        "image/png": "cG5n",
        "image/jpeg": "anBn",
        "application/pdf": "cGRm",
        "text/latex": "l",
        "application/json": [1, {"a": None}],
        "application/javascript": "j",
        "e2b/data": {"a": [1]},
        "e2b/chart": {"type": "unknown", "title": None, "elements": []},
        "application/x.own+json": {"deep": [{"er": 1}]},
        "text/x-own": "own",
    }
    value = await _only(shared, f"display({bundle!r}, raw=True)")
    fields = ["text", "html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json", "javascript", "data", "chart"]
    own = {"application/x.own+json": {"deep": [{"er": 1}]}, "text/x-own": "own"}
    assert value.formats() == [*fields, *own]
    assert [value[name] for name in fields[:-1]] == list(bundle.values())[:11]
    assert (value.chart.to_dict(), value.extra) == (bundle["e2b/chart"], own)


async def test_a_bundle_has_nothing_but_what_it_was_given(shared):
    value = await _only(shared, "display({'text/latex': r'\\text{CustomReprs}'}, raw=True)")
    assert (value.formats(), value.latex, value.text) == (["latex"], r"\text{CustomReprs}", None)


# Representations of the user's own


@pytest.mark.parametrize(
    ("method", "returned", "field", "want"),
    [
        ("_repr_html_", "'<i>own</i>'", "html", "<i>own</i>"),
        ("_repr_markdown_", "'# own'", "markdown", "# own"),
        ("_repr_latex_", "'$own$'", "latex", "$own$"),
        ("_repr_json_", "{'own': [1]}", "json", {"own": [1]}),
        ("_repr_javascript_", "'own()'", "javascript", "own()"),
        ("_repr_svg_", "'<svg/>'", "svg", "<svg/>"),
        ("_repr_e2b_data_", "{'own': [1, 2]}", "data", {"own": [1, 2]}),
    ],
)
async def test_own_representations(shared, method, returned, field, want):
    value = await _only(shared, f"class T:\n    def {method}(self): return {returned}\n    def __repr__(self): return 'T()'\nT()")
    assert (value.text, value[field]) == ("T()", want)


async def test_an_own_chart(shared):
    code = "class T:\n    def _repr_e2b_chart_(self): return {'type': 'pie', 'title': 'P', 'elements': [{'label': 'a', 'angle': 1, 'radius': 1}]}\nT()"
    chart = (await _only(shared, code)).chart
    assert (chart.type.value, chart.title, chart.elements[0].label) == ("pie", "P", "a")


async def test_vega_lite_is_in_extra(shared):
    # A bundle like altair's, which only the full template has (test_full_template.py).
    code = f"class Chart:\n    def _repr_mimebundle_(self, **options): return {{'{_VEGA}': {{'mark': 'bar', 'data': None}}, 'text/html': '<div>'}}\nChart()"
    value = await _only(shared, code)
    assert (value.extra, value.html) == ({_VEGA: {"mark": "bar", "data": None}}, "<div>")


async def test_a_representation_that_fails_costs_only_itself(shared):
    execution = await run(shared, "class T:\n    def _repr_html_(self): raise ValueError('broken')\n    def __repr__(self): return 'T()'\nT()")
    assert [result.formats() for result in execution.results] == [["text"]]
    assert (execution.error.name, execution.error.value) == ("ValueError", "broken")


# Values


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("'hello'", "hello"),
        ('"it\'s"', "it's"),
        ("''", ""),
        ("b'x'", "b'x'"),
        ("1, 'a'", "(1, 'a')"),
        ("'ünï \\N{PILE OF POO} 東'", "ünï \N{PILE OF POO} 東"),
        ("display({'text/plain': 'a\\u2028b\\x85c\\x1cd\\x0ce\\nf'}, raw=True)", "a\u2028b\x85c\x1cd\x0ce\nf"),
        ("display({'text/plain': 'lone \\ud800!'}, raw=True)", "lone \N{REPLACEMENT CHARACTER}!"),
    ],
)
async def test_texts_arrive_as_they_are(shared, code, text):
    assert (await _only(shared, code)).text == text


async def test_long_lists_are_whole(shared):
    value = await _only(shared, "list(range(3000))")
    assert json.loads(value.text) == value.json == list(range(3000))


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("{'a': 1, 'b': [True, None]}", {"a": 1, "b": [True, None]}),
        ("[1, [2.5, 'x']]", [1, [2.5, "x"]]),
        ("{1: 'a', None: 'b', (1.5): 'c'}", {"1": "a", "null": "b", "1.5": "c"}),
        ("import numpy as np; {'n': np.int64(3), 'a': np.array([[1, 2]]), 'f': np.float32(0.5)}", {"n": 3, "a": [[1, 2]], "f": 0.5}),
        ("[float('nan'), float('inf')]", [None, None]),
        ("[2 ** 64 - 1, -(2 ** 63)]", [2**64 - 1, -(2**63)]),
        ("[]", []),
    ],
)
async def test_lists_and_dicts_are_json_too(shared, code, want):
    value = await _only(shared, code)
    assert (value.json, value.is_main_result) == (want, True)


@pytest.mark.parametrize("code", ["{'a': object()}", "(1, 2)", "{1, 2}", "5", "[2 ** 64]", "[10 ** 4000]"])
async def test_other_values_are_no_json(shared, code):
    assert (await _only(shared, code)).formats() == ["text"]


@pytest.mark.parametrize("code", ["x = 5", "None", "5;", "'five';", "", "# nothing", "def f(): return 5"])
async def test_no_value(shared, code):
    execution = await succeed(shared, code)
    assert (execution.results, execution.text) == ([], None)


async def test_only_the_last_expression_counts(shared):
    execution = await succeed(shared, "1\n2\n3")
    assert ([result.text for result in execution.results], execution.text) == (["3"], "3")
    assert (await succeed(shared, "_ + 1")).text == "4"


async def test_deeply_nested_values(shared):
    nest = "value = []\nfor _ in range(%d): value = [value]\n"
    assert (await _only(shared, nest % 150 + "value")).formats() == ["text", "json"]
    # Deeper than what JSON readers take: the text is enough.
    assert (await _only(shared, nest % 250 + "value")).formats() == ["text"]
    assert (await _only(shared, nest % 250 + "display(value)")).formats() == ["text"]


async def test_results_come_in_the_order_of_their_display(shared):
    seen = []
    # Printing follows at once, by another way than the values.
    code = """
        import sys
        display(1)
        print("out")
        display({"text/html": "<i>2</i>"}, raw=True)
        print("err", file=sys.stderr)
        display(3)
        4
    """
    execution = await run(
        shared,
        code,
        on_stdout=lambda message: seen.append(message.line),
        on_stderr=lambda message: seen.append(message.line),
        on_result=lambda result: seen.append(result.text or result.html),
    )
    assert seen == ["1", "out\n", "<i>2</i>", "err\n", "3", "4"]
    assert [result.is_main_result for result in execution.results] == [False, False, False, True]
    assert execution.text == "4"


async def test_a_hundred_results_and_lines_keep_their_order(shared):
    seen = []
    code = "for i in range(100):\n    display({'text/plain': f'{i}'}, raw=True)\n    print(f'{i}.')"
    await run(shared, code, on_stdout=lambda message: seen.append(message.line), on_result=lambda result: seen.append(result.text))
    assert seen == [text for i in range(100) for text in (f"{i}", f"{i}.\n")]


async def test_updates_of_what_was_displayed_are_left_out(shared):
    execution = await succeed(shared, "handle = display('first', display_id=True)\nhandle.update('second')\nfrom IPython.display import clear_output\nclear_output()")
    assert [result.text for result in execution.results] == ["first"]


# pandas


async def test_a_data_frame_has_its_columns(shared):
    code = """
        import pandas as pd
        pd.DataFrame({
            "a": [1, 2, 3],
            "f": [0.5, None, 2.0],
            "s": ["x", None, "é"],
            "t": [pd.Timestamp("2020-01-02 03:04:05.678"), pd.NaT, pd.Timestamp("2021-01-01")],
            "z": pd.to_datetime(["2020-01-02"] * 3).tz_localize("Europe/Berlin"),
            "b": [True, False, True],
            7: pd.Categorical(["k", "l", "k"]),
        })
    """
    value = await _only(shared, code)
    assert value.data == {
        "a": [1, 2, 3],
        "f": [0.5, None, 2.0],
        "s": ["x", None, "é"],
        "t": ["2020-01-02T03:04:05.678000", None, "2021-01-01T00:00:00"],
        "z": ["2020-01-02T00:00:00+01:00"] * 3,
        "b": [True, False, True],
        "7": ["k", "l", "k"],
    }
    assert list(value.data) == ["a", "f", "s", "t", "z", "b", "7"]
    assert value.is_main_result and value.text.startswith("   a    f")
    assert value.html.startswith("<div>") and "<table" in value.html


async def test_other_pandas_values(shared):
    assert (await _only(shared, "import pandas as pd\npd.Series([1, 2])")).formats() == ["text"]
    assert (await _only(shared, "display(pd.DataFrame())")).data == {}
    styled = await _only(shared, "pd.DataFrame({'a': [1]}).groupby('a').size().to_frame('n')")
    assert styled.data == {"n": [1]}


# Images


async def test_a_figure_is_shown(shared):
    value = await _only(shared, "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()")
    assert (value.formats(), value.text, value.extra, value.is_main_result) == (["text", "png", "chart"], _FIGURE, {}, False)
    assert base64.b64decode(value.png, validate=True).startswith(_PNG)


async def test_a_figure_that_is_not_shown_comes_after_the_value(shared):
    value, figure = (await succeed(shared, "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])")).results
    assert value.is_main_result and value.text.startswith("[<matplotlib.lines.Line2D")
    assert (figure.is_main_result, figure.text) == (False, _FIGURE)


async def test_a_figure_and_a_value_are_streamed_as_two_results(shared):
    seen = []
    code = """
        import matplotlib.pyplot as plt
        plt.plot([1, 2, 3])
        plt.show()
        x = 5
        x
    """
    execution = await run(shared, code, on_result=seen.append)
    assert [(result.formats(), result.is_main_result) for result in seen] == [(["text", "png", "chart"], False), (["text"], True)]
    assert seen == execution.results


async def test_a_figure_as_last_expression(shared):
    code = "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])\nfigure"
    value, flushed = (await succeed(shared, code)).results
    assert (value.is_main_result, value.formats()) == (True, ["text", "png", "chart"])
    # A later cell shows it once: it is not open any more.
    again = await _only(shared, "figure")
    assert (again.chart.to_dict(), flushed.chart.to_dict()) == (value.chart.to_dict(),) * 2


async def test_a_saved_figure_is_a_file_and_a_result(shared):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('/tmp/saved.png')\nplt.close()"
    value = await _only(shared, code)
    saved = bytes(await got(shared.files.read("/tmp/saved.png", format="bytes")))
    assert base64.b64decode(value.png).startswith(_PNG) and saved.startswith(_PNG)
    execution = await succeed(shared, "plt.plot([1, 2])\nplt.savefig('/tmp/saved.svg')\nplt.show()")
    assert [result.chart.type.value for result in execution.results] == ["line"]
    assert (await got(shared.files.read("/tmp/saved.svg"))).startswith("<?xml")


async def test_figures_in_other_formats(shared):
    try:
        code = "%config InlineBackend.figure_formats = ['svg', 'jpeg', 'pdf']\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
        value = await _only(shared, code)
    finally:
        await succeed(shared, "%config InlineBackend.figure_formats = ['png']")
    assert value.formats() == ["text", "svg", "jpeg", "pdf", "chart"]
    assert value.svg.startswith("<?xml")
    assert base64.b64decode(value.jpeg).startswith(b"\xff\xd8\xff")
    assert base64.b64decode(value.pdf).startswith(b"%PDF-")


@pytest.mark.parametrize("magic", ["%matplotlib inline", "%matplotlib", "%matplotlib agg\n%matplotlib inline"])
async def test_the_magic_of_matplotlib(shared, magic):
    value = await _only(shared, f"{magic}\nimport matplotlib.pyplot as plt\nplt.bar(['a'], [1]);")
    assert value.formats() == ["text", "png", "chart"]


async def test_a_screen_is_not_there(shared):
    execution = await run(shared, "%matplotlib tk")
    assert execution.error is not None
    assert (await succeed(shared, "import matplotlib.pyplot as plt\nplt.plot([1]);")).results[0].png


@pytest.mark.parametrize("last", ["image", "image.save('/tmp/image.png')", "image.show()"])
async def test_images_of_pillow(shared, last):
    value = await _only(shared, f"from PIL import Image\nimage = Image.new('RGB', (4, 4))\n{last}")
    assert value.text == "<PIL.Image.Image image mode=RGB size=4x4>"
    assert base64.b64decode(value.png).startswith(_PNG)
    assert value.is_main_result == (last == "image")


# Libraries


@pytest.mark.parametrize("last", ["figure", "figure.show()", "display(figure)"])
async def test_plotly(shared, last):
    value = await _only(shared, f"import plotly.graph_objects as go\nfigure = go.Figure(go.Bar(x=['a', 'b'], y=[1, 2]))\n{last}")
    assert list(value.extra) == ["application/vnd.plotly.v1+json"]
    (bars,) = value.extra["application/vnd.plotly.v1+json"]["data"]
    assert (bars["type"], bars["x"], bars["y"]) == ("bar", ["a", "b"], [1, 2])
    assert "Plotly.newPlot" in value.html and '"y":[1,2]' in value.html.replace(" ", "")


async def test_models_of_scikit_learn_are_html(shared):
    value = await _only(shared, "from sklearn.linear_model import LinearRegression\nLinearRegression().fit([[1], [2]], [2, 4])")
    assert (value.text, value.is_main_result) == ("LinearRegression()", True)
    assert "sk-container" in value.html


async def test_values_and_plots_of_r(shared):
    # IRkernel shows values; its base64 has line ends.
    (table,) = (await succeed(shared, "data.frame(a = c(1, 2), b = c('x', 'y'))", language="r")).results
    assert not table.is_main_result and table.formats() == ["text", "html", "markdown", "latex"]
    assert "<table" in table.html and "tabular" in table.latex
    (plot,) = (await succeed(shared, "plot(1:3)", language="r")).results
    assert base64.b64decode(plot.png).startswith(_PNG)


# Magics and shell commands

_MAGICS = {
    "%%html": ("html", "<b>x</b>\n", "<b>x</b>"),
    "%%latex": ("latex", "$x$\n", "$x$"),
    "%%markdown": ("markdown", "*x*\n", "*x*"),
    "%%javascript": ("javascript", "f()\n", "f()"),
    "%%svg": ("svg", '<svg xmlns="http://www.w3.org/2000/svg"/>', '<svg xmlns="http://www.w3.org/2000/svg"/>'),
}


@pytest.mark.parametrize("magic", _MAGICS)
async def test_cell_magics_that_display(shared, magic):
    field, want, body = _MAGICS[magic]
    assert (await _only(shared, f"{magic}\n{body}"))[field] == want


async def test_shell_commands(shared):
    assert (await succeed(shared, "%cd -q /home/user\n!pwd")).logs.stdout == ["/home/user\r\n"]
    execution = await succeed(shared, "name = 'x y'\n!printf '%s|' out \"$name\" {1 + 1}; echo err >&2; exit 3\n_exit_code")
    assert ("".join(execution.logs.stdout), execution.text) == ("out|x y|2|err\r\n", "3")
    assert (await succeed(shared, "lines = !seq 3\nlist(lines)")).results[0].json == ["1", "2", "3"]
    assert (await succeed(shared, "%%bash\necho $((6 * 7))")).logs.stdout == ["42\n"]


def _wheel():
    """A package of one module, as pip takes it."""
    files = {
        "alcove_example.py": "ANSWER = 42\n",
        "alcove_example-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: alcove-example\nVersion: 1.0\n",
        "alcove_example-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "alcove_example-1.0.dist-info/RECORD": "",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


async def test_pip_installs_for_the_running_context(shared):
    await got(shared.files.write("/tmp/alcove_example-1.0-py3-none-any.whl", _wheel()))
    execution = await succeed(shared, "%pip install --no-index /tmp/alcove_example-1.0-py3-none-any.whl\nimport alcove_example\nalcove_example.ANSWER")
    assert execution.text == "42"
    assert "Successfully installed alcove-example-1.0" in "".join(execution.logs.stdout)
    # It is there for commands, too, which run as another user.
    assert (await got(shared.commands.run("python3 -c 'import alcove_example as a; print(a.ANSWER)'"))).stdout == "42\n"
    await succeed(shared, "!pip uninstall -y alcove-example")


# Errors


@pytest.mark.parametrize(
    ("code", "what"),
    [("input('name? ')", "raw_input"), ("name = input()", "raw_input"), ("import getpass\ngetpass.getpass()", "getpass"), ("breakpoint()", "raw_input")],
)
async def test_questions_are_refused(shared, code, what):
    execution = await run(shared, code)
    assert execution.error.name == "StdinNotImplementedError"
    assert execution.error.value == f"{what} was called, but this frontend does not support input requests."
    assert (await succeed(shared, "1 + 1")).text == "2"


async def test_a_traceback_shows_the_lines_and_has_no_colours(shared):
    execution = await run(shared, "def divide(by):\n    return 1 / by\n\nprint('before')\ndisplay('shown')\ndivide(0)")
    error = execution.error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    assert (execution.logs.stdout, [result.text for result in execution.results]) == (["before\n"], ["shown"])
    assert "----> 6 divide(0)" in error.traceback and "----> 2     return 1 / by" in error.traceback
    assert error.traceback.endswith("ZeroDivisionError: division by zero")
    assert "\x1b" not in error.traceback and json.loads(error.to_json())["traceback"] == error.traceback


@pytest.mark.parametrize(
    ("code", "name", "value", "within"),
    [
        ("1 +", "SyntaxError", "invalid syntax", "1 +"),
        ("if True:\nx = 1", "IndentationError", "expected an indented block", "x = 1"),
        ("missing", "NameError", "name 'missing' is not defined", "----> 1 missing"),
        ("class Own(Exception): pass\nraise Own('ä\\u2028\\n', 1)", "Own", "('ä\\u2028\\n', 1)", "raise Own"),
        ("try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('outer') from e", "ValueError", "outer", "KeyError: 'k'"),
        ("raise ExceptionGroup('g', [ValueError('v')])", "ExceptionGroup", "g (1 sub-exception)", "ValueError: v"),
        ("assert 1 == 2, 'not equal'", "AssertionError", "not equal", "assert 1 == 2"),
        ("import sys; sys.exit(3)", "SystemExit", "3", "SystemExit: 3"),
        ("exit", "SystemExit", "", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "", "KeyboardInterrupt"),
        ("%nosuchmagic", "UsageError", "Line magic function `%nosuchmagic` not found.", "UsageError"),
        ("def f(): f()\nf()", "RecursionError", "maximum recursion depth exceeded", "f()"),
    ],
)
async def test_errors(shared, code, name, value, within):
    error = (await run(shared, code)).error
    assert (error.name, error.value[: len(value)]) == (name, value)
    assert within in error.traceback
    assert (await succeed(shared, "1 + 1")).text == "2"


# Large results

_MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("code", "field"),
    [("'ä' * (6 << 20)", "text"), ("display({'text/html': 'ä' * (6 << 20)}, raw=True)", "html"), ("display({'text/x-own': 'ä' * (6 << 20)}, raw=True)", "extra")],
)
async def test_texts_of_more_than_ten_megabytes(shared, code, field):
    value = (await _only(shared, code))[field]
    value = value["text/x-own"] if field == "extra" else value
    assert len(value) == 6 * _MEBIBYTE and value.count("ä") == 6 * _MEBIBYTE


async def test_images_and_tables_of_more_than_ten_megabytes(shared):
    code = "class T:\n    def _repr_png_(self): return bytes(range(256)) * (12 << 12)\nT()"
    assert base64.b64decode((await _only(shared, code)).png) == bytes(range(256)) * (12 << 12)
    table = await _only(shared, "import pandas as pd\npd.DataFrame({'n': range(1_500_000)})")
    assert table.data == {"n": list(range(1_500_000))}
    assert (await succeed(shared, "1 + 1")).text == "2"


async def test_tables_that_are_too_large_come_without_data(shared):
    table = await _only(shared, "import numpy as np, pandas as pd\npd.DataFrame(np.zeros((2_000_000, 8), dtype=int))")
    assert list(table.formats()) == ["text", "html"]
    # A sandbox has room for all below the limit, dates and texts too.
    code = "pd.DataFrame({'when': pd.date_range('2020', periods=500_000, freq='s'), 'what': [f'text {n}' for n in range(500_000)]})"
    data = (await _only(shared, code)).data
    assert (data["when"][-1], data["what"][-1]) == ("2020-01-06T18:53:19", "text 499999")
    table = await _only(shared, "x = 1\npd.DataFrame(np.random.rand(500_000, 4))")
    assert [len(column) for column in table.data.values()] == [500_000] * 4
    assert (await succeed(shared, "x")).text == "1"
