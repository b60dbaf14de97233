# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the runner changes in libraries, so that they show their things as results."""

import types


def adapt_pillow(module):
    """Image.save(path) shows the image too, and so does Image.show(), which has no screen here."""
    save = module.Image.save

    def save_and_display(self, fp, format=None, **params):
        if isinstance(fp, str):
            _display(self)
        return save(self, fp, format, **params)

    def show(self, title=None):
        _display(self)

    module.Image.save = save_and_display
    module.Image.show = show


def adapt_plotly(module):
    """Figures come as HTML and as plotly's own MIME type, in one result."""
    from plotly.io._base_renderers import MimetypeRenderer

    class Renderer(MimetypeRenderer):
        def to_mimebundle(self, fig_dict):
            import json

            import plotly.io

            spec = json.loads(plotly.io.to_json(fig_dict, validate=False, remove_uids=False))
            html = plotly.io.to_html(fig_dict, include_plotlyjs="cdn", full_html=False, validate=False)
            return {"application/vnd.plotly.v1+json": spec, "text/html": html}

    module.renderers["alcove"] = Renderer()
    module.renderers.default = "alcove"
    # plotly shows nothing without nbformat, of which it uses the version number only.
    if module._renderers.nbformat is None:
        module._renderers.nbformat = types.SimpleNamespace(__version__="5.0")


def adapt_altair(module):
    """Charts come as HTML, as by default, and as the Vega-Lite MIME type, in one result."""
    renderers = module.renderers
    with renderers.enable("html"):
        html = renderers.get()
    with renderers.enable("mimetype"):
        mime = renderers.get()

    def render(spec, **metadata):
        bundle = dict(_data(mime(spec)))
        bundle.pop("text/plain", None)
        bundle.update(_data(html(spec, **metadata)))
        return bundle

    renderers.register("alcove", render)
    renderers.enable("alcove")


def adapt_matplotlib(module):
    from alcove_runner.charts import boxes

    boxes.watch(module.Axes)


def adapt_getpass(module):
    from IPython.core.error import StdinNotImplementedError

    def refuse(prompt="Password: ", stream=None, **options):
        raise StdinNotImplementedError(
            "getpass was called, but this frontend does not support input requests."
        )

    module.getpass = refuse


def _data(rendered):
    """Renderers return a bundle, or a bundle and its metadata."""
    return rendered[0] if isinstance(rendered, tuple) else rendered


def _display(thing):
    from IPython.display import display

    display(thing)
