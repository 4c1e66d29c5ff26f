"""Tuning on the packaged activations of SmolLM2-135M: what `hwnorm tune` finds, and how fast.

    python benchmarks/tuning.py [--part PART]... [--sample 40] [--jobs 2] [--json]

- front: the methods' tables of 2 to 4096 entries and 0 to 4 guard bits for outputs of 8, 12 and 16
  bits; the smallest tables below 1 and 2 ulp, as seen and as proven;
- speed: a space of 10,800 points against `hwnorm.measure` layer by layer, which is timed on a
  sample of the points and must give the same figures;
- brute: a small space; the front must be the non-dominated points, found by comparing all pairs;
- cluster: the same on a Dask LocalCluster on 127.0.0.1 with 1, 2 and 4 workers, one of them killed
  (needs hwnorm[cluster]).
"""

import json
import os
import resource
import signal
import time

import click
import numpy as np

import hwnorm
from hwnorm.rows import real_layers
from hwnorm.tune.front import describe, front_of
from hwnorm.tune.report import tuning_data
from hwnorm.tune.rows import Rows
from hwnorm.tune.space import Space
from hwnorm.tune.tuning import run

METHODS = ["direct", "linear", "quadratic", "log"]
SEGMENTS = {"from": 2, "to": 4096}
GUARDS = {"from": 0, "to": 4}
LOGS = ["direct", "mitchell", "linear"]


def space_of(**values):
    """A space around the preset smollm2 without held-out rows."""
    return Space.of({"design": hwnorm.load("smollm2"), "space": values, "holdout": 0.0})


def front(rows, jobs):
    """Points, seconds, and the smallest tables."""
    space = space_of(
        method=METHODS, segments=SEGMENTS, guard_bits=GUARDS, log_method=LOGS,
        y=["s8/1", "s12/5", "s16/9"],
    )  # fmt: skip
    result = run(space, rows, jobs=jobs)
    smallest = []
    for y in space.values["y"]:
        for method in METHODS:
            for below in (1.0, 2.0):
                line = {"y": y, "method": method, "below_ulp": below}
                for key, metric in (("seen", "max_ulp"), ("proven", "bound_ulp")):
                    good = [
                        one for one in result.outcomes
                        if one.state == "done" and one.point["y"] == y
                        and one.point["method"] == method and one.value(metric) < below
                    ]  # fmt: skip
                    best = min(
                        good,
                        key=lambda one: (one.point["segments"], one.value("rom_bits")),
                        default=None,
                    )
                    line[key] = best and {
                        "segments": best.point["segments"],
                        "guard_bits": best.point["guard_bits"],
                        "log_method": best.point["log_method"],
                        "rom_bits": best.value("rom_bits"),
                        metric: best.value(metric),
                    }
                smallest.append(line)
    only = space_of(method=METHODS, segments=SEGMENTS, guard_bits=GUARDS, log_method=LOGS)
    wide = [one for one in result.outcomes if one.point["y"] == "s16/9"]
    best = front_of_16(wide, only, rows)
    return {
        "points": len(result.outcomes), "states": result.states, "seconds": result.seconds,
        "points_per_second": result.evaluated / result.seconds, "smallest": smallest,
        "front_s16": best,
    }  # fmt: skip


def front_of_16(outcomes, space, rows):
    """The front of the 16-bit points."""
    space = space.resolved(rows)
    return [
        {
            "rom_bits": one.value("rom_bits"), "max_ulp": one.value("max_ulp"),
            "bound_ulp": one.value("bound_ulp"), "design": describe(one.point, space),
        }
        for one in front_of(outcomes, space)
    ]  # fmt: skip


def one_by_one(design, layers):
    """Figures of a design by `hwnorm.measure`, layer by layer."""
    reports = []
    for layer in layers:
        given = {"gamma": layer.gamma} if design.gamma else {}
        reports.append(hwnorm.measure(design, layer.x, **given).all)
    return {
        "max_ulp": max(one.max_ulp for one in reports),
        "rms_ulp": max(one.rms_ulp for one in reports),
        "misrounded": max(one.misrounded for one in reports),
        "sqnr_db": min(one.sqnr_db for one in reports),
    }


