# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What a sandbox uses: get_metrics of the clients, and both routes by plain HTTP."""

import datetime
import time

import e2b
import pytest
from harness import TIMESTAMP, api, assert_error, eventually, got

_MIB = 1 << 20
_FIELDS = {"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal", "memCache", "diskUsed", "diskTotal"}


def _metrics(sandbox_id, query="", **options):
    reply = api("GET", f"/sandboxes/{sandbox_id}/metrics{query}", **options)
    assert reply.status == 200, reply.body
    return reply.json


async def _first(sandbox_id):
    """Waits for the first measurement, which comes soon after the creation."""
    assert await eventually(lambda: _metrics(sandbox_id), within=10)
    return _metrics(sandbox_id)


@pytest.mark.smoke
async def test_metrics_come_soon_and_are_complete(client, sandbox):
    assert await eventually(lambda: _metrics(sandbox.sandbox_id), within=10)
    found = await got(sandbox.get_metrics())
    metric = found[0]
    assert metric.cpu_count == 2
    assert 0 <= metric.cpu_used_pct <= 100
    assert metric.mem_total == 1024 * _MIB
    assert 0 < metric.mem_used < 100 * _MIB
    assert metric.disk_total == 10240 * _MIB
    assert 0 < metric.disk_used < 100 * _MIB
    age = datetime.datetime.now(datetime.timezone.utc) - metric.timestamp
    assert datetime.timedelta(0) <= age < datetime.timedelta(seconds=30)
    assert len(await got(client.Sandbox.get_metrics(sandbox.sandbox_id))) >= len(found)


async def test_metrics_of_a_time_range(client, sandbox):
    assert await eventually(lambda: _metrics(sandbox.sandbox_id), within=10)
    started = (await got(sandbox.get_info())).started_at
    hour = datetime.timedelta(hours=1)
    assert await got(sandbox.get_metrics(start=started - hour, end=started + hour))
    assert await got(sandbox.get_metrics(start=started))
    assert await got(sandbox.get_metrics(start=started - 2 * hour, end=started - hour)) == []
    assert await got(sandbox.get_metrics(start=started + hour)) == []


async def test_metrics_of_a_killed_sandbox_are_empty(client, make_sandbox):
    sandbox = await make_sandbox()
    await _first(sandbox.sandbox_id)
    assert await got(sandbox.kill())
    assert await got(client.Sandbox.get_metrics(sandbox.sandbox_id)) == []


@pytest.mark.wire
@pytest.mark.limit(90)
async def test_values_are_what_was_used():
    with e2b.Sandbox.create(timeout=120) as sandbox:
        # Says how many seconds of CPU time it took.
        busy = 'TIMEFORMAT="%U %S"; time (for i in $(seq 1 1500000); do :; done)'
        used = sum(map(float, sandbox.commands.run(busy, timeout=60).stderr.split()))
        hold = "python3 -c \"x = b'x' * (100 << 20); print('ready', flush=True); import time; time.sleep(100)\""
        ready = []
        sandbox.commands.run(hold, background=True, on_stdout=ready.append)
        # A little more than is looked for: the kernel counts pages in batches.
        sandbox.commands.run("head -c 32M /dev/urandom > /tmp/file && sync /tmp/file && cat /tmp/file > /dev/null")
        after = time.time() + 1
        assert await eventually(lambda: _metrics(sandbox.sandbox_id)[-1]["timestampUnix"] > after, within=20)
        metrics = _metrics(sandbox.sandbox_id)
        last = metrics[-1]
        assert 100 * _MIB <= last["memUsed"] <= 200 * _MIB
        assert 30 * _MIB <= last["memCache"] <= 200 * _MIB
        assert 30 * _MIB <= last["diskUsed"] <= 40 * _MIB
        # Shares times their seconds give the CPU time that was used, whatever else the host did.
        before = datetime.datetime.fromisoformat(api("GET", f"/sandboxes/{sandbox.sandbox_id}").json["startedAt"])
        total = 0
        for metric in metrics:
            now = datetime.datetime.fromisoformat(metric["timestamp"])
            total += metric["cpuUsedPct"] / 100 * metric["cpuCount"] * (now - before).total_seconds()
            before = now
        assert used <= total * 1.02 + 0.05, (used, total)
        assert total <= used + 3, (used, total)


