# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Behaviour of the Python runner. Not part of `./dev test` yet; by hand, in an environment with IPython,
matplotlib, pandas and pytest:

    pytest -c /dev/null --confcutdir tests/interpreter_python --rootdir tests/interpreter_python \
        tests/interpreter_python
"""

import driver
import pytest


@pytest.fixture
def runner():
    made = driver.Runner()
    yield made
    made.close()


@pytest.mark.parametrize(
    "waiting",
    [
        "import time; time.sleep(100)",
        "while True: pass",
        "import asyncio\nawait asyncio.sleep(100)",
        "import asyncio; asyncio.run(asyncio.sleep(100))",
        "!sleep 100",
    ],
)
def test_an_interrupt_ends_the_cell_and_keeps_the_state(runner, waiting):
    run = runner.start(f"y = 7\nprint('go')\n{waiting}\nprint('not reached')")
    runner.wait_for_stdout("go")
    runner.interrupt()
    runner.finish(run)
    assert run.error["name"] == "KeyboardInterrupt"
    assert run.stdout == "go\n"
    assert runner.run("y").text == "7"


def test_an_interrupt_between_cells_is_ignored(runner):
    runner.interrupt()
    assert runner.run("1 + 1").text == "2"


def test_blank_code_does_not_use_up_a_number(runner):
    assert [runner.run(code).count for code in ("1/0", " \n", "def", "1")] == [1, 2, 2, 3]


def test_variables_of_a_run_are_gone_afterwards(runner):
    value = "x'\"\n"
    assert runner.run("import os; os.environ['A']", {"A": value}).text == repr(value)
    assert runner.run("os.environ.get('A')").results == []
    assert runner.run("%%bash\necho $A", {"A": "b"}).stdout == "b\n"


def test_no_line_is_lost(runner):
    assert runner.run("for i in range(100000): print(i)").stdout.split() == [str(i) for i in range(100000)]


@pytest.mark.parametrize("breaking", ["import sys; sys.stdout = None", "import sys; sys.stdout.close()"])
def test_a_broken_stdout_is_back_in_the_next_cell(runner, breaking):
    runner.run(breaking)
    assert runner.run("print('back')").stdout == "back\n"


def test_a_forked_child_does_not_speak_for_the_runner(runner):
    assert runner.run("import os\nif os.fork() == 0: display(1)\nelse: os.wait()").results == []
    assert runner.run("2").text == "2"


@pytest.mark.parametrize("ending", ["os.close(3)", "os._exit(4)"])
def test_a_runner_without_socket_or_life_is_gone(runner, ending):
    assert runner.run(f"import os; {ending}").died


def test_input_is_refused(runner):
    error = runner.run("input()").error
    assert error["name"] == "StdinNotImplementedError"
    assert error["value"] == "raw_input was called, but this frontend does not support input requests."


def test_missing_values_of_a_frame_are_null(runner):
    run = runner.run("import pandas as pd; pd.DataFrame({'a': [1, None], 't': [pd.NaT, pd.Timestamp(0)]})")
    assert run.main["e2b/data"] == {"a": [1.0, None], "t": [None, "1970-01-01T00:00:00"]}


def _chart(runner, code):
    (shown,) = runner.run(f"import matplotlib.pyplot as plt\n{code};").shown
    assert set(shown) == {"text/plain", "image/png", "e2b/chart"}
    return shown["e2b/chart"]


@pytest.mark.parametrize("call", ["plt.bar(['a', 'b'], [3, 3])", "plt.barh(['a', 'b'], [3, 3])"])
def test_equal_bars(runner, call):
    elements = _chart(runner, call)["elements"]
    assert elements == [{"label": name, "group": "Group 0", "value": 3.0} for name in "ab"]


@pytest.mark.parametrize("options", ["", ", patch_artist=True", ", vert=False"])
def test_boxes(runner, options):
    (box,) = _chart(runner, f"plt.boxplot([[95, 89, 76, 91, 84, 87]]{options})")["elements"]
    assert box == {
        "label": "1", "min": 84, "first_quartile": 84.75, "median": 88, "third_quartile": 90.5, "max": 95,
        "outliers": [76],
    }


def test_a_level_line_of_two_points_is_data(runner):
    chart = _chart(runner, "plt.plot([1, 2], [3, 3], label='a'); plt.axhline(2)")
    assert chart["type"] == "line"
    assert chart["elements"] == [{"label": "a", "points": [[1, 3], [2, 3]]}]
