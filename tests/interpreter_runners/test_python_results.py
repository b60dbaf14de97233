# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Results of the Python runner: MIME bundles as IPython and the libraries make them."""

import base64

import pytest


@pytest.fixture
def python(start_runner):
    return start_runner("python")


MIMES = {
    "text/html": ("HTML('<b>x</b>')", "<b>x</b>"),
    "text/markdown": ("Markdown('*x*')", "*x*"),
    "text/latex": ("Latex('$x$')", "$x$"),
    "image/svg+xml": ("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    "application/json": ("JSON({'a': [1, None]})", {"a": [1, None]}),
    "application/javascript": ("Javascript('1')", "1"),
}


@pytest.mark.parametrize("mime", MIMES)
def test_display_objects(python, mime):
    made, want = MIMES[mime]
    assert python.run(f"from IPython.display import *\n{made}").main[mime] == want


@pytest.mark.parametrize(("mime", "method"), [("image/png", "png"), ("image/jpeg", "jpeg"), ("application/pdf", "pdf")])
def test_bytes_are_base64(python, mime, method):
    code = f"class T:\n    def _repr_{method}_(self): return bytes(range(256))\nT()"
    assert base64.b64decode(python.run(code).main[mime]) == bytes(range(256))


def test_a_raw_bundle_is_sent_as_it_is(python):
    assert python.run("display({'text/latex': 'x', 'a/b': {'c': 1}}, raw=True)").shown == [{"text/latex": "x", "a/b": {"c": 1}}]


def test_containers_are_json_too(python):
    main = python.run("{'a': 1, 2: [float('nan'), True]}").main
    assert main["application/json"] == {"a": 1, "2": [None, True]}
    assert "application/json" not in python.run("{'a': object()}").main


def test_frames_have_their_columns(python):
    run = python.run("import pandas as pd; pd.DataFrame({'a': [1, None], 't': [pd.NaT, pd.Timestamp(0)]})")
    assert run.main["e2b/data"] == {"a": [1.0, None], "t": [None, "1970-01-01T00:00:00"]}
    assert "<table" in run.main["text/html"]
    assert "e2b/data" not in python.run("pd.Series([1])").main


def test_columns_of_every_kind(python):
    run = python.run(
        "import numpy as np, pandas as pd\n"
        "when = pd.Series([pd.Timestamp('2020-01-02T03:04:05.678'), pd.NaT])\n"
        "pd.DataFrame({'float': [0.5, float('inf')], 'half': np.array([0.5, np.nan], 'float16'), 'long': np.array([1, 2], 'longdouble'),"
        " 'when': when, 'there': when.dt.tz_localize('Asia/Tokyo'), 'span': pd.to_timedelta([1, None], 'h'),"
        " 'whole': pd.array([1, None], 'Int64'), 'text': ['a', None], 'kind': pd.Categorical(['x', 'y']), 'yes': [True, False]})"
    )
    assert run.main["e2b/data"] == {
        "float": [0.5, None],
        "half": [0.5, None],
        "long": [1.0, 2.0],
        "when": ["2020-01-02T03:04:05.678000", None],
        "there": ["2020-01-02T03:04:05.678000+09:00", None],
        "span": ["0 days 01:00:00", None],
        "whole": [1, None],
        "text": ["a", None],
        "kind": ["x", "y"],
        "yes": [True, False],
    }


def test_a_table_of_too_many_cells_comes_without_data(python):
    python.run("import numpy as np, pandas as pd\nfrom alcove_runner import formats\ndef zeros(cells): return pd.DataFrame({'a': np.zeros(cells)})")
    run = python.run("zeros(formats._MAX_CELLS + 1)")
    assert run.error is None
    assert set(run.main) == {"text/plain", "text/html"}
    # Its values are not looked at.
    run = python.run("pd.DataFrame(np.zeros((2_000_000, 8), dtype=int))")
    assert (run.error, set(run.main)) == (None, {"text/plain", "text/html"})
    assert python.run("len(formats._columns(zeros(formats._MAX_CELLS))['a'])").text == "2000000"


def test_what_cannot_be_sent_is_left_out_of_a_result(python):
    python.run("from IPython.display import JSON\ndeep = 1\nfor _ in range(250): deep = [deep]")
    run = python.run("JSON(deep)")
    assert run.error is None
    assert set(run.main) == {"text/plain"}
    assert run.stderr == "the result comes without application/json: nested too deeply\n"
    run = python.run("display({'text/html': 'h', 'a/b': deep, 'text/plain': 't'}, raw=True)\n'goes on'")
    assert (run.error, run.shown, run.text) == (None, [{"text/html": "h", "text/plain": "t"}], "'goes on'")
    assert run.stderr == "the result comes without a/b: nested too deeply\n"


def test_a_result_that_is_too_large_keeps_its_texts(python):
    python.run("from alcove_runner import frames\nframes.MAX_FRAME = 1_000_000")
    run = python.run("import pandas as pd\npd.DataFrame({'a': ['x' * 100_000] * 11})")
    assert run.error is None
    assert set(run.main) == {"text/plain", "text/html"}
    assert run.stderr.startswith("the result comes without e2b/data, as it is too large: 110")
    assert run.stderr.count("\n") == 1
    run = python.run("'x' * 1_000_000")
    assert (run.error, run.of("result")) == (None, [])
    assert run.stderr.startswith("the result is too large to be sent: 10000")


_HOSTILE = {
    "in itself": ("a = []; a.append(a)", "a", "[["),
    "in itself twice": ("a = []; a.extend([a, a])", "a", "[["),
    "dict in itself": ("a = {}; a['a'] = a", "a", "{'a': {"),
    "no text": ("class R:\n    def __repr__(self): raise RuntimeError('no')", "R()", "<R whose text cannot be made>"),
    "endless text": ("class S:\n    def __repr__(self): return repr(self)", "S()", "<S whose text cannot be made>"),
    "no key": ("class R:\n    def __repr__(self): raise RuntimeError('no')", "{R(): 1}", {"<R whose text cannot be made>": 1}),
    "strange dict": ("class M(dict):\n    def items(self): raise KeyError(1)", "M()", "{}"),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_frames_of_hostile_values(python, name):
    setup, value, want = _HOSTILE[name]
    run = python.run(f"import pandas as pd\n{setup}\npd.DataFrame({{'x': [{value}, 1], 'y': [2, 3]}})")
    assert run.error is None
    x, y = run.main["e2b/data"]["x"], run.main["e2b/data"]["y"]
    assert (x[1:], y) == ([1], [2, 3])
    assert x[0].startswith(want) if isinstance(want, str) else x[0] == want
    assert run.main["text/plain"].split()[:2] == ["x", "y"]
    assert "<table" in run.main["text/html"]
    assert python.run("6 * 7").text == "42"


def test_a_frame_in_a_frame(python):
    run = python.run("import pandas as pd\nf = pd.DataFrame({'x': [1]})\nf['x'] = pd.Series([f], dtype=object)\nf")
    assert run.error is None
    assert set(run.main["e2b/data"]) == {"x"}


def test_containers_that_are_endless_to_write(python):
    """Each list holds the last one twice."""
    run = python.run("import pandas as pd\nmade = []\nfor _ in range(60): made = [made, made]\nframe = pd.DataFrame({'x': [made]})\nfrom alcove_runner import formats\nformats._columns(frame)['x'][0][:4]")
    assert (run.error, run.text) == (None, "'[[[['")


def test_figures(python):
    run = python.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\n'last'")
    (shown,) = run.shown
    assert set(shown) == {"text/plain", "image/png", "e2b/chart"}
    assert shown["text/plain"] == "<Figure size 640x480 with 1 Axes>"
    assert shown["e2b/chart"]["elements"][0]["points"] == [[0, 1], [1, 2], [2, 3]]
    assert [frame["main"] for frame in run.of("result")] == [False, True]


def test_a_figure_that_is_not_shown_comes_after_the_value(python):
    run = python.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])")
    assert [frame["main"] for frame in run.of("result")] == [True, False]