@pytest.mark.wire
@pytest.mark.limit(60)
async def test_a_measurement_every_five_seconds(created):
    box = created()["sandboxID"]
    assert await eventually(lambda: len(_metrics(box)) >= 3, within=25)
    times = [datetime.datetime.fromisoformat(metric["timestamp"]).timestamp() for metric in _metrics(box)]
    for earlier, later in zip(times, times[1:]):
        assert 4 < later - earlier < 8, times


@pytest.mark.wire
async def test_shape_on_the_wire(created):
    box = created()["sandboxID"]
    (metric, *_) = await _first(box)
    assert set(metric) == _FIELDS
    assert TIMESTAMP.fullmatch(metric["timestamp"])
    seconds = datetime.datetime.fromisoformat(metric["timestamp"]).timestamp()
    assert metric["timestampUnix"] == int(seconds)
    assert all(isinstance(metric[name], int) for name in _FIELDS - {"timestamp", "cpuUsedPct"})
    assert _metrics(f"{box}-6532622b")[0] == metric
    now = metric["timestampUnix"]
    assert _metrics(box, f"?start={now}&end={now}") == [metric]
    assert _metrics(box, f"?end={now - 1}") == []
    assert _metrics(box, "?start=0&end=1") == []


@pytest.mark.wire
async def test_unknown_and_foreign_sandboxes_have_none(created, other_key):
    box = created()["sandboxID"]
    await _first(box)
    assert _metrics("nonexistingsandbox") == []
    assert _metrics(box, key=other_key) == []


@pytest.mark.wire
@pytest.mark.parametrize("query", ["start=2&end=1", "start=-1", "end=x", "start=1.5", "end=1e9", "start=99999999999999", "start=%zz"])
def test_refused_ranges(created, query):
    assert_error(api("GET", f"/sandboxes/{created()['sandboxID']}/metrics?{query}"), 400)
    # The range is looked at before the sandbox.
    assert_error(api("GET", f"/sandboxes/nonexistingsandbox/metrics?{query}"), 400)


@pytest.mark.wire
def test_refused_callers():
    assert_error(api("GET", "/sandboxes/UPPER/metrics"), 400, "Invalid sandbox ID")
    for path in ("/sandboxes/nonexistingsandbox/metrics", "/sandboxes/metrics?sandbox_ids=a"):
        assert_error(api("GET", path, key=None), 401)
        assert_error(api("GET", path, key="e2b_00"), 401)
        assert_error(api("POST", path, {}), 405)


@pytest.mark.wire
async def test_bulk(created, other_key):
    first, second = created()["sandboxID"], created()["sandboxID"]
    foreign = created(key=other_key)["sandboxID"]
    await _first(first)
    await _first(second)

    def bulk(*ids, **options):
        reply = api("GET", f"/sandboxes/metrics?sandbox_ids={','.join(ids)}", **options)
        assert reply.status == 200, reply.body
        return reply.json["sandboxes"]

    found = bulk(first, second, foreign, "nonexistingsandbox")
    assert set(found) == {first, second}
    assert all(set(metric) == _FIELDS for metric in found.values())
    assert found[first] in _metrics(first)
    assert bulk(first, key=other_key) == {}
    assert set(bulk(f"{first}-6532622b")) == {first}


@pytest.mark.wire
@pytest.mark.parametrize("query", ["", "?sandbox_ids=", "?sandbox_ids=a,", "?sandbox_ids=A", "?sandbox_ids=a,a", "?sandbox_ids=" + ",".join(f"i{n}" for n in range(101))])
def test_refused_bulk(query):
    assert_error(api("GET", f"/sandboxes/metrics{query}"), 400)
