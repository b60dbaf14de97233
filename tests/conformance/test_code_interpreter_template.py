# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What programs find in the template `code-interpreter-v1`; nothing here needs a network."""

import json

import pytest
from harness import got

TEMPLATE = "code-interpreter-v1"
# The parts of both builds, slim and full, with the versions of the original's template.
PACKAGES = {
    "matplotlib": "3.10.9",
    "numpy": "2.3.5",
    "pandas": "2.2.3",
    "pillow": "12.3.0",
    "plotly": "6.0.1",
    "requests": "2.33.0",
    "scikit-learn": "1.6.1",
    "scipy": "1.17.1",
    "seaborn": "0.13.2",
}


@pytest.fixture
def offline(make_sandbox, run_now):
    return run_now(make_sandbox(TEMPLATE, allow_internet_access=False))


async def _out(sandbox, command, **options):
    return (await got(sandbox.commands.run(command, **options))).stdout


async def test_the_alias_leads_to_the_same_template_of_two_cpus_and_2_gib(make_sandbox):
    infos = [await got((await make_sandbox(name)).get_info()) for name in (TEMPLATE, "code-interpreter")]
    assert infos[0].template_id == infos[1].template_id
    assert [(info.cpu_count, info.memory_mb) for info in infos] == [(2, 2048)] * 2


async def test_python_packages_have_the_versions_of_the_original(offline):
    script = (
        "import importlib.metadata as m, json, sys; "
        "print(json.dumps({name: m.version(name) for name in sys.argv[1:]}))"
    )
    found = json.loads(await _out(offline, f"python3 -c '{script}' ipython {' '.join(PACKAGES)}"))
    ipython = found.pop("ipython")
    assert found == PACKAGES
    assert tuple(map(int, ipython.split(".")[:2])) >= (9, 18)


@pytest.mark.limit(120)
async def test_python_packages_work(offline):
    script = """
import io, IPython, matplotlib, numpy, pandas, plotly, requests, scipy.stats, seaborn, sklearn.linear_model
matplotlib.use("agg")
import matplotlib.pyplot as plt
frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 6.0]})
model = sklearn.linear_model.LinearRegression().fit(frame[["x"]], frame["y"])
plt.plot(frame["x"], frame["y"])
plt.title("\\u65e5\\u672c\\u8a9e")
picture = io.BytesIO()
plt.savefig(picture, format="png")
print(round(float(model.coef_[0]), 6), picture.getvalue()[:4])
"""
    await got(offline.files.write("/tmp/use.py", script))
    result = await got(offline.commands.run("python3 -W error::UserWarning /tmp/use.py", timeout=100))
    assert result.stdout == "2.0 b'\\x89PNG'\n"


async def test_node_runs_typescript_and_has_npm(offline):
    await got(offline.files.write("/tmp/a.ts", "enum Kind { a = 41 }\nconst n: number = Kind.a + 1;\nconsole.log(n)\n"))
    assert await _out(offline, "node --experimental-transform-types --no-warnings /tmp/a.ts") == "42\n"
    major, minor = (await _out(offline, "node --version")).removeprefix("v").split(".")[:2]
    assert (int(major), int(minor)) >= (22, 13)
    assert await _out(offline, "npm config get prefix && readlink -f $(command -v npm) | grep -c npm-cli.js") == "/usr/local\n1\n"


async def test_r_has_its_jupyter_kernel(offline):
    assert await _out(offline, "Rscript -e 'library(IRkernel); cat(6 * 7)'") == "42"
    spec = json.loads(await _out(offline, "cat /usr/local/share/jupyter/kernels/r/kernel.json"))
    assert (spec["display_name"], spec["argv"][-1]) == ("R", "{connection_file}")


async def test_r_has_its_recommended_packages(offline):
    names = "boot class cluster codetools foreign KernSmooth lattice MASS Matrix mgcv nlme nnet rpart spatial survival"
    program = f"for (name in strsplit('{names}', ' ')[[1]]) suppressMessages(library(name, character.only = TRUE)); cat(as.character(MASS::fractions(0.75)))"
    await got(offline.files.write("/tmp/use.R", program))
    assert await _out(offline, "Rscript /tmp/use.R") == "3/4"


async def test_java_compiles_and_has_jshell(offline):
    source = 'public class A { public static void main(String[] a) { System.out.println(6 * 7); } }'
    await got(offline.files.write("/tmp/A.java", source))
    assert await _out(offline, "javac -d /tmp /tmp/A.java && java -cp /tmp A") == "42\n"
    assert await _out(offline, '"$JAVA_HOME/bin/java" --list-modules | grep -o "^jdk.jshell"') == "jdk.jshell\n"


async def test_bash_user_and_place(offline):
    command = "echo ${BASH_VERSINFO[0]} $(id -un) $PWD; sudo -n id -un; touch /usr/local/lib/x && echo writable"
    assert await _out(offline, f"bash -c '{command}'") == "5 user /home/user\nroot\nwritable\n"
