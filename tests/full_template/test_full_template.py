# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The full build of `code-interpreter-v1`: it takes the name over, and all of its packages work there,
without a network."""

import json
import re

import pytest
from e2b_code_interpreter import Sandbox
from harness import api, eventually
from interpreter.client import succeed

# From packages to a server that has them; in the background, beside whatever else runs.
_BUILD_LIMIT = 1500

# The original's versions, by module. IPython is newer: it starts faster.
_PACKAGES = """
aiohttp aiohttp==3.14.3
bokeh bokeh==3.9.1
bs4 beautifulsoup4==4.15.0
cv2 opencv-python==4.11.0.86
docx python-docx==1.1.2
e2b_charts e2b-charts
gensim gensim==4.4.0
imageio imageio==2.37.3
ipykernel ipykernel==6.31.0
joblib joblib==1.5.3
jupyter_server jupyter-server==2.20.0
kaleido kaleido==1.3.0
librosa librosa==0.11.0
matplotlib matplotlib==3.10.9
nltk nltk==3.10.0
numba numba==0.66.0
numpy numpy==2.3.5
openpyxl openpyxl==3.1.5
orjson orjson==3.11.9
pandas pandas==2.2.3
PIL pillow==12.3.0
plotly plotly==6.0.1
pytest pytest==9.0.3
pytz pytz==2025.2
requests requests==2.33.0
scipy scipy==1.17.1
seaborn seaborn==0.13.2
skimage scikit-image==0.25.2
sklearn scikit-learn==1.6.1
soundfile soundfile==0.13.1
spacy spacy==3.8.14
sympy sympy==1.14.0
textblob textblob==0.19.0
tornado tornado==6.5.7
urllib3 urllib3==2.7.0
xarray xarray==2025.4.0
xlrd xlrd==2.0.2
"""
_PINS = dict(line.split() for line in _PACKAGES.strip().splitlines())

# A server in the kernel itself, because nothing else can be reached.
_HTTP_SERVER = """
import http.server, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served")
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
"""

# One thing that each package is there for: code, and the text of its value.
_USES = {
    "aiohttp": ("import aiohttp.web\naiohttp.web.json_response({'a': 1}).text", '{"a": 1}'),
    "bokeh": ("from bokeh.embed import file_html\nfrom bokeh.plotting import figure\np = figure()\np.line([1, 2], [3, 4])\n'bokeh' in file_html(p)", "True"),
    "bs4": ("import bs4\nbs4.BeautifulSoup('<p>a<b>c</b></p>', 'lxml').b.text", "c"),
    "cv2": ("import cv2, numpy as np\ncv2.resize(np.zeros((4, 4, 3), np.uint8), (8, 2)).shape", "(2, 8, 3)"),
    "e2b_charts": ("import e2b_charts, matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.bar(['a', 'b'], [1, 2])\nchart = e2b_charts.chart_figure_to_dict(figure)\nplt.close()\n(chart['type'].value, [bar['value'] for bar in chart['elements']])", "('bar', [1.0, 2.0])"),
    "docx": ("import docx\nd = docx.Document()\nd.add_paragraph('words')\nd.save('/tmp/a.docx')\ndocx.Document('/tmp/a.docx').paragraphs[0].text", "words"),
    "gensim": ("from gensim.corpora import Dictionary\nDictionary([['a', 'b'], ['a']]).doc2bow(['a', 'a'])", "[(0, 2)]"),
    "imageio": ("import imageio.v3 as iio, numpy as np\niio.imwrite('/tmp/a.gif', np.stack([np.full((8, 8, 3), v, np.uint8) for v in (0, 255)]))\nlen(iio.imread('/tmp/a.gif'))", "2"),
    "joblib": ("import joblib\nsum(joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-i) for i in range(4)))", "6"),
    "jupyter_server": ("from jupyter_server.auth import passwd, passwd_check\npasswd_check(passwd('x', algorithm='sha256'), 'x')", "True"),
    "librosa": ("import librosa, numpy as np\nround(float(librosa.hz_to_midi(440.0)))", "69"),
    "matplotlib": ("import io, matplotlib.pyplot as plt\nplt.plot([1, 2])\nout = io.StringIO()\nplt.savefig(out, format='svg')\nplt.close()\n'</svg>' in out.getvalue()", "True"),
    "nltk": ("from nltk.stem import PorterStemmer\nPorterStemmer().stem('running')", "run"),
    "numba": ("import numba\n@numba.njit\ndef f(n):\n    s = 0\n    for i in range(n): s += i\n    return s\nf(1000)", "499500"),
    "numpy": ("import numpy as np\nnp.linalg.solve([[2, 0], [0, 4]], [2, 8]).tolist()", "[1.0, 2.0]"),
    "openpyxl": ("import pandas as pd\npd.DataFrame({'a': [1, 2]}).to_excel('/tmp/a.xlsx', index=False)\npd.read_excel('/tmp/a.xlsx').a.sum()", "np.int64(3)"),
    "orjson": ("import orjson\norjson.dumps({'a': [1, None]})", """b'{"a":[1,null]}'"""),
    "pandas": ("import pandas as pd\npd.DataFrame({'k': ['a', 'b', 'a'], 'v': [1, 2, 3]}).groupby('k').v.sum().tolist()", "[4, 2]"),
    "PIL": ("from PIL import Image, ImageDraw\nimage = Image.new('RGB', (40, 20), 'white')\nImageDraw.Draw(image).text((2, 2), 'words', fill='black')\nimage.save('/tmp/a.webp')\n(Image.open('/tmp/a.webp').size, len(image.getcolors()) > 1)", "((40, 20), True)"),
    "plotly": ("import plotly.express as px\nfigure = px.bar(x=['a'], y=[1])\n('Plotly.newPlot' in figure.to_html(), figure.to_dict()['data'][0]['type'])", "(True, 'bar')"),
    "pytest": ("open('/tmp/test_a.py', 'w').write('def test_a(): assert 1')\nimport pytest\nint(pytest.main(['-q', '/tmp/test_a.py']))", "0"),
    "pytz": ("import datetime, pytz\npytz.timezone('Asia/Tokyo').utcoffset(datetime.datetime(2026, 1, 1)).seconds // 3600", "9"),
    "requests": (f"{_HTTP_SERVER}import requests\nrequests.get(url).text", "served"),
    "scipy": ("import scipy.optimize\nround(scipy.optimize.brentq(lambda x: x * x - 4, 0, 5), 6)", "2.0"),
    "seaborn": ("import pandas as pd, seaborn as sns\nlen(sns.barplot(pd.DataFrame({'a': [1, 2], 'b': [3, 4]})).patches)", "2"),
    "skimage": ("import numpy as np, skimage.filters\nskimage.filters.gaussian(np.ones((4, 4))).shape", "(4, 4)"),
    "sklearn": ("from sklearn.cluster import KMeans\nlen(KMeans(2, n_init=1).fit([[0], [9]]).cluster_centers_)", "2"),
    "soundfile": ("import numpy as np, soundfile\nsoundfile.write('/tmp/a.wav', np.zeros(800), 8000)\nsoundfile.info('/tmp/a.wav').duration", "0.1"),
    "spacy": ("import spacy\n[token.text for token in spacy.blank('en')('It works.')]", "['It', 'works', '.']"),
    "sympy": ("import sympy\nx = sympy.symbols('x')\nsympy.integrate(2 * x, x)", "x**2"),
    "textblob": ("from textblob import Word\nWord('wolves').singularize()", "wolf"),
    "tornado": ("import tornado.template\ntornado.template.Template('{{ 6 * 7 }}').generate()", "b'42'"),
    "urllib3": (f"{_HTTP_SERVER}import urllib3\nurllib3.PoolManager().request('GET', url).status", "200"),
    "xarray": ("import xarray as xr\nint(xr.DataArray([1, 2, 3], dims='t').sum())", "6"),
    "xlrd": ("import openpyxl, xlrd\nopenpyxl.Workbook().save('/tmp/b.xlsx')\nxlrd.inspect_format('/tmp/b.xlsx')", "xlsx"),
}


@pytest.fixture(scope="module")
def full(run_now):
    """A sandbox of the full build, once that has the name."""
    sandboxes = []

    def has_taken_over():
        sandbox = Sandbox.create(timeout=1200, allow_internet_access=False)
        if sandbox.files.exists("/usr/local/lib/python3.13/dist-packages/sympy"):
            sandboxes.append(sandbox)
            return True
        sandbox.kill()
        return False

    assert run_now(eventually(has_taken_over, within=_BUILD_LIMIT, every=5)), "the full build has not taken the name"
    yield sandboxes[0]
    sandboxes[0].kill()


@pytest.mark.limit(_BUILD_LIMIT + 60)
async def test_it_takes_the_name_the_alias_and_the_size(full):
    info = full.get_info()
    assert (info.name, info.cpu_count, info.memory_mb) == ("code-interpreter-v1", 2, 2048)
    (template,) = [one for one in api("GET", "/templates").json if "code-interpreter-v1" in one["names"]]
    assert "code-interpreter" in template["aliases"] + template["names"]
    by_alias = Sandbox.create("code-interpreter", timeout=60)
    assert by_alias.files.exists("/usr/local/lib/python3.13/dist-packages/sympy")
    by_alias.kill()


async def test_packages_have_the_versions_of_the_original(full):
    names = [pin.split("==")[0] for pin in _PINS.values()]
    code = f"import importlib.metadata as m\n{{name: m.version(name) for name in {['ipython', *names]!r}}}"
    found = (await succeed(full, code)).results[0].json
    assert tuple(map(int, found.pop("ipython").split(".")[:2])) >= (9, 18)
    assert [f"{name}=={found[name]}" if "==" in pin else name for name, pin in zip(names, _PINS.values())] == list(_PINS.values())


@pytest.mark.limit(300)
async def test_requirements_are_met(full):
    printed = "".join((await succeed(full, "!pip check", timeout=240)).logs.stdout)
    broken = [line for line in printed.splitlines() if not re.fullmatch(r"No broken requirements found\.\s*", line)]
    assert not broken


@pytest.mark.limit(300)
@pytest.mark.parametrize("module", _PINS)
async def test_modules_can_be_imported(full, module):
    # In a process of its own: what one package imports must not help the next.
    process = full.commands.run(f"python3 -c 'import {module}; print({module}.__name__)'", timeout=240)
    assert process.stdout.splitlines()[-1] == module


@pytest.mark.limit(300)
@pytest.mark.parametrize("module", _USES)
async def test_packages_work(full, module):
    code, text = _USES[module]
    assert (await succeed(full, f"{code}\n", timeout=240)).text == text


@pytest.mark.limit(120)
async def test_images_of_plotly_need_a_chrome(full):
    """kaleido draws with a Chrome, which neither this template nor the original's has; it says so."""
    program = "import kaleido, plotly.graph_objects as go; kaleido.calc_fig_sync(go.Figure(go.Bar(x=['a'], y=[1])))"
    done = full.commands.run(f'python3 -W ignore -c "{program}" 2>&1 | tail -n 1; true', timeout=100)
    assert "ChromeNotFoundError" in done.stdout and "kaleido_get_chrome" in done.stdout