@pytest.mark.parametrize("magic", ["%matplotlib inline", "%matplotlib", "%pylab inline"])
def test_the_inline_backend_may_be_asked_for(python, magic):
    run = python.run(f"{magic}\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    assert run.error is None
    assert set(run.shown[0]) == {"text/plain", "image/png", "e2b/chart"}


@pytest.mark.parametrize("last", ["image", "image.save('a.png')", "image.show()"])
def test_pillow_images(python, last):
    run = python.run(f"from PIL import Image\nimage = Image.new('RGB', (4, 4))\n{last}")
    (result,) = run.of("result")
    assert base64.b64decode(result["data"]["image/png"]).startswith(b"\x89PNG")


def test_plotly_and_altair(python):
    for code in ("import plotly.graph_objects as go\nfigure = go.Figure(go.Bar(y=[1, 2]))\nfigure", "figure.show()"):
        run = python.run(code)
        assert run.error is None
        (plotly,) = run.shown
        assert set(plotly) == {"text/html", "application/vnd.plotly.v1+json"}
    altair = python.run("import altair, pandas\naltair.Chart(pandas.DataFrame({'a': [1]})).mark_bar().encode(x='a')").main
    assert "text/html" in altair
    assert any(mime.startswith("application/vnd.vegalite") for mime in altair)


def test_an_endless_recursion_is_told_with_many_modules_loaded(python):
    assert python.run("import inspect, pandas, plotly.graph_objects\nbefore = inspect.getmodule").error is None
    error = python.run("def f(): f()\nf()").error
    assert error["name"] == "RecursionError"
    assert "skipping similar frames" in "".join(error["traceback"])
    assert python.run("inspect.getmodule is before").text == "True"
