"""Several runs of nextpnr on one loopback."""

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock

from hwnorm.synth.cache import cached
from hwnorm.synth.harness import INSTANCE, TOP
from hwnorm.synth.names import FlowNames
from hwnorm.synth.netlist import build_netlist
from hwnorm.synth.place import place
from hwnorm.synth.targets import find_target


class Runs:
    """Seeds of nextpnr, each kept as soon as it is done.

    The loopback is synthesised when the first run needs it: never, if all are in the cache.

    Parameters
    ----------
    text : str
        Verilog of the loopback and the design.
    script : tuple of str
        Yosys' scripts.
    design : hwnorm.Norm or None
    target : str
    device : Device
    options : tuple of str
        Of nextpnr.
    yosys, placer, packer : Tool
        The last one None: no bitstream.
    cache : bool
    """

    def __init__(self, text, script, design, target, device, options, yosys, placer, packer, cache):
        self.text, self.script, self.design = text, script, design
        self.target, self.device, self.options = target, device, options
        self.yosys, self.placer, self.packer = yosys, placer, packer
        self.cache = cache
        self._lock, self._built, self._names = Lock(), None, None

    def of(self, seeds, jobs, tick):
        """The results of `place` for each seed, with ``seed``.

        Parameters
        ----------
        seeds : list of int
        jobs : int
            How many at a time.
        tick : callable
            Called with 1 after each.
        """
        done = []
        with tempfile.TemporaryDirectory(prefix="hwnorm-pnr-") as folder:
            # The first by itself: it compiles YoWASP's tool, for whose cache two would fight.
            for batch, workers in ((seeds[:1], 1), (seeds[1:], jobs)):
                with ThreadPoolExecutor(workers) as pool:
                    try:
                        for found in pool.map(partial(self._ask, Path(folder)), batch):
                            done.append(found)
                            tick(1)
                    except BaseException:
                        pool.shutdown(cancel_futures=True)
                        raise
        return [found | {"seed": seed} for found, seed in zip(done, seeds, strict=True)]

    def _ask(self, folder, seed):
        names = (self.yosys.name, self.placer.name)
        known = self.design is not None
        question = ("place", self.text, self.script, names, self.target, self.options, seed, known)
        return cached(
            question,
            partial(self._run, folder, seed),
            self.cache,
            lambda found: found.get("bits") or not self.packer,
        )

    def _run(self, folder, seed):
        with self._lock:
            if self._built is None:
                module = build_netlist(
                    self.yosys, folder, self.text, TOP, self.script, find_target(self.target).finish
                )
                self._names = FlowNames(self.design, module, INSTANCE)
                self._built = folder / "netlist.json"
        own = folder / f"seed{seed}"
        own.mkdir()
        shutil.copyfile(self._built, own / "netlist.json")
        return place(
            self.placer, own, self.device, self.target, self.options, seed, self._names, self.packer
        )