@pytest.mark.limit(120)
async def test_data_that_packages_download_are_not_there(full):
    """docs/templates.md names them."""
    for code, error in (
        ("import nltk\nnltk.word_tokenize('two words')", "LookupError"),
        ("import spacy\nspacy.load('en_core_web_sm')", "OSError"),
        ("from textblob import TextBlob\nTextBlob('two words').words", "MissingCorpusError"),
        ("import seaborn\nseaborn.load_dataset('tips')", "URLError"),
    ):
        assert full.run_code(code, timeout=100).error.name == error


@pytest.mark.limit(300)
async def test_altair_is_vega_lite_in_extra(full):
    code = "import altair as alt, pandas as pd\nalt.Chart(pd.DataFrame({'a': ['x', 'y'], 'b': [1, 2]})).mark_bar().encode(x='a', y='b')"
    value = (await succeed(full, code, timeout=240)).results[0]
    assert value.is_main_result and "vegaEmbed" in value.html
    ((mime, spec),) = value.extra.items()
    # The name is altair's; it has changed from "v5+json" to "v6.json".
    assert re.fullmatch(r"application/vnd\.vegalite\.v\d+[.+]json", mime)
    assert (spec["mark"]["type"], spec["encoding"]["y"]["field"]) == ("bar", "b")
    assert json.loads(json.dumps(list(spec["datasets"].values()))) == [[{"a": "x", "b": 1}, {"a": "y", "b": 2}]]


async def test_bokeh_shows_in_the_results(full):
    code = "from bokeh.io import output_notebook, show\nfrom bokeh.plotting import figure\noutput_notebook(hide_banner=True)\np = figure()\np.line([1, 2], [3, 4])\nshow(p)"
    results = (await succeed(full, code, timeout=100)).results
    assert any(result.html and "<div" in result.html for result in results)


async def test_other_jupyter_kernels_go_by_their_names(full):
    # ipykernel is one that is not ours.
    execution = await succeed(full, "import os, ipykernel\nprint('out')\n6 * 7", language="python3", timeout=55)
    assert (execution.text, execution.logs.stdout) == ("42", ["out\n"])
