"""Write ``rtl/`` and ``luts/`` anew.

    python tools/regenerate.py

A test compares both with what this would write.
"""

import shutil
from pathlib import Path

from hwnorm.design import CATALOGUE
from hwnorm.export.catalogue import lut_files, preset_files
from hwnorm.files import write_tree

ROOT = Path(__file__).resolve().parent.parent


def main():
    """Replace both folders."""
    trees = {"rtl": {}, "luts": lut_files()}
    for name in CATALOGUE:
        trees["rtl"] |= preset_files(name)
    for folder, files in trees.items():
        for old in (ROOT / folder).glob("*"):
            if old.name != "README.md":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        write_tree(ROOT / folder, files)
        size = sum(len(text) for text in files.values())
        print(f"{folder}/: {len(files)} files, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