def cpu_seconds():
    """What this process and its finished workers have used."""
    return sum(
        use.ru_utime + use.ru_stime
        for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def speed(rows, jobs, sample):
    """A space of 10,800 points, and what measuring them one by one takes."""
    space = space_of(
        x=["s22/6", "s23/7", "s24/8"], y=["s8/1", "s10/3", "s12/5", "s14/7", "s16/9"],
        method=METHODS, segments=SEGMENTS, guard_bits=GUARDS, log_method=LOGS, lanes=[4, 8],
    )  # fmt: skip
    before = cpu_seconds()
    result = run(space, rows, jobs=jobs)
    used = cpu_seconds() - before
    done = [one for one in result.outcomes if one.state == "done"]
    chosen = np.random.default_rng(0).choice(len(done), sample, replace=False)
    layers, same = real_layers("smollm2"), 0
    started, before = time.perf_counter(), cpu_seconds()
    for place in chosen:
        one = done[place]
        found = one_by_one(result.design_of(one), layers)
        same += all(one.value(name, "worst") == value for name, value in found.items())
    each = (time.perf_counter() - started) / sample
    each_cpu = (cpu_seconds() - before) / sample
    return {
        "points": len(result.outcomes), "states": result.states, "seconds": result.seconds,
        "jobs": jobs, "points_per_second": result.evaluated / result.seconds,
        "sample": sample, "identical": same, "measure_s_per_point": each,
        "speed_up": each * len(done) / result.seconds,
        # The same without what else the machine did meanwhile.
        "cpu_seconds": used, "measure_cpu_s_per_point": each_cpu,
        "speed_up_a_core": each_cpu * len(done) / used,
    }  # fmt: skip


def brute(rows):
    """A small space: the front by comparing all pairs."""
    space = space_of(method=["direct", "linear", "quadratic"],
                     segments={"from": 2, "to": 128}, guard_bits=[1, 2])  # fmt: skip
    result = run(space, rows)
    layers = real_layers("smollm2")
    pairs = []
    for one in result.outcomes:
        design = result.design_of(one)
        errors = [hwnorm.measure(design, layer.x, layer.gamma).all.max_ulp for layer in layers]
        rom = sum(unit.table.rom_bits for unit in design.units.values())
        pairs.append((rom, max(errors)))
    mine = {
        pair for pair in pairs
        if not any(o[0] <= pair[0] and o[1] <= pair[1] and o != pair for o in pairs)
    }  # fmt: skip
    theirs = {(one.value("rom_bits"), one.value("max_ulp")) for one in result.front}
    return {"points": len(pairs), "front": len(theirs), "same": mine == theirs}


def on_cluster(rows):
    """The same front from 1, 2 and 4 workers, one of them killed."""
    from distributed import LocalCluster

    space = space_of(method=["direct", "linear", "quadratic"], segments={"from": 2, "to": 512},
                     guard_bits=GUARDS)  # fmt: skip
    expected = tuning_data(run(space, rows))
    lines = []
    for workers in (1, 2, 4):
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster:
            killed = []

            def strike(progress, cluster=cluster, killed=killed):
                if progress.done > 10 and not killed:
                    killed.append(progress.done)
                    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

            result = run(space, rows, scheduler=cluster.scheduler_address, report=strike)
        lines.append(
            {
                "workers": workers, "killed_after_points": killed[0], "points": result.evaluated,
                "seconds": result.seconds, "same": tuning_data(result) == expected,
            }
        )  # fmt: skip
    return lines


@click.command()
@click.option("--part", "parts", multiple=True,
              type=click.Choice(["front", "speed", "brute", "cluster"]))  # fmt: skip
@click.option("--sample", default=40, show_default=True, help="Points to measure one by one.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(parts, sample, jobs, as_json):
    """Measure and print."""
    rows = Rows.of(real_layers("smollm2"))
    work = {
        "front": lambda: front(rows, jobs), "speed": lambda: speed(rows, jobs, sample),
        "brute": lambda: brute(rows), "cluster": lambda: on_cluster(rows),
    }  # fmt: skip
    result = {part: work[part]() for part in parts or work}
    click.echo(json.dumps(result, indent=None if as_json else 1))


if __name__ == "__main__":
    main()
